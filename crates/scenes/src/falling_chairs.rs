//! The scene `falling-chairs`: chairs fall onto a heap. Each is one rigid body of nine boxes.
//!
//! The broad phase pairs the boxes, with a group for each chair and a static floor. The contacts of
//! the pairs go to the solver, which moves the chairs. Resting heaps fall asleep
//! ([`super::islands`]): their boxes do not pair with each other until something wakes them.

mod act;
mod bodies;
mod chairs;

use super::chair::{self, Part};
use super::contacts::{self, Form};
use super::islands::Islands;
use super::picture::{Instance, Picture, Shape};
use super::scene::{Boxes, Pairs, Scene, schedule};
use super::solver;
use bevy_ecs::prelude::*;
use bodies::{Mass, New, Physics, Velocity, gather, place, scatter};
use chairs::{Chairs, Grid, LAYERS};
use glam::Vec3;
use parry3d::math::Pose3;
use rand::rngs::Xoshiro256PlusPlus as Rng;

pub(super) fn scene(chairs: usize, rng: &mut Rng) -> Scene {
    let mut world = World::new();
    world.insert_resource(Boxes::new(0));
    world.init_resource::<Physics>();
    world.init_resource::<Pairs>();
    world.init_resource::<Islands>();
    // As wide as the chairs may roll, a metre thick, its top at y = 0.
    let width = chairs.div_ceil(LAYERS).isqrt().max(1);
    let floor = Vec3::new(20.0 + 2.0 * width as f32, 0.5, 20.0 + 2.0 * width as f32);
    spawn_floor(&mut world, floor);
    let mut makes = Chairs::new(chair::model(), rng.clone());
    makes.spawn(&mut world, chairs, Grid { width, bottom: 0.0 });
    world.insert_resource(makes);
    // The scene can be drawn before the first frame.
    schedule(gather).run(&mut world);
    let place = schedule((gather, place).chain());
    let respond = vec![
        ("contacts", schedule(find_contacts)),
        ("solve", schedule(solve)),
        ("sleep", schedule((sleep, scatter).chain())),
    ];
    Scene::on_host(world, place, respond, draw).acting(act::act)
}

/// Adds the floor, a box of these half extents.
fn spawn_floor(world: &mut World, half: Vec3) {
    let floor = New {
        pose: Pose3::translation(0.0, -half.y, 0.0),
        velocity: Velocity::default(),
        mass: Mass::INFINITE,
        shape: (Shape::Box, half),
        form: Form::Box,
        parts: &[Part {
            center: Vec3::ZERO,
            half,
        }],
    };
    floor.spawn(world);
}

fn find_contacts(pairs: Res<Pairs>, mut physics: ResMut<Physics>, islands: Res<Islands>) {
    let Physics {
        bodies,
        boxes,
        contacts,
        ..
    } = &mut *physics;
    *contacts = contacts::find(&pairs.0, boxes, bodies, contacts);
    if islands.rouse(bodies, contacts) {
        physics.resume();
    }
}

fn solve(mut physics: ResMut<Physics>) {
    let Physics {
        bodies,
        contacts,
        grip,
        ..
    } = &mut *physics;
    if let Some(grip) = grip {
        grip.pull(&mut bodies[grip.body as usize]);
    }
    solver::step(bodies, contacts);
}

fn sleep(mut physics: ResMut<Physics>, mut islands: ResMut<Islands>) {
    let Physics {
        bodies, contacts, ..
    } = &mut *physics;
    if islands.settle(bodies, contacts) {
        physics.rest();
    }
}

/// Draws the floor as a box, then the chairs and the balls that were thrown.
fn draw(world: &World, picture: &mut Picture) {
    let physics = world.resource::<Physics>();
    for ((body, &(shape, scale)), index) in physics.bodies.iter().zip(&physics.shapes).zip(0..) {
        picture.add(
            shape,
            Instance {
                position: body.pose.translation.into(),
                body: index,
                rotation: body.pose.rotation.into(),
                scale: scale.into(),
                speed: body.linear.length(),
                asleep: body.asleep.into(),
            },
        );
    }
}

#[cfg(test)]
mod tests;
