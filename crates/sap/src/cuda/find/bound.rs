//! The bound on the work of [`crate::Strategy::Auto`]. What is expected to cost the least is chosen from a sample of the boxes,
//! which any scene can mislead; so the device counts the tests, and gives up where they are far more than pairs found are worth.
//! The same update then finds its pairs by a tree ([`crate::cuda::find::tree`]), and so do the next ones.

use crate::cuda::abi::State;
use crate::cuda::kernels::{CHUNK, TILE};
use crate::{Choice, Reason, Strategy};

/// Tests a box that cells may take, beside those for pairs (`TESTS_A_PAIR` of the kernels). On an H200 a million boxes then lose
/// 2.8 ms at most. The scenes of `docs/benchmarks.md` take up to 360 without the pairs, and cells are good at those.
const TESTS_A_BOX: u64 = 512;
/// Tests of the sweep for one in cells: `SWEPT_A_TEST` of the kernels, by the measurement of `grid::choice`.
const SWEPT_A_TEST: u64 = 16;
/// Tests of a unit of the sweep's work.
const UNIT: u64 = (TILE * CHUNK) as u64;
/// Frames of the tree before the others are tried again: at first, and at most, doubled each time in vain. A try costs as much
/// as several frames, so it is one in 16 at first.
const FIRST_WAIT: u32 = 16;
const MAX_WAIT: u32 = 1024;
/// The number of boxes may change by this factor meanwhile.
const OTHER_NUMBER: f64 = 1.25;

/// What finds the pairs of a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finder {
    /// The sweep along one axis, by this strategy.
    Axis(Strategy),
    Cells,
    Tree,
}

impl Finder {
    /// What a report says. A tree is a way to cut the space too.
    pub(crate) const fn strategy(self) -> Strategy {
        match self {
            Self::Axis(strategy) => strategy,
            Self::Cells | Self::Tree => Strategy::Subdivided,
        }
    }

    /// The tests, at most, that it made before it was given up.
    pub(crate) fn made(self, state: &State) -> u64 {
        let of_boxes = match self {
            Self::Axis(_) => state.tests.min(state.work.saturating_mul(UNIT)),
            Self::Cells | Self::Tree => state.tests,
        };
        of_boxes + state.between
    }

    /// The tests that it may take for `n` boxes.
    pub(crate) const fn limit(self, n: usize) -> u64 {
        let tests = (n as u64).saturating_mul(TESTS_A_BOX);
        match self {
            Self::Axis(_) => tests.saturating_mul(SWEPT_A_TEST),
            Self::Cells => tests,
            Self::Tree => u64::MAX,
        }
    }
}

/// Remembers what went beyond its bound.
#[derive(Default)]
pub(crate) struct Bound {
    /// Frames that the tree is taken for without trying, and how many it was the last time.
    left: u32,
    wait: u32,
    /// The boxes of the frame that went beyond, and what was expected of it.
    n: usize,
    choice: Option<Choice>,
}

impl Bound {
    /// Begins a frame of `n` boxes. Answers whether the tree is to be taken.
    pub(crate) fn begin(&mut self, n: usize) -> bool {
        let ratio = n as f64 / self.n.max(1) as f64;
        if !(1.0 / OTHER_NUMBER..OTHER_NUMBER).contains(&ratio) {
            *self = Self::default();
        }
        let takes = self.left > 0;
        self.left = self.left.saturating_sub(1);
        takes
    }

    /// Takes note of a frame of `n` boxes that went beyond the bound although that was expected of it.
    pub(crate) fn exceeded(&mut self, n: usize, choice: Option<Choice>) {
        self.wait = (2 * self.wait).clamp(FIRST_WAIT, MAX_WAIT);
        (self.left, self.n) = (self.wait, n);
        self.choice = choice.map(|choice| Choice {
            reason: Reason::TooManyTests,
            ..choice
        });
    }

    /// Why the tree is taken.
    pub(crate) const fn choice(&self) -> Option<Choice> {
        self.choice
    }

    /// Takes note of a frame within the bound, found without the tree.
    pub(crate) fn kept(&mut self) {
        self.wait = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_become_rare_and_begin_anew_for_other_scenes() {
        let mut bound = Bound::default();
        assert!(!bound.begin(100));
        for wait in [16, 32, 64, 128, 256, 512, 1024, 1024] {
            bound.exceeded(100, None);
            assert_eq!((0..wait).filter(|_| bound.begin(110)).count(), wait);
            assert!(!bound.begin(110));
        }
        bound.exceeded(100, None);
        assert!(bound.begin(100) && !bound.begin(200) && !bound.begin(100));
        bound.exceeded(100, None);
        bound.kept();
        bound.exceeded(100, None);
        assert_eq!((0..99).filter(|_| bound.begin(100)).count(), 16);
    }
}
