//! Frames in which boxes come, go, move, jump and change, each against a rebuild on the CPU.

use super::{STRATEGIES, wgpu};
use crate::common::against_cpu::sized;
use crate::common::churn::{Size, soak};
use libtest_mimic::Failed;
use sap::{Config, OverlapRule};

pub const ALL: &[(&str, super::Other)] = &[
    ("soak::closed", || run(OverlapRule::Closed, 0.0)),
    ("soak::open_with_margins", || run(OverlapRule::Open, 0.1)),
];

fn run(rule: OverlapRule, margin: f32) -> Result<(), Failed> {
    let configs: Vec<Config> = STRATEGIES
        .iter()
        .map(|&strategy| Config {
            rule,
            margin,
            ..wgpu(strategy)
        })
        .collect();
    let size = Size::new(sized(2000, 80), sized(2000, 150), sized(20_000, 1500));
    // No interface tells how much memory of the device is in use.
    soak(&configs, size, 0, |_| Ok(0))
}
