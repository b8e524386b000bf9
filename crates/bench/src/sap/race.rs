//! The contenders of one scene, measured by turns on the same frames.

use super::contender::{Contender, Ready, Update};
use super::frames::{Frames, Motion};
use crate::measure::{Missing, Times};
use radsweep::{Config, Report, Strategy};
use std::time::Instant;

/// Updates that are not measured, in which trees are built and memory is allocated.
pub(super) const WARM_UP: usize = 2;
/// Time limit of a contender in seconds; three updates are measured in any case.
const SECONDS: f64 = 3.0;
/// Bytes per box of the broad phase's index sort: four passes read and write a key and an index,
/// after a histogram that reads the keys.
const SORT_BYTES: f64 = 4.0 * 16.0 + 4.0;

/// The result of one contender in one scene.
pub(super) struct Line {
    pub source: String,
    pub motion: Motion,
    pub n: usize,
    pub contender: Contender,
    pub measured: Result<Measured, Missing>,
}

pub(super) struct Measured {
    /// Times from boxes to pairs; for radsweep also those of the stages.
    pub times: Times,
    /// Times including sorting the pairs; the same as `times` for radsweep.
    pub sorted: Times,
    pub pairs: u64,
    /// The last report; radsweep only.
    pub report: Option<Report>,
}

impl Measured {
    /// Returns the tests per pair.
    pub(super) fn tests_per_pair(&self) -> Option<f64> {
        let tests = self.report.as_ref()?.stats.tests as f64;
        Some(tests / self.pairs.max(1) as f64)
    }

    /// Returns the bytes that the algorithm must move.
    ///
    /// It reads each box (24 bytes), writes and reads its record (32), and sorts indices where it
    /// sweeps along one axis. It writes, reads and writes each pair (8). Returns `None` for an
    /// update without tests, in which nothing moved.
    pub(super) fn bytes(&self, n: usize) -> Option<f64> {
        let report = self
            .report
            .as_ref()
            .filter(|report| report.stats.tests > 0)?;
        let sort = match report.stats.strategy {
            Strategy::Subdivided => 0.0,
            Strategy::Endpoints => 2.0 * SORT_BYTES,
            _ => SORT_BYTES,
        };
        Some(n as f64 * (24.0 + 64.0 + sort) + self.pairs as f64 * 24.0)
    }
}

/// A contender and its updates so far.
pub(super) struct Racing {
    pub contender: Contender,
    ready: Result<Ready, Missing>,
    updates: Vec<Update>,
    spent: f64,
}

impl Racing {
    pub(super) fn new(contender: Contender, config: &Config) -> Self {
        let ready = Ready::new(contender, config);
        Self {
            contender,
            ready: ready.map_err(|error| Missing::Unsupported(error.to_string())),
            updates: Vec::new(),
            spent: 0.0,
        }
    }

    /// Takes the turn of a round. The pairs must be those expected, where any are.
    pub(super) fn turn(&mut self, round: usize, frames: &Frames, expected: Option<(u64, u64)>) {
        let enough = self.updates.len() >= 3 && self.spent > SECONDS;
        let (Ok(ready), false) = (&mut self.ready, enough) else {
            return;
        };
        std::thread::sleep(frames.motion.pause());
        let begun = Instant::now();
        let update = match ready.update(frames) {
            Ok(update) => update,
            Err(error) => {
                self.ready = Err(Missing::Unsupported(error.to_string()));
                return;
            }
        };
        self.spent += begun.elapsed().as_secs_f64();
        if let Some(expected) = expected {
            let why = match ready.found() {
                Ok(found) if found == expected => None,
                Ok((pairs, _)) => Some(format!(
                    "{pairs} pairs, or their hash, differ from the {} expected",
                    expected.0
                )),
                Err(error) => Some(error.to_string()),
            };
            if let Some(why) = why {
                self.ready = Err(Missing::Wrong(why));
                return;
            }
        }
        if round >= WARM_UP {
            self.updates.push(update);
        }
    }

    pub(super) fn measured(self, pairs: u64) -> Result<Measured, Missing> {
        self.ready?;
        let all = |of: &dyn Fn(&Update) -> f64| self.updates.iter().map(of).collect::<Vec<f64>>();
        let mut times = Times::new(all(&|update| update.ms));
        let reports = || self.updates.iter().filter_map(|one| one.report.as_ref());
        let stages = reports().next().map(|one| one.stats.timings.stages());
        for (index, (name, _)) in stages.into_iter().flatten().enumerate() {
            let of_one = |report: &Report| {
                report
                    .stats
                    .timings
                    .stages()
                    .nth(index)
                    .map_or(0.0, |it| it.1)
            };
            let stage = Times::new(reports().map(of_one).collect());
            times.stages.push((name, stage.median));
        }
        Ok(Measured {
            times,
            sorted: Times::new(all(&|update| update.sorted_ms)),
            pairs,
            report: self.updates.into_iter().last().and_then(|one| one.report),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::contender::expected;
    use super::super::{Motion, Peer, Source};
    use super::*;
    use radsweep::Backend;
    use radsweep_scenes::Kind;

    #[test]
    fn every_contender_is_measured_and_a_wrong_list_is_an_error() {
        let scene = Source::Scene(Kind::Uniform);
        let mut frames = Frames::new(&scene, Motion::Walk, 800).expect("frames");
        let config = Config {
            backend: Backend::Cpu,
            ..Config::default()
        };
        let first = expected(frames.boxes()).expect("pairs");
        for contender in [
            Contender::Ours(Strategy::Subdivided),
            Contender::Peer(Peer::ParryUpdate),
        ] {
            let mut one = Racing::new(contender, &config);
            for round in 0..WARM_UP + 3 {
                frames.go_to(round);
                let pairs = expected(frames.boxes()).expect("pairs");
                one.turn(round, &frames, Some(pairs));
            }
            let measured = one.measured(first.0).expect("measured");
            assert_eq!((measured.times.runs, measured.pairs), (3, first.0));
            assert!(measured.sorted.median >= measured.times.min);
            let ours = matches!(contender, Contender::Ours(_));
            assert_eq!(measured.tests_per_pair().is_some(), ours);

            let mut wrong = Racing::new(contender, &config);
            frames.go_to(0);
            wrong.turn(0, &frames, Some((first.0, first.1 ^ 1)));
            assert!(matches!(wrong.measured(first.0), Err(Missing::Wrong(_))));
        }
    }
}
