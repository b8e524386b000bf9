//! The scene `stack`: towers of unit cubes on a ground plate, face to face, sheared by a travelling
//! wave.
//!
//! Every cube touches the one above it and, without a shift, its eight neighbours in the layer.
//! Touching boxes overlap under the closed rule, so the coordinates must be exact. All cubes of a
//! layer have the same vertical interval.

use super::scene::{BoxIndex, Boxes, Scene, draw_boxes, schedule};
use bevy_ecs::prelude::*;
use glam::Vec3;
use radsweep::{Filter, FilterFlags};
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus as Rng;

/// The position of a cube in the stack: column, layer, row.
#[derive(Component)]
struct Cell(Vec3);

/// The plate under the towers.
#[derive(Component)]
struct Ground(Vec3);

#[derive(Resource)]
struct Wave {
    frame: u32,
    phase: f32,
}

/// Layers of a tower.
const HEIGHT: usize = 32;
/// Max shift of a layer by the wave: less than half a cube, so that a cube stays on the one below.
const REACH: f32 = 0.2;

pub(super) fn scene(bodies: usize, rng: &mut Rng) -> Scene {
    let height = HEIGHT.min(bodies);
    let width = bodies.div_ceil(height).isqrt().max(1);
    let mut boxes = Boxes::new(bodies + 1);
    boxes.filters = vec![Filter::default(); bodies + 1];
    boxes.filters[0].flags = FilterFlags::STATIC;
    let mut world = World::new();
    world.insert_resource(boxes);
    world.insert_resource(Wave {
        frame: 0,
        phase: rng.random_range(0.0..std::f32::consts::TAU),
    });
    let depth = bodies.div_ceil(height * width);
    world.spawn((
        BoxIndex(0),
        Ground(Vec3::new(width as f32, 1.0, depth as f32)),
    ));
    let cells: Vec<_> = (0..bodies)
        .zip(1..)
        .map(|(cell, index)| {
            let (layer, tower) = (cell % height, cell / height);
            let cell = Vec3::new((tower % width) as f32, layer as f32, (tower / width) as f32);
            (BoxIndex(index), Cell(cell))
        })
        .collect();
    world.spawn_batch(cells);
    Scene::on_host(world, schedule(place), Vec::new(), draw_boxes)
}

fn place(
    cells: Query<(&BoxIndex, &Cell)>,
    ground: Query<(&BoxIndex, &Ground)>,
    mut boxes: ResMut<Boxes>,
    mut wave: ResMut<Wave>,
) {
    for (&index, Ground(size)) in &ground {
        boxes.set(
            index,
            Vec3::new(size.x / 2.0, -0.5, size.z / 2.0),
            size / 2.0 + Vec3::new(1.0, 0.0, 1.0),
        );
    }
    // Each layer has one shift, a multiple of 1/1024: sums with whole numbers stay exact.
    let shift = |layer: f32| {
        let angle = wave.phase + 0.05 * wave.frame as f32 + 0.4 * layer;
        (REACH * angle.sin() * 1024.0).round() / 1024.0
    };
    for (&index, Cell(cell)) in &cells {
        let low = cell + Vec3::new(shift(cell.y), 0.0, 0.0);
        boxes.set(index, low + Vec3::splat(0.5), Vec3::splat(0.5));
    }
    wave.frame += 1;
}
