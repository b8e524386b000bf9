//! Which pairs started and which ended: differences of two sorted lists, on the device.

use super::kernels::{EVENT_ITEMS, Kernels};
use super::memory::Grow;
use super::params::List;
use crate::{Pair, Result};
use gpu::{Slice, Stream};

const WORDS: usize = EVENT_ITEMS / 32;
/// Room for differences at first, by pairs of the list: most pairs last.
const LIKELY: usize = 16;

/// The pairs of one list that another lacks. Memory is kept from update to update.
#[derive(Default)]
pub(super) struct Difference {
    marks: Grow<u32>,
    counts: Grow<u32>,
    places: Grow<u64>,
    pairs: Grow<Pair>,
    len: usize,
}

impl Difference {
    /// Finds the pairs of `list` that `other` lacks, as far as there is room; their number goes to the address `total`.
    /// O((list + other) log), near each other in memory.
    ///
    /// # Safety
    ///
    /// The lists' addresses are of as many pairs as they say, or of a number, and so is `total`.
    pub(super) unsafe fn find(
        &mut self,
        stream: &Stream,
        kernels: &Kernels,
        list: List,
        other: List,
        total: u64,
    ) -> Result<()> {
        let n = list.n as usize;
        let blocks = n.div_ceil(EVENT_ITEMS);
        let marks = self.marks.reserve(stream, blocks * WORDS)?;
        let counts = self.counts.reserve(stream, blocks)?;
        // SAFETY: the caller's promise.
        unsafe {
            if blocks > 0 {
                kernels.missing(stream, list, other, marks, counts)?;
            }
            self.places.reserve(stream, blocks + 1)?;
            let places = self.places.part_mut(blocks + 1)?;
            kernels.scan(stream, self.counts.part(blocks)?, places, total)?;
            let room = self.pairs.capacity().max(n.min(1024 + n / LIKELY));
            self.pairs.reserve(stream, room)?;
            self.gather(stream, kernels, list)
        }
    }

    /// # Safety
    ///
    /// As for `find`.
    unsafe fn gather(&mut self, stream: &Stream, kernels: &Kernels, list: List) -> Result<()> {
        let blocks = (list.n as usize).div_ceil(EVENT_ITEMS);
        let out = self.pairs.part_mut(self.pairs.capacity())?;
        if blocks == 0 {
            return Ok(());
        }
        let (marks, places) = (
            self.marks.part(blocks * WORDS)?,
            self.places.part(blocks + 1)?,
        );
        // SAFETY: the caller's promise.
        unsafe { Ok(kernels.gather(stream, list, marks, places, out)?) }
    }

    /// Takes note that `len` were found, and collects them again where there was no room for all.
    ///
    /// # Safety
    ///
    /// As for `find`, with the list that was given there.
    pub(super) unsafe fn complete(
        &mut self,
        stream: &Stream,
        kernels: &Kernels,
        list: List,
        len: usize,
    ) -> Result<()> {
        self.len = 0;
        if len > self.pairs.capacity() {
            self.pairs.reserve(stream, len)?;
            // SAFETY: the caller's promise.
            unsafe { self.gather(stream, kernels, list)? };
        }
        self.len = len;
        Ok(())
    }

    pub(super) fn pairs(&self) -> Result<Slice<'_, Pair>> {
        self.pairs.part(self.len)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }
}
