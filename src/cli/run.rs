//! `radsweep run`: a scene without a window.

use super::args::Run;
use super::backend::Fallback;
use super::table::{Stages, hex, sorts};
use super::{Result, progress};
use radsweep::scenes::{Options, Scene, Step};
use sap::BroadPhase;
use serde_json::json;
use std::io::{self, Write};

/// Runs the scene; a human reads every `every`-th frame and the last.
pub(super) fn run(args: &Run, every: u32) -> Result<()> {
    let options = Options {
        bodies: args.bodies,
        seed: args.seed,
        density: args.density,
    };
    let mut broad_phase = BroadPhase::new(args.engine.config())?;
    let mut fallback = Fallback::default();
    fallback.tell(&broad_phase);
    let mut scene = Scene::new_on(args.scene, &options, &broad_phase)?;
    let frames = args.frames.unwrap_or(args.scene.default_frames());
    let bar = progress(frames.into(), "frames");
    let mut out = io::stdout().lock();
    let mut sums = Sums::default();
    for frame in 0..frames {
        let step = scene
            .step(&mut broad_phase)
            .map_err(|error| format!("frame {frame}: {error}"))?;
        sums.add(&step);
        broad_phase.download()?;
        let hash = hex(sap::pair_hash(broad_phase.pairs()));
        bar.suspend(|| -> io::Result<()> {
            fallback.tell(&broad_phase);
            if args.json {
                return writeln!(out, "{}", record(frame, &step, &hash));
            }
            if frame == 0 {
                writeln!(
                    out,
                    "{:>6} {:>9} {:>10} {:>9} {:>9} {:>9}  hash",
                    "frame", "boxes", "pairs", "started", "ended", "ms"
                )?;
            }
            if frame % every == 0 || frame + 1 == frames {
                row(&mut out, frame, &step, &hash)?;
            }
            Ok(())
        })?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    if !args.json {
        sums.print(&mut out, frames)?;
    }
    Ok(())
}

fn row(out: &mut impl Write, frame: u32, step: &Step, hash: &str) -> io::Result<()> {
    let report = &step.report;
    let (n, pairs, started, ended) = (report.n, report.pairs, report.started, report.ended);
    let ms = total(step);
    writeln!(
        out,
        "{frame:>6} {n:>9} {pairs:>10} {started:>9} {ended:>9} {ms:>9.3}  {hash}"
    )
}

fn record(frame: u32, step: &Step, hash: &str) -> serde_json::Value {
    let report = &step.report;
    json!({
        "frame": frame,
        "n": report.n,
        "pairs": report.pairs,
        "started": report.started,
        "ended": report.ended,
        "tests": report.tests,
        "hash": hash,
        "backend": report.backend.name(),
        "strategy": report.strategy.name(),
        "sorts": sorts(&report.sorts),
        "ms": stages(step).json(total(step)),
    })
}

/// The scene's `place`, the stages of the broad phase, then what the scene does with the pairs.
pub(crate) fn stages(step: &Step) -> Stages {
    let (before, after) = step.stages.split_at(1);
    before
        .iter()
        .copied()
        .chain(step.report.timings.stages())
        .chain(after.iter().copied())
        .collect()
}

/// Milliseconds of the whole frame.
pub(crate) fn total(step: &Step) -> f64 {
    step.report.timings.total + step.stages.iter().map(|stage| stage.1).sum::<f64>()
}

/// What the table at the end is made of.
#[derive(Default)]
struct Sums {
    stages: Stages,
    total: f64,
    pairs: u64,
    ran: Vec<(String, u32)>,
}

impl Sums {
    fn add(&mut self, step: &Step) {
        for (name, ms) in stages(step).iter() {
            self.stages.add(name, ms);
        }
        self.total += total(step);
        self.pairs += step.report.pairs;
        let ran = format!("{} on {}", step.report.strategy, step.report.backend);
        match self.ran.iter_mut().find(|known| known.0 == ran) {
            Some(known) => known.1 += 1,
            None => self.ran.push((ran, 1)),
        }
    }

    fn print(&self, out: &mut impl Write, frames: u32) -> io::Result<()> {
        writeln!(out)?;
        self.stages.print(out, ("frame", self.total), frames)?;
        let ran: Vec<_> = self
            .ran
            .iter()
            .map(|(name, frames)| format!("{name} ({frames} frames)"))
            .collect();
        let pairs = self.pairs as f64 / f64::from(frames);
        writeln!(out, "{pairs:.1} pairs a frame by {}", ran.join(", "))
    }
}
