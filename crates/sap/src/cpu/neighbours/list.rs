//! Keeps candidates in order, in blocks that are not full, so that others can be inserted.

use super::test::depth;
use super::times::Ticks;
use crate::cpu::lanes::{Job, LANES, Lanes, MARK, each_bit, prefetch, run_best};
use crate::cpu::tuning::{CANDIDATE_GROUP, FULL_BLOCK, NEW_BLOCK, STALE_SHARE, STREAM_TASK};
use crate::threads::in_pool;
use crate::{Aabb, OverlapRule, Pair, Result, try_alloc};
use rayon::prelude::*;

/// The bit of a candidate's second index that is set while its boxes overlap.
const HIT: u32 = MARK;

/// Candidates by `(a, b)`, each with whether it overlapped in the last test.
#[derive(Default)]
pub(super) struct Candidates {
    /// At least one once the list is filled, each with greater candidates than the one before it.
    blocks: Vec<Block>,
}

#[derive(Default)]
struct Block {
    candidates: Vec<Pair>,
    /// When each candidate is due, if that is known of all.
    due: Vec<u8>,
    /// The candidates that the last test with times has tested.
    tested: usize,
    hits: usize,
    /// Candidates that came since others were dropped; about as many are none any more.
    new: usize,
}

/// New candidates.
#[derive(Clone, Copy)]
pub(super) enum New<'a> {
    /// Candidates that replace all others.
    All(&'a [Pair]),
    /// Candidates that join the others.
    Some(&'a [Pair]),
}

/// How candidates are tested.
pub(super) struct Test<'a, K, O> {
    /// Whether a candidate that does not overlap stays. A block drops others from time to time.
    keep: K,
    /// Tests up to [`CANDIDATE_GROUP`] candidates, whatever their bits, and gets as many that
    /// follow, whose boxes it may prefetch. Returns a bit for each of the first.
    overlapping: O,
    /// What tests only those that are due, if times are kept.
    timed: Option<Timed<'a>>,
}

impl<'a, K, O> Test<'a, K, O> {
    pub(super) const fn new(keep: K, overlapping: O, timed: Option<Timed<'a>>) -> Self {
        Self {
            keep,
            overlapping,
            timed,
        }
    }
}

/// What decides candidates that are due.
#[derive(Clone, Copy)]
pub(super) struct Timed<'a> {
    pub(super) boxes: &'a [Aabb],
    pub(super) clock: Ticks,
    pub(super) rule: OverlapRule,
}

/// The pairs that a test found to differ from the last one, in order.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) started: Vec<Pair>,
    pub(super) ended: Vec<Pair>,
}

impl Changes {
    pub(super) fn clear(&mut self) {
        self.started.clear();
        self.ended.clear();
    }

    fn append(&mut self, other: &Self) -> Result<()> {
        for (to, from) in [
            (&mut self.started, &other.started),
            (&mut self.ended, &other.ended),
        ] {
            try_alloc::grow(to, from.len())?;
            to.extend_from_slice(from);
        }
        Ok(())
    }
}

/// Returns a candidate without its bit.
#[inline(always)]
const fn plain(candidate: Pair) -> Pair {
    Pair {
        a: candidate.a,
        b: candidate.b & !HIT,
    }
}

impl Candidates {
    /// Returns how many there are.
    pub(super) fn len(&self) -> usize {
        self.blocks.iter().map(|block| block.candidates.len()).sum()
    }

    /// Returns how many overlapped in the last test.
    pub(super) fn hits(&self) -> usize {
        self.blocks.iter().map(|block| block.hits).sum()
    }

    /// Returns how many were due in the last test with times.
    pub(super) fn tested(&self) -> usize {
        self.blocks.iter().map(|block| block.tested).sum()
    }

    /// Runs `f` on all blocks, with the changes that each makes; on all threads where there are
    /// many.
    fn each(
        &mut self,
        changes: &mut Changes,
        f: impl Fn(usize, &mut Block, &mut Changes) -> Result<()> + Sync,
    ) -> Result<()> {
        let task = STREAM_TASK.div_ceil(NEW_BLOCK);
        if self.blocks.len() <= task || !in_pool() {
            return each_of(&mut self.blocks, |i, block| f(i, block, changes));
        }
        let parts = self.blocks.par_chunks_mut(task).enumerate();
        let made: Vec<Result<Changes>> = parts
            .map(|(part, blocks)| {
                let mut changes = Changes::default();
                each_of(blocks, |i, block| f(part * task + i, block, &mut changes))?;
                Ok(changes)
            })
            .collect();
        made.into_iter().try_for_each(|part| changes.append(&part?))
    }

    /// Takes or adds candidates, which are in order, and tests all. Those that are there already
    /// are not added again. After additions it lists what differs from the last test.
    pub(super) fn test(
        &mut self,
        new: New,
        test: &Test<impl Fn(Pair) -> bool + Sync, impl Fn(&[Pair], &[Pair]) -> u32 + Sync>,
        changes: &mut Changes,
    ) -> Result<()> {
        let new = match new {
            New::All(pairs) => {
                let count = pairs.len().div_ceil(NEW_BLOCK).max(1);
                self.blocks.truncate(count);
                let missing = count - self.blocks.len();
                try_alloc::grow(&mut self.blocks, missing)?;
                self.blocks.resize_with(count, Block::default);
                return self.each(changes, |i, block, _| {
                    let rest = &pairs[i * NEW_BLOCK..];
                    block.fill(&rest[..rest.len().min(NEW_BLOCK)], test)
                });
            }
            New::Some(new) => new,
        };
        if new.is_empty() {
            return self.each(changes, |_, block, changes| block.test(test, changes));
        }
        if self.blocks.iter().any(|block| block.candidates.is_empty()) {
            self.blocks.retain(|block| !block.candidates.is_empty());
            if self.blocks.is_empty() {
                self.blocks.push(Block::default());
            }
        }
        let mut starts = Vec::new();
        try_alloc::reserve(&mut starts, self.blocks.len() + 1)?;
        // What comes before the first candidate of all goes to the first block.
        let mut start = 0;
        starts.push(start);
        for block in &self.blocks[1..] {
            let first = plain(block.candidates[0]);
            start += new[start..].partition_point(|&pair| pair < first);
            starts.push(start);
        }
        starts.push(new.len());
        let new_due = test.timed.map_or(0, |timed| timed.clock.past());
        // At once, while the block is in the cache.
        self.each(changes, |i, block, changes| {
            let new = &new[starts[i]..starts[i + 1]];
            if !new.is_empty() {
                block.insert(new, new_due, &test.keep)?;
            }
            block.test(test, changes)
        })?;
        if self
            .blocks
            .iter()
            .any(|block| block.candidates.len() > FULL_BLOCK)
        {
            self.split()?;
        }
        Ok(())
    }

    /// Splits all blocks that are too long.
    #[cold]
    fn split(&mut self) -> Result<()> {
        let mut blocks = Vec::new();
        try_alloc::reserve(
            &mut blocks,
            self.len() / (NEW_BLOCK / 2) + self.blocks.len(),
        )?;
        for mut block in self.blocks.drain(..) {
            if block.candidates.len() <= FULL_BLOCK {
                blocks.push(block);
                continue;
            }
            for part in block.candidates.chunks(NEW_BLOCK) {
                let mut candidates = Vec::new();
                try_alloc::reserve(&mut candidates, FULL_BLOCK)?;
                candidates.extend_from_slice(part);
                let hits = part.iter().filter(|pair| pair.b & HIT != 0).count();
                blocks.push(Block {
                    candidates,
                    hits,
                    ..Block::default()
                });
            }
            block.candidates.clear();
        }
        self.blocks = blocks;
        Ok(())
    }

    /// Drops all candidates that `keep` refuses; those that overlapped have ended.
    pub(super) fn retain(
        &mut self,
        keep: impl Fn(Pair) -> bool + Sync,
        changes: &mut Changes,
    ) -> Result<()> {
        self.each(changes, |_, block, changes| {
            let (mut result, mut ended) = (Ok(()), 0);
            block.retain(|candidate| {
                let pair = plain(candidate);
                let keeps = keep(pair);
                if !keeps && candidate.b & HIT != 0 && result.is_ok() {
                    ended += 1;
                    result = try_alloc::push(&mut changes.ended, pair);
                }
                keeps
            });
            block.hits -= ended;
            result
        })
    }

    /// Writes the candidates that overlap, in order: as many as [`Candidates::hits`].
    pub(super) fn write(&self, mut to: &mut [Pair]) {
        let mut parts = Vec::new();
        if self.blocks.len() <= STREAM_TASK.div_ceil(NEW_BLOCK) || !in_pool() {
            for block in &self.blocks {
                block.write(to);
                to = &mut to[block.hits..];
            }
            return;
        }
        for block in &self.blocks {
            let (own, others) = to.split_at_mut(block.hits);
            parts.push((block, own));
            to = others;
        }
        parts
            .into_par_iter()
            .for_each(|(block, to)| block.write(to));
    }
}

/// Runs `f` on blocks. Asks for the memory of the next one, of which it may read parts only.
fn each_of(
    mut blocks: &mut [Block],
    mut f: impl FnMut(usize, &mut Block) -> Result<()>,
) -> Result<()> {
    let mut i = 0;
    while let Some((block, rest)) = blocks.split_first_mut() {
        if let Some(Block {
            candidates, due, ..
        }) = rest.first().filter(|next| !next.due.is_empty())
        {
            (0..candidates.len() as u32)
                .step_by(8)
                .for_each(|k| prefetch(candidates, Some(&k)));
            (0..due.len() as u32)
                .step_by(64)
                .for_each(|k| prefetch(due, Some(&k)));
        }
        f(i, block)?;
        blocks = rest;
        i += 1;
    }
    Ok(())
}

impl Block {
    /// Takes these candidates and tests them.
    fn fill<K>(
        &mut self,
        pairs: &[Pair],
        test: &Test<K, impl Fn(&[Pair], &[Pair]) -> u32>,
    ) -> Result<()> {
        self.candidates.clear();
        self.due.clear();
        try_alloc::reserve(&mut self.candidates, FULL_BLOCK)?;
        (self.hits, self.new) = (0, 0);
        let mut rest = pairs;
        while !rest.is_empty() {
            let (some, after) = rest.split_at(rest.len().min(CANDIDATE_GROUP));
            let overlapping = (test.overlapping)(some, first_group(after));
            self.hits += overlapping.count_ones() as usize;
            let marked = |(i, &Pair { a, b }): (u32, &Pair)| Pair {
                a,
                b: b | (overlapping >> i & 1) << 31,
            };
            self.candidates.extend((0..).zip(some).map(marked));
            rest = after;
        }
        Ok(())
    }

    /// Tests all candidates, and lists what differs from the last test.
    fn test<K>(
        &mut self,
        test: &Test<K, impl Fn(&[Pair], &[Pair]) -> u32>,
        changes: &mut Changes,
    ) -> Result<()> {
        let mut result = Ok(());
        if let Some(timed) = test.timed {
            if timed.clock.all_due || self.due.len() != self.candidates.len() {
                self.due.clear();
                let len = self.candidates.len();
                try_alloc::reserve(&mut self.due, len.max(FULL_BLOCK))?;
                self.due.resize(len, timed.clock.past());
            }
            run_best(TimedJob {
                block: self,
                timed,
                changes,
                result: &mut result,
            });
            return result;
        }
        self.due.clear();
        run_best(TestJob {
            block: self,
            overlapping: &test.overlapping,
            changes,
            result: &mut result,
        });
        result
    }

    /// Adds candidates, which are due at the time `new_due`.
    fn insert(&mut self, new: &[Pair], new_due: u8, keep: impl Fn(Pair) -> bool) -> Result<()> {
        let mut missing = Vec::new();
        try_alloc::reserve(&mut missing, new.len())?;
        let mut at = 0;
        for &pair in new {
            at += self.candidates[at..].partition_point(|&candidate| plain(candidate) < pair);
            if self
                .candidates
                .get(at)
                .is_none_or(|&candidate| plain(candidate) != pair)
            {
                missing.push(pair);
            }
        }
        self.new += missing.len();
        if self.new > self.candidates.len() / STALE_SHARE {
            self.new = 0;
            self.retain(|candidate| candidate.b & HIT != 0 || keep(plain(candidate)));
        }
        // From behind, so that each candidate is moved once.
        let mut end = self.candidates.len();
        try_alloc::grow(&mut self.candidates, missing.len())?;
        self.candidates.resize(end + missing.len(), Pair::default());
        let has_times = self.due.len() == end;
        if has_times {
            try_alloc::grow(&mut self.due, missing.len())?;
            self.due.resize(end + missing.len(), 0);
        }
        while let Some(&pair) = missing.last() {
            let rank = self.candidates[..end].partition_point(|&candidate| plain(candidate) < pair);
            self.candidates.copy_within(rank..end, rank + missing.len());
            if has_times {
                self.due.copy_within(rank..end, rank + missing.len());
            }
            missing.pop();
            self.candidates[rank + missing.len()] = pair;
            if has_times {
                self.due[rank + missing.len()] = new_due;
            }
            end = rank;
        }
        Ok(())
    }

    /// Drops the candidates that `keep` refuses. It gets them with their bits.
    fn retain(&mut self, mut keep: impl FnMut(Pair) -> bool) {
        let Self {
            candidates, due, ..
        } = self;
        let mut kept = 0;
        for i in 0..candidates.len() {
            let candidate = candidates[i];
            if keep(candidate) {
                candidates[kept] = candidate;
                if let Some(&time) = due.get(i) {
                    due[kept] = time;
                }
                kept += 1;
            }
        }
        candidates.truncate(kept);
        due.truncate(kept);
    }

    fn write(&self, to: &mut [Pair]) {
        run_best(WriteJob {
            candidates: &self.candidates,
            to,
        });
    }
}

/// Returns the first of these candidates.
#[inline(always)]
fn first_group(candidates: &[Pair]) -> &[Pair] {
    &candidates[..candidates.len().min(CANDIDATE_GROUP)]
}

/// Returns the bits of a group.
#[inline(always)]
fn marks<L: Lanes>(candidates: &[Pair]) -> u32 {
    let eights = candidates.len() / LANES;
    let mut all = 0;
    for i in 0..eights {
        // SAFETY: `LANES` candidates are there from that index on, and the processor suits `L`.
        all |= unsafe { L::marks(candidates, LANES * i) } << (LANES * i);
    }
    let rest = candidates[LANES * eights..].iter();
    let bits = (LANES * eights..).zip(rest.map(|candidate| candidate.b >> 31));
    bits.fold(all, |all, (i, bit)| all | bit << i)
}

/// Tests the candidates of a block.
struct TestJob<'a, O> {
    block: &'a mut Block,
    overlapping: &'a O,
    changes: &'a mut Changes,
    result: &'a mut Result<()>,
}

impl<O: Fn(&[Pair], &[Pair]) -> u32> Job for TestJob<'_, O> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Block {
            candidates, hits, ..
        } = self.block;
        let mut rest = &mut candidates[..];
        while !rest.is_empty() {
            let (some, after) = rest.split_at_mut(rest.len().min(CANDIDATE_GROUP));
            let overlapping = (self.overlapping)(some, first_group(after));
            let before = marks::<L>(some);
            // Few differ, so that these branches cost little.
            each_bit(overlapping ^ before, |i| {
                let pair = plain(some[i]);
                some[i].b ^= HIT;
                let list = if some[i].b & HIT != 0 {
                    *hits += 1;
                    &mut self.changes.started
                } else {
                    *hits -= 1;
                    &mut self.changes.ended
                };
                let pushed = try_alloc::push(list, pair);
                if pushed.is_err() {
                    *self.result = pushed;
                }
            });
            rest = after;
        }
    }
}

/// Candidates of a block that one round of [`TimedJob`] tests.
const ROUND: usize = NEW_BLOCK;

/// Tests the candidates of a block that are due.
struct TimedJob<'a> {
    block: &'a mut Block,
    timed: Timed<'a>,
    changes: &'a mut Changes,
    result: &'a mut Result<()>,
}

impl Job for TimedJob<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Timed { boxes, clock, rule } = self.timed;
        let Block {
            candidates,
            due,
            tested: tested_count,
            hits,
            ..
        } = self.block;
        *tested_count = 0;
        for (some, due) in candidates.chunks_mut(ROUND).zip(due.chunks_mut(ROUND)) {
            let mut tested = [0_u16; ROUND];
            let mut count = 0;
            for (group, due) in due.chunks(CANDIDATE_GROUP).enumerate() {
                each_bit(clock.passed(due), |i| {
                    let i = CANDIDATE_GROUP * group + i;
                    prefetch(boxes, Some(&(some[i].b & !HIT)));
                    prefetch(boxes, Some(&some[i].a));
                    tested[count] = i as u16;
                    count += 1;
                });
            }
            *tested_count += count;
            // Few differ, so that there is no branch for them here.
            let (mut differing, mut differing_count) = ([0_u16; ROUND], 0);
            for &i in &tested[..count] {
                let Pair { a, b } = some[i as usize];
                let depth = depth(&boxes[a as usize], &boxes[(b & !HIT) as usize]);
                due[i as usize] = clock.due(depth, i);
                let overlaps = match rule {
                    OverlapRule::Closed => depth >= 0.0,
                    OverlapRule::Open => depth > 0.0,
                };
                differing[differing_count] = i;
                differing_count += usize::from(overlaps != (b & HIT != 0));
            }
            for &i in &differing[..differing_count] {
                let candidate = &mut some[i as usize];
                candidate.b ^= HIT;
                let list = if candidate.b & HIT != 0 {
                    *hits += 1;
                    &mut self.changes.started
                } else {
                    *hits -= 1;
                    &mut self.changes.ended
                };
                let pushed = try_alloc::push(list, plain(*candidate));
                if pushed.is_err() {
                    *self.result = pushed;
                }
            }
        }
    }
}

/// Writes the candidates that overlap.
struct WriteJob<'a> {
    candidates: &'a [Pair],
    to: &'a mut [Pair],
}

impl Job for WriteJob<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self { candidates, to } = self;
        let (mut start, mut len) = (0, 0);
        while start + LANES <= candidates.len() && len + LANES <= to.len() {
            // SAFETY: both have `LANES` elements from there on.
            len += unsafe { L::marked(candidates, start, to.as_mut_ptr().add(len)) };
            start += LANES;
        }
        for candidate in &candidates[start..] {
            // Behind the last pair there may be no slot, and none is needed.
            if let Some(pair) = to.get_mut(len) {
                *pair = plain(*candidate);
            }
            len += (candidate.b >> 31) as usize;
        }
    }
}
