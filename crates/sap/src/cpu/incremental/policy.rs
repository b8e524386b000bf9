//! Decides when a frame is updated incrementally: when the tree is built, rebuilt and dropped.

use crate::Config;
use crate::cpu::tuning::{
    MAX_CHANGED, MAX_QUIET_FRAMES, MEET_COST, MIN_QUIET_FRAMES, MIN_RESTING, SWEPT_COST,
};
use crate::policy::{Hysteresis, Limits};

/// Returns the boxes beyond which some may be left out of an update.
pub(in crate::cpu) fn resting_threshold(config: &Config) -> u64 {
    config.hold_from.map_or(MIN_RESTING, |boxes| boxes as u64)
}

/// Returns how many of `n` boxes may have changed; None where too few would be left out, or there
/// are no boxes.
pub(super) fn max_changed(n: usize, config: &Config) -> Option<usize> {
    let spare = (n as u64).checked_sub(resting_threshold(config).max(1))? as usize;
    Some(spare.min((n as f64 * MAX_CHANGED) as usize))
}

/// Weighs incremental updates against full ones. Costs are in tests of two boxes.
pub(super) struct Policy {
    tree: Hysteresis,
    /// Tests for each box looked for in the first update after the tree was built; 0 before.
    baseline_tests_per_box: u64,
    /// Tests since then beyond twice the baseline: boxes that move grow the unions above them.
    excess_tests: u64,
    /// The cost of the last full update.
    full_sweep_cost: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            tree: Hysteresis::new(Limits {
                min_quiet_frames: MIN_QUIET_FRAMES,
                max_quiet_frames: MAX_QUIET_FRAMES,
                worth: 1,
            }),
            baseline_tests_per_box: 0,
            excess_tests: 0,
            full_sweep_cost: u64::MAX,
        }
    }
}

impl Policy {
    /// Counts a frame in which few boxes changed. Returns whether it is to be updated by the tree.
    pub(super) fn count_quiet(&mut self) -> bool {
        self.tree.count_quiet();
        self.tree.in_use() || self.tree.is_due()
    }

    /// Tells whether the tree has cost as much beyond its baseline as building one anew.
    pub(super) const fn is_worn(&self, boxes: usize) -> bool {
        self.excess_tests > SWEPT_COST * boxes as u64
    }

    /// Begins with a new tree.
    pub(super) fn begin(&mut self) {
        (self.baseline_tests_per_box, self.excess_tests) = (0, 0);
        if !self.tree.in_use() {
            self.tree.begin();
        }
    }

    /// Notes the cost of a full update.
    pub(super) const fn note_full(&mut self, boxes: usize, tests: u64) {
        self.full_sweep_cost = SWEPT_COST * boxes as u64 + tests;
    }

    /// Drops the tree, if there is one: too many boxes changed.
    pub(super) fn end(&mut self) {
        self.tree.end();
    }

    /// Notes the tests that looking for some boxes took. Returns whether the tree is worth its
    /// cost: it is dropped where boxes are near each other, and yet no pairs.
    pub(super) fn note_incremental(&mut self, looked_for: u64, tests: u64) -> bool {
        if looked_for == 0 {
            return true;
        }
        if self.baseline_tests_per_box == 0 {
            self.baseline_tests_per_box = tests.div_ceil(looked_for).max(1);
        }
        let expected = 2 * self.baseline_tests_per_box * looked_for;
        self.excess_tests += tests.saturating_sub(expected);
        let is_worth = tests + MEET_COST * looked_for <= self.full_sweep_cost;
        if !is_worth {
            self.tree.reject();
        }
        is_worth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_use() -> Policy {
        let mut policy = Policy::default();
        while !policy.count_quiet() {}
        policy.begin();
        policy
    }

    #[test]
    fn few_boxes_may_have_changed() {
        let config = |hold_from| Config {
            hold_from,
            ..Config::default()
        };
        let min = MIN_RESTING as usize;
        assert_eq!(max_changed(min - 1, &config(None)), None);
        assert_eq!(max_changed(min + 1, &config(None)), Some(1));
        assert_eq!(max_changed(600_000, &config(None)), Some(100_000));
        assert_eq!(max_changed(0, &config(Some(0))), None);
        assert_eq!(max_changed(60, &config(Some(0))), Some(10));
        assert_eq!(max_changed(usize::MAX, &config(Some(usize::MAX))), Some(0));
    }

    #[test]
    fn the_tree_is_built_after_some_quiet_frames() {
        let mut policy = Policy::default();
        for _ in 1..MIN_QUIET_FRAMES {
            assert!(!policy.count_quiet());
        }
        // Without the memory for it, it is tried again.
        assert!(policy.count_quiet() && policy.count_quiet());
        policy.begin();
        assert!(policy.count_quiet());
        policy.end();
        assert!(!policy.count_quiet());
    }

    #[test]
    fn a_tree_that_costs_more_than_a_full_update_is_dropped() {
        let mut policy = in_use();
        // No full update is known yet.
        assert!(policy.note_incremental(10, 1 << 40));
        policy.note_full(1000, 5000);
        let full = SWEPT_COST * 1000 + 5000;
        assert!(policy.note_incremental(10, full - 10 * MEET_COST));
        assert!(policy.count_quiet());
        assert!(!policy.note_incremental(10, full - 10 * MEET_COST + 1));
        // And waited for twice as long, though it served for long.
        for _ in 1..2 * MIN_QUIET_FRAMES {
            assert!(!policy.count_quiet());
        }
        assert!(policy.count_quiet());
    }

    #[test]
    fn a_tree_that_has_grown_is_worn() {
        let mut policy = in_use();
        assert!(policy.note_incremental(10, 95));
        assert!(!policy.is_worn(1));
        // Ten tests a box are the baseline: up to twice as many are no excess.
        assert!(policy.note_incremental(10, 200) && !policy.is_worn(0));
        assert!(policy.note_incremental(0, 0));
        assert!(policy.note_incremental(10, 200 + SWEPT_COST));
        assert!(!policy.is_worn(1) && policy.is_worn(0));
        policy.begin();
        assert!(!policy.is_worn(0));
    }
}
