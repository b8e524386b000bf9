//! How the broad phase over all ranks works.

use sap::{Backend, OnInvalid, OverlapRule, Strategy};
use std::num::NonZero;

/// How a [`Distributed`](crate::Distributed) works. The rule, what becomes of invalid boxes and
/// whether there are events must be the same on all ranks.
///
/// ```
/// use sap_dist::Config;
///
/// let config = Config { rule: sap::OverlapRule::Open, ..Config::default() };
/// assert!(config.events);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Whether touching boxes overlap.
    pub rule: OverlapRule,
    /// What becomes of invalid boxes.
    pub on_invalid: OnInvalid,
    /// How each rank finds the pairs of its cell.
    pub strategy: Strategy,
    /// Whether it is computed what [started](crate::Distributed::started) and
    /// [ended](crate::Distributed::ended).
    pub events: bool,
    /// The max memory of the engine of a rank for its list of pairs, as in
    /// [`sap::Config::pair_memory`]. `None` is half of what is available, on each rank.
    pub pair_memory: Option<u64>,
    /// The number of threads of a rank on a CPU, which makes a pool of its own. `None` means the
    /// pool of `rayon` that the caller is in, else the global one. Ranks may have different
    /// numbers.
    pub threads: Option<NonZero<usize>>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rule: OverlapRule::Closed,
            on_invalid: OnInvalid::Error,
            strategy: Strategy::Auto,
            events: true,
            pair_memory: None,
            threads: None,
        }
    }
}

impl Config {
    /// Returns the configuration of the engine of a rank.
    pub(crate) fn engine(&self, backend: Backend, device: Option<usize>) -> sap::Config {
        sap::Config {
            backend,
            device,
            strategy: self.strategy,
            rule: self.rule,
            on_invalid: OnInvalid::Error, // invalid boxes stay behind
            events: false,
            pair_memory: self.pair_memory,
            ..sap::Config::default()
        }
    }

    /// What must be the same on all ranks.
    pub(crate) fn word(&self) -> u64 {
        u64::from(self.rule == OverlapRule::Open)
            | u64::from(self.on_invalid == OnInvalid::Skip) << 1
            | u64::from(self.events) << 2
    }
}
