//! Which pairs started and which ended: differences of two sorted lists, on the device.

use super::kernels::{EVENT_ITEMS, Kernels};
use super::memory::Grow;
use crate::{Pair, Result};
use gpu::{Pinned, Slice, Stream};

const WORDS: usize = EVENT_ITEMS / 32;

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
    /// Marks the pairs of `list` that `other` lacks and asks for their number, which is in `count` once the stream is
    /// past this.
    ///
    /// # Safety
    ///
    /// `count` is not read before the stream is past this, and stays until then.
    unsafe fn mark(
        &mut self,
        stream: &Stream,
        kernels: &Kernels,
        list: Slice<Pair>,
        other: Slice<Pair>,
        count: &mut [u64],
    ) -> Result<()> {
        let blocks = list.len().div_ceil(EVENT_ITEMS);
        let marks = self.marks.reserve(stream, blocks * WORDS)?;
        let counts = self.counts.reserve(stream, blocks)?;
        if blocks > 0 {
            kernels.missing(stream, list, other, marks, counts)?;
        }
        self.places.reserve(stream, blocks + 1)?;
        kernels.scan(
            stream,
            self.counts.part(blocks)?,
            self.places.part_mut(blocks + 1)?,
        )?;
        // SAFETY: the caller's promise.
        unsafe { stream.download_pinned(self.places.part(blocks + 1)?.range(blocks..)?, count)? };
        Ok(())
    }

    /// Writes the `len` pairs marked.
    fn collect(
        &mut self,
        stream: &Stream,
        kernels: &Kernels,
        list: Slice<Pair>,
        len: usize,
    ) -> Result<()> {
        self.len = 0;
        let room = self.pairs.reserve(stream, len)?;
        if len > 0 {
            let blocks = list.len().div_ceil(EVENT_ITEMS);
            kernels.gather(
                stream,
                list,
                self.marks.part(blocks * WORDS)?,
                self.places.part(blocks + 1)?,
                room,
            )?;
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

/// Fills `started` with the pairs of `new` that `old` lacks, and `ended` with those of `old` that `new` lacks. Waits once,
/// for their numbers. O((old + new) log), near each other in memory.
pub(super) fn difference(
    stream: &Stream,
    kernels: &Kernels,
    [old, new]: [Slice<Pair>; 2],
    [started, ended]: [&mut Difference; 2],
    counts: &mut [Pinned<u64>; 2],
) -> Result<()> {
    let [of_started, of_ended] = counts;
    // SAFETY: read below, after waiting. The pinned numbers are the engine's, which waits before it frees them.
    unsafe {
        started.mark(stream, kernels, new, old, of_started)?;
        ended.mark(stream, kernels, old, new, of_ended)?;
    }
    stream.synchronize()?;
    started.collect(stream, kernels, new, of_started[0] as usize)?;
    ended.collect(stream, kernels, old, of_ended[0] as usize)
}
