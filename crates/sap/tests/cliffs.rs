//! The max cost of the CPU engine, in tests of two boxes, on the worst scenes found and on some of
//! every shape.
//!
//! `benches/cliffs.rs` searches for more. `RADSWEEP_CLIFFS` is the number of random scenes of each
//! shape.

mod common;

use common::generators::{Made, Scene};
use common::{quick, worst};
use libtest_mimic::{Arguments, Failed, Trial};
use sap::{Backend, BroadPhase, Config, Error};

/// Max tests of an update for each box and pair; and, if few boxes moved, for each moved box and
/// its pairs.
const MOST_TESTS: u64 = 2_000;
/// Beyond this many pairs their list is all the work.
const MOST_PAIRS: u64 = 4_000_000;

fn main() {
    let arguments = Arguments::from_args();
    let each = std::env::var("RADSWEEP_CLIFFS").ok();
    let each = each.map_or(2, |number| number.parse().expect("a number"));
    let n = if quick() { 1_000 } else { 20_000 };
    let mut trials = Vec::new();
    for scene in worst::scenes(n, each) {
        let checks: [(&str, Check); 2] = [("update", update), ("moving", moving)];
        trials.extend(checks.map(|(name, check)| {
            let scene = scene.clone();
            Trial::test(format!("{name}::{scene}"), move || check(&scene))
        }));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

type Check = fn(&Scene) -> Result<(), Failed>;

fn engine() -> Result<BroadPhase, Error> {
    BroadPhase::new(Config {
        backend: Backend::Cpu,
        pair_memory: Some(8 * MOST_PAIRS),
        ..Config::default()
    })
}

fn update(scene: &Scene) -> Result<(), Failed> {
    let made = scene.make();
    let mut engine = engine()?;
    match engine.update(made.frame()) {
        Ok(report) => bounded(report.stats.tests, report.n as u64 + report.pairs),
        Err(Error::TooManyPairs { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// One box in a hundred moves and is listed as changed.
fn moving(scene: &Scene) -> Result<(), Failed> {
    let mut made: Made = scene.make();
    let mut engine = engine()?;
    for frame in 0..8 {
        let moved = made.step(frame);
        let report = match engine.update(made.frame().changed(&moved)) {
            Ok(report) => report.clone(),
            Err(Error::TooManyPairs { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let has_moved = |i: u32| i as usize % 100 == frame;
        let pairs = engine.pairs().iter();
        let near = pairs
            .filter(|pair| has_moved(pair.a) || has_moved(pair.b))
            .count();
        // A full update has the other bound.
        if report.stats.resting > 0 {
            bounded(report.stats.tests, (moved.len() + near) as u64)?;
        }
    }
    Ok(())
}

fn bounded(tests: u64, work: u64) -> Result<(), Failed> {
    if tests <= MOST_TESTS * work {
        return Ok(());
    }
    Err(format!("{tests} tests, {} for each of {work}", tests / work.max(1)).into())
}
