//! The resting set: static and sleeping boxes.

use super::{Check, sized};
use crate::common::resting;
use libtest_mimic::Failed;
use sap::{Backend, Strategy};

pub const ALL: &[(&str, Check)] = &[
    ("resting::frames", frames),
    ("resting::costs_nothing", costs_nothing),
    ("resting::churn", churn),
];

fn frames(strategy: Strategy) -> Result<(), Failed> {
    resting::frames(
        Backend::Cuda,
        strategy,
        sized(2000, 150),
        sized(9, 3) as u64,
    )
}

fn churn(strategy: Strategy) -> Result<(), Failed> {
    let seeds = std::env::var("RADSWEEP_RESTING_SEEDS").ok();
    let seeds = seeds.map_or(sized(20, 5) as u64, |seeds| {
        seeds.parse().expect("a number")
    });
    resting::churn(Backend::Cuda, strategy, sized(2000, 120), seeds)
}

fn costs_nothing(strategy: Strategy) -> Result<(), Failed> {
    resting::costs_nothing(Backend::Cuda, strategy)
}
