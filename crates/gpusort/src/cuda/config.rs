//! How a sorter works.

/// How a [`Sorter`](super::Sorter) works.
#[derive(Debug, Clone, Copy, Default)]
pub struct SorterConfig {
    /// Times each stage for [`Sorter::report`](super::Sorter::report). Costs some microseconds a sort, and a sort can then not be captured in a graph.
    pub timings: bool,
    /// For tests: 64-bit offsets and the narrowest tiles, whatever the number of keys.
    #[doc(hidden)]
    pub force_large: bool,
    /// For tests: the launches of large inputs, whatever the number of keys.
    #[doc(hidden)]
    pub no_small: bool,
    /// For tests: this tile of each pass waits that many clock cycles inside the look-back.
    #[doc(hidden)]
    pub stall: Option<(u32, u32)>,
    /// For tests: the least number of keys from which the hint [`SortOptions::nearly_sorted`](crate::SortOptions::nearly_sorted) is taken.
    #[doc(hidden)]
    pub adaptive_from: Option<u64>,
    /// For measurements: the paper's parameter of the algorithm, *s* of [`Algorithm::BucketSort`](crate::Algorithm::BucketSort) or *maxseq* of
    /// [`Algorithm::Quicksort`](crate::Algorithm::Quicksort). A sort then says how much scratch memory it needs by [`Error::ScratchTooSmall`](crate::Error::ScratchTooSmall) alone.
    #[doc(hidden)]
    pub parameter: Option<u32>,
}
