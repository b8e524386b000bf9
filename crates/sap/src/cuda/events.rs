//! Events: the pairs that an update started and ended, as differences of two sorted lists on the
//! device (`kernels/sap/events.cuh`).

use crate::cuda::differences::{self, List, first_capacity};
use crate::cuda::launch::module;
use crate::{Pair, Result};
use gpu::{Device, DevicePtr, Grow, Kernel, Slice, Stream};

/// Where the pairs started and ended go.
pub(crate) type Space = differences::Space<Pair>;

/// The pairs that an update started and ended. Memory is kept from update to update.
pub(crate) struct Events {
    kernel: Kernel,
    words: Grow<u64>,
    /// Started, ended.
    lists: [Grow<Pair>; 2],
    lens: [usize; 2],
}

impl Events {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        Ok(Self {
            kernel: module(device)?.kernel("sap_differences")?,
            words: Grow::default(),
            lists: Default::default(),
            lens: [0; 2],
        })
    }

    /// Reserves memory for the differences of two lists of these lengths, for more where there has
    /// been some.
    pub(crate) fn reserve(&mut self, stream: &Stream, lens: [usize; 2]) -> Result<Space> {
        for (list, n) in self.lists.iter_mut().zip(lens) {
            let capacity = list.capacity().max(first_capacity(n));
            list.reserve(stream, capacity)?;
        }
        Ok(Space {
            lists: self.lists.each_ref().map(Grow::device_ptr),
            capacity: self.lists.each_ref().map(|list| list.capacity() as u64),
        })
    }

    /// Finds the pairs of each list that the other lacks, as many as the capacity takes. Their
    /// counts go to the addresses `totals`. O(pairs of both).
    ///
    /// # Safety
    ///
    /// The lists' addresses are of as many pairs as they say and of a count. So are the totals.
    pub(crate) unsafe fn find(
        &mut self,
        stream: &Stream,
        compared: [List; 2],
        totals: [DevicePtr<u64>; 2],
    ) -> Result<()> {
        let lens = compared.map(List::len);
        let words = self.words.reserve(stream, differences::words(lens))?;
        let first = words.device_ptr();
        stream.fill_bytes(words, 0)?;
        let space = self.reserve(stream, lens)?;
        // SAFETY: the caller's promise; the words are as many as are needed, and zero.
        unsafe { differences::find(stream, &self.kernel, compared, first, space, totals)? };
        Ok(())
    }

    /// Sets the lengths, and finds the pairs again where the capacity was too small for all.
    /// Returns false then, as the device has to do so yet.
    ///
    /// # Safety
    ///
    /// As for `find`, with the lists that were given there.
    pub(crate) unsafe fn complete(
        &mut self,
        stream: &Stream,
        compared: [List; 2],
        totals: [DevicePtr<u64>; 2],
        counts: [u64; 2],
    ) -> Result<bool> {
        self.clear();
        let mut is_done = true;
        for (list, count) in self.lists.iter_mut().zip(counts) {
            if count > list.capacity() as u64 {
                list.reserve(stream, count as usize)?;
                is_done = false;
            }
        }
        if !is_done {
            // SAFETY: the caller's promise.
            unsafe { self.find(stream, compared, totals)? };
        }
        self.lens = counts.map(|count| count as usize);
        Ok(is_done)
    }

    pub(crate) fn started(&self) -> Result<Slice<'_, Pair>> {
        Ok(self.lists[0].part(self.lens[0])?)
    }

    pub(crate) fn ended(&self) -> Result<Slice<'_, Pair>> {
        Ok(self.lists[1].part(self.lens[1])?)
    }

    pub(crate) fn clear(&mut self) {
        self.lens = [0; 2];
    }
}
