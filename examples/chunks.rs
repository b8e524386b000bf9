//! More pairs than memory allows: 4,498,500 of 3,000 boxes, with a limit of 1 MB. The update fails
//! with their exact number, and chunks of 50,000 deliver them all.
//!
//! `cargo run --release -p radsweep --example chunks`

use radsweep::{Aabb, BroadPhase, Config, Error};

const BOXES: u32 = 3_000;
const CHUNK: usize = 50_000;

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    // Each box is a little larger than the one before: every two overlap.
    let boxes: Vec<Aabb> = (1..=BOXES)
        .map(|size| Aabb::new([-(size as f32); 3], [size as f32; 3]))
        .collect();
    let mut broad_phase = BroadPhase::new(Config {
        pair_memory: Some(1_000_000),
        ..Config::default()
    })?;
    let announced = match broad_phase.update(&boxes) {
        Err(error @ Error::TooManyPairs { count, .. }) => {
            println!("the update fails: {error}");
            count
        }
        other => return Err(format!("the update should fail: {other:?}").into()),
    };

    // What a narrow phase would do with the pairs; here the partners of each box are counted.
    let mut partners = vec![0_u32; boxes.len()];
    let mut last = None;
    let mut in_order = true;
    let report = broad_phase.for_each_pair_chunk(&boxes, CHUNK, |pairs| {
        for pair in pairs {
            partners[pair.a as usize] += 1;
            partners[pair.b as usize] += 1;
            in_order &= last < Some(*pair);
            last = Some(*pair);
        }
    })?;
    println!(
        "{} pairs came in {} chunks, in {:.1} ms",
        report.pairs, report.chunks, report.ms
    );
    if report.pairs != announced || !in_order || partners.iter().any(|&n| n != BOXES - 1) {
        return Err("the chunks have other pairs than announced".into());
    }
    println!("each of {BOXES} boxes has {} partners", partners[0]);
    Ok(())
}
