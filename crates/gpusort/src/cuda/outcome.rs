//! What a sort leaves on the device about itself.

use super::abi::assert_layout;
use crate::{Algorithm, SortReport};
use bytemuck::{Pod, Zeroable};

/// What a sort did, as it leaves it on the device: the start of its scratch memory ([`Sorter::outcome`](super::Sorter::outcome)).
///
/// For callers that read it together with figures of their own, without a wait for each sort. [`Sorter::report`](super::Sorter::report)
/// downloads one and adds the times.
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
/// let mut scratch = stream.alloc::<u8>(Sorter::scratch_bytes::<u32>(3, Payload::None)? as usize)?;
/// let mut kept = stream.alloc::<SortOutcome>(1)?;
/// sorter.sort(&stream, Request::in_place(keys.slice_mut()), scratch.slice_mut(), &SortOptions::new())?;
/// stream.copy(kept.slice_mut(), Sorter::outcome(scratch.slice())?)?; // the scratch memory is free for the next sort
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
    /// Passes that the bit window asks for.
    passes: u32,
    passes_run: u32,
    /// [`EARLY_EXIT`], [`ADAPTIVE`].
    flags: u32,
    n: u64,
    /// A figure of the family's own: see the fields of [`SortReport`] that are 0 from other sorts; with [`ADAPTIVE`] the elements
    /// taken out.
    detail: u64,
}

assert_layout!(
    SortOutcome, 32:
    algorithm 0, passes 4, passes_run 8, flags 12, n 16, detail 24,
);

/// Bit of `flags`: found in order before all passes were run.
const EARLY_EXIT: u32 = 1;
/// Bit of `flags`: the kernel for nearly sorted input sorted.
const ADAPTIVE: u32 = 2;

impl SortOutcome {
    /// The algorithm that ran; none where no sort did.
    #[must_use]
    pub fn algorithm(&self) -> Option<Algorithm> {
        let all = Algorithm::ALL.iter().copied();
        all.filter(|&one| one != Algorithm::Auto)
            .find(|&one| algorithm_id(one) == self.algorithm)
    }

    /// Number of keys.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.n
    }

    /// As [`SortReport::passes_run`].
    #[must_use]
    pub fn passes_run(&self) -> u32 {
        self.passes_run
    }

    /// As [`SortReport::passes_skipped`].
    #[must_use]
    pub fn passes_skipped(&self) -> u32 {
        self.passes.saturating_sub(self.passes_run)
    }

    /// As [`SortReport::early_exit`].
    #[must_use]
    pub fn early_exit(&self) -> bool {
        self.flags & EARLY_EXIT != 0
    }

    /// A report with the times of the stages.
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

/// The number of an algorithm in [`SortOutcome`]; `kernels/sort/outcome.cuh` has the same. 0 is none.
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
    fn every_algorithm_is_named_by_its_number() {
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
    fn passes_and_flags_are_those_of_the_report() {
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
