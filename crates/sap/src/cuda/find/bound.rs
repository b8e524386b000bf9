//! The bound on the work of [`crate::Strategy::Auto`].
//!
//! `Auto` chooses what is expected to cost the least, from a sample of the boxes, which some scenes
//! mislead. So the device counts the tests, and stops where they are far more than the pairs found
//! are worth. The same update then finds its pairs by a tree ([`crate::cuda::find::tree`]), and so
//! do the next ones.

use crate::Strategy;
use crate::choice::{Choice, Reason};
use crate::cuda::abi::State;
use crate::cuda::launch::{CHUNK, TILE};
use crate::cuda::tuning::{MAX_TREE_WAIT, MIN_TREE_WAIT, OTHER_COUNT, SWEPT_A_TEST, TESTS_A_BOX};
use crate::policy::Backoff;

/// Tests of a unit of the sweep's work.
const UNIT: u64 = (TILE * CHUNK) as u64;

/// A way to find the pairs of a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finder {
    /// The sweep along one axis, of this strategy.
    Axis(Strategy),
    Cells,
    Tree,
}

impl Finder {
    /// Returns the strategy that a report names. A tree cuts the space too.
    pub(crate) const fn strategy(self) -> Strategy {
        match self {
            Self::Axis(strategy) => strategy,
            Self::Cells | Self::Tree => Strategy::Subdivided,
        }
    }

    /// Returns the tests that it made before it was stopped, or a few more.
    pub(crate) fn tests_made(self, state: &State) -> u64 {
        let of_boxes = match self {
            Self::Axis(_) => state.tests.min(state.work.saturating_mul(UNIT)),
            Self::Cells | Self::Tree => state.tests,
        };
        of_boxes + state.resting_tests
    }

    /// Returns the max tests that it may make for `n` boxes.
    pub(crate) const fn limit(self, n: usize) -> u64 {
        let tests = (n as u64).saturating_mul(TESTS_A_BOX);
        match self {
            Self::Axis(_) => tests.saturating_mul(SWEPT_A_TEST),
            Self::Cells => tests,
            Self::Tree => u64::MAX,
        }
    }
}

/// The bound of an engine, and how often it was exceeded.
pub(crate) struct Bound {
    /// Has frames found by the tree without a try.
    backoff: Backoff,
    /// The boxes of the frame that exceeded it, and what was expected of that frame.
    n: usize,
    choice: Option<Choice>,
}

impl Default for Bound {
    fn default() -> Self {
        Self {
            backoff: Backoff::new(MIN_TREE_WAIT, MAX_TREE_WAIT),
            n: 0,
            choice: None,
        }
    }
}

impl Bound {
    /// Begins a frame of `n` boxes. Returns whether the tree is to find its pairs.
    pub(crate) fn begin_frame(&mut self, n: usize) -> bool {
        let ratio = n as f64 / self.n.max(1) as f64;
        if !(1.0 / OTHER_COUNT..OTHER_COUNT).contains(&ratio) {
            *self = Self::default();
        }
        self.backoff.begin_frame()
    }

    /// Records that a frame of `n` boxes exceeded the bound, whatever was expected of it.
    pub(crate) fn record_exceeded(&mut self, n: usize, choice: Option<Choice>) {
        self.backoff.record_failure();
        self.n = n;
        self.choice = choice.map(|choice| Choice {
            reason: Reason::TooManyTests,
            ..choice
        });
    }

    /// Returns the reason for the tree.
    pub(crate) const fn choice(&self) -> Option<Choice> {
        self.choice
    }

    /// Records that a frame stayed within the bound without the tree.
    pub(crate) fn record_kept(&mut self) {
        self.backoff.record_success();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_become_rare_and_begin_anew_for_other_scenes() {
        let mut bound = Bound::default();
        assert!(!bound.begin_frame(100));
        for wait in [16, 32, 64, 128, 256, 512, 1024, 1024] {
            bound.record_exceeded(100, None);
            assert_eq!((0..wait).filter(|_| bound.begin_frame(110)).count(), wait);
            assert!(!bound.begin_frame(110));
        }
        bound.record_exceeded(100, None);
        assert!(bound.begin_frame(100) && !bound.begin_frame(200) && !bound.begin_frame(100));
        bound.record_exceeded(100, None);
        bound.record_kept();
        bound.record_exceeded(100, None);
        assert_eq!((0..99).filter(|_| bound.begin_frame(100)).count(), 16);
    }
}
