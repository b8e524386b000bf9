//! What a sort leaves on the device about itself.

use crate::{Algorithm, SortReport};
use bytemuck::{Pod, Zeroable};

/// `Outcome` in `kernels/sort/outcome.cuh`: what every sort leaves at the start of its scratch memory for the report.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
pub(super) struct Outcome {
    /// [`algorithm_id`] of the algorithm that ran.
    pub algorithm: u32,
    /// Passes that the bit window asks for.
    pub passes: u32,
    pub passes_run: u32,
    /// [`EARLY_EXIT`], [`ADAPTIVE`].
    pub early_exit: u32,
    pub n: u64,
    /// A figure of the family's own: see the fields of [`SortReport`](crate::SortReport) that are 0 from other sorts; with
    /// [`ADAPTIVE`] the elements taken out.
    pub detail: u64,
}

/// Bit of [`Outcome::early_exit`]: found in order before all passes were run.
pub(super) const EARLY_EXIT: u32 = 1;
/// Bit of [`Outcome::early_exit`]: the kernel for nearly sorted input sorted.
pub(super) const ADAPTIVE: u32 = 2;

impl Outcome {
    /// With the times of the stages.
    pub fn report(&self, stages: Vec<(&'static str, f64)>) -> SortReport {
        let adaptive = self.early_exit & ADAPTIVE != 0;
        let ran = |&&algorithm: &&Algorithm| algorithm_id(algorithm) == self.algorithm;
        let detail_of = |algorithm| {
            let is_its = algorithm_id(algorithm) == self.algorithm;
            if is_its { self.detail } else { 0 }
        };
        SortReport {
            algorithm: Algorithm::ALL
                .iter()
                .find(ran)
                .map_or("none", |ran| ran.name()),
            backend: "cuda",
            n: self.n,
            passes_run: self.passes_run,
            passes_skipped: self.passes.saturating_sub(self.passes_run),
            early_exit: self.early_exit & EARLY_EXIT != 0,
            displaced: adaptive.then_some(self.detail),
            largest_bucket: detail_of(Algorithm::BucketSort),
            partitioned: detail_of(Algorithm::Quicksort),
            largest_piece: detail_of(Algorithm::SatishMerge),
            total_ms: stages.iter().map(|stage| stage.1).sum(),
            stages,
        }
    }
}

/// The number of an algorithm in [`Outcome`]; `kernels/sort/outcome.cuh` has the same. 0 is none.
pub(super) fn algorithm_id(algorithm: Algorithm) -> u32 {
    match algorithm {
        Algorithm::Auto => 0,
        Algorithm::Onesweep => 1,
        Algorithm::FourWayRadix => 2,
        Algorithm::EightWayRadix => 3,
        Algorithm::SatishRadix => 4,
        Algorithm::SatishMerge => 5,
        Algorithm::Quicksort => 6,
        Algorithm::BucketSort => 7,
    }
}
