//! Two galaxies meet: `cargo run --release -p radsweep-scenes --example galaxy [BODIES]`.
//!
//! With `--features cuda` the bodies stay on an NVIDIA GPU if there is one. It can take 262144.

use radsweep::{BroadPhase, Config};
use radsweep_common::numbers::count;
use radsweep_scenes::{Kind, Options, Picture, Scene};

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
    let mut scene = Scene::new_on(Kind::Galaxy, &options, &broad_phase)?;
    let mut picture = Picture::default();
    let mut total = 0.0;
    for frame in 1..=300 {
        let step = scene.step(&mut broad_phase)?;
        let own: f64 = step.stages.iter().map(|(_, ms)| ms).sum();
        total += step.report.stats.timings.total + own;
        if frame % 50 == 0 {
            scene.picture(&mut picture)?;
            // The bodies at the centres are the first of each half.
            let stars = &picture.spheres;
            let [a, b] = [0, stars.len().div_ceil(2)].map(|core| stars.get(core));
            let apart = a.zip(b).map_or(0.0, |(a, b)| {
                let along = |axis: usize| a.position[axis] - b.position[axis];
                (0..3).map(|axis| along(axis).powi(2)).sum::<f32>().sqrt()
            });
            println!(
                "frame {frame}: centres {apart:.1} apart; {} pairs in {:.2} ms on {}, the rest {own:.2} ms",
                step.report.pairs, step.report.stats.timings.total, step.report.stats.backend,
            );
        }
    }
    println!("{:.2} ms per frame", total / 300.0);
    Ok(())
}
