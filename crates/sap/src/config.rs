//! How a broad phase works.

use crate::{Error, OverlapRule, Pair, Result};
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
    /// The `min` of all boxes sorted on the best axis; every box is tested with those that begin
    /// before it ends.
    Sweep,
    /// The space divided first, so that few boxes share an interval by chance. On the CPU the boxes
    /// are swept in columns of the other two axes, or found by a tree if that would take too many
    /// tests. On CUDA there are cells of several sizes, on `wgpu` columns, but none in frames with
    /// worlds.
    Subdivided,
    /// The faster one of `Sweep` and `Subdivided`, by a sample of the frame. If the search takes
    /// too many tests, a tree of the boxes replaces it (not on `wgpu`). Other ways have no names.
    /// On the CPU a tree is kept while boxes move by less than their size, and other frames of some
    /// hundred boxes are tested all against all. While they move little, a neighbour list keeps
    /// candidates from frame to frame (not on `wgpu`).
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
    /// CUDA if a device answers, else another GPU through `wgpu`, else the CPU. A build
    /// tries those whose feature it has. If the device fails, the CPU works from then on
    /// ([`BroadPhase::fallback`](crate::BroadPhase::fallback)).
    #[default]
    Auto,
    /// The threads of the current rayon pool. Frames of up to 1,000 boxes, or up to 4,096 while
    /// there is a neighbour list, need only the caller's thread. A process that was forked after
    /// the global pool began makes a pool of its own.
    Cpu,
    /// The CUDA device of [`Config::device`], or an error if there is none.
    Cuda,
    /// The best GPU through Vulkan, Metal or DirectX 12, or an error if there is none. A
    /// software driver is taken only if there is nothing else. `Strategy::Endpoints` is
    /// [`Error::Unsupported`] there.
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

/// What an update does with invalid boxes: those that are NaN or inverted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnInvalid {
    /// It fails and names the first. The last result stays.
    #[default]
    Error,
    /// They overlap nothing, and all others are paired. The report has their number and the first.
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
    /// The ordinal of the CUDA device, among those that the driver shows this process
    /// (`CUDA_VISIBLE_DEVICES`). `None` means the first that answers. It has no effect on the other
    /// backends. If there is no such device, [`Backend::Cuda`] is an error that says how many there
    /// are, and [`Backend::Auto`] goes on as without CUDA.
    pub device: Option<usize>,
    /// How pairs are found.
    pub strategy: Strategy,
    /// The sort that CUDA uses for boxes and pairs. The other backends have only one.
    pub sort: gpusort::Algorithm,
    /// Whether touching boxes overlap.
    pub rule: OverlapRule,
    /// What becomes of invalid boxes.
    pub on_invalid: OnInvalid,
    /// The distance by which each face of a box is moved outward, in the unit of the coordinates. 0
    /// means no margin. The loosened box is kept while the given box stays inside it. Pairs are
    /// those of the loosened boxes.
    pub margin: f32,
    /// Whether [`BroadPhase::started`](crate::BroadPhase::started) and
    /// [`BroadPhase::ended`](crate::BroadPhase::ended) are computed.
    pub events: bool,
    /// The max memory of the list of pairs, in bytes; a pair takes 8. Beyond it an update fails
    /// with [`Error::TooManyPairs`]. `None` means half of what is available at the time. On the CPU
    /// and on `wgpu` that is host memory, for the list, the copy that it is sorted from and, with
    /// events, the pairs that started and ended; a million pairs are allowed in any case. On CUDA
    /// it is free device memory, of which a pair takes 48 bytes, or 32 without events.
    ///
    /// The available host memory is the minimum of what the machine has without swapping
    /// (`MemAvailable` on Linux, free and inactive pages on macOS, `GlobalMemoryStatusEx` on
    /// Windows) and, on Linux, what the control groups of the process and all above them leave
    /// (versions 1 and 2; the cache of files gives way), and what `ulimit -v` and `ulimit -d`
    /// leave.
    pub pair_memory: Option<u64>,
    /// The number of pairs for which memory is reserved at first. It grows as needed. `None` means
    /// that the first frame decides.
    pub initial_pair_capacity: Option<usize>,
    /// The min number of unchanged boxes (on CUDA static and sleeping ones) that are neither sorted
    /// nor tested against each other. They must also be a large part of all boxes. `None` means a
    /// number from measurements: 1,024 on the CPU, 32,768 on CUDA. `Some(usize::MAX)` means never.
    /// Only frames of more boxes than this have a neighbour list; with `None` any number on the
    /// CPU, more than 4,096 on CUDA. On CUDA boxes in no order go to regions of space before their
    /// cells if there are 1,500,000, or this number if it is less. It has no effect on `wgpu`. The
    /// pairs are the same.
    pub min_resting: Option<usize>,
    /// The number of CPU threads of this broad phase, which makes a pool of its own when it first
    /// needs one. `None` means the pool of `rayon` that the caller is in, else the global one.
    /// Small frames stay on the caller's thread in any case. If the caller is in a pool of `rayon`,
    /// that pool is used instead. It has no effect in WebAssembly without threads.
    pub threads: Option<NonZero<usize>>,
    /// Whether CUDA times its stages. Without it all [`Timings`](crate::Timings) are 0, and a frame
    /// takes the caller up to 36 µs less. It has no effect on the other backends.
    pub timings: bool,
}

impl Config {
    /// Returns the number of pairs that [`Config::pair_memory`] holds, if it is set.
    pub(crate) fn pair_limit(&self) -> Option<u64> {
        self.pair_memory
            .map(|bytes| bytes / size_of::<Pair>() as u64)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            backend: Backend::Auto,
            device: None,
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
            timings: true,
        }
    }
}
