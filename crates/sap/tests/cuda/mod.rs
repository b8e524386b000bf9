//! The trials of the CUDA engine. Without a device all are ignored, and the reason is printed; with
//! `RADSWEEP_REQUIRE_CUDA=1` that is a failure.

mod bounds;
mod changed;
mod device;
mod events;
mod graph;
mod hard;
mod independent;
mod memory;
mod neighbours;
mod order;
mod queries;
mod resting;
mod soak;
mod two_sets;
mod walls;

use crate::common;
use crate::common::against_cpu::{self, cpu, engine, holds, sized, uniform};
use crate::common::scenes::Random;
use libtest_mimic::{Failed, Trial};
use sap::{Aabb, Backend, BroadPhase, Config, OverlapRule, Pair, Strategy};
use std::sync::{LazyLock, Mutex, OnceLock};

/// A check of one strategy.
type Check = fn(Strategy) -> Result<(), Failed>;

/// A check that is independent of the strategy.
type Other = fn() -> Result<(), Failed>;

/// The strategies of CUDA.
static STRATEGIES: LazyLock<Vec<Strategy>> = LazyLock::new(|| common::strategies_but(&[]));

pub fn trials() -> Vec<Trial> {
    let mut trials = common::trials(Backend::Cuda, &STRATEGIES);
    let own = [
        device::ALL,
        graph::ALL,
        resting::ALL,
        memory::ALL,
        two_sets::ALL,
    ]
    .concat();
    trials.extend(own.into_iter().flat_map(|(name, check)| {
        STRATEGIES.iter().map(move |&strategy| {
            Trial::test(format!("{name}::{strategy}"), move || check(strategy))
        })
    }));
    trials.extend(against_cpu::ALL.iter().flat_map(|&(name, check)| {
        STRATEGIES.iter().map(move |&strategy| {
            Trial::test(format!("{name}::{strategy}"), move || {
                check(&cuda(strategy))
            })
        })
    }));
    trials.push(Trial::test("device::choice", device::choice));
    // The emulator has several devices if `RADSWEEP_EMULATE_DEVICES` says so.
    let is_one = gpu::Device::count().is_ok_and(|count| count < 2);
    let of_several: [(&str, Other); 2] = [
        ("two_sets::of_another_device", two_sets::of_another_device),
        ("device::second", device::second),
    ];
    trials
        .extend(of_several.map(|(name, check)| Trial::test(name, check).with_ignored_flag(is_one)));
    trials.push(Trial::test("device::missing", device::missing));
    let others = bounds::ALL
        .iter()
        .chain(events::ALL)
        .chain(independent::ALL)
        .chain(hard::ALL)
        .chain(neighbours::ALL)
        .chain(order::ALL)
        .chain(queries::ALL)
        .chain(soak::ALL)
        .chain(changed::ALL)
        .chain(walls::ALL);
    trials.extend(others.map(|&(name, check)| Trial::test(name, check)));
    let Err(error) = gpu::Device::first() else {
        // This engine lives as long as the process, so the kernels are loaded once. Loading takes
        // most of the time under a tool that rewrites them.
        static KEPT: OnceLock<Mutex<BroadPhase>> = OnceLock::new();
        KEPT.get_or_init(|| Mutex::new(engine(&cuda(Strategy::Sweep))));
        return trials;
    };
    if std::env::var("RADSWEEP_REQUIRE_CUDA").is_ok_and(|value| value == "1") {
        return vec![Trial::test("device", move || {
            Err(format!("no CUDA device: {error}").into())
        })];
    }
    eprintln!("all trials are ignored: {error}");
    trials
        .into_iter()
        .map(|trial| trial.with_kind("no CUDA device").with_ignored_flag(true))
        .collect()
}

/// Returns a configuration for CUDA.
fn cuda(strategy: Strategy) -> Config {
    Config {
        backend: Backend::Cuda,
        strategy,
        ..Config::default()
    }
}

/// Returns the pairs of a frame by the CPU engine.
fn expected(boxes: &[Aabb], rule: OverlapRule) -> Vec<Pair> {
    let mut broad_phase = engine(&Config {
        rule,
        backend: Backend::Cpu,
        ..Config::default()
    });
    broad_phase.update(boxes).expect("boxes are valid");
    broad_phase.pairs().to_vec()
}

/// Compares the pairs and events of two engines.
fn same_lists(found: &BroadPhase, expected: &BroadPhase) -> Result<(), Failed> {
    common::same(found.pairs(), expected.pairs())?;
    common::same(found.started(), expected.started())?;
    common::same(found.ended(), expected.ended())
}

fn text(error: impl ToString) -> Failed {
    error.to_string().into()
}
