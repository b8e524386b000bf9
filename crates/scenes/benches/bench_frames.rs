//! Measures how long the longest frames of a scene take:
//! `cargo bench -p radsweep-scenes --features cuda --bench bench_frames -- SCENE [BODIES
//! [FRAMES]]`, such as `particles 1M 1000`.
//!
//! It prints the median and the longest update of the broad phase, in milliseconds, without the
//! first [`WARM_UP`] frames, and the frames that take more than twice the median, with the stages.
//! `whole` is the time of the caller for a step less the scene's own stages; `device` is the sum of
//! the stages of the broad phase.

use radsweep::{BroadPhase, Config};
use radsweep_common::numbers::count;
use radsweep_scenes::{Kind, Options, Scene, Step};
use std::error::Error;
use std::time::Instant;

/// Frames in which memory is made and kernels are loaded.
const WARM_UP: usize = 10;
/// Frames that are printed at most.
const PRINTED: usize = 20;

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let kind: Kind = words.next().ok_or("which scene?")?.parse()?;
    let mut options = Options::default();
    if let Some(bodies) = words.next() {
        options.bodies = Some(count(&bodies, 1..=Options::MAX_BOXES as u64)? as usize);
    }
    let frames = match words.next() {
        Some(frames) => count(&frames, 1..=1_000_000)? as usize,
        None => 1000,
    };
    let mut broad_phase = BroadPhase::new(Config::default())?;
    let mut scene = Scene::new_on(kind, &options, &broad_phase)?;
    let mut measured: Vec<(usize, f64, Step)> = Vec::new();
    for frame in 1..=WARM_UP + frames {
        let start = Instant::now();
        let step = scene.step(&mut broad_phase)?;
        let own: f64 = step.stages.iter().map(|(_, ms)| ms).sum();
        let whole = start.elapsed().as_secs_f64() * 1e3 - own;
        if frame > WARM_UP {
            measured.push((frame, whole, step));
        }
    }
    let (whole, device) = (
        summary(measured.iter().map(|it| it.1)),
        summary(measured.iter().map(|it| it.2.report.stats.timings.total)),
    );
    let Some((_, _, last)) = measured.last() else {
        return Ok(());
    };
    println!(
        "{} on {}, {} boxes, {} pairs at last, {frames} frames: whole median {:.3}, longest {:.3} \
         ({:.2} times); device median {:.3}, longest {:.3} ({:.2} times)",
        kind.name(),
        last.report.stats.backend,
        last.report.n,
        last.report.pairs,
        whole.0,
        whole.1,
        whole.1 / whole.0,
        device.0,
        device.1,
        device.1 / device.0,
    );
    let mut long: Vec<_> = measured.iter().filter(|it| it.1 > 2.0 * whole.0).collect();
    println!("{} frames take more than twice the median", long.len());
    long.sort_by(|a, b| b.1.total_cmp(&a.1));
    for (frame, ms, step) in long.into_iter().take(PRINTED) {
        let stats = &step.report.stats;
        let stages: Vec<String> = stats
            .timings
            .stages()
            .map(|(name, ms)| format!("{name} {ms:.3}"))
            .collect();
        println!(
            "frame {frame}: {ms:.3}, {} pairs, {} tests, regrown {}; {}",
            step.report.pairs,
            stats.tests,
            stats.regrown,
            stages.join(", ")
        );
    }
    Ok(())
}

/// Returns the median and the max.
fn summary(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let median = values.get(values.len() / 2).copied().unwrap_or(0.0);
    (median, values.last().copied().unwrap_or(0.0))
}
