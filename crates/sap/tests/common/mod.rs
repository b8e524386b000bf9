//! Shared by all test binaries: edge cases, scenes, oracles and the published data.
//!
//! [`trials`] is the matrix of edge cases for one backend, which each backend's binary runs.
#![allow(dead_code, missing_docs)]

pub mod against_cpu;
pub mod allocated;
pub mod behaviour;
pub mod churn;
pub mod data;
pub mod generators;
pub mod hard;
pub mod incremental;
pub mod independent;
pub mod mesh;
pub mod oracle;
pub mod process;
pub mod published;
pub mod random;
pub mod refusing;
pub mod resting;
pub mod scenes;
pub mod shapes;
pub mod worst;

use libtest_mimic::{Failed, Trial};
use sap::{Aabb, Backend, BroadPhase, Config, OverlapRule, Pair, Strategy};
use std::sync::{Arc, OnceLock};

pub const RULES: [OverlapRule; 2] = [OverlapRule::Closed, OverlapRule::Open];

/// Tells whether sizes should be small (`RADSWEEP_QUICK=1`), for tools that slow the tests down.
pub fn quick() -> bool {
    std::env::var("RADSWEEP_QUICK").is_ok_and(|value| value == "1")
}

/// The configuration of a trial.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    pub backend: Backend,
    pub strategy: Strategy,
    pub rule: OverlapRule,
}

impl Setup {
    pub fn config(&self) -> Config {
        let Self {
            backend,
            strategy,
            rule,
        } = *self;
        Config {
            backend,
            strategy,
            rule,
            ..Config::default()
        }
    }

    pub fn broad_phase(&self) -> BroadPhase {
        BroadPhase::new(self.config()).expect("the backend is there")
    }

    /// Returns the pairs of one frame.
    pub fn pairs(&self, boxes: &[Aabb]) -> Vec<Pair> {
        let mut broad_phase = self.broad_phase();
        broad_phase.update(boxes).expect("boxes are valid");
        broad_phase.pairs().to_vec()
    }
}

pub fn rule_name(rule: OverlapRule) -> &'static str {
    match rule {
        OverlapRule::Closed => "closed",
        OverlapRule::Open => "open",
    }
}

/// Fails with the first difference between two lists.
pub fn same(found: &[Pair], expected: &[Pair]) -> Result<(), Failed> {
    if found == expected {
        return Ok(());
    }
    let at = found
        .iter()
        .zip(expected)
        .position(|(f, e)| f != e)
        .unwrap_or(found.len().min(expected.len()));
    let text = format!(
        "{} pairs, expected {}; at {at}: {:?}, expected {:?}",
        found.len(),
        expected.len(),
        found.get(at),
        expected.get(at)
    );
    Err(text.into())
}

pub fn equal<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Result<(), Failed> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("found {found:?}, expected {expected:?}").into())
    }
}

/// Returns the pairs of `these` that are not in `those`. Both are sorted.
pub fn without(these: &[Pair], those: &[Pair]) -> Vec<Pair> {
    let mut those = those.iter().peekable();
    let missing = |pair: &&Pair| {
        while those.next_if(|other| other < pair).is_some() {}
        those.peek() != Some(pair)
    };
    these.iter().filter(missing).copied().collect()
}

/// Returns the strategies by which a backend may find pairs: all without `Auto`, which takes one of
/// them, and without those that it does not have.
#[allow(dead_code)] // not every binary of tests has a GPU
pub fn strategies_but(missing: &[Strategy]) -> Vec<Strategy> {
    let is_own = |strategy: &Strategy| *strategy != Strategy::Auto && !missing.contains(strategy);
    Strategy::ALL.iter().copied().filter(is_own).collect()
}

/// Returns the edge cases on one backend: every scene and every behaviour, for each strategy and
/// both rules.
pub fn trials(backend: Backend, strategies: &[Strategy]) -> Vec<Trial> {
    let setups = || {
        let both = strategies
            .iter()
            .flat_map(|&strategy| RULES.map(|rule| (strategy, rule)));
        both.map(move |(strategy, rule)| Setup {
            backend,
            strategy,
            rule,
        })
    };
    let name = |case: &str, setup: &Setup| {
        format!("{case}::{}::{}", setup.strategy, rule_name(setup.rule))
    };
    let mut trials = Vec::new();
    for scene in scenes::all() {
        // The oracle runs once for each rule, in the first trial that needs it.
        let scene = Arc::new((scene, [OnceLock::new(), OnceLock::new()]));
        for setup in setups() {
            let scene = Arc::clone(&scene);
            let check = {
                let scene = Arc::clone(&scene);
                move || scenes::check(&scene.0, &scene.1[setup.rule as usize], &setup)
            };
            trials.push(Trial::test(name(&scene.0.name, &setup), check));
        }
    }
    for (case, check) in behaviour::ALL {
        trials.extend(setups().map(|setup| Trial::test(name(case, &setup), move || check(&setup))));
    }
    trials
}
