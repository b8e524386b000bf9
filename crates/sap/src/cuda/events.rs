//! Which pairs started and which ended: differences of two sorted lists, on the device.

use crate::cuda::abi::{List, PassedDifferences};
use crate::cuda::kernels::{EVENT_ITEMS, Kernels};
use crate::cuda::memory::Grow;
use crate::{Pair, Result};
use gpu::{Slice, Stream};

/// Room for differences at first, by pairs of the list: most pairs last.
const LIKELY: usize = 16;

/// The pairs of one list that another lacks. Memory is kept from update to update.
#[derive(Default)]
pub(crate) struct Difference {
    words: Grow<u64>,
    pairs: Grow<Pair>,
    len: usize,
}

impl Difference {
    /// Finds the pairs of each list that the other lacks, as far as there is room; their numbers go to the addresses `totals`.
    /// O((pairs of both) log), near each other in memory.
    ///
    /// # Safety
    ///
    /// The lists' addresses are of as many pairs as they say, or of a number, and so are the totals.
    pub(crate) unsafe fn find(
        both: &mut [Self; 2],
        stream: &Stream,
        kernels: &Kernels,
        lists: [List; 2],
        totals: [u64; 2],
    ) -> Result<()> {
        let words = lists.map(|list| (list.n as usize).div_ceil(EVENT_ITEMS) + 1);
        let memory = both[0].words.reserve(stream, words[0] + words[1])?;
        let first = memory.ptr();
        stream.fill_bytes(memory, 0)?;
        for (difference, list) in both.iter_mut().zip(lists) {
            let n = list.n as usize;
            let room = difference.pairs.capacity().max(n.min(1024 + n / LIKELY));
            difference.pairs.reserve(stream, room)?;
        }
        let passed = PassedDifferences {
            lists,
            words: [first, first + (words[0] * size_of::<u64>()) as u64],
            out: both.each_ref().map(|difference| difference.pairs.ptr()),
            room: both
                .each_ref()
                .map(|difference| difference.pairs.capacity() as u64),
            totals,
        };
        // SAFETY: the caller's promise; there is a word more than blocks for each list, zero, and the room is what is reserved.
        unsafe { Ok(kernels.differences(stream, passed)?) }
    }

    /// Takes note that so many were found, and finds them again where there was no room for all.
    ///
    /// # Safety
    ///
    /// As for `find`, with the lists that were given there.
    pub(crate) unsafe fn complete(
        both: &mut [Self; 2],
        stream: &Stream,
        kernels: &Kernels,
        lists: [List; 2],
        totals: [u64; 2],
        counts: [u64; 2],
    ) -> Result<()> {
        let mut short = false;
        for (difference, count) in both.iter_mut().zip(counts) {
            difference.len = 0;
            if count > difference.pairs.capacity() as u64 {
                difference.pairs.reserve(stream, count as usize)?;
                short = true;
            }
        }
        if short {
            // SAFETY: the caller's promise.
            unsafe { Self::find(both, stream, kernels, lists, totals)? };
        }
        for (difference, count) in both.iter_mut().zip(counts) {
            difference.len = count as usize;
        }
        Ok(())
    }

    pub(crate) fn pairs(&self) -> Result<Slice<'_, Pair>> {
        self.pairs.part(self.len)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }
}
