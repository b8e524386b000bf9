//! Particles flow down a landscape:
//! `cargo run --release -p radsweep-scenes --example particles [PARTICLES]`.
//!
//! With `--features cuda` they stay on an NVIDIA GPU if there is one, except to print figures. It
//! can take 1000000.

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
    let mut scene = Scene::new_on(Kind::Particles, &options, &broad_phase)?;
    let mut picture = Picture::default();
    let mut total = 0.0;
    for frame in 1..=300 {
        let step = scene.step(&mut broad_phase)?;
        let own: f64 = step.stages.iter().map(|(_, ms)| ms).sum();
        total += step.report.stats.timings.total + own;
        if frame % 50 == 0 {
            scene.picture(&mut picture)?;
            let count = picture.spheres.len() as f32;
            let height: f32 = picture.spheres.iter().map(|ball| ball.position[1]).sum();
            let speed: f32 = picture.spheres.iter().map(|ball| ball.speed).sum();
            println!(
                "frame {frame}: {:.2} m high, {:.2} m/s; {} pairs in {:.2} ms on {}, the rest {own:.2} ms",
                height / count,
                speed / count,
                step.report.pairs,
                step.report.stats.timings.total,
                step.report.stats.backend,
            );
        }
    }
    println!("{:.2} ms per frame", total / 300.0);
    Ok(())
}
