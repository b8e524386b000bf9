//! Updates for `bench paper`: Ha et al. 2009, figure 6, the broad phase by number of objects on the GPU and on the CPU.

use super::contender::{Contender, expected};
use super::{FRAMES, Racing, Source, WARM_UP};
use crate::bench::Bench;
use crate::figures::Sizes;
use crate::measure::{self};
use radsweep::{Backend, Config, Strategy};
use radsweep_common::Result;
use radsweep_scenes::Kind;

/// Updates that count.
const RUNS: usize = 5;

/// One size on one backend.
pub(crate) struct Updates {
    pub n: usize,
    /// Backend and strategy.
    pub name: String,
    pub measured: measure::Measured,
}

/// The paper's strategy and the one that is taken today, on the GPU where the bench has one, and on the CPU.
pub(crate) fn updates(bench: &Bench, sizes: Sizes) -> Result<Vec<Updates>> {
    let last = if sizes == Sizes::Full { 18 } else { 14 };
    let backends = [Backend::Cuda, Backend::Cpu];
    let backends = &backends[usize::from(bench.is_cpu())..];
    let mut all = Vec::new();
    for n in (10..=last).step_by(2).map(|power| 1 << power) {
        let frames = Source::Scene(Kind::Uniform).frames(n, FRAMES)?;
        let expected = expected(&frames[0])?;
        for &backend in backends {
            for strategy in [Strategy::Endpoints, Strategy::Auto] {
                let config = Config {
                    backend,
                    ..Config::default()
                };
                let mut one = Racing::new(Contender::Ours(strategy), &config, &frames);
                for round in 0..WARM_UP + RUNS {
                    one.turn(round, &frames, expected);
                }
                all.push(Updates {
                    n,
                    name: format!("{backend} {strategy}"),
                    measured: one.measured(expected.0).map(|measured| measured.times),
                });
            }
        }
    }
    Ok(all)
}
