//! Thousands of frames in which boxes come, go, move, jump and change: every strategy of the CPU
//! engine against a rebuild of each frame. Of the bytes in use after each frame, the max and
//! the median must not be higher in the second half than in the first, but for a slack each.
//!
//! `RADSWEEP_SOAK_FRAMES` sets the number of frames; the nightly run takes 10,000.

mod common;

use common::allocated::{self, Counting};
use common::churn::{Size, soak};
use common::process::isolated;
use common::quick;
use libtest_mimic::{Arguments, Failed, Trial};
use sap::{Backend, BroadPhase, Config, OverlapRule, Strategy};
use std::cell::RefCell;

#[global_allocator]
static COUNTING: Counting = Counting;

/// Bytes by which the max of the second half may exceed that of the first. Differences of 2.4 MB
/// were seen where other processes take the cores: it is chance which thread fills a block, and
/// what is kept when a large frame comes.
const PEAK_SLACK: u64 = 1 << 22;

/// Bytes by which the median of the second half may exceed that of the first. Differences of 0.7 MB
/// were seen, and of 1.6 MB in a quick run. A leak of 2.5 KB a frame makes more than this, or of
/// 500 bytes in a nightly run.
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
    let bytes = RefCell::new(Vec::with_capacity(size.frames));
    soak(&configs, BroadPhase::new, size, PEAK_SLACK, |_| {
        let now = allocated::bytes();
        bytes.borrow_mut().push(now);
        Ok(now)
    })?;
    let mut bytes = bytes.into_inner();
    let (early, late) = bytes.split_at_mut(size.frames / 2);
    let [early, late] = [early, late].map(|half| {
        half.sort_unstable();
        half[half.len() / 2]
    });
    if late > early + SLACK {
        return Err(format!("a median of {early} bytes in the first half, {late} later").into());
    }
    Ok(())
}
