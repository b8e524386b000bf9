//! The rate of the sorts of an update, and its share of the byte limit.

use radsweep::sort::Algorithm;
use radsweep::{Backend, BroadPhase, Config, Report, Strategy};
use radsweep_common::byte_limit::{copy_rate_of, index_sort_bytes};

/// The parameters of the byte limit of a sort.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct SortLimit {
    algorithm: Algorithm,
    /// The copy rate of the device in GB/s read plus written; on CUDA only.
    copy_rate: Option<f64>,
}

impl SortLimit {
    /// Measures the copy rate of the device, which takes some milliseconds.
    pub fn new(config: &Config, broad_phase: &BroadPhase) -> Self {
        Self {
            algorithm: config.sort,
            copy_rate: copy_rate_of(broad_phase),
        }
    }
}

/// The sorts of an update whose stages are known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sorting {
    /// Keys per second. The time is that of the stage, which does a little more than sorting.
    pub rate: f64,
    /// The share of the byte limit, from 0 to 1; on CUDA only.
    pub share: Option<f64>,
}

impl Sorting {
    /// Evaluates the sorts of an update; `None` where there was none.
    pub fn of(report: &Report, limit: SortLimit) -> Option<Self> {
        let (all, times) = (report.stats.sorts.keys, &report.stats.timings);
        let moved = (report.n as u64).saturating_sub(report.stats.resting);
        let (keys, ms, bytes) = match (report.stats.backend, report.stats.strategy) {
            // Columns are sorted within the stage `sweep`: only the sort of pairs has a stage of
            // its own.
            (Backend::Cpu, Strategy::Subdivided) => (all.min(report.pairs), times.order, 0.0),
            (Backend::Cpu | Backend::Wgpu, _) => (all, times.keys + times.sort + times.order, 0.0),
            (_, Strategy::Sweep | Strategy::Endpoints) if all > 0 => {
                let ends = if report.stats.strategy == Strategy::Sweep {
                    1
                } else {
                    2
                };
                let keys = all.min(ends * moved);
                let bytes = index_sort_bytes(limit.algorithm, 4, keys);
                (keys, times.sort, bytes)
            }
            // Cells are counted, not sorted. Pairs are sorted as words of eight bytes where there
            // are many.
            _ => {
                let bytes = limit.algorithm.bytes_per_element(8, 0, all);
                (all, times.order, bytes)
            }
        };
        let rate = keys as f64 / ms * 1e3;
        (keys > 0 && ms > 0.0).then(|| Self {
            rate,
            share: limit.copy_rate.map(|copied| rate * bytes / (copied * 1e9)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::timeline::tests::record;
    use super::*;
    fn report(backend: Backend, strategy: Strategy, keys: u64) -> Report {
        let mut report = record(1, &[]).report;
        (report.n, report.pairs) = (3000, 400);
        let stats = &mut report.stats;
        (stats.backend, stats.strategy) = (backend, strategy);
        (stats.resting, stats.sorts.keys) = (1000, keys);
        let times = &mut stats.timings;
        (times.keys, times.sort, times.sweep, times.order) = (0.25, 0.5, 100.0, 0.25);
        report
    }

    fn rate(backend: Backend, strategy: Strategy, keys: u64) -> Option<f64> {
        let sorting = Sorting::of(&report(backend, strategy, keys), SortLimit::default());
        sorting.map(|sorting| sorting.rate)
    }

    #[test]
    fn the_rate_is_keys_over_the_time_of_their_stages() {
        let cpu = |strategy, keys| rate(Backend::Cpu, strategy, keys);
        assert_eq!(cpu(Strategy::Sweep, 3400), Some(3.4e6));
        assert_eq!(cpu(Strategy::Subdivided, 9000), Some(400.0 / 0.25 * 1e3));
        let cuda = |strategy, keys| rate(Backend::Cuda, strategy, keys);
        assert_eq!(cuda(Strategy::Sweep, 2400), Some(2000.0 / 0.5 * 1e3));
        assert_eq!(cuda(Strategy::Endpoints, 4400), Some(4000.0 / 0.5 * 1e3));
        assert_eq!(cuda(Strategy::Subdivided, 400), Some(400.0 / 0.25 * 1e3));
        for backend in [Backend::Cpu, Backend::Cuda] {
            for strategy in [Strategy::Sweep, Strategy::Subdivided] {
                assert_eq!(rate(backend, strategy, 0), None, "nothing was sorted");
            }
        }
    }

    #[test]
    fn the_share_compares_with_a_copy() {
        let limit = SortLimit {
            algorithm: Algorithm::Onesweep,
            copy_rate: Some(0.5),
        };
        let share = |backend, strategy, keys| {
            let sorting = Sorting::of(&report(backend, strategy, keys), limit)?;
            sorting.share
        };
        // Four passes of an index sort move 4 + 4 * 16 bytes, minus the indices not read and the
        // keys not written: 60.
        let swept = share(Backend::Cuda, Strategy::Sweep, 2400).expect("a share");
        assert!((swept - 4e6 * 60.0 / 0.5e9).abs() < 1e-9, "{swept}");
        // Eight passes over words of eight bytes: 8 + 8 * 16.
        let pairs = share(Backend::Cuda, Strategy::Subdivided, 400).expect("a share");
        assert!((pairs - 1.6e6 * 136.0 / 0.5e9).abs() < 1e-9, "{pairs}");
        let none = Sorting::of(
            &report(Backend::Cuda, Strategy::Sweep, 9),
            SortLimit::default(),
        );
        assert_eq!(none.expect("a rate").share, None);
    }
}
