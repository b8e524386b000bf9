//! The scenes `uniform`, `clustered` and `mixed-sizes`: boxes that drift through a cube and bounce
//! off its walls.

use super::act::{Action, Added, Blast, Held, Refusal};
use super::scene::{BoxIndex, Boxes, Scene, draw_boxes, schedule};
use bevy_ecs::prelude::*;
use glam::Vec3;
use radsweep::Aabb;
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus as Rng;

#[derive(Component)]
struct Center(Vec3);

#[derive(Component)]
struct HalfExtents(Vec3);

/// The motion per frame.
#[derive(Component)]
struct Velocity(Vec3);

/// The side of the cube, with a corner at the origin, that contains the centres.
#[derive(Resource)]
struct Side(f32);

/// Frames per second, for the speeds of actions.
const FRAMES: f32 = 60.0;
/// Max motion per frame as a share of a box's half extent, so that most pairs last for many frames.
const DRIFT: f32 = 0.05;

/// Builds `uniform`: centres uniform in a cube of side `n^(1/3)`, half extents uniform in 0.2 to
/// 0.5 per axis.
pub(super) fn uniform(bodies: usize, density: f32, rng: &mut Rng) -> Scene {
    let side = (bodies as f32 / density).cbrt();
    let placed = (0..bodies)
        .map(|_| (vector(rng, 0.0, side), vector(rng, 0.2, 0.5)))
        .collect();
    scene(placed, side, rng)
}

/// Builds `clustered`: half of the boxes in clusters of 1000, normally distributed, whose spreads
/// differ by up to a factor of ten; the other half uniform.
pub(super) fn clustered(bodies: usize, density: f32, rng: &mut Rng) -> Scene {
    let side = (2.0 * bodies as f32 / density).cbrt();
    // At a spread of 4, the centre of a cluster is as dense as `uniform`; for 1 to 10 it is sixty
    // times to a sixteenth as dense.
    let clusters: Vec<(Vec3, f32)> = (0..bodies.div_ceil(2000))
        .map(|_| {
            (
                vector(rng, 0.0, side),
                10.0_f32.powf(rng.random_range(0.0..1.0)) / density.cbrt(),
            )
        })
        .collect();
    let placed = (0..bodies)
        .map(|index| {
            let half = vector(rng, 0.2, 0.5);
            if index % 2 == 1 {
                return (vector(rng, 0.0, side), half);
            }
            let (middle, spread) = clusters[index / 2000];
            let center = middle + normal(rng) * spread;
            (center.clamp(Vec3::ZERO, Vec3::splat(side)), half)
        })
        .collect();
    scene(placed, side, rng)
}

/// Builds `mixed-sizes`: half extents from 0.001 to 1000, uniform on a logarithmic scale, each axis
/// between half of it and all of it. A box has about ten pairs at density 1.
pub(super) fn mixed_sizes(bodies: usize, density: f32, rng: &mut Rng) -> Scene {
    // Boxes of half extents a and b overlap with probability (2a + 2b)^3 / side^3, away from the
    // walls. With ln(a) uniform over ln(10^6) = 13.8, the mean of (a + b)^3 is some 2 · 1000^3 / 3
    // / 13.8 · 1.2, and an axis has 3/4 of the size on average.
    let volume = bodies as f32 * 8.0 * 0.42 * 5.8e7 / (2.0 * 10.0 * density);
    let side = volume.cbrt().max(2.0);
    let placed = (0..bodies)
        .map(|_| {
            let size = 10.0_f32.powf(rng.random_range(-3.0..3.0));
            (vector(rng, 0.0, side), vector(rng, 0.5, 1.0) * size)
        })
        .collect();
    scene(placed, side, rng)
}

fn scene(placed: Vec<(Vec3, Vec3)>, side: f32, rng: &mut Rng) -> Scene {
    let mut world = World::new();
    world.insert_resource(Boxes::new(placed.len()));
    world.insert_resource(Side(side));
    let entities: Vec<_> = placed
        .into_iter()
        .zip(0..)
        .map(|((center, half), index)| {
            let velocity = vector(rng, -DRIFT, DRIFT) * half;
            (
                BoxIndex(index),
                Center(center),
                HalfExtents(half),
                Velocity(velocity),
            )
        })
        .collect();
    world.spawn_batch(entities);
    world.insert_resource(Added(rng.clone()));
    world.init_resource::<Held>();
    let place = schedule((drag, place, drift).chain());
    Scene::on_host(world, place, Vec::new(), draw_boxes).acting(act)
}

fn act(world: &mut World, action: &Action) -> Result<(), Refusal> {
    match *action {
        Action::Throw {
            from,
            velocity,
            radius,
        } => {
            world.resource::<Boxes>().check_capacity(1)?;
            let half = Vec3::splat(radius);
            add(world, from.into(), half, Vec3::from(velocity) / FRAMES);
        }
        Action::Add { count } => {
            world.resource::<Boxes>().check_capacity(count)?;
            add_alike(world, count);
        }
        Action::Explode { at, speed, radius } => {
            let at = at.into();
            let blast = Blast { at, speed, radius };
            for (center, mut velocity) in world.query::<(&Center, &mut Velocity)>().iter_mut(world)
            {
                velocity.0 += blast.gain(center.0).unwrap_or_default() / FRAMES;
            }
        }
        Action::Grab { .. } | Action::Drag { .. } | Action::Release => {
            world.resource_scope(|world, mut held: Mut<Held>| {
                let mut all = world.query::<&Center>();
                held.act(action, |body| all.iter(world).nth(body).map(|at| at.0))
            })?;
        }
    }
    Ok(())
}

/// Adds a box inside the cube.
fn add(world: &mut World, center: Vec3, half: Vec3, velocity: Vec3) {
    let side = Vec3::splat(world.resource::<Side>().0);
    let center = center.clamp(Vec3::ZERO, side);
    let mut boxes = world.resource_mut::<Boxes>();
    let index = BoxIndex(boxes.aabbs.len() as u32);
    boxes.aabbs.push(Aabb::EMPTY);
    // It is drawn before the next frame.
    boxes.set(index, center, half);
    world.spawn((index, Center(center), HalfExtents(half), Velocity(velocity)));
}

/// Adds boxes at random, each of the size of one that there is.
fn add_alike(world: &mut World, count: usize) {
    let side = world.resource::<Side>().0;
    let mut sizes = world.query::<&HalfExtents>();
    let sizes: Vec<Vec3> = sizes.iter(world).map(|half| half.0).collect();
    world.resource_scope(|world, mut added: Mut<Added>| {
        let rng = &mut added.0;
        for _ in 0..count {
            let half = sizes[rng.random_range(0..sizes.len())];
            let velocity = vector(rng, -DRIFT, DRIFT) * half;
            add(world, vector(rng, 0.0, side), half, velocity);
        }
    });
}

/// Sets the motion of the held box, so that it follows its target. The order of the entities is
/// that of their boxes.
fn drag(held: Res<Held>, mut all: Query<(&Center, &mut Velocity)>) {
    if let Some(body) = held.body()
        && let Some((center, mut velocity)) = all.iter_mut().nth(body)
    {
        velocity.0 = held.motion(center.0);
    }
}

fn place(query: Query<(&BoxIndex, &Center, &HalfExtents)>, mut boxes: ResMut<Boxes>) {
    for (&index, center, half) in &query {
        boxes.set(index, center.0, half.0);
    }
}

/// Moves every box for the next frame.
fn drift(mut query: Query<(&mut Center, &mut Velocity)>, side: Res<Side>) {
    for (mut center, mut velocity) in &mut query {
        let next = center.0 + velocity.0;
        let outside = next.cmplt(Vec3::ZERO) | next.cmpgt(Vec3::splat(side.0));
        if outside.any() {
            velocity.0 = Vec3::select(outside, -velocity.0, velocity.0);
        }
        center.0 = next.clamp(Vec3::ZERO, Vec3::splat(side.0));
    }
}

fn vector(rng: &mut Rng, low: f32, high: f32) -> Vec3 {
    Vec3::from_array(std::array::from_fn(|_| rng.random_range(low..high)))
}

/// Returns a vector with standard normal components (Box and Muller 1958).
fn normal(rng: &mut Rng) -> Vec3 {
    Vec3::from_array(std::array::from_fn(|_| {
        let radius = (-2.0 * (1.0 - rng.random::<f32>()).ln()).sqrt();
        radius * (std::f32::consts::TAU * rng.random::<f32>()).cos()
    }))
}
