//! Chairs fall and pile up, and those at rest fall asleep; the broad phase finds their pairs:
//! `cargo run --release -p radsweep-scenes --example falling_chairs [CHAIRS]`.

use radsweep::{BroadPhase, Config};
use radsweep_common::numbers::count;
use radsweep_scenes::{Kind, Options, Picture, Scene};

/// In these 500 chairs fall asleep, but few of the default 1,500.
const FRAMES: u32 = 450;

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = Options::default();
    if let Some(n) = std::env::args().nth(1) {
        options.bodies = Some(count(&n, 1..=Options::MAX_BOXES as u64)? as usize);
    }
    let mut broad_phase = BroadPhase::new(Config::default())?;
    let mut scene = Scene::new(Kind::FallingChairs, &options)?;
    let mut picture = Picture::default();
    let mut total = 0.0;
    for frame in 1..=FRAMES {
        let step = scene.step(&mut broad_phase)?;
        // The scene's own stages: `place` before the broad phase, then contacts, solve and sleep.
        let own: f64 = step.stages.iter().map(|(_, ms)| ms).sum();
        total += step.report.stats.timings.total + own;
        if frame % 50 == 0 {
            scene.picture(&mut picture)?;
            let asleep = picture.chairs.iter().filter(|chair| chair.asleep == 1);
            println!(
                "frame {frame}: {} of {} chairs asleep, {} pairs in {:.2} ms, the rest {own:.2} ms",
                asleep.count(),
                picture.chairs.len(),
                step.report.pairs,
                step.report.stats.timings.total,
            );
        }
    }
    println!("{:.2} ms per frame", total / f64::from(FRAMES));
    Ok(())
}
