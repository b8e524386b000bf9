//! Measures `Auto` on CUDA on scenes that are hard for sweep and cells: tests and milliseconds.
//!
//! `cargo bench -p radsweep-sap --features cuda --bench worst_scenes [-- n...]`
//!
//! The scenes are those of `tests/common/hard.rs`, with 200,000 boxes unless sizes are given, on
//! the device, without events and without a resting set. For each it prints one JSON object a line:
//! the first frame, and the median of the next 9, in which one box moves; tests for a box and pair,
//! and the time of the whole update. With `RADSWEEP_CHECK=1` pairs are compared with those of the
//! CPU engine.

#[path = "../tests/common/mod.rs"]
mod common;

use common::hard;
use sap::internals::pair_hash;
use sap::{Backend, BroadPhase, Config, DeviceFrame, Frame, Report};
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let sizes: Vec<usize> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .map(|n| n.parse())
        .collect::<Result<_, _>>()?;
    let check = std::env::var("RADSWEEP_CHECK").is_ok_and(|value| value == "1");
    for &n in if sizes.is_empty() {
        &[200_000][..]
    } else {
        &sizes
    } {
        for scene in hard::ALL {
            measure(scene, n, check)?;
        }
    }
    Ok(())
}

fn measure(scene: &hard::Hard, n: usize, check: bool) -> Result<(), Box<dyn Error>> {
    let config = Config {
        backend: Backend::Cuda,
        events: false,
        min_resting: Some(usize::MAX),
        ..Config::default()
    };
    let (mut boxes, filters) = scene.make(n);
    let mut engine = BroadPhase::new(config.clone())?;
    let stream = engine.stream().cloned().ok_or("no stream")?;
    let of_filters = stream.from_slice(&filters)?;
    let (mut first, mut times, mut last) = (None, Vec::new(), None);
    for frame in 0..10 {
        boxes.swap(frame, n - 1 - frame);
        let on_device = stream.from_slice(&boxes)?;
        stream.synchronize()?;
        let given = DeviceFrame::boxes(on_device.slice());
        let given = if filters.is_empty() {
            given
        } else {
            given.filters(of_filters.slice())
        };
        let start = Instant::now();
        let report = engine.update_device(given)?.clone();
        let ms = start.elapsed().as_secs_f64() * 1e3;
        if frame == 0 {
            first = Some((report, ms));
        } else {
            times.push(ms);
            last = Some(report);
        }
    }
    times.sort_by(f64::total_cmp);
    let (Some((first, first_ms)), Some(last)) = (first, last) else {
        return Err("no frame".into());
    };
    let each = |report: &Report| report.stats.tests as f64 / (n as u64 + report.pairs) as f64;
    println!(
        "{{\"scene\": \"{}\", \"n\": {n}, \"pairs\": {}, \"strategy\": \"{}\", \"reason\": \"{}\", \"first_tests\": {:.1}, \"first_ms\": {first_ms:.3}, \"tests\": {:.1}, \"ms\": {:.3}}}",
        scene.name,
        last.pairs,
        last.stats.strategy,
        last.stats
            .choice
            .map(|choice| format!("{:?}", choice.reason))
            .unwrap_or_default(),
        each(&first),
        each(&last),
        times[times.len() / 2],
    );
    if check {
        let mut cpu = BroadPhase::new(Config {
            backend: Backend::Cpu,
            ..config
        })?;
        let frame = Frame::boxes(&boxes);
        cpu.update(if filters.is_empty() {
            frame
        } else {
            frame.filters(&filters)
        })?;
        engine.download()?;
        if pair_hash(cpu.pairs()) != pair_hash(engine.pairs()) {
            return Err(format!("{}: other pairs than the CPU finds", scene.name).into());
        }
    }
    Ok(())
}
