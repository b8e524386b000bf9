//! The constants of the merge sorts, which are those of `kernels/sort/satish_merge.cuh` and
//! `satish_merge_items.cuh`.

/// Elements from one sample of a run to the next. With 32 pieces are more even, and sorts take 4 %
/// longer.
pub(in crate::cuda) const SAMPLE: u64 = 64;
/// Threads of a block that ranks splitters. Not measured.
pub(in crate::cuda) const RANK_THREADS: u32 = 256;
/// Max runs that a pass merges to one, which is also the words of a piece in the table of splits.
/// Not measured.
pub(super) const MAX_RUNS: u64 = 8;
