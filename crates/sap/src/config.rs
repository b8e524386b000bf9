//! How a broad phase works.

use crate::{Error, OverlapRule, Result};
use std::fmt;
use std::num::NonZero;
use std::str::FromStr;

/// Gives a plain enum its command-line names.
macro_rules! named {
    ($type:ident, $what:literal, $($variant:ident = $name:literal),+) => {
        impl $type {
            /// All values, in the order of their definition.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the name on the command line.
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
                    known: concat!($($name, ", "),+).trim_end_matches(", "),
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
#[non_exhaustive]
pub enum Strategy {
    /// Ha, Krüger and Silva 2009, §6.1: both ends of every box sorted on x and scanned; the overlap
    /// list then goes through y and z.
    Endpoints,
    /// Least ends sorted on the best axis; every box sweeps forward while the next one begins
    /// before it ends.
    Sweep,
    /// The space divided, so that few boxes share an interval by chance: on the CPU the sweep
    /// inside columns of the other two axes, or a tree of the boxes where that would take too many
    /// tests; on CUDA cells of several sizes; on `wgpu` columns, in frames with worlds none.
    Subdivided,
    /// The fastest of these, chosen from statistics of the frame, with a tree of the boxes where it
    /// takes too many tests (not on `wgpu`). On the CPU also two ways that have no name of their
    /// own: some hundred boxes are tested all against all, and while boxes move little a neighbour
    /// list keeps candidates from frame to frame.
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
#[non_exhaustive]
pub enum Backend {
    /// CUDA where a device answers, else a graphics processor by `wgpu`, else the CPU; each where
    /// this build has its feature. Should the device fail, the CPU works from then on
    /// ([`BroadPhase::fallback`](crate::BroadPhase::fallback)).
    #[default]
    Auto,
    /// The threads of the current rayon pool. Up to 1,000 boxes, and up to 4,096 while there is a
    /// neighbour list, need none but the caller's. A process forked since the global pool began
    /// makes a pool of its own.
    Cpu,
    /// The first CUDA device; an error where there is none.
    Cuda,
    /// The best graphics adapter of Vulkan, Metal or DirectX 12, a software driver only where there
    /// is no other; an error where there is none. `Strategy::Endpoints` is [`Error::Unsupported`]
    /// there.
    Wgpu,
}
named!(
    Backend,
    "backend",
    Auto = "auto",
    Cpu = "cpu",
    Cuda = "cuda",
    Wgpu = "wgpu"
);

/// What an update does with boxes that are NaN or inverted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnInvalid {
    /// It fails, naming the first; the last result stays.
    #[default]
    Error,
    /// They overlap nothing, all others are paired, and the report counts them and names the first.
    Skip,
}

/// How a [`BroadPhase`](crate::BroadPhase) works. By default everything is chosen automatically,
/// touching boxes overlap, and an invalid box is an error.
///
/// End a literal with `..Config::default()`: a release may add fields. The type is not
/// `#[non_exhaustive]`, which would forbid literals.
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
    /// The sort that is used on CUDA. The other backends have one.
    pub sort: gpusort::Algorithm,
    /// Whether touching boxes overlap.
    pub rule: OverlapRule,
    /// What becomes of invalid boxes.
    pub on_invalid: OnInvalid,
    /// How far boxes are loosened, in the unit of the coordinates; 0 = off. With a margin, a box is
    /// stored loosened by it and kept so while the box given stays inside; pairs are those of the
    /// stored boxes.
    pub margin: f32,
    /// Whether [`BroadPhase::started`](crate::BroadPhase::started) and
    /// [`BroadPhase::ended`](crate::BroadPhase::ended) are computed.
    pub events: bool,
    /// The max memory that the list of pairs may take, in bytes; a pair takes 8. `None` = on the
    /// CPU half of the memory available at the time, for the list, the copy that it is sorted from
    /// and, with events, those that started and ended. Up to a million pairs are always kept.
    ///
    /// Available is the least of what the machine has without swapping (`MemAvailable` on Linux,
    /// free and inactive pages on macOS, `GlobalMemoryStatusEx` on Windows) and, on Linux, what the
    /// control groups of the process and all above them leave (versions 1 and 2; the cache of files
    /// gives way), and what `ulimit -v` and `ulimit -d` leave.
    pub pair_memory: Option<u64>,
    /// The initial capacity for pairs. It grows as needed.
    pub initial_pair_capacity: Option<usize>,
    /// The min number of resting boxes: boxes unchanged for some frames (on CUDA static and
    /// sleeping ones) are neither sorted nor tested against each other if they are this many or
    /// more, and a good part of all. `None` = from where it is worth its cost, by measurement;
    /// `Some(usize::MAX)` = never. If set, frames of at most this many boxes have no neighbour
    /// list. The pairs are the same.
    pub min_resting: Option<usize>,
    /// The number of threads that this broad phase works on, on the CPU: it makes a pool of its own
    /// in the first call. `None` = the pool of `rayon` that the caller is in, else the global one.
    /// Small frames stay on the caller's thread in any case. It is ignored if the caller is in a
    /// pool of `rayon`: that pool is used.
    pub threads: Option<NonZero<usize>>,
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
            min_resting: None,
            threads: None,
        }
    }
}
