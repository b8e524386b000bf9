//! Finds the pairs of a thousand moving boxes, and those that start and end:
//! `cargo run --release -p radsweep --example minimal`.

use radsweep::{Aabb, BroadPhase, Config};

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), radsweep::Error> {
    // A GPU if the build has a feature for it and finds one, else the CPU. The strategy depends on
    // the boxes.
    let mut broad_phase = BroadPhase::new(Config::default())?;
    for frame in 1..=5 {
        let boxes: Vec<Aabb> = (0..1000).map(|index| swinging_box(index, frame)).collect();
        let report = broad_phase.update(&boxes)?;
        println!(
            "frame {frame}: {} pairs, {} started, {} ended, in {:.3} ms by {} on {}",
            report.pairs,
            report.started,
            report.ended,
            report.stats.timings.total,
            report.stats.strategy,
            report.stats.backend
        );
    }
    if let Some(pair) = broad_phase.pairs().first() {
        println!("the first pair: box {} and box {}", pair.a, pair.b);
    }
    Ok(())
}

/// Returns a unit box on a 10 x 10 x 10 grid with gaps; each swings along x in its own rhythm.
fn swinging_box(index: u32, frame: u32) -> Aabb {
    let cell = [index % 10, index / 10 % 10, index / 100].map(|step| step as f32 * 1.2);
    let swing = 0.4 * (frame as f32 + index as f32).sin();
    let min = [cell[0] + swing, cell[1], cell[2]];
    Aabb::new(min, min.map(|side| side + 1.0))
}
