//! Adds chairs in layers, each with a random rotation and velocity.

use super::bodies::{Mass, New, Velocity};
use crate::chair::Model;
use crate::contacts::Form;
use crate::picture::Shape;
use bevy_ecs::prelude::*;
use glam::{Quat, Vec3};
use parry3d::math::Pose3;
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus as Rng;

/// Layers of chairs at the start.
pub const LAYERS: usize = 12;
/// Max distance in metres along each axis between a chair's start and the centre of its cell.
const JITTER: f32 = 0.05;
/// Damping of a chair's rotation per second.
const DAMPING: f32 = 0.1;

/// The model of the chairs, and the random numbers of the next ones.
#[derive(Resource)]
pub struct Chairs {
    pub model: Model,
    rng: Rng,
}

/// Cells for chairs, in layers of `width` by `width`.
#[derive(Clone, Copy)]
pub struct Grid {
    pub width: usize,
    /// The height of its lowest point.
    pub bottom: f32,
}

impl Chairs {
    pub const fn new(model: Model, rng: Rng) -> Self {
        Self { model, rng }
    }

    /// Adds chairs in the cells of a grid.
    pub fn spawn(&mut self, world: &mut World, count: usize, grid: Grid) {
        let (model, rng) = (&self.model, &mut self.rng);
        // A chair can rotate freely in its cell.
        let spacing = 2.0 * (model.radius + 2.0 * JITTER);
        for chair in 0..count {
            let center = cell(chair, grid.width) * spacing + vector(rng, JITTER);
            let rotation = rotation(rng);
            let chair = New {
                pose: Pose3::from_parts(center + Vec3::Y * grid.bottom, rotation),
                velocity: Velocity {
                    linear: vector(rng, 0.3),
                    angular: vector(rng, 1.0),
                },
                mass: Mass::new(model.mass, model.inertia, DAMPING),
                shape: (Shape::Chair, Vec3::ONE),
                form: Form::Box,
                parts: &model.parts,
            };
            chair.spawn(world);
        }
    }
}

/// Returns the centre of a chair's cell, in cells, for layers of `width` by `width`.
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
