//! Decides when an update is incremental: when the tree is built, rebuilt and dropped.

use crate::Config;
use crate::cpu::tuning::{
    EXPECTED_TESTS, FULL_COST, MAX_CHANGED, MIN_RESTING, SEARCH_COST, TREE_LIMITS,
};
use crate::policy::Hysteresis;

/// Returns the min number of unchanged boxes for an incremental update.
pub(in crate::cpu) fn resting_threshold(config: &Config) -> u64 {
    config.min_resting.map_or(MIN_RESTING, |boxes| boxes as u64)
}

/// Returns the max number of `n` boxes that may have changed. None if there are too few boxes for
/// an incremental update.
pub(super) fn max_changed(n: usize, config: &Config) -> Option<usize> {
    let above_threshold = (n as u64).checked_sub(resting_threshold(config).max(1))? as usize;
    Some(above_threshold.min((n as f64 * MAX_CHANGED) as usize))
}

/// Weighs incremental updates against full ones. Costs are in tests of a tree.
pub(super) struct Policy {
    tree: Hysteresis,
    /// Tests for each changed box in the first update after the tree was built; 0 before.
    baseline_tests_per_box: u64,
    /// Tests since then beyond twice the baseline: boxes that move enlarge the nodes above them.
    excess_tests: u64,
    /// The cost of the last full update.
    full_update_cost: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            tree: Hysteresis::new(TREE_LIMITS),
            baseline_tests_per_box: 0,
            excess_tests: 0,
            full_update_cost: u64::MAX,
        }
    }
}

impl Policy {
    /// Counts a frame in which few boxes changed. Returns whether its update should be incremental.
    pub(super) fn count_quiet(&mut self) -> bool {
        self.tree.count_quiet();
        self.tree.in_use() || self.tree.is_due()
    }

    /// Tells whether the excess tests of the tree have cost as much as building a new one.
    pub(super) const fn is_worn(&self, boxes: usize) -> bool {
        self.excess_tests > FULL_COST * boxes as u64
    }

    /// Begins to use a new tree.
    pub(super) fn begin(&mut self) {
        (self.baseline_tests_per_box, self.excess_tests) = (0, 0);
        if !self.tree.in_use() {
            self.tree.begin();
        }
    }

    /// Records the cost of a full update.
    pub(super) const fn record_full(&mut self, boxes: usize, tests: u64) {
        self.full_update_cost = FULL_COST * boxes as u64 + tests;
    }

    /// Ends the use of the tree and the run of quiet frames, because too many boxes changed.
    pub(super) fn end(&mut self) {
        self.tree.end();
    }

    /// Records the tests that the search for `searched` changed boxes took. Returns whether to keep
    /// the tree: not if it costs more than a full update, as where many boxes are near each other
    /// and few of them pair.
    pub(super) fn record_incremental(&mut self, searched: u64, tests: u64) -> bool {
        if searched == 0 {
            return true;
        }
        if self.baseline_tests_per_box == 0 {
            self.baseline_tests_per_box = tests.div_ceil(searched).max(1);
        }
        let expected = EXPECTED_TESTS * self.baseline_tests_per_box * searched;
        self.excess_tests += tests.saturating_sub(expected);
        let pays = tests + SEARCH_COST * searched <= self.full_update_cost;
        if !pays {
            self.tree.reject();
        }
        pays
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
        let config = |min_resting| Config {
            min_resting,
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
        for _ in 1..TREE_LIMITS.min_quiet_frames {
            assert!(!policy.count_quiet());
        }
        // It is due again if there was no memory for it.
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
        assert!(policy.record_incremental(10, 1 << 40));
        policy.record_full(1000, 5000);
        let full = FULL_COST * 1000 + 5000;
        assert!(policy.record_incremental(10, full - 10 * SEARCH_COST));
        assert!(policy.count_quiet());
        assert!(!policy.record_incremental(10, full - 10 * SEARCH_COST + 1));
        // The next wait is twice as long.
        for _ in 1..2 * TREE_LIMITS.min_quiet_frames {
            assert!(!policy.count_quiet());
        }
        assert!(policy.count_quiet());
    }

    #[test]
    fn a_tree_that_has_grown_is_worn() {
        let mut policy = in_use();
        assert!(policy.record_incremental(10, 95));
        assert!(!policy.is_worn(1));
        // The baseline is ten tests a box. Up to twice as many are no excess.
        assert!(policy.record_incremental(10, 200) && !policy.is_worn(0));
        assert!(policy.record_incremental(0, 0));
        assert!(policy.record_incremental(10, 200 + FULL_COST));
        assert!(!policy.is_worn(1) && policy.is_worn(0));
        policy.begin();
        assert!(!policy.is_worn(0));
    }
}
