//! Chairs dropped onto a heap: each is one rigid body of nine boxes. The boxes go through the broad phase with a group for
//! each chair and a static floor; contacts come from the pairs found, and the solver moves the chairs. Heaps at rest are put to sleep
//! ([`super::islands`]): their boxes do not pair with each other until something wakes them.

use super::chair::{self, Part};
use super::contacts::{self, Placed};
use super::islands::Islands;
use super::solver::{self, Body, Contact};
use super::{BoxIndex, Boxes, Instance, Pairs, Picture, Scene, schedule};
use bevy_ecs::prelude::*;
use glam::{Mat3, Quat, Vec3};
use parry3d::math::Pose3;
use radsweep::{Filter, FilterFlags};
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus as Rng;

/// Pose of a body's centre of mass.
#[derive(Component, Clone, Copy)]
struct Pose(Pose3);

#[derive(Component, Clone, Copy)]
struct Velocity {
    linear: Vec3,
    angular: Vec3,
}

/// Whether a body was put to sleep.
#[derive(Component, Clone, Copy, Default)]
struct Asleep(bool);

/// Mass and inertia of a body, by its index in the solver. The floor is body 0 and has an infinite mass.
#[derive(Component, Clone)]
struct RigidBody {
    index: u32,
    inverse_mass: f32,
    inertia: Mat3,
    inverse_inertia: Mat3,
}

/// A box of a body: its centre and half extents in the body's own axes.
#[derive(Component)]
struct PartOf {
    body: u32,
    center: Vec3,
    half: Vec3,
}

/// Poses of bodies and boxes as plain lists, for the stages that run over pairs.
#[derive(Resource, Default)]
struct Physics {
    bodies: Vec<Body>,
    boxes: Vec<Placed>,
    contacts: Vec<Contact>,
    /// Those among bodies that sleep, for the frame that wakes them: nothing has moved since, and there are no pairs of them yet.
    dormant: Vec<Contact>,
}

/// Layers that the chairs are dropped in.
const LAYERS: usize = 12;
/// How far a chair is from the middle of its cell at the start, at most, along each axis, in metres.
const JITTER: f32 = 0.05;

pub(super) fn scene(chairs: usize, rng: &mut Rng) -> Scene {
    let model = chair::model();
    let count = chairs * model.parts.len() + 1;
    let mut boxes = Boxes::new(count);
    boxes.filters = vec![Filter::default(); count];
    // What sleeps has nothing to do with the floor.
    boxes.filters[0].flags = FilterFlags::STATIC | FilterFlags::ASLEEP;
    boxes.bodies = vec![0; count];
    let mut world = World::new();

    // As wide as the chairs may roll, a metre thick, its top at y = 0.
    let width = chairs.div_ceil(LAYERS).isqrt().max(1);
    let size = Vec3::new(20.0 + 2.0 * width as f32, 0.5, 20.0 + 2.0 * width as f32);
    let floor = RigidBody {
        index: 0,
        inverse_mass: 0.0,
        inertia: Mat3::ZERO,
        inverse_inertia: Mat3::ZERO,
    };
    world.spawn((
        Pose(Pose3::translation(0.0, -0.5, 0.0)),
        still(),
        floor,
        Asleep::default(),
    ));
    world.spawn((
        BoxIndex(0),
        PartOf {
            body: 0,
            center: Vec3::ZERO,
            half: size,
        },
    ));

    // A cell that a chair turns freely in.
    let spacing = 2.0 * (model.radius + 2.0 * JITTER);
    let mut next = 1;
    for chair in 0..chairs {
        let index = chair as u32 + 1;
        let (x, y, z) = (
            chair % width,
            chair / (width * width),
            chair / width % width,
        );
        let middle = (width - 1) as f32 / 2.0;
        // Every second layer is shifted, so that chairs meet rather than fall past each other.
        let shift = if y % 2 == 1 { 1.0 / 3.0 } else { 0.0 };
        let cell = Vec3::new(
            x as f32 - middle + shift,
            y as f32 + 0.5,
            z as f32 - middle + shift,
        );
        let center = cell * spacing + vector(rng, JITTER);
        world.spawn((
            Pose(Pose3::from_parts(center, rotation(rng))),
            Velocity {
                linear: vector(rng, 0.3),
                angular: vector(rng, 1.0),
            },
            RigidBody {
                index,
                inverse_mass: 1.0 / model.mass,
                inertia: model.inertia,
                inverse_inertia: model.inertia.inverse(),
            },
            Asleep::default(),
        ));
        for &Part { center, half } in &model.parts {
            boxes.filters[next as usize].group = index;
            boxes.bodies[next as usize] = index;
            world.spawn((
                BoxIndex(next),
                PartOf {
                    body: index,
                    center,
                    half,
                },
            ));
            next += 1;
        }
    }
    world.insert_resource(boxes);
    world.init_resource::<Pairs>();
    world.init_resource::<Islands>();
    let mut placed = vec![Placed::default(); count];
    placed[0].half = size;
    world.insert_resource(Physics {
        boxes: placed,
        ..Physics::default()
    });
    // They can be drawn before the first frame.
    schedule(gather).run(&mut world);
    let place = schedule((gather, place).chain());
    let respond = vec![
        ("contacts", schedule(find_contacts)),
        ("solve", schedule(solve)),
        ("sleep", schedule((sleep, scatter).chain())),
    ];
    Scene::on_host(world, place, respond, draw)
}

/// Bodies into the solver's list, in the order of their indices, which is that of their entities.
fn gather(query: Query<(&RigidBody, &Pose, &Velocity, &Asleep)>, mut physics: ResMut<Physics>) {
    physics.bodies.clear();
    physics
        .bodies
        .extend(query.iter().map(|(body, pose, velocity, asleep)| Body {
            pose: pose.0,
            linear: velocity.linear,
            angular: velocity.angular,
            inverse_mass: body.inverse_mass,
            inertia: body.inertia,
            inverse_inertia: body.inverse_inertia,
            asleep: asleep.0,
        }));
}

fn place(
    query: Query<(&BoxIndex, &PartOf)>,
    mut physics: ResMut<Physics>,
    mut boxes: ResMut<Boxes>,
) {
    let physics = &mut *physics;
    for (&index, part) in &query {
        let body = &physics.bodies[part.body as usize];
        let placed = Placed::new(part.body, body, part.center, part.half);
        let (center, half) = placed.swept();
        boxes.set(index, center, half);
        if part.body > 0 {
            boxes.filters[index.0 as usize].flags = if body.asleep {
                FilterFlags::ASLEEP
            } else {
                FilterFlags::NONE
            };
        }
        physics.boxes[index.0 as usize] = placed;
    }
}

fn find_contacts(pairs: Res<Pairs>, mut physics: ResMut<Physics>, islands: Res<Islands>) {
    let Physics {
        bodies,
        boxes,
        contacts,
        dormant,
    } = &mut *physics;
    *contacts = contacts::find(&pairs.0, boxes, bodies, contacts);
    if islands.rouse(bodies, contacts) {
        contacts.extend(dormant.extract_if(.., |contact| !is_still(contact, bodies)));
        contacts.sort_by_key(|contact| contact.pair);
    }
}

/// Whether none of the two bodies moves.
fn is_still(contact: &Contact, bodies: &[Body]) -> bool {
    let mut both = contact.bodies.into_iter();
    both.all(|body| !bodies[body as usize].is_awake())
}

fn solve(mut physics: ResMut<Physics>) {
    let Physics {
        bodies, contacts, ..
    } = &mut *physics;
    solver::step(bodies, contacts);
}

fn sleep(mut physics: ResMut<Physics>, mut islands: ResMut<Islands>) {
    let Physics {
        bodies,
        contacts,
        dormant,
        ..
    } = &mut *physics;
    if islands.settle(bodies, contacts) {
        dormant.extend(contacts.extract_if(.., |contact| is_still(contact, bodies)));
    }
}

/// What became of the bodies, back to their entities.
fn scatter(
    mut query: Query<(&RigidBody, &mut Pose, &mut Velocity, &mut Asleep)>,
    physics: Res<Physics>,
) {
    for (body, mut pose, mut velocity, mut asleep) in &mut query {
        let moved = &physics.bodies[body.index as usize];
        pose.0 = moved.pose;
        *velocity = Velocity {
            linear: moved.linear,
            angular: moved.angular,
        };
        asleep.0 = moved.asleep;
    }
}

/// The floor as a box, then the chairs.
fn draw(world: &World, picture: &mut Picture) {
    let physics = world.resource::<Physics>();
    let floor = physics.boxes[0].half;
    let instance = |(body, index): (&Body, u32)| Instance {
        position: body.pose.translation.into(),
        body: index,
        rotation: body.pose.rotation.into(),
        scale: if index == 0 { floor.into() } else { [1.0; 3] },
        speed: body.linear.length(),
        asleep: body.asleep.into(),
    };
    let mut all = physics.bodies.iter().zip(0..).map(instance);
    picture.boxes.extend(all.next());
    picture.chairs.extend(all);
}

const fn still() -> Velocity {
    Velocity {
        linear: Vec3::ZERO,
        angular: Vec3::ZERO,
    }
}

fn vector(rng: &mut Rng, reach: f32) -> Vec3 {
    Vec3::from_array(std::array::from_fn(|_| rng.random_range(-reach..reach)))
}

/// Uniform over all rotations (K. Shoemake, "Uniform Random Rotations", Graphics Gems III, 1992).
fn rotation(rng: &mut Rng) -> Quat {
    let turn = std::f32::consts::TAU;
    let (u, a, b): (f32, _, _) = (
        rng.random(),
        rng.random_range(0.0..turn),
        rng.random_range(0.0..turn),
    );
    let (low, high) = ((1.0 - u).sqrt(), u.sqrt());
    Quat::from_xyzw(low * a.sin(), low * a.cos(), high * b.sin(), high * b.cos())
}

#[cfg(test)]
mod tests;
