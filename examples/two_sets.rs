//! Pairs between two sets: which of 300 lamps reach which of 20,000 objects. Neither lamps nor
//! objects pair with each other, and the pairs of the last update stay as they are.
//!
//! `cargo run --release -p radsweep --example two_sets`

use radsweep::{Aabb, BroadPhase, Config, OverlapRule};
use std::time::Instant;

const LAMPS: u32 = 300;
const OBJECTS: u32 = 20_000;

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let objects: Vec<Aabb> = (0..OBJECTS).map(|index| cube(index, 0.5)).collect();
    let lamps: Vec<Aabb> = (0..LAMPS).map(|index| cube(OBJECTS + index, 4.0)).collect();

    let mut broad_phase = BroadPhase::new(Config::default())?;
    let among_objects = broad_phase.update(&objects)?.pairs;
    let start = Instant::now();
    // `a` is an index of the first set, `b` one of the second.
    let lit = broad_phase.overlaps_between(&lamps, &objects)?;
    println!(
        "{LAMPS} lamps reach {} of {OBJECTS} objects in {} pairs: {:.2} ms",
        distinct(lit.iter().map(|pair| pair.b)),
        lit.len(),
        start.elapsed().as_secs_f64() * 1e3
    );

    // The pairs are sorted by `a`, so the objects of a lamp are a run of the list.
    let of_lamp = lit.chunk_by(|one, next| one.a == next.a);
    if let Some(run) = of_lamp.max_by_key(|run| run.len()) {
        println!("lamp {} reaches the most: {} objects", run[0].a, run.len());
    }
    if broad_phase.pairs().len() as u64 != among_objects {
        return Err("the pairs of the last update have changed".into());
    }
    let every = lamps
        .iter()
        .flat_map(|lamp| objects.iter().map(move |object| (lamp, object)));
    let expected = every.filter(|(lamp, object)| lamp.overlaps(object, OverlapRule::Closed));
    if expected.count() != lit.len() {
        return Err("brute force finds another number of pairs".into());
    }
    println!("brute force finds as many, by {} tests", LAMPS * OBJECTS);
    Ok(())
}

/// Returns a cube in a hall of 100 x 10 x 100.
fn cube(index: u32, half: f32) -> Aabb {
    let [x, y, z] = [0, 1, 2].map(|axis| random(3 * index + axis));
    let centre = [100.0 * x, 10.0 * y, 100.0 * z];
    Aabb::new(
        centre.map(|side| side - half),
        centre.map(|side| side + half),
    )
}

/// Returns a number from 0 to 1 that looks random; the same in every run.
fn random(index: u32) -> f32 {
    let mixed = (index ^ index >> 16).wrapping_mul(0x85eb_ca6b);
    let mixed = (mixed ^ mixed >> 13).wrapping_mul(0xc2b2_ae35);
    (mixed ^ mixed >> 16) as f32 / u32::MAX as f32
}

fn distinct(indices: impl Iterator<Item = u32>) -> usize {
    indices.collect::<std::collections::BTreeSet<u32>>().len()
}
