//! The limit on pairs, and the capacity for them.

use crate::cuda::engine::Engine;
use crate::cuda::order::PairOrder;
use crate::cuda::tuning::NEARLY_FULL;
use crate::{Config, Error, Pair, Result};

impl Engine {
    /// Raises the capacity to `count` pairs and an eighth more, at least to its double, or to
    /// `count` where that is refused. While pairs become more, it is seldom too small.
    pub(crate) fn raise_capacity(&mut self, count: u64, limit: u64) -> Result<()> {
        let too_many = Error::TooManyPairs { count, limit };
        let exact = usize::try_from(count)
            .ok()
            .filter(|_| count <= limit)
            .ok_or(too_many)?;
        let generous = (exact + exact / 8).max(2 * self.packed.capacity());
        let generous = generous.min(usize::try_from(limit).unwrap_or(usize::MAX));
        match self.packed.reserve_up_to(&self.stream, exact, generous) {
            Ok(_) => Ok(()),
            Err(error) => Err(out_of_memory(&self.config, count, error.into())),
        }
    }

    /// Doubles the capacity, if memory allows, where the last pairs nearly filled it, so that no
    /// frame need search twice. New memory takes the driver long, so one list grows in a frame, and
    /// that of the pairs found, whose capacity counts, at last. Without memory a frame searches
    /// twice, as it does without this.
    pub(crate) fn raise_capacity_ahead(&mut self) {
        let capacity = self.packed.capacity();
        if self.pairs <= capacity - capacity / NEARLY_FULL || self.refused_ahead == capacity {
            return;
        }
        let wanted = 2 * capacity;
        let is_allowed = self.pair_limit().is_ok_and(|limit| wanted as u64 <= limit);
        let (stream, sorting) = (&self.stream, &mut self.sorting);
        let is_grown = is_allowed
            && if self.ordered.capacity() < wanted {
                self.ordered.reserve_exact(stream, wanted).is_ok()
            } else if self.list.capacity() < wanted {
                // The two are swapped after each frame.
                true
            } else if !sorting.takes_pairs(wanted) {
                sorting.scratch_of_pairs(stream, wanted).is_ok()
            } else {
                self.packed.reserve_exact(stream, wanted).is_ok()
            };
        if !is_grown {
            self.refused_ahead = capacity;
        }
    }

    /// Returns the max pairs: as configured, else what half of the memory takes that is free or
    /// reserved for pairs.
    pub(crate) fn pair_limit(&self) -> Result<u64> {
        match self.config.pair_limit() {
            Some(limit) => Ok(limit),
            None => {
                let lists = self.list.capacity() + self.ordered.capacity() + self.packed.capacity();
                let bins: u64 = self.pair_orders.iter().map(PairOrder::bytes).sum();
                let lists = (lists * size_of::<Pair>()) as u64;
                let reserved = lists + bins + self.sorting.scratch_bytes();
                let (free, _) = self.stream.device().memory()?;
                Ok((free + reserved) / 2 / bytes_a_pair(&self.config))
            }
        }
    }
}

/// Returns the device bytes that a pair takes: as found, in the list, in that of the last update
/// and while it is sorted. With events it may be in those of both updates too. Bins come on top
/// where there is memory.
const fn bytes_a_pair(config: &Config) -> u64 {
    let lists = if config.events { 6 } else { 4 };
    lists * size_of::<Pair>() as u64
}

/// Turns the refusal of device memory for `count` pairs into the error that they are too many.
pub(crate) fn out_of_memory(config: &Config, count: u64, error: Error) -> Error {
    match error {
        Error::Gpu(gpu::Error::OutOfMemory { free, .. })
        | Error::Sort(gpusort::Error::Gpu(gpu::Error::OutOfMemory { free, .. })) => {
            Error::TooManyPairs {
                count,
                limit: (free / bytes_a_pair(config)).min(count.saturating_sub(1)),
            }
        }
        error => error,
    }
}
