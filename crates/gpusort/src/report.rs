//! What a sort did.

/// What ran, over how many keys, how much of it was needed, and how long it took.
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
pub struct SortReport {
    /// The sort that ran: an [`crate::Algorithm`] name, or the name of the CPU form.
    pub algorithm: &'static str,
    /// Where it ran: `"cpu"` or `"cuda"`.
    pub backend: &'static str,
    /// Number of keys.
    pub n: u64,
    /// Digits of the bit window by which keys were moved.
    pub passes_run: u32,
    /// Digits of the bit window that were skipped: because all keys have the same one or are in order already, or because
    /// [`SortReport::displaced`] is how they were sorted.
    pub passes_skipped: u32,
    /// Whether the keys were found in order before all passes were run.
    pub early_exit: bool,
    /// The elements that were taken out and merged back, where that sorted the input ([`crate::SortOptions::nearly_sorted`]): about two
    /// for each one out of place.
    pub displaced: Option<u64>,
    /// Keys of the largest bucket that [`crate::Algorithm::BucketSort`] made; 0 from other sorts.
    pub largest_bucket: u64,
    /// Keys that the partitions of [`crate::Algorithm::Quicksort`] moved, all together; 0 from other sorts.
    pub partitioned: u64,
    /// Elements of the largest piece that a block of [`crate::Algorithm::SatishMerge`] merged; 0 from other sorts.
    pub largest_piece: u64,
    /// Milliseconds of each stage, in the order they ran.
    pub stages: Vec<(&'static str, f64)>,
    /// Milliseconds from the first stage to the last.
    pub total_ms: f64,
}
