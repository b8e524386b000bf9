//! Pairs on their way from the sweep to the sorted list: blocks filled by many tasks, counted
//! against a limit.

use crate::cpu::lanes::{LANES, Lanes, Naming};
use crate::cpu::tuning::{BOX_BUDGET, DROPPED_COST, FIRST_BLOCK, PAIR_BLOCK, PAIR_BUDGET};
use crate::room::refused;
use crate::{Error, Pair, Result, Sorts};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What all tasks of one collection share. Past the limit nothing more is stored, but all is
/// counted.
pub(in crate::cpu) struct Collector<'a> {
    limit: u64,
    stored: AtomicU64,
    /// Whether memory was refused to some task: then nothing more is stored either.
    refused: AtomicBool,
    /// What the work may cost beyond what its pairs are worth, and what it has, in tests.
    budget: i64,
    spent: AtomicI64,
    spare: &'a SpareBlocks,
}

/// Blocks of earlier collections, to be filled again: fresh memory costs more than the pairs
/// written to it.
#[derive(Default)]
pub(in crate::cpu) struct SpareBlocks(Mutex<Vec<Vec<Pair>>>);

impl SpareBlocks {
    fn blocks(&self) -> MutexGuard<'_, Vec<Vec<Pair>>> {
        // A thread that panicked leaves blocks as good as any.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many pairs the blocks could hold.
    pub(super) fn capacity(&self) -> usize {
        self.blocks().iter().map(Vec::capacity).sum()
    }

    fn take(&self) -> Vec<Pair> {
        self.blocks().pop().unwrap_or_default()
    }

    /// Frees all but so many blocks.
    pub(super) fn keep(&self, blocks: usize) {
        self.blocks().truncate(blocks);
    }

    /// Takes a block back that has been read.
    pub(in crate::cpu) fn give(&self, mut block: Vec<Pair>) {
        block.clear();
        self.blocks().push(block);
    }
}

/// What a sweep found.
#[derive(Default)]
pub(in crate::cpu) struct Found {
    /// The pairs, in no order; not all of them when there are more than the limit.
    pub(in crate::cpu) blocks: Vec<Vec<Pair>>,
    /// How many there are.
    pub(in crate::cpu) count: u64,
    /// Candidates tested.
    pub(in crate::cpu) tests: u64,
    /// Set when an allocation failed; `blocks` is then incomplete.
    pub(in crate::cpu) refused: Option<Error>,
    /// What was sorted for it.
    pub(in crate::cpu) sorts: Sorts,
    /// Whether the tree found it.
    pub(in crate::cpu) by_tree: bool,
}

impl Found {
    pub(in crate::cpu) fn merge(mut self, mut other: Self) -> Self {
        self.blocks.append(&mut other.blocks);
        self.count += other.count;
        self.tests += other.tests;
        self.sorts += other.sorts;
        self.refused = self.refused.or(other.refused);
        self.by_tree |= other.by_tree;
        self
    }

    /// Nothing, for want of memory.
    pub(in crate::cpu) fn refused(error: Error) -> Self {
        Self {
            refused: Some(error),
            ..Self::default()
        }
    }

    /// An error where memory did not suffice for all of it.
    pub(in crate::cpu) fn stored(mut self) -> Result<Self> {
        self.refused.take().map_or(Ok(self), Err)
    }

    /// With what was sorted before the sweep.
    pub(in crate::cpu) fn sorted_by(mut self, sorts: Sorts) -> Self {
        self.sorts += sorts;
        self
    }

    /// The blocks, or the exact count when they are not all there.
    pub(in crate::cpu) fn within(self, limit: u64) -> Result<Self> {
        match self.stored()? {
            Self { count, .. } if count > limit => Err(Error::TooManyPairs { count, limit }),
            found => Ok(found),
        }
    }
}

impl<'a> Collector<'a> {
    pub(in crate::cpu) const fn new(limit: u64, spare: &'a SpareBlocks) -> Self {
        Self {
            limit,
            stored: AtomicU64::new(0),
            refused: AtomicBool::new(false),
            budget: i64::MAX,
            spent: AtomicI64::new(0),
            spare,
        }
    }

    /// Bounds the work by what the tree would cost for so many boxes.
    pub(in crate::cpu) const fn bounded(mut self, boxes: usize) -> Self {
        self.budget = BOX_BUDGET.saturating_mul(boxes as i64);
        self
    }

    /// Whether the work has cost more than its bound, so that what was found is not all.
    pub(in crate::cpu) fn is_exceeded(&self) -> bool {
        self.spent.load(Ordering::Relaxed) > self.budget
    }

    pub(in crate::cpu) fn task(&self) -> Task<'_> {
        Task {
            shared: self,
            buffer: self.spare.take(),
            found: Found::default(),
            dropped: 0,
            counted: 0,
        }
    }

    /// Whether pairs are still stored. Asked once a run, so that the limit is overshot by little.
    fn storing(&self) -> bool {
        self.stored.load(Ordering::Relaxed) <= self.limit && !self.refused.load(Ordering::Relaxed)
    }
}

/// The pairs that one task finds.
pub(in crate::cpu) struct Task<'a> {
    shared: &'a Collector<'a>,
    buffer: Vec<Pair>,
    pub(in crate::cpu) found: Found,
    /// Overlaps that are no pairs.
    dropped: u64,
    /// What of its cost is in the sum of all tasks.
    counted: i64,
}

impl Task<'_> {
    pub(in crate::cpu) fn storing(&self) -> bool {
        self.shared.storing()
    }

    /// Whether the work is still within its bound. Asked before each part of it.
    pub(in crate::cpu) fn goes_on(&mut self) -> bool {
        let pairs = self.found.count + self.buffer.len() as u64;
        let cost = self.found.tests + DROPPED_COST * self.dropped;
        let spent = cost as i64 - PAIR_BUDGET.saturating_mul(pairs as i64);
        let more = spent - std::mem::replace(&mut self.counted, spent);
        let before = self.shared.spent.fetch_add(more, Ordering::Relaxed);
        before + more <= self.shared.budget
    }

    /// Counts overlaps that are no pairs.
    #[inline(always)]
    pub(in crate::cpu) fn drop_pairs(&mut self, pairs: u32) {
        self.dropped += u64::from(pairs);
    }

    /// Stores a pair and counts it.
    #[inline(always)]
    pub(in crate::cpu) fn push(&mut self, pair: Pair) {
        if self.buffer.len() == self.buffer.capacity() {
            self.grow();
        }
        self.buffer.push(pair);
    }

    /// Stores the pairs of a mask, as [`Lanes::pairs`].
    ///
    /// # Safety
    ///
    /// As [`Lanes::overlap`].
    #[inline(always)]
    pub(in crate::cpu) unsafe fn push_mask<L: Lanes>(
        &mut self,
        index: &[u32],
        start: usize,
        mask: u32,
        p: u32,
        naming: Naming,
    ) {
        if self.buffer.capacity() - self.buffer.len() < LANES {
            self.grow();
        }
        // SAFETY: the caller's promise is passed on; there is capacity for LANES pairs, of which as
        // many as the mask has bits are written for good.
        unsafe {
            let length = self.buffer.len();
            L::pairs(
                index,
                start,
                mask,
                p,
                naming,
                self.buffer.as_mut_ptr().add(length),
            );
            self.buffer.set_len(length + mask.count_ones() as usize);
        }
    }

    /// Counts pairs without storing them.
    #[inline(always)]
    pub(in crate::cpu) fn count(&mut self, pairs: u32) {
        self.found.count += u64::from(pairs);
    }

    /// Makes the capacity for LANES more pairs: in a longer buffer, up to a full block.
    #[cold]
    fn grow(&mut self) {
        let grown = if self.buffer.capacity() + LANES > PAIR_BLOCK {
            self.flush();
            PAIR_BLOCK
        } else {
            (4 * self.buffer.capacity()).clamp(FIRST_BLOCK, PAIR_BLOCK)
        };
        let more = grown - self.buffer.len();
        if self.found.refused.is_some() || self.buffer.try_reserve_exact(more).is_err() {
            self.refuse(refused::<Pair>(grown));
        }
    }

    /// Takes note of memory that was refused, and goes on without storing.
    pub(in crate::cpu) fn refuse(&mut self, error: Error) {
        self.shared.refused.store(true, Ordering::Relaxed);
        self.found.refused.get_or_insert(error);
        self.flush();
        // So little that it is not worth an error; the pairs of this run may still go there.
        self.buffer.reserve(FIRST_BLOCK);
    }

    fn flush(&mut self) {
        let pairs = self.buffer.len() as u64;
        self.found.count += pairs;
        let before = self.shared.stored.fetch_add(pairs, Ordering::Relaxed);
        if before + pairs <= self.shared.limit && self.found.refused.is_none() {
            let next = self.shared.spare.take();
            self.found
                .blocks
                .push(std::mem::replace(&mut self.buffer, next));
        } else {
            self.found.blocks.clear();
            self.buffer.clear();
        }
    }

    pub(in crate::cpu) fn finish(mut self) -> Found {
        self.flush();
        self.found
    }
}
