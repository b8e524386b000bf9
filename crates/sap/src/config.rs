//! How a broad phase works.

use crate::{Error, OverlapRule, Result};
use std::fmt;
use std::str::FromStr;

/// Gives a plain enum its command-line names.
macro_rules! named {
    ($type:ident, $what:literal, $($variant:ident = $name:literal),+) => {
        impl $type {
            /// Every choice there is.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name on the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $type {
            type Err = Error;

            fn from_str(name: &str) -> Result<Self> {
                let found = Self::ALL.iter().find(|choice| choice.name() == name).copied();
                found.ok_or_else(|| Error::UnknownName {
                    what: $what,
                    name: name.to_owned(),
                    known: concat!($($name, " "),+).trim_end(),
                })
            }
        }
    };
}

/// How the pairs are found. All are exact and give the same pairs.
///
/// ```
/// use sap::Strategy;
///
/// assert_eq!("subdivided".parse::<Strategy>()?, Strategy::Subdivided);
/// assert_eq!(Strategy::Auto.to_string(), "auto");
/// # Ok::<(), sap::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Strategy {
    /// Ha, Krüger and Silva 2009, §6.1: both ends of every box sorted on x and scanned; the overlap list then goes
    /// through y and z.
    Endpoints,
    /// Least ends sorted on the best axis; every box sweeps forward while the next one begins before it ends.
    Sweep,
    /// The space cut, so that few boxes share an interval by chance: on the CPU the sweep inside columns of the other two axes,
    /// on CUDA cells of several sizes, on both a tree of the boxes where those would take too many tests.
    Subdivided,
    /// Chosen from measured statistics of the frame.
    #[default]
    Auto,
}
named!(
    Strategy,
    "strategy",
    Endpoints = "endpoints",
    Sweep = "sweep",
    Subdivided = "subdivided",
    Auto = "auto"
);

/// Where the work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Backend {
    /// CUDA where a device answers, else the CPU, and from then on the CPU should the device fail
    /// ([`crate::BroadPhase::fallback`]). The environment variable `RADSWEEP_BACKEND=cpu|cuda` decides otherwise.
    #[default]
    Auto,
    /// The threads of the current rayon pool. Up to 1,000 boxes that are swept along one axis, and have few pairs, need none
    /// but the caller's. In a process forked since the global pool began, a pool of its own takes that one's place.
    Cpu,
    /// The first CUDA device; an error where there is none.
    Cuda,
}
named!(
    Backend,
    "backend",
    Auto = "auto",
    Cpu = "cpu",
    Cuda = "cuda"
);

/// What an update does with boxes that are NaN or inverted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnInvalid {
    /// It fails, naming the first; the last result stays.
    #[default]
    Error,
    /// They overlap nothing, all others are paired, and the report counts them and names the first.
    Skip,
}

/// How a [`crate::BroadPhase`] works. The default is automatic in all, closed, and strict about bad boxes.
///
/// ```
/// use sap::{Config, OverlapRule, Strategy};
///
/// let config = Config { rule: OverlapRule::Open, strategy: Strategy::Sweep, ..Config::default() };
/// assert!(config.events);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where the work is done.
    pub backend: Backend,
    /// How pairs are found.
    pub strategy: Strategy,
    /// The sort inside.
    pub sort: gpusort::Algorithm,
    /// Whether touching boxes overlap.
    pub rule: OverlapRule,
    /// What becomes of bad boxes.
    pub on_invalid: OnInvalid,
    /// How far boxes are loosened, in the unit of the coordinates; 0 = off. With a margin, a box is stored loosened by
    /// it and kept so while the box given stays inside; pairs are those of the stored boxes.
    pub margin: f32,
    /// Whether [`crate::BroadPhase::started`] and [`crate::BroadPhase::ended`] are computed.
    pub events: bool,
    /// The max memory that the list of pairs may take, in bytes of 8 a pair; `None` = on the CPU half of the memory
    /// available at the time, for the list, the copy that it is sorted from and, with events, those that started and
    /// ended. Up to a million pairs are always kept.
    ///
    /// Available is the least of what the machine has without swapping (`MemAvailable` on Linux, free and inactive pages
    /// on macOS, `GlobalMemoryStatusEx` on Windows) and, on Linux, what the control groups of the process and all above
    /// them leave (versions 1 and 2; the cache of files gives way), and what `ulimit -v` and `ulimit -d` leave.
    pub pair_memory: Option<u64>,
    /// Pairs to make room for at first; more are made as needed.
    pub initial_pair_capacity: Option<usize>,
    /// Boxes that stay as they are (on CUDA: static ones and those asleep) are held apart after some frames, neither sorted nor tested
    /// against each other, where there are this many or more, and they are a good part of all; `None` = as many as are worth it, by
    /// measurement, `Some(usize::MAX)` = never. The pairs are the same.
    pub hold_from: Option<usize>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            backend: Backend::Auto,
            strategy: Strategy::Auto,
            sort: gpusort::Algorithm::Auto,
            rule: OverlapRule::Closed,
            on_invalid: OnInvalid::Error,
            margin: 0.0,
            events: true,
            pair_memory: None,
            initial_pair_capacity: None,
            hold_from: None,
        }
    }
}
