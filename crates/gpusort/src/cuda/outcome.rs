//! The outcome of a sort, which it writes to device memory.

use crate::{Algorithm, SortReport};
use bytemuck::{Pod, Zeroable};
use gpu::assert_layout;

/// What a sort did, in device memory. A sort writes it to the start of its scratch memory
/// ([`Sorter::outcome`](super::Sorter::outcome)).
///
/// Callers can download it together with results of their own, without a wait for each sort.
/// [`Sorter::report`](super::Sorter::report) downloads one and adds the times.
///
/// ```
/// use gpusort::cuda::{Payload, Request, SortOutcome, Sorter, SorterConfig};
/// use gpusort::SortOptions;
///
/// # fn main() -> gpusort::Result<()> {
/// let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
/// let stream = gpu::Stream::new(&device)?;
/// let sorter = Sorter::new(&device, SorterConfig::default())?;
/// let mut keys = stream.from_slice(&[1_u32, 2, 3])?;
/// let bytes = Sorter::scratch_bytes::<u32>(3, Payload::None)?;
/// let mut scratch = stream.alloc::<u8>(bytes as usize)?;
/// let mut kept = stream.alloc::<SortOutcome>(1)?;
/// let request = Request::in_place(keys.slice_mut());
/// sorter.sort(&stream, request, scratch.slice_mut(), &SortOptions::new())?;
/// // After this copy the next sort may use the scratch memory.
/// stream.copy(kept.slice_mut(), Sorter::outcome(scratch.slice())?)?;
/// let outcome = stream.to_vec(kept.slice())?[0];
/// assert_eq!(outcome.n(), 3);
/// assert!(outcome.early_exit()); // in order already
/// # Ok(())
/// # }
/// ```
// `Outcome` in `kernels/sort/outcome.cuh`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct SortOutcome {
    /// [`algorithm_id`] of the algorithm that ran.
    algorithm: u32,
    /// The number of passes that the bit window asks for.
    passes: u32,
    /// The number of digits by which keys were moved, each in a pass or on chip.
    passes_run: u32,
    /// The bits [`EARLY_EXIT`] and [`ADAPTIVE`].
    flags: u32,
    /// The number of keys.
    n: u64,
    /// A figure of the family, for one of the fields of [`SortReport`] that are 0 for other sorts.
    /// With [`ADAPTIVE`], the number of elements taken out.
    detail: u64,
}

assert_layout!(SortOutcome, 32: algorithm 0, passes 4, passes_run 8, flags 12, n 16, detail 24);

/// Bit of `flags`: the keys were found in order before all passes had run.
const EARLY_EXIT: u32 = 1;
/// Bit of `flags`: the kernel for nearly sorted input has sorted.
const ADAPTIVE: u32 = 2;

impl SortOutcome {
    /// Returns the algorithm that ran, or `None` if no sort has run.
    #[must_use]
    pub fn algorithm(&self) -> Option<Algorithm> {
        let all = Algorithm::ALL.iter().copied();
        all.filter(|&one| one != Algorithm::Auto)
            .find(|&one| algorithm_id(one) == self.algorithm)
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Returns [`SortReport::passes_run`].
    #[must_use]
    pub fn passes_run(&self) -> u32 {
        self.passes_run
    }

    /// Returns [`SortReport::passes_skipped`].
    #[must_use]
    pub fn passes_skipped(&self) -> u32 {
        self.passes.saturating_sub(self.passes_run)
    }

    /// Returns [`SortReport::early_exit`].
    #[must_use]
    pub fn early_exit(&self) -> bool {
        self.flags & EARLY_EXIT != 0
    }

    /// Returns the report, with the times of the stages.
    pub(super) fn report(&self, stages: Vec<(&'static str, f64)>) -> SortReport {
        let adaptive = self.flags & ADAPTIVE != 0;
        let ran = self.algorithm();
        let detail_of = |algorithm| {
            if ran == Some(algorithm) {
                self.detail
            } else {
                0
            }
        };
        SortReport {
            algorithm: ran.map_or("none", Algorithm::name),
            backend: "cuda",
            n: self.n,
            passes_run: self.passes_run,
            passes_skipped: self.passes_skipped(),
            early_exit: self.early_exit(),
            displaced: adaptive.then_some(self.detail),
            largest_bucket: detail_of(Algorithm::BucketSort),
            partitioned: detail_of(Algorithm::Quicksort),
            largest_piece: detail_of(Algorithm::SatishMerge),
            total_ms: stages.iter().map(|stage| stage.1).sum(),
            stages,
        }
    }
}

/// Returns the id of an algorithm in [`SortOutcome`], the same as in `kernels/sort/outcome.cuh`. 0
/// stands for none.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_has_its_id() {
        for &algorithm in Algorithm::ALL {
            let outcome = SortOutcome {
                algorithm: algorithm_id(algorithm),
                detail: 7,
                ..SortOutcome::default()
            };
            let auto = algorithm == Algorithm::Auto;
            assert_eq!(outcome.algorithm(), (!auto).then_some(algorithm));
            let report = outcome.report(Vec::new());
            assert_eq!(
                report.algorithm,
                if auto { "none" } else { algorithm.name() }
            );
            let details = [
                report.largest_bucket,
                report.partitioned,
                report.largest_piece,
            ];
            let has_one = [
                Algorithm::BucketSort,
                Algorithm::Quicksort,
                Algorithm::SatishMerge,
            ]
            .map(|one| if one == algorithm { 7 } else { 0 });
            assert_eq!(details, has_one, "{algorithm}");
        }
    }

    #[test]
    fn report_has_the_passes_and_flags() {
        let outcome = SortOutcome {
            passes: 4,
            passes_run: 1,
            flags: EARLY_EXIT | ADAPTIVE,
            n: 9,
            detail: 3,
            ..SortOutcome::default()
        };
        let report = outcome.report(vec![("pass 1", 0.5), ("end", 0.25)]);
        assert_eq!([report.passes_run, report.passes_skipped], [1, 3]);
        assert_eq!([outcome.passes_run(), outcome.passes_skipped()], [1, 3]);
        assert!(report.early_exit && outcome.early_exit());
        assert_eq!(
            (report.displaced, report.n, report.total_ms),
            (Some(3), 9, 0.75)
        );
    }
}
