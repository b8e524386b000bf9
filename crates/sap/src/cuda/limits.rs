//! How many pairs there is memory for.

use crate::cuda::engine::Engine;
use crate::{Config, Error, Pair, Result};

impl Engine {
    /// Makes room for `count` pairs and an eighth more.
    pub(crate) fn make_room(&mut self, config: &Config, count: u64, limit: u64) -> Result<()> {
        let too_many = Error::TooManyPairs { count, limit };
        let exact = usize::try_from(count)
            .ok()
            .filter(|_| count <= limit)
            .ok_or(too_many)?;
        let generous = (exact + exact / 8).min(usize::try_from(limit).unwrap_or(usize::MAX));
        let grown = self.packed.reserve_exact(&self.stream, generous);
        grown
            .or_else(|_| self.packed.reserve_exact(&self.stream, exact))
            .map_err(|error| out_of_memory(config, count, error))
    }

    /// The most pairs that may be kept: as configured, else what half of the memory holds that is free or taken for pairs.
    pub(crate) fn pair_limit(&self, config: &Config) -> Result<u64> {
        match config.pair_memory {
            Some(bytes) => Ok(bytes / size_of::<Pair>() as u64),
            None => {
                let lists = self.list.capacity() + self.ordered.capacity() + self.packed.capacity();
                let held = (lists * size_of::<Pair>()) as u64 + self.sweep.scratch_bytes();
                let (free, _) = self.stream.device().memory()?;
                Ok((free + held) / 2 / bytes_a_pair(config))
            }
        }
    }
}

/// Device bytes that a pair takes: as found, in the list, in that of the last update and while it is sorted; with events it may
/// be in those of both updates too.
const fn bytes_a_pair(config: &Config) -> u64 {
    let lists = if config.events { 6 } else { 4 };
    lists * size_of::<Pair>() as u64
}

/// Device memory that ran out for the sake of `count` pairs means that they are too many.
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
