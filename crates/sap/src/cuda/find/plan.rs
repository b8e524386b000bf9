//! How the pairs of a call are found, and what is said of it afterwards.

use crate::cuda::find::bound::Finder;
use crate::{Backend, Choice, Config, Invalid, Report, Strategy};

/// How one call finds its pairs.
pub(crate) struct Plan {
    pub(crate) finder: Finder,
    /// Why, where it was chosen.
    pub(crate) choice: Option<Choice>,
    /// Whether the resting set is left out of what is sorted.
    pub(crate) leaves_resting: bool,
    /// Whether nothing needs to be swept should all be unchanged.
    pub(crate) may_rest: bool,
    /// Whether its work is bounded, and the tests that it has made in vain.
    pub(crate) is_bounded: bool,
    pub(crate) wasted: u64,
}

impl Plan {
    pub(crate) const fn new(config: &Config) -> Self {
        Self {
            finder: Finder::Axis(config.strategy),
            choice: None,
            leaves_resting: false,
            may_rest: false,
            is_bounded: matches!(config.strategy, Strategy::Auto),
            wasted: 0,
        }
    }

    /// The tests that a finder may make for `n` boxes.
    pub(crate) const fn limit(&self, finder: Finder, n: usize) -> u64 {
        if self.is_bounded {
            finder.limit(n)
        } else {
            u64::MAX
        }
    }
}

/// What has found the pairs of an update.
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

    /// What a report says of it.
    pub(crate) fn report(&self, n: usize, invalid: Option<Invalid>) -> Report {
        Report {
            n,
            invalid,
            axis: self.axis,
            choice: self.choice,
            ..Report::none(Backend::Cuda, self.finder.strategy())
        }
    }
}
