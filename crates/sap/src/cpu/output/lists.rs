//! The sorted lists of an update, and how the next update replaces them.

use super::collect::{Found, SpareBlocks};
use super::events::difference;
use super::order::order;
use crate::cpu::tuning::PAIR_BLOCK;
use crate::threads::in_pool;
use crate::{Pair, Result};

/// The lists of the last update, and the memory for those of the next.
#[derive(Default)]
pub(in crate::cpu) struct Lists {
    pub(in crate::cpu) pairs: Vec<Pair>,
    pub(in crate::cpu) started: Vec<Pair>,
    pub(in crate::cpu) ended: Vec<Pair>,
    /// The pairs of an update in progress; between updates, memory to reuse.
    pub(in crate::cpu) next: Vec<Pair>,
    /// Memory for unsorted pairs.
    pub(in crate::cpu) blocks: SpareBlocks,
}

impl Lists {
    /// Creates empty lists and tries to reserve memory for `pairs` pairs.
    pub(in crate::cpu) fn with_capacity(pairs: usize) -> Self {
        let mut next = Vec::new();
        // A refused allocation is no error here: an update that needs the memory asks again.
        let _ = next.try_reserve(pairs);
        Self {
            next,
            ..Self::default()
        }
    }

    /// Empties the lists and keeps the memory of the pairs.
    pub(in crate::cpu) fn clear(&mut self) {
        *self = Self {
            next: std::mem::take(&mut self.pairs),
            blocks: std::mem::take(&mut self.blocks),
            ..Self::default()
        };
    }

    /// Returns the bytes that the next update can reuse. The lists of the last one stay until it
    /// has succeeded.
    pub(in crate::cpu) fn reusable_bytes(&self) -> u64 {
        ((self.next.capacity() + self.blocks.capacity()) * size_of::<Pair>()) as u64
    }

    /// Sorts the pairs of a full update. O(pairs).
    pub(in crate::cpu) fn order(&mut self, found: Found, boxes: usize) -> Result<()> {
        order(found.blocks, boxes, &mut self.next, &self.blocks)
    }

    /// Finds the pairs that started and those that ended. O(last + next).
    pub(in crate::cpu) fn compare(&mut self) -> Result<()> {
        (self.started, self.ended) = difference(&self.pairs, &self.next)?;
        Ok(())
    }

    /// Replaces the last pairs by the next ones.
    pub(in crate::cpu) fn publish(&mut self) {
        std::mem::swap(&mut self.pairs, &mut self.next);
        self.drop_blocks();
    }

    /// Drops all blocks but those for twice as many pairs as there are, and some for each thread.
    pub(in crate::cpu) fn drop_blocks(&self) {
        let threads = if in_pool() {
            rayon::current_num_threads()
        } else {
            1
        };
        self.blocks
            .keep(2 * self.pairs.len() / PAIR_BLOCK + 8 * threads);
    }
}
