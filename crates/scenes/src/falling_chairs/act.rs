//! What a user does to the chairs.

use super::bodies::{Mass, New, Physics, Velocity, gather, scatter};
use super::chairs::{Chairs, Grid};
use crate::act::{Action, Blast, Refusal};
use crate::chair::Part;
use crate::contacts::Form;
use crate::grip::Grip;
use crate::islands::Islands;
use crate::picture::Shape;
use crate::scene::{Boxes, schedule};
use bevy_ecs::prelude::*;
use glam::{Mat3, Vec3};
use parry3d::math::Pose3;

/// Density of a ball in kg per cubic metre: of 40 cm radius, it has the mass of six chairs.
const BALL_DENSITY: f32 = 200.0;
/// Damping of a ball's rotation per second: on the floor it rolls for some seconds.
const BALL_DAMPING: f32 = 3.0;
/// Layers in which chairs are added.
const ADDED_LAYERS: usize = 4;

pub fn act(world: &mut World, action: &Action) -> Result<(), Refusal> {
    match *action {
        Action::Throw {
            from,
            velocity,
            radius,
        } => throw(world, from.into(), velocity.into(), radius)?,
        Action::Add { count } => add(world, count)?,
        _ => {
            world.resource_scope(|world, mut physics: Mut<Physics>| {
                touch(&mut physics, world.resource::<Islands>(), action)
            })?;
            schedule(scatter).run(world);
        }
    }
    schedule(gather).run(world);
    Ok(())
}

/// Carries out an action on the bodies that there are.
fn touch(physics: &mut Physics, islands: &Islands, action: &Action) -> Result<(), Refusal> {
    match *action {
        Action::Grab { body, point } => {
            let found = physics.bodies.get(body as usize);
            let found = found.filter(|body| body.inverse_mass > 0.0);
            let pose = found.ok_or(Refusal::Body { body })?.pose;
            let point = Vec3::from(point);
            physics.grip = Some(Grip {
                body,
                anchor: pose.rotation.inverse() * (point - pose.translation),
                target: point,
            });
            physics.wake(islands, [body].into_iter());
        }
        Action::Drag { target } => {
            if let Some(grip) = &mut physics.grip {
                grip.target = target.into();
                let body = grip.body;
                physics.wake(islands, [body].into_iter());
            }
        }
        Action::Release => {
            if let Some(grip) = physics.grip.take() {
                physics.wake(islands, [grip.body].into_iter());
            }
        }
        Action::Explode { at, speed, radius } => {
            let at = at.into();
            explode(physics, islands, Blast { at, speed, radius });
        }
        _ => {}
    }
    Ok(())
}

/// Adds a ball of solid wood that flies.
fn throw(world: &mut World, from: Vec3, linear: Vec3, radius: f32) -> Result<(), Refusal> {
    world.resource::<Boxes>().check_capacity(1)?;
    let half = Vec3::splat(radius);
    let mass = BALL_DENSITY * std::f32::consts::PI * 4.0 / 3.0 * radius.powi(3);
    let inertia = Mat3::from_diagonal(Vec3::splat(0.4 * mass * radius * radius));
    let ball = New {
        pose: Pose3::from_translation(from),
        velocity: Velocity {
            linear,
            angular: Vec3::ZERO,
        },
        mass: Mass::new(mass, inertia, BALL_DAMPING),
        shape: (Shape::Sphere, half),
        form: Form::Ball,
        parts: &[Part {
            center: Vec3::ZERO,
            half,
        }],
    };
    ball.spawn(world);
    Ok(())
}

/// Adds chairs above all bodies.
fn add(world: &mut World, count: usize) -> Result<(), Refusal> {
    world.resource_scope(|world, mut chairs: Mut<Chairs>| {
        let boxes = count.saturating_mul(chairs.model.parts.len());
        world.resource::<Boxes>().check_capacity(boxes)?;
        let heights = world.resource::<Physics>().bodies.iter();
        let heights = heights.map(|body| body.pose.translation.y);
        let bottom = heights.fold(0.0, f32::max) + chairs.model.radius;
        let width = count.div_ceil(ADDED_LAYERS).isqrt().max(1);
        chairs.spawn(world, count, Grid { width, bottom });
        Ok(())
    })
}

/// Drives bodies away from a point. Those that sleep wake with their islands.
fn explode(physics: &mut Physics, islands: &Islands, blast: Blast) {
    let gains = physics.bodies.iter().zip(0..);
    let gains = gains.filter(|(body, _)| body.inverse_mass > 0.0);
    let gains: Vec<(u32, Vec3)> = gains
        .filter_map(|(body, index)| Some((index, blast.gain(body.pose.translation)?)))
        .collect();
    physics.wake(islands, gains.iter().map(|gain| gain.0));
    for (body, gain) in gains {
        physics.bodies[body as usize].linear += gain;
    }
}
