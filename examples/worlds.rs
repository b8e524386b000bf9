//! Worlds: 1,000 small scenes in one update. Boxes of different worlds do not pair, although all
//! scenes are in the same place, as the copies of a scene that an agent is trained in.
//!
//! `cargo run --release -p radsweep --example worlds`

use radsweep::{Aabb, BroadPhase, Config, Frame, Pair};
use std::time::Instant;

const WORLDS: u32 = 1_000;
const BODIES: u32 = 40;

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let worlds: Vec<u32> = (0..WORLDS * BODIES).map(|index| index / BODIES).collect();
    let mut together = BroadPhase::new(Config::default())?;
    println!("step    pairs  started    ended        ms");
    for step in 0..5 {
        let boxes: Vec<Aabb> = (0..WORLDS * BODIES)
            .map(|index| body(index, step))
            .collect();
        let report = together.update(Frame::boxes(&boxes).worlds(&worlds))?;
        println!(
            "{step:4} {:8} {:8} {:8} {:9.3}",
            report.pairs, report.started, report.ended, report.stats.timings.total
        );
    }

    // Each world by itself gives the same pairs.
    let start = Instant::now();
    let mut alone = BroadPhase::new(Config::default())?;
    let mut expected = Vec::new();
    for world in 0..WORLDS {
        let first = world * BODIES;
        let boxes: Vec<Aabb> = (first..first + BODIES)
            .map(|index| body(index, 4))
            .collect();
        alone.update(&boxes)?;
        let pairs = alone.pairs().iter();
        expected.extend(pairs.map(|pair| Pair {
            a: first + pair.a,
            b: first + pair.b,
        }));
    }
    println!(
        "{WORLDS} updates of one world each find {} pairs: {:.3} ms",
        expected.len(),
        start.elapsed().as_secs_f64() * 1e3
    );
    if together.pairs() != expected {
        return Err("the worlds by themselves have other pairs".into());
    }

    // A query looks into one world.
    let middle = Aabb::new([3.0; 3], [7.0; 3]);
    let everywhere = together.query(middle).collect()?.len();
    let here = together.query(middle).world(7).collect()?;
    println!(
        "in the middle are {everywhere} bodies, {} of world 7",
        here.len()
    );
    if here.iter().any(|&index| worlds[index as usize] != 7) {
        return Err("the query found a body of another world".into());
    }
    Ok(())
}

/// Returns a body that swings about a random position in a room of side 10.
fn body(index: u32, step: u32) -> Aabb {
    let mut min = [0, 1, 2].map(|axis| 9.0 * random(3 * index + axis));
    min[0] += (step as f32 + index as f32).sin();
    Aabb::new(min, min.map(|side| side + 1.0))
}

/// Returns a number from 0 to 1 that looks random; the same in every run.
fn random(index: u32) -> f32 {
    let mixed = (index ^ index >> 16).wrapping_mul(0x85eb_ca6b);
    let mixed = (mixed ^ mixed >> 13).wrapping_mul(0xc2b2_ae35);
    (mixed ^ mixed >> 16) as f32 / u32::MAX as f32
}
