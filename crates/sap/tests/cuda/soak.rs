//! Frames in which boxes come, go, move, jump and change, each against a rebuild on the CPU. Device
//! memory must not grow.

use super::{Other, STRATEGIES, cuda, sized};
use crate::common::churn::{Size, soak};
use libtest_mimic::Failed;
use sap::{BroadPhase, Config, OverlapRule};

pub const ALL: &[(&str, Other)] = &[
    ("soak::closed", || run(OverlapRule::Closed, 0.0)),
    ("soak::open_with_margins", || run(OverlapRule::Open, 0.1)),
];

fn run(rule: OverlapRule, margin: f32) -> Result<(), Failed> {
    let configs: Vec<Config> = STRATEGIES
        .iter()
        .map(|&strategy| Config {
            rule,
            margin,
            min_resting: Some(1),
            ..cuda(strategy)
        })
        .collect();
    let size = Size::new(sized(10_000, 80), sized(2000, 150), sized(20_000, 1500));
    soak(&configs, BroadPhase::new, size, 0, in_use)
}

/// Returns the bytes that this process uses on the device, if the device reports them.
fn in_use(engines: &[BroadPhase]) -> Result<u64, Failed> {
    let stream = engines[0].stream().ok_or("no stream")?;
    Ok(stream.device().memory_used()?.unwrap_or(0))
}
