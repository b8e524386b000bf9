//! The sorts of an update, of boxes and of pairs, by the algorithm that was asked for.

use crate::Result;
use gpu::{Device, Scratch, SliceMut, Stream};
use gpusort::cuda::{Payload, Request, SortOutcome, Sorter, SorterConfig};
use gpusort::{Algorithm, Key, SortOptions};
use std::ops::Range;

/// A sorter, and the scratch memory that all sorts share.
pub(crate) struct Sorting {
    sorter: Sorter,
    options: SortOptions,
    scratch: Scratch,
}

impl Sorting {
    /// Loads the kernels for keys that one launch sorts, so that the first update need not.
    pub(crate) fn new(device: &Device, algorithm: Algorithm) -> Result<Self> {
        let sorter = Sorter::new(device, SorterConfig::default())?;
        sorter.prepare::<f32>(algorithm, 0)?;
        sorter.prepare::<u64>(algorithm, 0)?;
        Ok(Self {
            sorter,
            options: SortOptions::new().algorithm(algorithm),
            scratch: Scratch::new(),
        })
    }

    /// Queues a sort of keys by a range of their bits.
    pub(crate) fn sort<K: Key>(
        &mut self,
        stream: &Stream,
        request: Request<K>,
        bits: Range<u32>,
    ) -> Result<()> {
        let options = self.options.clone().bits(bits);
        let scratch = &mut self.scratch;
        Ok(self
            .sorter
            .sort_growing(stream, request, scratch, &options)?)
    }

    /// Copies what the last sort left. There must have been one.
    pub(crate) fn copy_outcome(
        &mut self,
        stream: &Stream,
        to: SliceMut<SortOutcome>,
    ) -> Result<()> {
        // The memory that the sort was given: it is as large at least.
        let scratch = self.scratch.reserve(stream, size_of::<SortOutcome>())?;
        Ok(stream.copy(to, Sorter::outcome(scratch.as_slice())?)?)
    }

    /// Returns the scratch memory, as much as a sort of `n` pairs takes, or a copy of them: it
    /// serves both ways to put them in order.
    pub(crate) fn scratch_of_pairs(
        &mut self,
        stream: &Stream,
        n: usize,
    ) -> Result<SliceMut<'_, u8>> {
        Ok(self.scratch.reserve(stream, self.bytes_of_pairs(n)?)?)
    }

    /// Tells whether the scratch memory suffices for `n` pairs.
    pub(crate) fn takes_pairs(&self, n: usize) -> bool {
        let bytes = self.bytes_of_pairs(n);
        bytes.is_ok_and(|bytes| bytes <= self.scratch.capacity())
    }

    fn bytes_of_pairs(&self, n: usize) -> Result<usize> {
        let algorithm = self.options.algorithm;
        let bytes = Sorter::scratch_bytes_for::<u64>(algorithm, n as u64, Payload::None)?;
        Ok((bytes as usize).max(n * size_of::<u64>()))
    }

    /// Returns the bytes of scratch memory, which is for pairs mostly.
    pub(crate) fn scratch_bytes(&self) -> u64 {
        self.scratch.capacity() as u64
    }
}
