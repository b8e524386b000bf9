//! `radsweep run`: runs a scene without a window.

use super::args::Run;
use super::table::{Stages, hex, sorts};
use radsweep_common::Result;
use radsweep_common::backend::{self, Fallback, note_sort};
use radsweep_common::numbers::counted;
use radsweep_common::terminal::progress;
use radsweep_scenes::{Scene, Step};
use serde_json::json;
use std::io::{self, Write};

/// Runs the scene. As text, it prints the first frame, every `every`-th, and the last; as JSON, all
/// of them. Frames are counted from 1, as in the window and in the names of pictures.
pub(super) fn run(args: &Run, every: u32) -> Result<()> {
    let simulation = &args.simulation;
    let mut broad_phase = backend::broad_phase(simulation.engine.config())?;
    let mut fallback = Fallback::default();
    fallback.report(&broad_phase);
    note_sort(
        &[simulation.engine.sort],
        broad_phase.report().stats.backend,
    );
    let mut scene = Scene::new_on(simulation.scene, &simulation.options(), &broad_phase)?;
    let frames = simulation.frames();
    let bar = progress(frames.into(), "frames");
    let mut out = io::stdout().lock();
    let mut sums = Sums::default();
    for frame in 1..=frames {
        let step = scene
            .step(&mut broad_phase)
            .map_err(|error| format!("frame {frame}: {error}"))?;
        sums.add(&step);
        broad_phase.download()?;
        let hash = hex(radsweep::internals::pair_hash(broad_phase.pairs()));
        bar.suspend(|| -> io::Result<()> {
            fallback.report(&broad_phase);
            if args.json {
                return writeln!(out, "{}", record(frame, &step, &hash));
            }
            if frame == 1 {
                writeln!(
                    out,
                    "{:>6} {:>9} {:>10} {:>9} {:>9} {:>9}  hash",
                    "frame", "boxes", "pairs", "started", "ended", "ms"
                )?;
            }
            if frame == 1 || frame % every == 0 || frame == frames {
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
    let ms = step.total();
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
        "tests": report.stats.tests,
        "hash": hash,
        "backend": report.stats.backend.name(),
        "strategy": report.stats.strategy.name(),
        "sorts": sorts(&report.stats.sorts),
        "ms": step.all_stages().collect::<Stages>().json(step.total()),
    })
}

/// Sums over all frames, for the table at the end.
#[derive(Default)]
struct Sums {
    stages: Stages,
    total: f64,
    pairs: u64,
    ran: Vec<(String, u32)>,
}

impl Sums {
    fn add(&mut self, step: &Step) {
        for (name, ms) in step.all_stages() {
            self.stages.add(name, ms);
        }
        self.total += step.total();
        self.pairs += step.report.pairs;
        let ran = format!(
            "{} on {}",
            step.report.stats.strategy, step.report.stats.backend
        );
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
            .map(|(name, frames)| {
                format!("{name} ({})", counted((*frames).into(), "frame", "frames"))
            })
            .collect();
        let pairs = self.pairs as f64 / f64::from(frames);
        writeln!(
            out,
            "{pairs:.1} pairs per frame, planned as {}",
            ran.join(", ")
        )
    }
}
