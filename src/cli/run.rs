//! `radsweep run`: runs a scene without a window.

#[cfg(cuda)]
mod devices;
mod frames;

use super::args::Run;
use super::table::hex;
use frames::Done;
use radsweep::BroadPhase;
use radsweep::internals::pair_hash;
use radsweep_common::Result;
use radsweep_common::backend::{self, Fallback, note_sort};
use radsweep_scenes::{Scene, Step};

/// Runs the scene, and prints its frames; as text, every `every`-th.
pub(super) fn run(args: &Run, every: u32) -> Result<()> {
    let simulation = &args.simulation;
    if let Some(devices) = args.devices {
        devices.check(simulation.engine.backend)?;
        #[cfg(cuda)]
        return devices::run(args, every, devices);
        #[cfg(not(cuda))]
        return backend::device().map(drop).map_err(Into::into);
    }
    let mut broad_phase = backend::broad_phase(simulation.engine.config())?;
    let mut fallback = Fallback::default();
    fallback.report(&broad_phase);
    note_sort(
        &[simulation.engine.sort],
        broad_phase.report().stats.backend,
    );
    let mut scene = Scene::new_on(simulation.scene, &simulation.options(), &broad_phase)?;
    frames::run(args, every, |bar| {
        let step = scene.step(&mut broad_phase)?;
        broad_phase.download()?;
        bar.suspend(|| fallback.report(&broad_phase));
        Ok(done(&step, &broad_phase))
    })
}

fn done(step: &Step, broad_phase: &BroadPhase) -> Done {
    let (report, stats) = (&step.report, &step.report.stats);
    Done {
        n: report.n as u64,
        pairs: report.pairs,
        started: report.started,
        ended: report.ended,
        tests: stats.tests,
        hash: hex(pair_hash(broad_phase.pairs())),
        backend: stats.backend,
        planned: Some((stats.strategy, stats.sorts)),
        stages: step.all_stages().collect(),
        total: step.total(),
        ranks: None,
    }
}
