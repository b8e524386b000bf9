//! Events: the pairs that an update started and ended, as differences of two sorted lists on the
//! device (`kernels/sap/events.cuh`).

use crate::cuda::abi::{Differences, List};
use crate::cuda::launch::{THREADS, blocks, module};
use crate::cuda::memory::Grow;
use crate::cuda::tuning::CHANGED_SHARE;
use crate::{Pair, Result};
use gpu::{ByValue, Device, DevicePtr, Kernel, Launch, Slice, Stream, args};

/// Pairs of both lists together that a block compares.
const TILE: usize = 1792;

/// Where the pairs started and ended go.
#[derive(Clone, Copy)]
pub(crate) struct Space {
    pub(crate) lists: [DevicePtr<Pair>; 2],
    pub(crate) capacity: [u64; 2],
}

impl Space {
    /// No memory: nothing is written.
    pub(crate) const NONE: Self = Self {
        lists: [DevicePtr::NULL; 2],
        capacity: [0; 2],
    };
}

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
            let capacity = list.capacity().max(n.min(1024 + n / CHANGED_SHARE));
            list.reserve(stream, capacity)?;
        }
        Ok(Space {
            lists: self.lists.each_ref().map(Grow::ptr),
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
        let tiles = blocks(
            compared.iter().map(|list| list.n as usize).sum(),
            TILE as u32,
        );
        let words = 2 * tiles as usize + 1;
        let memory = self.words.reserve(stream, words)?;
        let first = memory.device_ptr();
        stream.fill_bytes(memory, 0)?;
        let space = self.reserve(stream, compared.map(|list| list.n as usize))?;
        let launch = Launch::linear(tiles.max(1), THREADS);
        let arguments = Differences {
            lists: compared,
            words: [
                first,
                first.byte_add(((tiles as usize + 1) * size_of::<u64>()) as u64),
            ],
            out: space.lists,
            capacity: space.capacity,
            totals,
        };
        // SAFETY: the caller's promise; there is a word for each block and list and one more, all
        // zero, and nothing is written beyond the capacity.
        unsafe { stream.launch(&self.kernel, &launch, &args![ByValue(arguments)])? };
        Ok(())
    }

    /// Sets the lengths, and finds the pairs again where the capacity was too small for all.
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
    ) -> Result<()> {
        self.clear();
        let mut has_grown = false;
        for (list, count) in self.lists.iter_mut().zip(counts) {
            if count > list.capacity() as u64 {
                list.reserve(stream, count as usize)?;
                has_grown = true;
            }
        }
        if has_grown {
            // SAFETY: the caller's promise.
            unsafe { self.find(stream, compared, totals)? };
        }
        self.lens = counts.map(|count| count as usize);
        Ok(())
    }

    pub(crate) fn started(&self) -> Result<Slice<'_, Pair>> {
        self.lists[0].part(self.lens[0])
    }

    pub(crate) fn ended(&self) -> Result<Slice<'_, Pair>> {
        self.lists[1].part(self.lens[1])
    }

    pub(crate) fn clear(&mut self) {
        self.lens = [0; 2];
    }
}
