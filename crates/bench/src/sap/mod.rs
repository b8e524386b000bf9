//! `radsweep bench sap`: measures the broad phase by scene, size and strategy, and other libraries.
//!
//! The contenders take turns on the same frames, so that other load on the machine disturbs all
//! alike. A wrong list of pairs is an error, not a time.

mod contender;
mod figure;
mod frames;
mod input;
mod output;
mod peers;
mod race;
mod walk;

pub(crate) use figure::{Updates, updates};
pub(crate) use frames::Motion;
pub(crate) use input::Source;
pub(crate) use peers::Peer;

use crate::args::Sap;
use crate::bench::Bench;
use crate::busy::{self, Busy};
use crate::measure::Missing;
use crate::plot;
use clap::error::ErrorKind;
use contender::{Contender, expected};
use frames::Frames;
use race::{Line, Measured, Racing, WARM_UP};
use radsweep::{Backend, Config, Strategy};
use radsweep_common::Result;
use radsweep_common::terminal::{note, steps};
use radsweep_scenes::Kind;

/// Max boxes for a sweep along one axis, whose work grows as n^(5/3), unless it is requested by
/// name.
const MAX_FOR_ONE_AXIS: usize = 300_000;

pub(crate) fn run(args: &Sap) -> Result<()> {
    plot::check(args.plot.as_deref())?;
    let stdins = args.scenes.iter().filter(|one| one.is_stdin()).count();
    if stdins > 1 || stdins > 0 && args.motion.len() > 1 {
        let twice = "stdin can be read only once: name a file";
        return Err(clap::Error::raw(ErrorKind::ValueValidation, twice).into());
    }
    let busy = Busy::before();
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
    let is_file = |source: &Source| matches!(source, Source::File(_));
    if !args.sizes.is_empty() && sources.iter().all(is_file) {
        note("--sizes has no effect on files of boxes");
    }
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
        for &motion in &args.motion {
            // The number of boxes in a file is fixed.
            let sizes = match source {
                Source::Scene(_) => &sizes[..],
                Source::File(_) => &[0],
            };
            cases.extend(sizes.iter().map(|&n| (source, motion, n)));
        }
    }
    let bar = steps(cases.len() as u64, "scenes");
    let mut lines = Vec::new();
    for (source, motion, n) in cases {
        let mut frames = Frames::new(source, motion, n)?;
        let n = frames.boxes().len();
        let results = measure(args, &bench, &mut frames);
        for (contender, measured) in results.map_err(|error| source.blame(error))? {
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
    let measured = lines.iter().filter_map(|line| line.measured.as_ref().ok());
    let busy = busy.after(measured.map(|measured| &measured.times));
    output::print(args, &bench, &lines, busy.as_deref())?;
    if let Some(path) = &args.plot {
        output::draw(path, &lines)?;
    }
    busy::report(busy);
    check(&lines)
}

/// Fails if contenders found wrong pairs, and names them.
fn check(lines: &[Line]) -> Result<()> {
    let wrong: Vec<_> = lines
        .iter()
        .filter(|line| matches!(line.measured, Err(Missing::Wrong(_))))
        .map(|line| {
            format!(
                "{} in {} ({} boxes)",
                line.contender.name(),
                line.source,
                line.n
            )
        })
        .collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!("wrong pairs were found by {}", wrong.join(", ")).into())
}

/// Returns the requested contenders.
fn contenders(args: &Sap, n: usize) -> Vec<Contender> {
    let one_axis = n <= MAX_FOR_ONE_AXIS;
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

type Results = Vec<(Contender, Result<Measured, Missing>)>;

/// Measures all contenders by turns on the same frames.
fn measure(args: &Sap, bench: &Bench, frames: &mut Frames) -> Result<Results> {
    let config = Config {
        backend: if bench.is_cpu() {
            Backend::Cpu
        } else {
            Backend::Cuda
        },
        events: !args.no_events,
        ..Config::default()
    };
    let n = frames.boxes().len();
    let mut racing: Vec<Racing> = contenders(args, n)
        .into_iter()
        .map(|contender| Racing::new(contender, &config))
        .collect();
    let rounds = WARM_UP + args.runs.unwrap_or_else(|| frames.motion.runs(n));
    let count = racing.len().max(1);
    let pairs = expected(frames.boxes())?.0;
    for round in 0..rounds {
        frames.go_to(round);
        let is_checked = round == 0 || round + 1 == rounds;
        let expected = is_checked.then(|| expected(frames.boxes())).transpose()?;
        // Nobody is always first.
        let (last, first) = racing.split_at_mut(round % count);
        for one in first.iter_mut().chain(last) {
            one.turn(round, frames, expected);
        }
    }
    let done = racing
        .into_iter()
        .map(|one| (one.contender, one.measured(pairs)));
    Ok(done.collect())
}
