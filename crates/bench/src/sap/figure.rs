//! Measures the broad phase for `bench paper`: Ha et al. 2009, figure 6, by number of objects on
//! GPU and CPU.

use super::contender::{Contender, expected};
use super::frames::{Frames, Motion};
use super::input::Source;
use super::race::{Racing, WARM_UP};
use crate::bench::Bench;
use crate::figures::Sizes;
use crate::measure;
use radsweep::{Backend, Config, Strategy};
use radsweep_common::Result;
use radsweep_scenes::Kind;

/// Number of measured updates.
const RUNS: usize = 5;

/// One size on one backend.
pub(crate) struct Updates {
    pub n: usize,
    /// Backend and strategy.
    pub name: String,
    pub measured: measure::Measured,
}

/// Measures the paper's strategy and `auto`, on the GPU if there is one and on the CPU.
pub(crate) fn updates(bench: &Bench, sizes: Sizes) -> Result<Vec<Updates>> {
    let last = if sizes == Sizes::Full { 18 } else { 14 };
    let backends = [Backend::Cuda, Backend::Cpu];
    let backends = &backends[usize::from(bench.is_cpu())..];
    let mut all = Vec::new();
    for n in (10..=last).step_by(2).map(|power| 1 << power) {
        let scene = Source::Scene(Kind::Uniform);
        let mut frames = Frames::new(&scene, Motion::Moving, n)?;
        let first = expected(frames.boxes())?;
        for &backend in backends {
            for strategy in [Strategy::Endpoints, Strategy::Auto] {
                let config = Config {
                    backend,
                    ..Config::default()
                };
                let mut one = Racing::new(Contender::Ours(strategy), &config);
                for round in 0..WARM_UP + RUNS {
                    frames.go_to(round);
                    one.turn(round, &frames, (round == 0).then_some(first));
                }
                all.push(Updates {
                    n,
                    name: format!("{backend} {strategy}"),
                    measured: one.measured(first.0).map(|measured| measured.times),
                });
            }
        }
    }
    Ok(all)
}
