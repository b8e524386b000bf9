//! The report of a sort.

/// What a sort did: the algorithm that ran, the number of keys, the passes, and the times.
///
/// ```
/// use gpusort::{SortOptions, cpu};
///
/// let report = cpu::sort_keys(&mut [1_u32, 2, 3], &SortOptions::default())?;
/// assert!(report.early_exit); // in order already: nothing was moved
/// assert_eq!(report.n, 3);
/// # Ok::<(), gpusort::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct SortReport {
    /// The sort that ran: the name of an [`Algorithm`](crate::Algorithm), or the name of a CPU
    /// sort.
    pub algorithm: &'static str,
    /// The backend that ran it: `"cpu"`, `"cuda"` or `"wgpu"`.
    pub backend: &'static str,
    /// The number of keys.
    pub n: u64,
    /// The number of digits of the bit window by which keys were moved.
    pub passes_run: u32,
    /// The number of digits of the bit window that were skipped, because all keys agree in the
    /// digit, because the keys were in order already, or because the sort for nearly sorted input
    /// ran ([`SortReport::displaced`]).
    pub passes_skipped: u32,
    /// Whether the keys were found in order before all passes had run.
    pub early_exit: bool,
    /// The number of elements that were taken out and merged back, about two for each displaced
    /// one. `None` unless the sort for nearly sorted input ran
    /// ([`SortOptions::nearly_sorted`](crate::SortOptions::nearly_sorted)).
    pub displaced: Option<u64>,
    /// The size of the largest bucket of [`Algorithm::BucketSort`](crate::Algorithm::BucketSort),
    /// in keys; 0 for other sorts.
    pub largest_bucket: u64,
    /// The number of keys that all partitions of
    /// [`Algorithm::Quicksort`](crate::Algorithm::Quicksort) moved together; 0 for other sorts.
    pub partitioned: u64,
    /// The size of the largest piece that a block of
    /// [`Algorithm::SatishMerge`](crate::Algorithm::SatishMerge) merged, in elements; 0 for other
    /// sorts.
    pub largest_piece: u64,
    /// The name and the milliseconds of each stage, in the order in which they ran.
    pub stages: Vec<(&'static str, f64)>,
    /// The milliseconds of all stages together.
    pub total_ms: f64,
}
