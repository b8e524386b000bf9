//! The sorted lists that an update gives, and how the next ones take their place.

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
    /// The pairs of an update that is not finished; else memory to use again.
    pub(in crate::cpu) next: Vec<Pair>,
    /// Memory for pairs in no order.
    pub(in crate::cpu) blocks: SpareBlocks,
}

impl Lists {
    /// Reserves memory for so many pairs, where there is that much: a wish only.
    pub(in crate::cpu) fn with_capacity(pairs: usize) -> Self {
        let mut next = Vec::new();
        // A refusal is no error here: an update that needs the memory asks for it again.
        let _ = next.try_reserve(pairs);
        Self {
            next,
            ..Self::default()
        }
    }

    /// Empties the lists and keeps their memory.
    pub(in crate::cpu) fn clear(&mut self) {
        *self = Self {
            next: std::mem::take(&mut self.pairs),
            blocks: std::mem::take(&mut self.blocks),
            ..Self::default()
        };
    }

    /// Returns the bytes that the lists and the blocks take.
    pub(in crate::cpu) fn bytes(&self) -> u64 {
        let lists = [&self.pairs, &self.next, &self.started, &self.ended].map(Vec::capacity);
        let pairs = lists.iter().sum::<usize>() + self.blocks.capacity();
        (pairs * size_of::<Pair>()) as u64
    }

    /// Puts the pairs of a full update in order. O(pairs).
    pub(in crate::cpu) fn order(&mut self, found: Found, boxes: usize) -> Result<()> {
        order(found.blocks, boxes, &mut self.next, &self.blocks)
    }

    /// Finds which of the next pairs started, and which of the last ended. O(both).
    pub(in crate::cpu) fn compare(&mut self) -> Result<()> {
        (self.started, self.ended) = difference(&self.pairs, &self.next)?;
        Ok(())
    }

    /// Puts the next list in the place of the last.
    pub(in crate::cpu) fn publish(&mut self) {
        // Blocks for twice as many pairs and some for each task may be needed next time; no more
        // are kept.
        let threads = if in_pool() {
            rayon::current_num_threads()
        } else {
            1
        };
        self.blocks
            .keep(2 * self.next.len() / PAIR_BLOCK + 8 * threads);
        std::mem::swap(&mut self.pairs, &mut self.next);
    }
}
