//! Static and sleeping boxes held apart.

use super::{Check, sized};
use crate::common::held;
use libtest_mimic::Failed;
use sap::{Backend, Strategy};

pub const ALL: &[(&str, Check)] = &[
    ("held::frames", frames),
    ("held::costs_nothing", costs_nothing),
];

fn frames(strategy: Strategy) -> Result<(), Failed> {
    held::frames(
        Backend::Cuda,
        strategy,
        sized(2000, 150),
        sized(9, 3) as u64,
    )
}

fn costs_nothing(strategy: Strategy) -> Result<(), Failed> {
    held::costs_nothing(Backend::Cuda, strategy)
}
