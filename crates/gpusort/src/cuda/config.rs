//! What a sorter is asked for: how it works, and with which values.

use super::family::Payload;
use bytemuck::Pod;

/// A type that `sort_pairs` moves with a key: `u32` or `u64`. Sealed.
pub trait Value: Pod + Send + Sync + sealed::Sealed {
    /// The same, for [`Sorter::scratch_bytes`](super::Sorter::scratch_bytes).
    const PAYLOAD: Payload;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

impl Value for u32 {
    const PAYLOAD: Payload = Payload::U32;
}
impl Value for u64 {
    const PAYLOAD: Payload = Payload::U64;
}

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
