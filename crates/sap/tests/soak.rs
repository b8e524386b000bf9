//! Thousands of frames of boxes that come, go, move, jump and change: every strategy of the CPU engine against a rebuild of each
//! frame, and no more memory in use than after the first of them.
//!
//! `RADSWEEP_SOAK_FRAMES` sets the number of frames.

mod common;

use common::allocated::{self, Counting};
use common::churn::{Size, soak};
use common::quick;
use libtest_mimic::{Arguments, Failed, Trial};
use sap::{Backend, Config, OverlapRule, Strategy};

#[global_allocator]
static COUNTING: Counting = Counting;

/// The threads' pools and queues may differ by this from frame to frame; a leak of a few hundred bytes a frame is more.
const SLACK: u64 = 1 << 20;

fn main() {
    let mut arguments = Arguments::from_args();
    // One at a time: the bytes in use are those of the process.
    arguments.test_threads = Some(1);
    let trials = vec![
        Trial::test("soak::closed", || run(OverlapRule::Closed, 0.0)),
        Trial::test("soak::open_with_margins", || run(OverlapRule::Open, 0.1)),
    ];
    libtest_mimic::run(&arguments, trials).exit();
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
    let size = Size::new(if quick() { 300 } else { 10_000 }, 2000, 20_000);
    soak(&configs, size, SLACK, |_| Ok(allocated::bytes()))
}
