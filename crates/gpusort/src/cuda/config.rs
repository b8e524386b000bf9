//! The configuration of a sorter.

/// The configuration of a [`Sorter`](super::Sorter).
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct SorterConfig {
    /// Whether each stage is timed for [`Sorter::report`](super::Sorter::report). Times cost some
    /// microseconds a sort, and a timed sort cannot be captured into a graph.
    pub timings: bool,
    /// What tests and measurements of radsweep change.
    #[doc(hidden)]
    pub knobs: Knobs,
}

impl SorterConfig {
    /// Returns the default: no times.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the same with times of each stage, or without.
    #[must_use]
    pub fn timings(self, timings: bool) -> Self {
        Self { timings, ..self }
    }

    /// Returns the same with these knobs.
    #[doc(hidden)]
    #[must_use]
    pub fn knobs(self, knobs: Knobs) -> Self {
        Self { knobs, ..self }
    }
}

/// What tests and measurements of radsweep change of a sorter. It may change in any release.
#[derive(Debug, Clone, Copy, Default)]
pub struct Knobs {
    /// Takes 64-bit offsets and the narrowest tiles for any number of keys.
    pub force_large: bool,
    /// Takes the launches of large inputs for any number of keys.
    pub no_small: bool,
    /// Divides keys into segments even where there are few.
    pub segments: bool,
    /// A tile of each pass, and the clock cycles that it waits inside the look-back.
    pub stall: Option<(u32, u32)>,
    /// The min number of keys for which the hint
    /// [`SortOptions::nearly_sorted`](crate::SortOptions::nearly_sorted) is used.
    pub adaptive_from: Option<u64>,
    /// The max number of blocks that use the hint, if the device does not run fewer at once.
    pub adaptive_blocks: Option<u32>,
    /// Has each sort with the hint try to use it, also after sorts that tried in vain.
    pub no_memory: bool,
    /// The paper's parameter of the algorithm, *s* of
    /// [`Algorithm::BucketSort`](crate::Algorithm::BucketSort) or *maxseq* of
    /// [`Algorithm::Quicksort`](crate::Algorithm::Quicksort).
    /// [`Sorter::scratch_bytes`](super::Sorter::scratch_bytes) does not know it; only
    /// [`Error::ScratchTooSmall`](crate::Error::ScratchTooSmall) reports how much scratch memory a
    /// sort then needs.
    pub parameter: Option<u32>,
}
