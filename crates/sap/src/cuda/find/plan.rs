//! The plan of one call, and what its report says of it.

use crate::choice::Choice;
use crate::cuda::find::bound::Finder;
use crate::{Backend, Config, Invalid, Report, Stats, Strategy};

/// The way in which one call finds its pairs.
pub(crate) struct Plan {
    pub(crate) finder: Finder,
    /// The reason, where `Auto` chose the finder.
    pub(crate) choice: Option<Choice>,
    /// Whether the resting set is left out of what is sorted.
    pub(crate) leaves_resting: bool,
    /// Whether the neighbour list has the pairs.
    pub(crate) by_list: bool,
    /// Whether boxes are arranged after they are read, without a wait to learn whether any has
    /// changed.
    pub(crate) arranges: bool,
    /// Whether the sweep may be skipped if the kernels see no change.
    pub(crate) may_skip: bool,
    /// Whether the pairs are compared with those of the last update.
    pub(crate) compares: bool,
    /// Whether the tests are bounded.
    pub(crate) is_bounded: bool,
    /// The tests of searches that were stopped.
    pub(crate) wasted: u64,
}

impl Plan {
    pub(crate) const fn new(config: &Config) -> Self {
        Self {
            finder: Finder::Axis(config.strategy),
            choice: None,
            leaves_resting: false,
            by_list: false,
            arranges: true,
            may_skip: false,
            compares: false,
            is_bounded: matches!(config.strategy, Strategy::Auto),
            wasted: 0,
        }
    }

    /// Returns the max tests that a finder may make for `n` boxes.
    pub(crate) const fn limit(&self, finder: Finder, n: usize) -> u64 {
        if self.is_bounded {
            finder.limit(n)
        } else {
            u64::MAX
        }
    }
}

/// The finder of an update, for its report and those of updates after it that searched nothing.
#[derive(Clone, Copy)]
pub(crate) struct FoundBy {
    pub(crate) finder: Finder,
    choice: Option<Choice>,
    axis: usize,
}

impl FoundBy {
    pub(crate) const fn new(plan: &Plan, axis: u64) -> Self {
        Self {
            finder: plan.finder,
            choice: plan.choice,
            axis: axis as usize,
        }
    }

    /// Returns a report that says how pairs were found, and nothing of them.
    pub(crate) fn report(&self, n: usize, invalid: Option<Invalid>) -> Report {
        let none = Report::none(Backend::Cuda, self.finder.strategy());
        Report {
            n,
            invalid,
            stats: Stats {
                axis: self.axis,
                choice: self.choice,
                ..none.stats
            },
            ..none
        }
    }
}
