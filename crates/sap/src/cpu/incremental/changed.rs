//! The changed set: the boxes that differ from the last frame.

use crate::{Pair, Result, room};

/// Some boxes of a frame.
#[derive(Default)]
pub(in crate::cpu) struct Changed {
    /// In order, each once.
    pub(super) list: Vec<u32>,
    bits: Vec<u64>,
}

impl Changed {
    /// Adds boxes below `n`, in no order; others are passed over. Where memory is refused, none.
    pub(super) fn add(
        &mut self,
        n: usize,
        boxes: impl ExactSizeIterator<Item = u32>,
    ) -> Result<()> {
        let most = self.list.len() + boxes.len();
        room::reserve(&mut self.list, most)?;
        if self.bits.len() < n.div_ceil(64) {
            room::resize(&mut self.bits, n.div_ceil(64), 0)?;
        }
        let new = |i: &u32| {
            let (word, bit) = (*i as usize / 64, 1 << (i % 64));
            let new = (*i as usize) < n && self.bits[word] & bit == 0;
            if new {
                self.bits[word] |= bit;
            }
            new
        };
        self.list.extend(boxes.filter(new));
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        for i in self.list.drain(..) {
            self.bits[i as usize / 64] = 0;
        }
    }

    #[inline(always)]
    pub(in crate::cpu) fn has(&self, i: u32) -> bool {
        self.bits[i as usize / 64] >> (i % 64) & 1 == 1
    }

    #[inline(always)]
    pub(in crate::cpu) fn has_one(&self, pair: &Pair) -> bool {
        self.has(pair.a) || self.has(pair.b)
    }

    pub(in crate::cpu) fn list(&self) -> &[u32] {
        &self.list
    }
}
