//! The scene `falling-chairs`: chairs fall onto a heap. Each is one rigid body of nine boxes.
//!
//! The broad phase pairs the boxes, with a group for each chair and a static floor. The contacts of
//! the pairs go to the solver, which moves the chairs. Resting heaps fall asleep
//! ([`super::islands`]): their boxes do not pair with each other until something wakes them.

use super::chair::{self, Model, Part};
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

/// The pose of a body's centre of mass.
#[derive(Component, Clone, Copy)]
struct Pose(Pose3);

#[derive(Component, Clone, Copy)]
struct Velocity {
    linear: Vec3,
    angular: Vec3,
}

/// Whether a body sleeps.
#[derive(Component, Clone, Copy, Default)]
struct Asleep(bool);

/// The mass and inertia of a body, and its index in the solver. The floor is body 0 and has
/// infinite mass.
#[derive(Component, Clone)]
struct RigidBody {
    index: u32,
    inverse_mass: f32,
    inertia: Mat3,
    inverse_inertia: Mat3,
}

/// A box of a body: its centre and half extents in the body's axes.
#[derive(Component)]
struct PartOf {
    body: u32,
    center: Vec3,
    half: Vec3,
}

/// The bodies and boxes as plain lists, for the stages that process pairs.
#[derive(Resource, Default)]
struct Physics {
    bodies: Vec<Body>,
    boxes: Vec<Placed>,
    contacts: Vec<Contact>,
    /// Contacts between sleeping bodies. The frame that wakes the bodies reuses them: it has no
    /// pairs for them yet, and nothing has moved.
    dormant: Vec<Contact>,
}

/// Layers of chairs at the start.
const LAYERS: usize = 12;
/// Max distance in metres along each axis between a chair's start and the centre of its cell.
const JITTER: f32 = 0.05;

pub(super) fn scene(chairs: usize, rng: &mut Rng) -> Scene {
    let model = chair::model();
    let count = chairs * model.parts.len() + 1;
    let mut boxes = Boxes::new(count);
    boxes.filters = vec![Filter::default(); count];
    // Sleeping bodies do not pair with the floor.
    boxes.filters[0].flags = FilterFlags::STATIC | FilterFlags::ASLEEP;
    boxes.bodies = vec![0; count];
    let mut world = World::new();

    // As wide as the chairs may roll, a metre thick, its top at y = 0.
    let width = chairs.div_ceil(LAYERS).isqrt().max(1);
    let floor = Vec3::new(20.0 + 2.0 * width as f32, 0.5, 20.0 + 2.0 * width as f32);
    spawn_floor(&mut world, floor);
    // A chair can rotate freely in its cell.
    let spacing = 2.0 * (model.radius + 2.0 * JITTER);
    for chair in 0..chairs {
        let center = cell(chair, width) * spacing + vector(rng, JITTER);
        spawn_chair(&mut world, &mut boxes, &model, chair, center, rng);
    }
    world.insert_resource(boxes);
    world.init_resource::<Pairs>();
    world.init_resource::<Islands>();
    let mut placed = vec![Placed::default(); count];
    placed[0].half = floor;
    world.insert_resource(Physics {
        boxes: placed,
        ..Physics::default()
    });
    // The scene can be drawn before the first frame.
    schedule(gather).run(&mut world);
    let place = schedule((gather, place).chain());
    let respond = vec![
        ("contacts", schedule(find_contacts)),
        ("solve", schedule(solve)),
        ("sleep", schedule((sleep, scatter).chain())),
    ];
    Scene::on_host(world, place, respond, draw)
}

/// Adds the floor, a box of these half extents.
fn spawn_floor(world: &mut World, half: Vec3) {
    let floor = RigidBody {
        index: 0,
        inverse_mass: 0.0,
        inertia: Mat3::ZERO,
        inverse_inertia: Mat3::ZERO,
    };
    let at_rest = Velocity {
        linear: Vec3::ZERO,
        angular: Vec3::ZERO,
    };
    let pose = Pose(Pose3::translation(0.0, -half.y, 0.0));
    world.spawn((pose, at_rest, floor, Asleep::default()));
    let part = PartOf {
        body: 0,
        center: Vec3::ZERO,
        half,
    };
    world.spawn((BoxIndex(0), part));
}

/// Returns the centre of a chair's cell at the start, in cells, for layers of `width` by `width`.
fn cell(chair: usize, width: usize) -> Vec3 {
    let (x, y, z) = (
        chair % width,
        chair / (width * width),
        chair / width % width,
    );
    let middle = (width - 1) as f32 / 2.0;
    // Every second layer is shifted, so that chairs hit those below instead of falling past them.
    let shift = if y % 2 == 1 { 1.0 / 3.0 } else { 0.0 };
    Vec3::new(
        x as f32 - middle + shift,
        y as f32 + 0.5,
        z as f32 - middle + shift,
    )
}

/// Adds a chair with a random rotation and velocity.
fn spawn_chair(
    world: &mut World,
    boxes: &mut Boxes,
    model: &Model,
    chair: usize,
    center: Vec3,
    rng: &mut Rng,
) {
    let index = chair as u32 + 1;
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
    let first = 1 + chair * model.parts.len();
    for (next, &Part { center, half }) in (first..).zip(&model.parts) {
        boxes.filters[next].group = index;
        boxes.bodies[next] = index;
        let part = PartOf {
            body: index,
            center,
            half,
        };
        world.spawn((BoxIndex(next as u32), part));
    }
}

/// Copies the bodies to the solver's list. The order of the entities is that of their indices.
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

/// Returns whether neither of the two bodies moves.
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

/// Copies the bodies back to their entities.
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

/// Draws the floor as a box, then the chairs.
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

fn vector(rng: &mut Rng, reach: f32) -> Vec3 {
    Vec3::from_array(std::array::from_fn(|_| rng.random_range(-reach..reach)))
}

/// Returns a uniformly distributed rotation (K. Shoemake, "Uniform Random Rotations", Graphics Gems
/// III, 1992).
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
