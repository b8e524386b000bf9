//! Thousands of frames in which boxes come, go, move, jump and change: every strategy of the CPU
//! engine against a rebuild of each frame. The memory in use must not grow after the first frames.
//!
//! `RADSWEEP_SOAK_FRAMES` sets the number of frames; the nightly run takes 10,000.

mod common;

use common::allocated::{self, Counting};
use common::churn::{Size, soak};
use common::process::isolated;
use common::quick;
use libtest_mimic::{Arguments, Failed, Trial};
use sap::{Backend, BroadPhase, Config, OverlapRule, Strategy};

#[global_allocator]
static COUNTING: Counting = Counting;

/// Bytes by which the threads' pools and queues may differ between frames: 1.3 MB where other
/// processes take the cores, so that one thread fills the blocks of both. A leak of 2 KB a frame is
/// more, and of 400 bytes in the nightly run.
const SLACK: u64 = 1 << 21;

fn main() {
    let trials = vec![
        Trial::test("soak::closed", || run(OverlapRule::Closed, 0.0)),
        Trial::test("soak::open_with_margins", || run(OverlapRule::Open, 0.1)),
    ];
    libtest_mimic::run(&Arguments::from_args(), isolated(trials)).exit();
}

fn run(rule: OverlapRule, margin: f32) -> Result<(), Failed> {
    let configs: Vec<Config> = Strategy::ALL
        .iter()
        .map(|&strategy| Config {
            backend: Backend::Cpu,
            strategy,
            rule,
            margin,
            ..Config::default()
        })
        .collect();
    let size = Size::new(if quick() { 300 } else { 2000 }, 2000, 20_000);
    soak(&configs, BroadPhase::new, size, SLACK, |_| {
        Ok(allocated::bytes())
    })
}
