//! Runs the frames of `radsweep run`, however they are made, and prints them.

use crate::cli::args::Run;
use crate::cli::table::{Stages, sorts};
use radsweep::{Backend, Sorts, Strategy};
use radsweep_common::Result;
use radsweep_common::numbers::counted;
use radsweep_common::terminal::{ProgressBar, progress};
use serde_json::{Value, json};
use std::io::{self, Write};

/// What a frame did.
pub(super) struct Done {
    pub n: u64,
    pub pairs: u64,
    pub started: u64,
    pub ended: u64,
    pub tests: u64,
    pub hash: String,
    pub backend: Backend,
    /// The strategy and the sorts; several devices do not report them.
    pub planned: Option<(Strategy, Sorts)>,
    pub stages: Stages,
    pub total: f64,
    /// What each of several devices did.
    pub ranks: Option<Value>,
}

/// Runs all frames by `step`, and prints them. As text, these are the first, every `every`-th, and
/// the last, and then the means of the stages; as JSON, all of them. Frames are counted from 1, as
/// in the window and in the names of pictures.
pub(super) fn run(
    args: &Run,
    every: u32,
    mut step: impl FnMut(&ProgressBar) -> Result<Done>,
) -> Result<()> {
    let frames = args.simulation.frames();
    let bar = progress(frames.into(), "frames");
    let mut out = io::stdout().lock();
    let mut sums = Sums::default();
    for frame in 1..=frames {
        let done = step(&bar).map_err(|error| format!("frame {frame}: {error}"))?;
        sums.add(&done);
        bar.suspend(|| -> io::Result<()> {
            if args.json {
                return writeln!(out, "{}", done.record(frame));
            }
            if frame == 1 {
                writeln!(
                    out,
                    "{:>6} {:>9} {:>10} {:>9} {:>9} {:>9}  hash",
                    "frame", "boxes", "pairs", "started", "ended", "ms"
                )?;
            }
            if frame == 1 || frame % every == 0 || frame == frames {
                done.row(&mut out, frame)?;
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

impl Done {
    fn row(&self, out: &mut impl Write, frame: u32) -> io::Result<()> {
        let Self {
            n,
            pairs,
            started,
            ended,
            total,
            hash,
            ..
        } = self;
        writeln!(
            out,
            "{frame:>6} {n:>9} {pairs:>10} {started:>9} {ended:>9} {total:>9.3}  {hash}"
        )
    }

    fn record(&self, frame: u32) -> Value {
        let mut record = json!({
            "frame": frame,
            "n": self.n,
            "pairs": self.pairs,
            "started": self.started,
            "ended": self.ended,
            "tests": self.tests,
            "hash": self.hash,
            "backend": self.backend.name(),
            "strategy": self.planned.map(|planned| planned.0.name()),
            "sorts": self.planned.as_ref().map(|planned| sorts(&planned.1)),
            "ms": self.stages.json(self.total),
        });
        if let Some(ranks) = &self.ranks {
            record["ranks"] = ranks.clone();
        }
        record
    }
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
    fn add(&mut self, done: &Done) {
        for (name, ms) in done.stages.iter() {
            self.stages.add(name, ms);
        }
        self.total += done.total;
        self.pairs += done.pairs;
        let Some((strategy, _)) = done.planned else {
            return;
        };
        let ran = format!("{strategy} on {}", done.backend);
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
        let plans = if ran.is_empty() { "" } else { ", planned as " };
        writeln!(out, "{pairs:.1} pairs per frame{plans}{}", ran.join(", "))
    }
}
