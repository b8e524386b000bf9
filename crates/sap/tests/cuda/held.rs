//! Static and sleeping boxes held apart.

use super::{Check, sized};
use crate::common::held;
use libtest_mimic::Failed;
use sap::{Backend, Strategy};

pub const ALL: &[(&str, Check)] = &[
    ("held::frames", frames),
    ("held::costs_nothing", costs_nothing),
    ("held::churn", churn),
];

fn frames(strategy: Strategy) -> Result<(), Failed> {
    held::frames(
        Backend::Cuda,
        strategy,
        sized(2000, 150),
        sized(9, 3) as u64,
    )
}

fn churn(strategy: Strategy) -> Result<(), Failed> {
    let seeds = std::env::var("RADSWEEP_HELD_SEEDS").ok();
    let seeds = seeds.map_or(sized(20, 5) as u64, |seeds| {
        seeds.parse().expect("a number")
    });
    held::churn(Backend::Cuda, strategy, sized(2000, 120), seeds)
}

fn costs_nothing(strategy: Strategy) -> Result<(), Failed> {
    held::costs_nothing(Backend::Cuda, strategy)
}
