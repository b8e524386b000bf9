//! `radsweep run --devices`: a scene whose pairs several CUDA devices find.

use super::frames::{self, Done};
use crate::cli::args::{Devices, Run};
use crate::cli::devices::{Work, row};
use crate::cli::table::hex;
use radsweep::Backend;
use radsweep::internals::pair_hash;
use radsweep_common::Result;
use radsweep_scenes::Scene;
use sap_dist::{RankReport, Report, Timings};
use std::error::Error;
use std::io::{self, Write};
use std::time::Instant;

/// Runs the scene in the memory of the host, and prints at the end what each device did.
pub(super) fn run(args: &Run, every: u32, devices: Devices) -> Result<()> {
    let simulation = &args.simulation;
    let mut work = Work::new(devices, &simulation.engine.config())?;
    let mut scene = Scene::new(simulation.scene, &simulation.options())?;
    let (mut sums, mut pairs) = (Sums::default(), Vec::new());
    frames::run(args, every, |_| {
        let step = scene.step_by(|boxes, filters| {
            let start = Instant::now();
            let ms = || start.elapsed().as_secs_f64() * 1e3;
            let report = work.update_scene(boxes, filters)?.clone();
            let found = ms();
            pairs.clear();
            work.for_each_chunk(|chunk| {
                pairs.extend_from_slice(chunk);
                Ok(())
            })?;
            let total = ms();
            let times = [total - found, total];
            Ok::<_, Box<dyn Error>>(((report, times), &pairs[..]))
        })?;
        let (report, [download, total]) = &step.report;
        sums.add(report);
        // The means of all devices, since the waits for each other are in the times.
        let mut steps = Timings::default().steps();
        for rank in &report.ranks {
            for (mean, (_, ms)) in steps.iter_mut().zip(rank.timings.steps()) {
                mean.1 += ms / report.ranks.len() as f64;
            }
        }
        let found = steps.into_iter().chain([("download", *download)]);
        Ok(Done {
            n: report.boxes,
            pairs: report.pairs,
            started: report.started,
            ended: report.ended,
            tests: report.ranks.iter().map(|rank| rank.tests).sum(),
            hash: hex(pair_hash(&pairs)),
            backend: Backend::Cuda,
            planned: None,
            stages: step.stages_around(found).collect(),
            total: total + step.stages.iter().map(|stage| stage.1).sum::<f64>(),
            ranks: args.json.then(|| report.ranks.iter().map(row).collect()),
        })
    })?;
    if !args.json {
        writeln!(
            io::stdout(),
            "\nmean of a frame on each device:\n{}",
            sums.mean()
        )?;
    }
    Ok(())
}

/// Sums over all frames, for the table at the end.
#[derive(Default)]
struct Sums {
    report: Report,
    frames: u32,
}

impl Sums {
    fn add(&mut self, report: &Report) {
        self.frames += 1;
        let mut ranks = report.ranks.clone();
        for (rank, sum) in ranks.iter_mut().zip(&mut self.report.ranks) {
            let ((counts, times), sums) = (numbers(rank), numbers(sum));
            counts
                .into_iter()
                .zip(sums.0)
                .for_each(|(to, sum)| *to += *sum);
            times
                .into_iter()
                .zip(sums.1)
                .for_each(|(to, sum)| *to += *sum);
        }
        self.report = report.clone();
        self.report.ranks = ranks;
    }

    /// Returns the mean of each number, with the cuts of the last frame.
    fn mean(mut self) -> Report {
        self.report.new_cuts = false;
        for rank in &mut self.report.ranks {
            let (counts, times) = numbers(rank);
            counts
                .into_iter()
                .for_each(|sum| *sum /= u64::from(self.frames));
            times
                .into_iter()
                .for_each(|sum| *sum /= f64::from(self.frames));
        }
        self.report
    }
}

/// Returns the numbers that the table has.
fn numbers(rank: &mut RankReport) -> ([&mut u64; 7], [&mut f64; 5]) {
    let times = &mut rank.timings;
    (
        [
            &mut rank.boxes,
            &mut rank.homes,
            &mut rank.copies,
            &mut rank.tests,
            &mut rank.pairs,
            &mut rank.messages,
            &mut rank.bytes,
        ],
        [
            &mut times.plan,
            &mut times.send,
            &mut times.search,
            &mut times.return_pairs,
            &mut times.order,
        ],
    )
}
