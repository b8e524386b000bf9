//! The broad phase with `parry3d`: its boxes are cast without a copy, and its contact manifolds are
//! computed for the pairs only. There are 2,000 randomly rotated balls, capsules and cuboids.
//!
//! `cargo run --release -p radsweep --example parry_contacts`

use parry3d::bounding_volume::Aabb as ParryAabb;
use parry3d::math::{Pose3, Vector};
use parry3d::query::{ContactManifold, DefaultQueryDispatcher, PersistentQueryDispatcher};
use parry3d::shape::SharedShape;
use radsweep::{Aabb, BroadPhase, Config};
use std::time::Instant;

const SHAPES: u32 = 2_000;

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let shapes = [
        SharedShape::ball(0.6),
        SharedShape::capsule_y(0.5, 0.3),
        SharedShape::cuboid(0.4, 0.6, 0.5),
    ];
    let bodies: Vec<(SharedShape, Pose3)> = (0..SHAPES)
        .map(|index| (shapes[index as usize % 3].clone(), pose(index)))
        .collect();

    // parry's boxes, cast to ours: six numbers each, in the same order.
    let theirs: Vec<ParryAabb> = bodies
        .iter()
        .map(|(shape, pose)| shape.compute_aabb(pose))
        .collect();
    let boxes: &[Aabb] = bytemuck::cast_slice(&theirs);
    assert!(
        std::ptr::eq(boxes.as_ptr().cast(), theirs.as_ptr()),
        "the boxes were copied"
    );

    let mut broad_phase = BroadPhase::new(Config::default())?;
    let report = broad_phase.update(boxes)?;
    println!(
        "{SHAPES} shapes, {} pairs in {:.3} ms by {}",
        report.pairs, report.stats.timings.total, report.stats.strategy
    );

    let start = Instant::now();
    let (mut touching, mut points, mut deepest) = (0, 0, (0.0_f32, None));
    for pair in broad_phase.pairs() {
        let [(shape_a, pose_a), (shape_b, pose_b)] =
            [pair.a, pair.b].map(|index| &bodies[index as usize]);
        let mut manifolds: Vec<ContactManifold<(), ()>> = Vec::new();
        let between = pose_a.inv_mul(pose_b);
        DefaultQueryDispatcher.contact_manifolds(
            &between,
            shape_a.as_ref(),
            shape_b.as_ref(),
            0.0,
            &mut manifolds,
            &mut None,
        )?;
        let found = manifolds.iter().flat_map(|manifold| &manifold.points);
        let depth = found
            .clone()
            .map(|point| -point.dist)
            .fold(f32::NEG_INFINITY, f32::max);
        if depth >= 0.0 {
            touching += 1;
            points += found.count();
            if depth > deepest.0 {
                deepest = (depth, Some(*pair));
            }
        }
    }
    println!(
        "{touching} of the pairs touch, in {points} points, found in {:.1} ms",
        start.elapsed().as_secs_f64() * 1e3
    );
    if let (depth, Some(pair)) = deepest {
        println!("deepest: shapes {} and {}, by {depth:.3}", pair.a, pair.b);
    }

    // Check that no pair is missing: parry's own test of boxes finds as many pairs.
    let by_force = (0..theirs.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
    let expected = by_force.filter(|&(a, b)| {
        let (a, b) = (&theirs[a], &theirs[b]);
        (0..3).all(|axis| a.mins[axis] <= b.maxs[axis] && b.mins[axis] <= a.maxs[axis])
    });
    let expected = expected.count();
    println!("pairs of boxes by brute force: {expected}");
    if expected != broad_phase.pairs().len() {
        return Err("the broad phase found another number of pairs".into());
    }
    Ok(())
}

/// Returns a position in a cube of side 16 and a random rotation; the same in every run.
fn pose(index: u32) -> Pose3 {
    let mix = |salt: u32| {
        let mixed = (index.wrapping_mul(5) + salt).wrapping_mul(0x9e37_79b1);
        (mixed ^ mixed >> 15).wrapping_mul(0x85eb_ca77) as f32 / u32::MAX as f32
    };
    let place = Vector::new(mix(0), mix(1), mix(2)) * 16.0;
    Pose3::new(place, Vector::new(mix(3), mix(4), mix(0) + mix(1)) * 3.0)
}
