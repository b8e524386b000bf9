//! The numbers of a frame, which the next is given memory for.

use super::tuning::{COPY_GROWTH_SHARE, EXPECTED_GROWTH_SHARE, FREE_GROWTH, NEW_PLAN_SHARE};

/// The numbers of entries, tests and pairs of a frame.
#[derive(Clone, Copy)]
pub(super) struct Counts {
    pub(super) copies: u64,
    pub(super) tests: u64,
    pub(super) pairs: u64,
}

impl Counts {
    /// Returns the numbers that the next frame is given memory and launches for, at most `max`.
    /// The first frame of a plan may have other copies and tests.
    pub(super) fn grown(self, max: &Self, is_first: bool) -> Option<Self> {
        let [copies, tests] = if is_first {
            [NEW_PLAN_SHARE; 2]
        } else {
            [COPY_GROWTH_SHARE, EXPECTED_GROWTH_SHARE]
        };
        let grow = |count: u64, share: u64, max: u64| {
            let grown = count + count / share + FREE_GROWTH;
            (count <= max).then_some(grown.min(max))
        };
        Some(Self {
            // Unused copies are sorted with the others.
            copies: grow(self.copies, copies, max.copies)?,
            tests: grow(self.tests, tests, max.tests)?,
            pairs: grow(self.pairs, EXPECTED_GROWTH_SHARE, max.pairs)?,
        })
    }

    /// Tells whether the memory for as many is enough for a frame like that of `counts`, and not
    /// much more than it would be given anew.
    pub(super) fn suits(&self, counts: &Self, grown: &Self) -> bool {
        let halfway = |count: u64, grown: u64| count + (grown - count) / 2;
        let least = Self {
            copies: halfway(counts.copies, grown.copies),
            tests: halfway(counts.tests, grown.tests),
            pairs: halfway(counts.pairs, grown.pairs),
        };
        let most = Self {
            copies: grown.copies + grown.copies / COPY_GROWTH_SHARE,
            tests: 2 * grown.tests,
            pairs: 2 * grown.pairs,
        };
        least.is_within(self) && self.is_within(&most)
    }

    /// Tells whether none is more than another.
    pub(super) const fn is_within(&self, max: &Self) -> bool {
        self.copies <= max.copies && self.tests <= max.tests && self.pairs <= max.pairs
    }
}
