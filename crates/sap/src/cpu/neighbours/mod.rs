//! Neighbour list: candidates that stay from frame to frame while boxes move little.
//!
//! Verlet 1967 ("Computer experiments on classical fluids", Phys. Rev. 159) keeps, for each
//! particle, those within its reach and a skin beyond it. Here boxes are *loosened* by a margin of
//! their own, and the candidates are the pairs of loosened boxes that overlap, by index in order.
//! While every box stays within its loosened one, each pair is among the candidates: testing these
//! against the boxes gives the pairs, exactly and in order, without a sort or a sweep. A box that
//! has left is loosened again and looked for; its candidates join the others.
//!
//! What differs from the last frame is known from the candidates, so events take no comparison.
//!
//! Memory bounds an update of 10^5 boxes with 1.3 pairs each that walk by 1 %. One thread takes
//! 1.3 ms with warm caches, 0.55 ms of it to test 330,000 candidates. Each takes 24
//! instructions, which is 1.3 ns; but its second box lies anywhere in 2.4 MB, of which L2 holds
//! less than half, so 26 MB of lines come from L3, at 48 GB/s. The rest reads boxes and writes
//! them, reads as many loosened ones, and looks for 300 boxes that left, 1.5 us each. After other
//! work of 13 ms, one of two processors has often not begun when the other is done, and 14 MB come
//! from memory at 10 GB/s: 1.4 ms, of 1.6 to 1.8 in all.
//!
//! In a long list most candidates need no test in a frame ([`times`]). Of 10^6 boxes that walk by
//! 1 %, 22 % of 2.7 million are due: testing them takes one thread 7 ms, where testing all takes
//! 13, 5 ns each, and measuring how far boxes move takes 1.2 ms more, as that reads the last boxes
//! too. It pays since the lines of the next block, and both boxes of those that are due, are
//! prefetched: without that, testing those that are due takes 10 ms, since they lie in nearly all
//! lines of memory that the others do.
//!
//! Tried, and no faster than the machine varies: huge pages. Testing what is due by boxes in 16
//! bits a side, a line for each, took as long, since these take 32 MB to bring up to date. Deciding
//! candidates by bytes, as CUDA does, took a frame of 10^6 boxes 50 ms instead of 40 on a slower
//! machine, and one of 10^5 3.4 instead of 1.9. Boxes that left are loosened one by one here, and
//! others stay: by the hundredth frame a third of the candidates was open, where CUDA makes a new
//! list of all.
//!
//! It did not help either to number the candidates by the places of their boxes in space, and to
//! splice what differs into the pairs. Testing 10^6 boxes took half as long, 12 ms, but copying the
//! boxes to their places took the other half: 37 to 45 ms a frame, instead of 40 to 52.

mod costs;
mod list;
mod margin;
mod search;
pub(super) mod test;
mod times;

use crate::cpu::accept::{Accept, WorldTest};
use crate::cpu::full::Scratch;
use crate::cpu::incremental::changed::ChangedSet;
use crate::cpu::lanes::{MARK, prefetch};
use crate::cpu::output::collect::SpareBlocks;
use crate::cpu::scene::{Scene, size};
use crate::cpu::tuning::{
    CANDIDATE_SAMPLE, FEW_LEFT, LARGE_LIST, LIST_BOX_COST, LIST_LIMITS, MAX_EXCESS, MAX_IN_VAIN,
    MAX_LEFT, MAX_MODELLED_COST, MAX_SLOW_FRAMES, MAX_STEADY_COST, MIN_SIZE_IN_STEPS,
    MOTION_SAMPLE, MOVES_AT_ONCE, OTHER_SHARE, STREAM_TASK,
};
use crate::policy::Hysteresis;
use crate::stratified::draw;
use crate::threads::{in_pool, on_threads};
use crate::{Aabb, OverlapRule, Pair, Result, try_alloc};
use costs::Costs;
use list::{Candidates, Changes, New, Test, Timed};
use margin::{MarginPolicy, step};
use rayon::prelude::*;
use search::{RULE, Searcher};
use std::sync::atomic::{AtomicU32, Ordering};
use test::{each_overlapping, farthest, is_within, overlapping_closed, overlapping_open};
use times::Times;

/// The neighbour list of the last frame, and what decides whether to keep one.
pub(in crate::cpu) struct Neighbours {
    policy: Hysteresis,
    margin: MarginPolicy,
    /// The sampled boxes that stood still in the frame before, a bit each, if that frame had no
    /// list and was no incremental update.
    stood: Option<u64>,
    /// The loosened boxes, with the filters and worlds that their candidates were accepted by.
    loose: Scene,
    searcher: Searcher,
    candidates: Candidates,
    /// When candidates are due.
    times: Times,
    changes: Changes,
    /// The boxes of this frame that left their loosened ones, or have other filters or another
    /// world.
    left: ChangedSet,
    /// Memory for the indices of the boxes that left, in any order.
    left_indices: Vec<u32>,
    /// The loosened boxes that they left, in the order of [`Self::left`].
    left_loose: Vec<Aabb>,
    /// Memory for the candidates that a search finds.
    found: Vec<Pair>,
    /// What a full update costs, in tests of two boxes.
    full_cost: u64,
    /// What recent frames cost beyond that.
    excess: u64,
    /// What the candidates that are no pairs have cost since the list was built, beyond the cost of
    /// the boxes that left.
    in_vain: u64,
    /// The frames in a row in which the list has cost more than another way would.
    slow_frames: u32,
    /// Set where the list ended because its margins were too wide. The next one is due at once.
    was_loose: bool,
}

impl Default for Neighbours {
    fn default() -> Self {
        Self {
            policy: Hysteresis::new(LIST_LIMITS),
            margin: MarginPolicy::default(),
            stood: None,
            loose: Scene::default(),
            searcher: Searcher::None,
            candidates: Candidates::default(),
            times: Times::default(),
            changes: Changes::default(),
            left: ChangedSet::default(),
            left_indices: Vec::new(),
            left_loose: Vec::new(),
            found: Vec::new(),
            full_cost: u64::MAX / 8,
            excess: 0,
            in_vain: 0,
            slow_frames: 0,
            was_loose: false,
        }
    }
}

/// A frame that is to be updated by the list.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Step<'a> {
    pub(in crate::cpu) scene: &'a Scene,
    pub(in crate::cpu) last: Last<'a>,
    pub(in crate::cpu) rule: OverlapRule,
    /// What the frame is expected to cost another way, in tests of two boxes.
    pub(in crate::cpu) rival: u64,
}

impl Step<'_> {
    /// Returns a box with the margin of a new list.
    fn loosened(&self, margin: &MarginPolicy, i: usize) -> Aabb {
        margin.loosen(&self.scene.boxes[i], self.last.get(i as u32))
    }
}

/// The boxes of the frame before.
#[derive(Clone, Copy)]
pub(in crate::cpu) enum Last<'a> {
    /// All boxes.
    All(&'a [Aabb]),
    /// The boxes that may have changed, with their indices in order.
    Changed(&'a [u32], &'a [Aabb]),
}

impl Last<'_> {
    /// Returns a box that may have changed.
    fn get(&self, i: u32) -> Option<&Aabb> {
        match self {
            Self::All(boxes) => boxes.get(i as usize),
            Self::Changed(indices, boxes) => boxes.get(indices.binary_search(&i).ok()?),
        }
    }
}

/// What an update by the list took.
pub(in crate::cpu) struct Updated {
    pub(in crate::cpu) pairs: usize,
    pub(in crate::cpu) tests: u64,
}

impl Neighbours {
    /// Tells whether there is a list of the last frame.
    pub(in crate::cpu) const fn in_use(&self) -> bool {
        self.policy.in_use()
    }

    /// Ends the use of the list.
    pub(in crate::cpu) fn drop_list(&mut self) {
        self.policy.end();
    }

    /// Forgets how boxes moved, after a frame that it was not told of.
    pub(in crate::cpu) const fn forget_motion(&mut self) {
        self.stood = None;
    }

    /// Records the cost of a full update.
    pub(in crate::cpu) const fn record_full(&mut self, cost: u64) {
        self.full_cost = cost;
    }

    /// Counts a frame without a list, after one that had `pairs`. Returns whether a list is to be
    /// built: boxes move little, and a list is expected to cost less than full updates.
    pub(in crate::cpu) fn begin_frame(
        &mut self,
        boxes: &[Aabb],
        last: &[Aabb],
        pairs: usize,
    ) -> bool {
        let n = boxes.len();
        let was_loose = std::mem::take(&mut self.was_loose);
        let stood_before = self.stood.take();
        if n == 0 || n != last.len() {
            self.policy.end();
            return false;
        }
        let [stood, fast] = motion(boxes, last);
        self.stood = Some(stood);
        if are_many(fast, n) {
            self.policy.end();
            return false;
        }
        self.policy.count_quiet();
        if was_loose {
            return true;
        }
        // The next frame will tell whether those that stand still wait for their turn.
        let is_known = stood_before.is_some() || !are_many(stood, n);
        if !is_known || !self.policy.is_due() {
            return false;
        }
        let in_turns = are_many(stood_before.unwrap_or(0) & !stood, n);
        let pairs_per_box = pairs as f32 / n as f32;
        let costs = Costs::of(n);
        let sampled = sampled(boxes, last).map(|(b, before)| (step(b, before), size(b)));
        let each = self.margin.plan(sampled, pairs_per_box, in_turns, costs);
        let cost = (LIST_BOX_COST as f32 + each) * n as f32;
        let is_worth_it = cost < MAX_MODELLED_COST * self.full_cost as f32;
        if !is_worth_it {
            self.policy.decline();
        }
        is_worth_it
    }

    /// Builds the list of a frame and tests it. Returns None where it would have more than `max`
    /// candidates, or is expected to cost more than its rival.
    pub(in crate::cpu) fn build(
        &mut self,
        step: &Step,
        max: u64,
        scratch: &mut Scratch,
        blocks: &SpareBlocks,
    ) -> Result<Option<Updated>> {
        self.policy.end();
        self.loose.copy_labels(step.scene)?;
        self.loosen_all(step)?;
        if step.rival < u64::MAX && !self.fit_margins(step)? {
            self.policy.decline();
            return Ok(None);
        }
        let loose = &self.loose;
        let found = self
            .searcher
            .all(loose, max, scratch, blocks, &mut self.found)?;
        let Some(searched) = found else {
            self.policy.postpone();
            return Ok(None);
        };
        self.margin.begin(step.scene.boxes.len())?;
        self.times.stop();
        self.changes.clear();
        self.left.clear();
        let found = std::mem::take(&mut self.found);
        self.test(step, New::All(&found))?;
        self.policy.begin();
        self.stood = None;
        (self.excess, self.in_vain, self.slow_frames) = (0, 0, 0);
        Ok(Some(Updated {
            pairs: self.candidates.hits(),
            tests: searched + self.candidates.len() as u64,
        }))
    }

    /// Loosens all boxes by the margins of a new list.
    fn loosen_all(&mut self, step: &Step) -> Result<()> {
        let (loose, all) = (&mut self.loose.boxes, 0..step.scene.boxes.len());
        let loosen = |i| step.loosened(&self.margin, i);
        if all.len() <= STREAM_TASK {
            return try_alloc::refill(loose, all.map(loosen));
        }
        let all = all.into_par_iter().with_min_len(STREAM_TASK);
        on_threads(|| try_alloc::fill(loose, all.map(loosen)))
    }

    /// Halves the margins of a new list until it is expected to cost less than its rival: there are
    /// fewer candidates then, and more boxes leave. Returns false where that does not suffice.
    fn fit_margins(&mut self, step: &Step) -> Result<bool> {
        let mut sampled = self.sample(step)?;
        let mut least = f32::INFINITY;
        loop {
            let cost = self.sampled_cost(step, &sampled);
            if cost <= step.rival as f32 {
                break;
            }
            if cost >= least || !self.margin.halve() {
                return Ok(false);
            }
            let loosen = |i: u32| step.loosened(&self.margin, i as usize);
            for (i, near) in &mut sampled {
                let loose = loosen(*i);
                near.retain(|&other| loosen(other).overlaps(&loose, RULE));
            }
            least = cost;
        }
        if least < f32::INFINITY {
            self.loosen_all(step)?;
        }
        Ok(true)
    }

    /// Returns a sample of the boxes, each with those whose candidate it is. They are sought among
    /// all loosened boxes: the number of pairs says little about them where boxes are near each
    /// other and do not overlap, or a few are so large that they reach all others.
    fn sample(&self, step: &Step) -> Result<Vec<(u32, Vec<u32>)>> {
        let loose = &self.loose;
        let accept = Accept::new(loose, loose, RULE, WorldTest::PerPair)?;
        let accepts_all = !accept.tests_anything();
        let n = step.scene.boxes.len();
        let of_one = |i: usize| {
            let mut near = Vec::new();
            for (other, b) in (0..).zip(&loose.boxes) {
                if b.overlaps(&loose.boxes[i], RULE) && other != i as u32 {
                    let Pair { a, b } = Pair::new(i as u32, other);
                    if accepts_all || accept.keeps(a, b) {
                        try_alloc::push(&mut near, other)?;
                    }
                }
            }
            Ok((i as u32, near))
        };
        draw(n, n.min(CANDIDATE_SAMPLE), 0).map(of_one).collect()
    }

    /// Returns what a frame will cost, in tests of two boxes, given a sample.
    fn sampled_cost(&self, step: &Step, sampled: &[(u32, Vec<u32>)]) -> f32 {
        let boxes = &step.scene.boxes;
        let costs = Costs::of(boxes.len());
        let of_one = |(i, near): &(u32, Vec<u32>)| {
            let Some(before) = step.last.get(*i) else {
                return 0.0;
            };
            // Each candidate has two boxes.
            let candidates = near.len() as f32 / 2.0;
            let leaving = self.margin.leaving_share(&boxes[*i as usize], before);
            costs.candidate(candidates) * candidates + costs.leaving_cost(candidates) * leaving
        };
        let mut each: Vec<f32> = sampled.iter().map(of_one).collect();
        each.sort_unstable_by(f32::total_cmp);
        // Without the highest: one that is so large has its candidates at the others too.
        each.pop();
        let mean = each.iter().sum::<f32>() / each.len().max(1) as f32;
        (LIST_BOX_COST as f32 + mean) * boxes.len() as f32
    }

    /// Brings the list up to date with a frame. Returns None where it is better done in full: too
    /// many boxes left, or the form of the frame is another. The list ends where boxes leave their
    /// margins so often that it costs more than its rival, frame after frame.
    pub(in crate::cpu) fn update(
        &mut self,
        step: &Step,
        blocks: &SpareBlocks,
    ) -> Result<Option<Updated>> {
        let (scene, n) = (step.scene, step.scene.boxes.len());
        let is_like = n == self.loose.boxes.len()
            && !matches!(step.last, Last::All(last) if last.len() != n)
            && scene.excluded == self.loose.excluded
            && scene.filters.is_some() == self.loose.filters.is_some()
            && scene.worlds.is_some() == self.loose.worlds.is_some();
        if !is_like {
            return Ok(None);
        }
        self.changes.clear();
        let has_other_labels = self.find_left(step)?;
        let left = self.left.list().len();
        if left > FEW_LEFT && left as f64 > MAX_LEFT * n as f64 {
            return Ok(None);
        }
        let searched = self.look_for_left(step, has_other_labels, blocks)?;
        let found = std::mem::take(&mut self.found);
        let tested = self.test(step, New::Some(&found));
        self.found = found;
        tested?;
        let (hits, candidates) = (self.candidates.hits() as u64, self.candidates.len() as u64);
        let due = self.candidates.tested();
        self.times.end_frame(due, candidates as usize);
        let costs = Costs::of(n);
        let candidates_per_box = candidates as f32 / n as f32;
        let left_cost = costs.left(candidates_per_box) as u64;
        let candidate_cost = costs.candidate(candidates_per_box) as u64;
        let in_vain = candidate_cost * (candidates - hits);
        let loosened = self.margin.loosened_now();
        let tested = LIST_BOX_COST * n as u64 + candidate_cost * candidates;
        let steady_cost = tested
            + costs.leaving_cost(candidates_per_box) as u64 * loosened
            + searched * loosened / left.max(1) as u64;
        let is_slow = steady_cost as f32 > MAX_STEADY_COST * step.rival as f32;
        self.slow_frames = if is_slow { self.slow_frames + 1 } else { 0 };
        self.margin.end_frame(in_vain, left_cost, searched);
        self.in_vain = (self.in_vain + in_vain).saturating_sub(left_cost * left as u64 + searched);
        let cost = tested + left_cost * left as u64 + searched;
        self.excess = (self.excess + cost).saturating_sub(self.full_cost);
        let costs_more = self.excess > self.full_cost.saturating_mul(MAX_EXCESS);
        if costs_more || self.slow_frames >= MAX_SLOW_FRAMES {
            self.policy.reject();
        } else {
            self.policy.count_quiet();
            // Only a new list has smaller margins for boxes that do not leave.
            self.was_loose = self.margin.has_shrunk()
                && self.in_vain > self.full_cost.saturating_mul(MAX_IN_VAIN);
            if self.was_loose {
                self.policy.end();
            }
        }
        Ok(Some(Updated {
            pairs: hits as usize,
            tests: candidates + searched,
        }))
    }

    /// Returns the pairs that the last update started and those that it ended, in order.
    pub(in crate::cpu) const fn changes(&mut self) -> [&mut Vec<Pair>; 2] {
        [&mut self.changes.started, &mut self.changes.ended]
    }

    /// Writes the pairs of the last update, in order. `to` is as long as they are many.
    pub(in crate::cpu) fn write(&self, to: &mut [Pair]) {
        self.candidates.write(to);
    }

    /// Finds the boxes that have left their loosened ones, or have other filters or another world.
    /// Returns whether any filter or world differs.
    fn find_left(&mut self, step: &Step) -> Result<bool> {
        let scene = step.scene;
        let (left, loose) = (&mut self.left_indices, &self.loose);
        left.clear();
        try_alloc::reserve(left, scene.boxes.len())?;
        let n = scene.boxes.len() as u32;
        let has_left = |i: &u32| !stays(&scene.boxes[*i as usize], &loose.boxes[*i as usize]);
        let is_other = |i: &u32| !loose.same_labels(scene, *i as usize);
        let is_same;
        let steps = draw(n as usize, (n as usize).min(MOTION_SAMPLE), 0).filter_map(|i| {
            let before = step.last.get(i as u32)?;
            Some(margin::step(&scene.boxes[i], before))
        });
        // The exact bounds may differ where boxes do not.
        let is_timed = scene.exact.is_none() && self.times.begin_frame(n as usize, steps);
        let mut moved = 0.0;
        match step.last {
            Last::Changed(listed, before) => {
                if is_timed {
                    let boxes = listed.iter().map(|&i| &scene.boxes[i as usize]);
                    moved = farthest(boxes.zip(before));
                }
                is_same = !listed.iter().any(is_other);
                let listed = listed.iter().copied();
                left.extend(listed.filter(|i| has_left(i) || is_other(i)));
            }
            Last::All(last) => {
                is_same = loose.filters == scene.filters && loose.worlds == scene.worlds;
                if is_timed {
                    // Numbers that are not negative are in the order of their bits.
                    let most = AtomicU32::new(0);
                    let parts = scene.boxes.par_chunks(MOVES_AT_ONCE);
                    let parts = parts.zip(last.par_chunks(MOVES_AT_ONCE)).enumerate();
                    let parts = parts.with_min_len(STREAM_TASK / MOVES_AT_ONCE);
                    left.par_extend(parts.flat_map_iter(|(part, (boxes, last))| {
                        most.fetch_max(moves(boxes, last).to_bits(), Ordering::Relaxed);
                        let first = (part * MOVES_AT_ONCE) as u32;
                        (first..first + boxes.len() as u32).filter(has_left)
                    }));
                    moved = f32::from_bits(most.into_inner());
                } else if n as usize > STREAM_TASK && in_pool() {
                    let leaves = (0..n).into_par_iter().with_min_len(STREAM_TASK);
                    left.par_extend(leaves.filter(has_left));
                } else {
                    left.extend((0..n).filter(has_left));
                }
                if !is_same {
                    left.extend((0..n).filter(|i| is_other(i) && !has_left(i)));
                }
            }
        }
        self.times.advance(moved);
        self.left.clear();
        self.left.add(n as usize, left.iter().copied(), 0..0)?;
        if !is_same {
            self.loose.copy_labels(scene)?;
        }
        Ok(!is_same)
    }

    /// Loosens again the boxes that left, and finds their candidates. Returns the number of tests.
    fn look_for_left(
        &mut self,
        step: &Step,
        has_other_labels: bool,
        blocks: &SpareBlocks,
    ) -> Result<u64> {
        let left = self.left.list();
        self.found.clear();
        if left.is_empty() {
            return Ok(0);
        }
        let mut purges = has_other_labels;
        self.left_loose.clear();
        try_alloc::reserve(&mut self.left_loose, left.len())?;
        for &i in left {
            let (b, last) = (&step.scene.boxes[i as usize], step.last.get(i));
            let before = &mut self.loose.boxes[i as usize];
            let loose = self.margin.loosen_again(i, b, last, before);
            self.left_loose.push(std::mem::replace(before, loose));
            purges |= loose.is_empty();
        }
        let (loose, found, before) = (&self.loose, &mut self.found, &self.left_loose);
        if purges {
            // These may be candidates no more though their boxes overlap.
            let accept = Accept::new(loose, loose, RULE, WorldTest::PerPair)?;
            let keep = |pair| are_near(loose, pair) && accept.keeps(pair.a, pair.b);
            self.candidates.retain(keep, &mut self.changes)?;
        }
        // Boxes that overlapped before they were loosened again are candidates already.
        let before = (!has_other_labels).then_some(&before[..]);
        let searched = self.searcher.of(loose, &self.left, before, blocks, found)?;
        if found.len() > STREAM_TASK && in_pool() {
            found.par_sort_unstable();
        } else {
            found.sort_unstable();
        }
        found.dedup();
        Ok(searched)
    }

    /// Takes or adds candidates, and tests all against the boxes of a frame.
    fn test(&mut self, step: &Step, new: New) -> Result<()> {
        let (scene, rule) = (step.scene, step.rule);
        let boxes = &scene.boxes[..];
        let (all, changes) = (&mut self.candidates, &mut self.changes);
        let loose = &self.loose;
        let clock = self.times.clock().filter(|_| scene.exact.is_none());
        let timed = clock.map(|clock| Timed { boxes, clock, rule });
        let keep = |pair| are_near(loose, pair);
        let had_ended = !changes.ended.is_empty();
        if let Some(exact) = &scene.exact {
            let overlaps = |a: u32, b: u32| exact[a as usize].overlaps(&exact[b as usize], rule);
            let overlapping = |some: &[Pair], next: &[Pair]| {
                ask(exact, next);
                each_overlapping(some, overlaps)
            };
            all.test(new, &Test::new(keep, overlapping, timed), changes)?;
        } else {
            match rule {
                OverlapRule::Closed => {
                    let overlapping = |some: &[Pair], next: &[Pair]| {
                        ask(boxes, next);
                        overlapping_closed(boxes, some)
                    };
                    all.test(new, &Test::new(keep, overlapping, timed), changes)?;
                }
                OverlapRule::Open => {
                    let overlapping = |some: &[Pair], next: &[Pair]| {
                        ask(boxes, next);
                        overlapping_open(boxes, some)
                    };
                    all.test(new, &Test::new(keep, overlapping, timed), changes)?;
                }
            }
        }
        if had_ended {
            changes.ended.sort_unstable();
        }
        Ok(())
    }
}

/// Returns how far any side has moved at most. A function of its own has the registers that it
/// needs.
#[inline(never)]
fn moves(boxes: &[Aabb], last: &[Aabb]) -> f32 {
    farthest(boxes.iter().zip(last))
}

/// Asks for the memory of the second boxes of candidates. The first ones are in order.
#[inline(always)]
fn ask<T>(boxes: &[T], candidates: &[Pair]) {
    for candidate in candidates {
        prefetch(boxes, Some(&(candidate.b & !MARK)));
    }
}

/// Tells whether a box is still within its loosened one. An empty box lies within every other.
#[inline(always)]
fn stays(b: &Aabb, loose: &Aabb) -> bool {
    is_within(b, loose) && (b.min[0] <= b.max[0] || loose.is_empty())
}

/// Tells whether two loosened boxes overlap.
#[inline(always)]
fn are_near(loose: &Scene, pair: Pair) -> bool {
    let [a, b] = [pair.a, pair.b].map(|i| &loose.boxes[i as usize]);
    a.overlaps(b, RULE)
}

/// Returns a sample of the boxes of a frame, each as it is and as it was.
fn sampled<'a>(boxes: &'a [Aabb], last: &'a [Aabb]) -> impl Iterator<Item = (&'a Aabb, &'a Aabb)> {
    let n = boxes.len();
    draw(n, n.min(MOTION_SAMPLE), 0).map(|i| (&boxes[i], &last[i]))
}

/// Returns which sampled boxes stand still, and which move by more than a small part of their size,
/// a bit each.
fn motion(boxes: &[Aabb], last: &[Aabb]) -> [u64; 2] {
    const { assert!(MOTION_SAMPLE <= u64::BITS as usize) };
    let size_in_steps = MIN_SIZE_IN_STEPS[usize::from(boxes.len() > LARGE_LIST)];
    let of_one = |[stood, fast]: [u64; 2], (b, before): (&Aabb, &Aabb)| {
        let is_slow = size_in_steps * step(b, before) <= size(b);
        let is_fast = !b.is_empty() && !before.is_empty() && !is_slow;
        [
            stood << 1 | u64::from(b == before),
            fast << 1 | u64::from(is_fast),
        ]
    };
    sampled(boxes, last).fold([0; 2], of_one)
}

/// Tells whether these are more than a few of the boxes sampled of `n`, a bit each.
fn are_many(sampled: u64, n: usize) -> bool {
    sampled.count_ones() as usize > n.min(MOTION_SAMPLE) / OTHER_SHARE
}
