//! `radsweep bench sap`: the broad phase by scene, size and strategy, beside what others use.
//!
//! All contenders take turns at the same frames, so that what else the machine does disturbs all alike. A pair list that is not
//! the one expected is an error, not a time.

mod contender;
mod figure;
mod input;
mod output;
mod peers;

pub(crate) use figure::{Updates, updates};
pub(crate) use input::{Motion, Source};
pub(crate) use peers::Peer;

use crate::args::Sap;
use crate::bench::Bench;
use crate::measure::{Missing, Times};
use crate::plot;
use contender::{Contender, Ready, Update, expected};
use radsweep::{Aabb, Backend, Config, Report, Strategy};
use radsweep_common::Result;
use radsweep_common::terminal::{note, progress};
use radsweep_scenes::Kind;
use std::time::Instant;

/// Frames of a moving scene, gone through forth and back.
const FRAMES: usize = 6;
/// Updates before the first that counts: trees are built, and memory is there.
const WARM_UP: usize = 2;
/// A contender is measured no more after so many seconds, but for three updates in any case.
const SECONDS: f64 = 3.0;
/// Boxes beyond which a sweep along one axis, whose work grows as n^(5/3), is left out unless it was asked for by name.
const MOST_FOR_ONE_AXIS: usize = 300_000;
/// Boxes of a pass of the index sort inside: its key and its index, read and written; four passes, and the keys read once before.
const SORT_BYTES: f64 = 4.0 * 16.0 + 4.0;

/// What one contender did with one scene.
struct Line {
    source: String,
    motion: Motion,
    n: usize,
    contender: Contender,
    measured: std::result::Result<Measured, Missing>,
}

struct Measured {
    /// Of boxes in, pairs out, with the stages of ours.
    times: Times,
    /// With the pairs sorted; the same for ours.
    sorted: Times,
    pairs: u64,
    /// Of ours.
    report: Option<Report>,
}

impl Measured {
    /// Candidates for each pair.
    fn tests_per_pair(&self) -> Option<f64> {
        let tests = self.report.as_ref()?.tests as f64;
        Some(tests / self.pairs.max(1) as f64)
    }

    /// Bytes that the algorithm must move: a box read (24), its record of 32 written and read, an index sort in between where boxes
    /// are swept along one axis; a pair of 8 written, read, and written in order. None where the frame was known to be the last.
    fn bytes(&self, n: usize) -> Option<f64> {
        let report = self.report.as_ref().filter(|report| report.tests > 0)?;
        let sort = match report.strategy {
            Strategy::Subdivided => 0.0,
            Strategy::Endpoints => 2.0 * SORT_BYTES,
            _ => SORT_BYTES,
        };
        Some(n as f64 * (24.0 + 64.0 + sort) + self.pairs as f64 * 24.0)
    }
}

pub(crate) fn run(args: &Sap) -> Result<()> {
    plot::check(args.plot.as_deref())?;
    let bench = Bench::new(args.common.backend)?;
    let sources = if args.scenes.is_empty() {
        [
            Kind::Uniform,
            Kind::Clustered,
            Kind::MixedSizes,
            Kind::Stack,
            Kind::FallingChairs,
        ]
        .map(Source::Scene)
        .to_vec()
    } else {
        args.scenes.clone()
    };
    let sizes = if args.sizes.is_empty() {
        vec![1000, 10_000, 100_000]
    } else {
        args.sizes.clone()
    };
    if !args.no_peers && args.peers.is_empty() && !Peer::ALL.into_iter().all(Peer::is_here) {
        note("obvhs and bvh are not in this build: `--features peers` adds them");
    }
    let mut cases = Vec::new();
    for source in &sources {
        for &motion in &args.frames {
            // A file has the boxes that it has.
            let sizes = match source {
                Source::Scene(_) => &sizes[..],
                Source::File(_) => &[0],
            };
            cases.extend(sizes.iter().map(|&n| (source, motion, n)));
        }
    }
    let bar = progress(cases.len() as u64, "scenes");
    let mut lines = Vec::new();
    for (source, motion, n) in cases {
        let count = if motion == Motion::Moving { FRAMES } else { 1 };
        let frames = source.frames(n, count)?;
        let n = frames[0].len();
        for (contender, measured) in measure(args, &bench, &frames)? {
            lines.push(Line {
                source: source.to_string(),
                motion,
                n,
                contender,
                measured,
            });
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    output::print(args, &bench, &lines)?;
    if let Some(path) = &args.plot {
        output::draw(path, &lines)?;
    }
    let wrong = lines
        .iter()
        .filter(|line| matches!(line.measured, Err(Missing::Wrong(_))))
        .count();
    if wrong > 0 {
        return Err(format!("{wrong} contenders gave wrong pairs").into());
    }
    Ok(())
}

/// Who is asked for.
fn contenders(args: &Sap, n: usize) -> Vec<Contender> {
    let one_axis = n <= MOST_FOR_ONE_AXIS;
    let many =
        |strategy: &Strategy| one_axis || matches!(strategy, Strategy::Subdivided | Strategy::Auto);
    let strategies: Vec<Strategy> = match &args.strategies[..] {
        [] => Strategy::ALL.iter().copied().filter(many).collect(),
        asked => asked.to_vec(),
    };
    let peers: Vec<Peer> = match &args.peers[..] {
        _ if args.no_peers => Vec::new(),
        [] => Peer::ALL
            .into_iter()
            .filter(|&peer| peer.is_here() && (one_axis || peer != Peer::PlainSweep))
            .collect(),
        asked => asked.to_vec(),
    };
    let ours = strategies.into_iter().map(Contender::Ours);
    ours.chain(peers.into_iter().map(Contender::Peer)).collect()
}

type Results = Vec<(Contender, std::result::Result<Measured, Missing>)>;

/// All contenders by turns at the same frames.
fn measure(args: &Sap, bench: &Bench, frames: &[Vec<Aabb>]) -> Result<Results> {
    let config = Config {
        backend: if bench.is_cpu() {
            Backend::Cpu
        } else {
            Backend::Cuda
        },
        events: !args.no_events,
        ..Config::default()
    };
    let expected = expected(&frames[0])?;
    let mut racing: Vec<Racing> = contenders(args, frames[0].len())
        .into_iter()
        .map(|contender| Racing::new(contender, &config, frames))
        .collect();
    for round in 0..WARM_UP + args.runs {
        for one in &mut racing {
            one.turn(round, frames, expected);
        }
    }
    let done = racing
        .into_iter()
        .map(|one| (one.contender, one.measured(expected.0)));
    Ok(done.collect())
}

/// A contender and what it has shown so far.
struct Racing {
    contender: Contender,
    ready: std::result::Result<Ready, Missing>,
    updates: Vec<Update>,
    spent: f64,
}

impl Racing {
    fn new(contender: Contender, config: &Config, frames: &[Vec<Aabb>]) -> Self {
        let ready = Ready::new(contender, config, frames);
        Self {
            contender,
            ready: ready.map_err(|error| Missing::Unsupported(error.to_string())),
            updates: Vec::new(),
            spent: 0.0,
        }
    }

    fn turn(&mut self, round: usize, frames: &[Vec<Aabb>], expected: (u64, u64)) {
        let enough = self.updates.len() >= 3 && self.spent > SECONDS;
        let (Ok(ready), false) = (&mut self.ready, enough) else {
            return;
        };
        let begun = Instant::now();
        let update = match ready.update(frames, place(round, frames.len())) {
            Ok(update) => update,
            Err(error) => {
                self.ready = Err(Missing::Unsupported(error.to_string()));
                return;
            }
        };
        self.spent += begun.elapsed().as_secs_f64();
        if round == 0 {
            let why = match ready.found() {
                Ok(found) if found == expected => None,
                Ok((pairs, _)) => Some(format!(
                    "{pairs} pairs, expected {} of a given hash",
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

    fn measured(self, pairs: u64) -> std::result::Result<Measured, Missing> {
        self.ready?;
        let all = |of: &dyn Fn(&Update) -> f64| self.updates.iter().map(of).collect::<Vec<f64>>();
        let mut times = Times::new(all(&|update| update.ms));
        let reports = || self.updates.iter().filter_map(|one| one.report.as_ref());
        let stages = reports().next().map(|one| one.timings.stages());
        for (place, (name, _)) in stages.into_iter().flatten().enumerate() {
            let of_one =
                |report: &Report| report.timings.stages().nth(place).map_or(0.0, |it| it.1);
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

/// The frame of a round: 0, 1, 2, 1, 0, 1 and so on, so that each is near the one before it.
fn place(round: usize, frames: usize) -> usize {
    if frames == 1 {
        return 0;
    }
    let at = round % (2 * frames - 2);
    at.min(2 * frames - 2 - at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_gone_through_forth_and_back() {
        let places: Vec<usize> = (0..9).map(|round| place(round, 4)).collect();
        assert_eq!(places, [0, 1, 2, 3, 2, 1, 0, 1, 2]);
        assert_eq!(place(5, 1), 0);
    }

    #[test]
    fn every_contender_is_measured_and_a_wrong_list_is_told() {
        let frames = Source::Scene(Kind::Uniform).frames(800, 2).expect("frames");
        let config = Config {
            backend: Backend::Cpu,
            ..Config::default()
        };
        let pairs = expected(&frames[0]).expect("pairs");
        for contender in [
            Contender::Ours(Strategy::Subdivided),
            Contender::Peer(Peer::ParryUpdate),
        ] {
            let mut one = Racing::new(contender, &config, &frames);
            for round in 0..WARM_UP + 3 {
                one.turn(round, &frames, pairs);
            }
            let measured = one.measured(pairs.0).expect("measured");
            assert_eq!((measured.times.runs, measured.pairs), (3, pairs.0));
            assert!(measured.sorted.median >= measured.times.min);
            let ours = matches!(contender, Contender::Ours(_));
            assert_eq!(measured.tests_per_pair().is_some(), ours);

            let mut wrong = Racing::new(contender, &config, &frames);
            wrong.turn(0, &frames, (pairs.0, pairs.1 ^ 1));
            assert!(matches!(wrong.measured(pairs.0), Err(Missing::Wrong(_))));
        }
    }
}
