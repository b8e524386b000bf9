//! Collects the pairs that many tasks find into unsorted blocks, counted against a limit.

use crate::cpu::lanes::{LANES, Lanes, Naming};
use crate::cpu::tuning::{BOX_BUDGET, DROPPED_COST, FIRST_BLOCK, PAIR_BLOCK, PAIR_BUDGET};
use crate::threads::in_pool;
use crate::try_alloc::refused;
use crate::{Error, Pair, Result, Sorts};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The state that all tasks of one search share. Beyond the limit pairs are counted and not stored.
pub(in crate::cpu) struct Collector<'a> {
    /// The max number of pairs to store.
    limit: u64,
    stored: AtomicU64,
    /// Set when an allocation failed in some task. Then pairs are only counted too.
    refused: AtomicBool,
    /// The max of `spent`.
    budget: i64,
    /// The cost of the search so far minus the budget of its pairs, in tests.
    spent: AtomicI64,
    spare: &'a SpareBlocks,
}

/// Blocks of earlier searches to reuse: fresh memory costs more than the pairs written to it.
#[derive(Default)]
pub(in crate::cpu) struct SpareBlocks(Mutex<Vec<Vec<Pair>>>);

impl SpareBlocks {
    fn blocks(&self) -> MutexGuard<'_, Vec<Vec<Pair>>> {
        // A thread that panicked leaves valid blocks.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of pairs that the blocks can hold.
    pub(super) fn capacity(&self) -> usize {
        self.blocks().iter().map(Vec::capacity).sum()
    }

    fn take(&self) -> Vec<Pair> {
        self.blocks().pop().unwrap_or_default()
    }

    /// Frees all but `blocks` blocks.
    pub(super) fn keep(&self, blocks: usize) {
        self.blocks().truncate(blocks);
    }

    /// Takes back a block that has been read.
    pub(in crate::cpu) fn give(&self, mut block: Vec<Pair>) {
        block.clear();
        self.blocks().push(block);
    }
}

/// The result of a search for pairs.
#[derive(Default)]
pub(in crate::cpu) struct Found {
    /// The pairs, unsorted. Incomplete if there are more than the limit.
    pub(in crate::cpu) blocks: Vec<Vec<Pair>>,
    /// The exact number of pairs.
    pub(in crate::cpu) count: u64,
    /// The number of candidates tested.
    pub(in crate::cpu) tests: u64,
    /// Set when an allocation failed; `blocks` is then incomplete.
    pub(in crate::cpu) refused: Option<Error>,
    /// The sorts of boxes or records.
    pub(in crate::cpu) sorts: Sorts,
    /// Whether the tree found the pairs.
    pub(in crate::cpu) by_tree: bool,
}

impl Found {
    /// Merges the results of two parts of a search.
    pub(in crate::cpu) fn merge(mut self, mut other: Self) -> Self {
        self.blocks.append(&mut other.blocks);
        self.count += other.count;
        self.tests += other.tests;
        self.sorts += other.sorts;
        self.refused = self.refused.or(other.refused);
        self.by_tree |= other.by_tree;
        self
    }

    /// Returns the result of a part for which an allocation failed.
    pub(in crate::cpu) fn refused(error: Error) -> Self {
        Self {
            refused: Some(error),
            ..Self::default()
        }
    }

    /// Returns the error of a failed allocation, if there was one.
    pub(in crate::cpu) fn stored(mut self) -> Result<Self> {
        self.refused.take().map_or(Ok(self), Err)
    }

    /// Adds the sorts before the sweep.
    pub(in crate::cpu) fn with_sorts(mut self, sorts: Sorts) -> Self {
        self.sorts += sorts;
        self
    }

    /// Returns an error with the exact count if there are more pairs than the limit.
    pub(in crate::cpu) fn within(self, limit: u64) -> Result<Self> {
        match self.stored()? {
            Self { count, .. } if count > limit => Err(Error::TooManyPairs { count, limit }),
            found => Ok(found),
        }
    }
}

impl<'a> Collector<'a> {
    /// Creates a collector of at most `limit` pairs, without a budget.
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

    /// Sets the budget of a sweep of `boxes` boxes.
    pub(in crate::cpu) const fn bounded(mut self, boxes: usize) -> Self {
        self.budget = BOX_BUDGET.saturating_mul(boxes as i64);
        self
    }

    /// Tells whether the search has exceeded its budget. Then it stopped, and its result is
    /// incomplete.
    pub(in crate::cpu) fn is_exceeded(&self) -> bool {
        self.spent.load(Ordering::Relaxed) > self.budget
    }

    /// Runs `work` on `0..n`, cut into parts of `size`, and merges what it finds. It uses all
    /// threads of the pool, or only this thread if that is in no pool or there is a single part.
    pub(in crate::cpu) fn run_parts(
        &self,
        n: usize,
        size: usize,
        work: impl Fn(&mut Task, Range<usize>) + Send + Sync,
    ) -> Found {
        let run = |mut task, part: usize| {
            work(&mut task, part * size..((part + 1) * size).min(n));
            task
        };
        let parts = 0..n.div_ceil(size);
        if parts.end <= 1 || !in_pool() {
            return parts.fold(self.task(), run).finish();
        }
        parts
            .into_par_iter()
            .fold(|| self.task(), run)
            .map(Task::finish)
            .reduce(Found::default, Found::merge)
    }

    /// Begins a task.
    pub(in crate::cpu) fn task(&self) -> Task<'_> {
        Task {
            shared: self,
            buffer: self.spare.take(),
            found: Found::default(),
            dropped: 0,
            spent: 0,
        }
    }

    /// Tells whether pairs are still stored.
    fn storing(&self) -> bool {
        self.stored.load(Ordering::Relaxed) <= self.limit && !self.refused.load(Ordering::Relaxed)
    }
}

/// The pairs that one task finds.
pub(in crate::cpu) struct Task<'a> {
    shared: &'a Collector<'a>,
    buffer: Vec<Pair>,
    pub(in crate::cpu) found: Found,
    /// The number of overlaps that are no pairs.
    dropped: u64,
    /// The part of the collector's `spent` that comes from this task.
    spent: i64,
}

impl Task<'_> {
    /// Tells whether pairs are still stored. A run asks once, so the limit is exceeded by little.
    pub(in crate::cpu) fn storing(&self) -> bool {
        self.shared.storing()
    }

    /// Charges the budget with the cost since the last call, and tells whether it suffices. Each
    /// part of the work asks before it begins.
    pub(in crate::cpu) fn charge(&mut self) -> bool {
        let pairs = self.found.count + self.buffer.len() as u64;
        let cost = self.found.tests + DROPPED_COST * self.dropped;
        let spent = cost as i64 - PAIR_BUDGET.saturating_mul(pairs as i64);
        let more = spent - std::mem::replace(&mut self.spent, spent);
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
    /// As [`Lanes::overlap`]; `mask` has only the lowest [`LANES`] bits.
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
        // SAFETY: the caller's promise is passed on. There is capacity for LANES pairs, and the
        // first `mask.count_ones()` of them are written.
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

    /// Makes capacity for LANES more pairs: grows the buffer up to a full block, or starts a new
    /// one.
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

    /// Records a failed allocation. From then on the search only counts.
    pub(in crate::cpu) fn refuse(&mut self, error: Error) {
        self.shared.refused.store(true, Ordering::Relaxed);
        self.found.refused.get_or_insert(error);
        self.flush();
        // The pairs of this run may still be written here. A refusal of so little is no error
        // value.
        self.buffer.reserve(FIRST_BLOCK);
    }

    /// Moves the buffer to the found blocks, or drops all blocks once they exceed the limit.
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

    /// Returns all that the task found.
    pub(in crate::cpu) fn finish(mut self) -> Found {
        self.flush();
        self.found
    }
}
