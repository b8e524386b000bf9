//! A tree of the boxes of a frame that can follow changes from frame to frame. A node has eight
//! children, which are tested at once.

use super::tag::Tag;
use crate::cpu::lanes::{LANES, Lanes, prefetch};
use crate::cpu::node::{NONE, Node, Probe, probe};
use crate::cpu::scene::Scene;
use crate::cpu::tuning::{FREE_SLOTS, STREAM_TASK};
use crate::packing;
use crate::try_alloc::{self, zeros};
use crate::{Aabb, OverlapRule, Result};
use rayon::prelude::*;
use std::ops::Range;

/// Boxes and the unions above them. A node is [`LANES`] entries. Entry `i` of level `l + 1` is the
/// union of node `i` of level `l`, and the last level is one node. A new tree has its boxes in the
/// order of [`packing`].
pub(in crate::cpu) struct Tree {
    /// The nodes, level after level. Each level is padded to whole nodes with entries that overlap
    /// nothing.
    nodes: Vec<Node>,
    /// The tag of each entry; empty if the frame has neither filters nor worlds.
    pub(super) tags: Vec<Tag>,
    /// The first entry of each level.
    pub(super) starts: Vec<usize>,
    /// The number of entries of each level, without padding.
    counts: Vec<usize>,
    /// The box in each slot of level 0; unspecified for free slots.
    pub(super) index: Vec<u32>,
    /// The slot of each box in level 0.
    pub(super) slots: Vec<u32>,
    /// The slots without a box.
    free: Vec<u32>,
    /// A bit for each slot, by leaf node: set for the boxes of the last refresh that knew where
    /// they were before.
    pub(super) moved: Vec<u8>,
    pub(super) rule: OverlapRule,
}

/// The logarithm to base 2 of [`LANES`].
pub(super) const LANES_LOG2: usize = LANES.trailing_zeros() as usize;

impl Tree {
    /// Builds the tree of a scene, with free slots for some more boxes. O(n log n), on all threads.
    pub(in crate::cpu) fn new(scene: &Scene, rule: OverlapRule) -> Result<Self> {
        let boxes = &scene.boxes;
        let (mut index, _) = packing::order(scene.for_packing())?;
        let n = index.len();
        let mut slots = zeros(n)?;
        for (slot, &i) in (0..).zip(&index) {
            slots[i as usize] = slot;
        }
        try_alloc::resize(
            &mut index,
            (n + n / FREE_SLOTS + 1).next_multiple_of(LANES),
            0,
        )?;
        let (mut starts, mut counts) = (Vec::new(), Vec::new());
        let (mut total, mut count) = (0, index.len());
        loop {
            starts.push(total);
            counts.push(count);
            total += count.next_multiple_of(LANES);
            if count <= LANES {
                break;
            }
            count = count.div_ceil(LANES);
        }
        let mut nodes = Vec::new();
        try_alloc::resize(&mut nodes, total / LANES, Node::NONE)?;
        let leaves = nodes.par_iter_mut().zip(index[..n].par_chunks(LANES));
        leaves.for_each(|(node, some)| {
            for (lane, &i) in some.iter().enumerate() {
                node.set(lane, &probe(&boxes[i as usize], rule));
            }
        });
        let mut tags = Vec::new();
        if Tag::is_needed(scene) {
            try_alloc::resize(&mut tags, total, Tag::NONE)?;
            let slots = tags.par_iter_mut().zip(&index[..n]);
            slots.for_each(|(tag, &i)| *tag = Tag::of(scene, i as usize));
        }
        let free = try_alloc::collect((n as u32..index.len() as u32).rev())?;
        let mut tree = Self {
            nodes,
            tags,
            starts,
            counts,
            free,
            moved: Vec::new(),
            index,
            slots,
            rule,
        };
        for level in 1..tree.starts.len() {
            tree.join_all(level);
        }
        Ok(tree)
    }

    /// Returns all boxes of a new tree in leaf order: neighbours are near each other.
    pub(in crate::cpu) fn leaf_order(&self) -> &[u32] {
        &self.index[..self.slots.len()]
    }

    /// Sorts a range of boxes into leaf order.
    pub(in crate::cpu) fn in_leaf_order(&self, boxes: Range<u32>) -> Result<Vec<u32>> {
        let slots = &self.slots[boxes.start as usize..boxes.end as usize];
        let mut slots = try_alloc::collect(slots.iter().copied())?;
        slots.sort_unstable();
        try_alloc::collect(slots.into_iter().map(|slot| self.index[slot as usize]))
    }

    /// Updates the tree by the changed boxes. Those beyond the end of the scene are removed.
    /// Returns the others in leaf order as well. None if no slot is free for a new box, filters or
    /// worlds came or went, or an allocation failed.
    ///
    /// `before` has the bounds that the changed boxes had, or nothing. The unions above a box cover
    /// these too, until the next refresh, so that a search finds what overlapped them.
    pub(in crate::cpu) fn refresh(
        mut self,
        scene: &Scene,
        changed: &[u32],
        before: &[Aabb],
    ) -> Option<(Self, Vec<u32>)> {
        let boxes = &scene.boxes;
        if self.tags.is_empty() == Tag::is_needed(scene) {
            return None;
        }
        let here = changed.partition_point(|&i| (i as usize) < boxes.len());
        let common = boxes.len().min(self.slots.len());
        let (mut missing, mut slots) = (Vec::new(), Vec::new());
        try_alloc::copy(&mut missing, &self.slots[common..]).ok()?;
        self.slots.truncate(common);
        let free = self.free.len() + missing.len();
        try_alloc::reserve(&mut self.free, free).ok()?;
        try_alloc::reserve(&mut self.slots, boxes.len()).ok()?;
        try_alloc::reserve(&mut slots, here + missing.len()).ok()?;
        while self.slots.len() < boxes.len() {
            let slot = self.free.pop()?;
            // The number of boxes fits into a u32.
            self.index[slot as usize] = self.slots.len() as u32;
            self.slots.push(slot);
        }
        slots.extend(changed[..here].iter().map(|&i| self.slots[i as usize]));
        slots.par_sort_unstable();
        let order = try_alloc::collect(slots.iter().map(|&slot| self.index[slot as usize])).ok()?;
        for (&slot, &i) in slots.iter().zip(&order) {
            self.set(slot, &probe(&boxes[i as usize], self.rule));
            if let Some(tag) = self.tags.get_mut(slot as usize) {
                *tag = Tag::of(scene, i as usize);
            }
        }
        missing.iter().for_each(|&slot| self.set(slot, &NONE));
        self.free.extend(&missing);
        self.mark_moved(&changed[..here], before).ok()?;
        slots.append(&mut missing);
        for level in 1..self.starts.len() {
            slots.iter_mut().for_each(|entry| *entry /= LANES as u32);
            slots.dedup();
            if slots.len() > self.counts[level] / 4 {
                self.join_all(level);
            } else {
                slots
                    .iter()
                    .for_each(|&entry| self.join(level, entry as usize));
            }
        }
        if !before.is_empty() {
            for &i in &order {
                let slot = self.slots[i as usize];
                self.set(slot, &probe(&boxes[i as usize], self.rule));
            }
        }
        Some((self, order))
    }

    /// Marks the slots of boxes whose bounds before are known, and extends their bounds by those.
    fn mark_moved(&mut self, changed: &[u32], before: &[Aabb]) -> Result<()> {
        self.moved.clear();
        if before.is_empty() {
            return Ok(());
        }
        try_alloc::resize(&mut self.moved, self.index.len() / LANES, 0)?;
        for (&i, before) in changed.iter().zip(before) {
            let slot = self.slots[i as usize] as usize;
            self.moved[slot / LANES] |= 1 << (slot % LANES);
            let [min, max] = probe(before, self.rule);
            let (node, lane) = (&mut self.nodes[slot / LANES], slot % LANES);
            for k in 0..3 {
                node.min[k][lane] = node.min[k][lane].min(min[k]);
                node.max[k][lane] = node.max[k][lane].max(max[k]);
            }
        }
        Ok(())
    }

    /// Sets the bounds of a slot.
    fn set(&mut self, slot: u32, probe: &Probe) {
        let slot = slot as usize;
        self.nodes[slot / LANES].set(slot % LANES, probe);
    }

    /// Recomputes an entry from the node below it.
    fn join(&mut self, level: usize, entry: usize) {
        let to = self.starts[level] + entry;
        let from = self.starts[level - 1] + entry * LANES;
        let union = self.nodes[from / LANES].union();
        self.nodes[to / LANES].set(to % LANES, &union);
        if !self.tags.is_empty() {
            self.tags[to] = Tag::union(&self.tags[from..from + LANES]);
        }
    }

    /// Recomputes all entries of a level.
    fn join_all(&mut self, level: usize) {
        let [below, start] = [level - 1, level].map(|level| self.starts[level]);
        let count = self.counts[level];
        let (from, to) = self.nodes.split_at_mut(start / LANES);
        let from = &from[below / LANES..][..count];
        let join = |(to, below): (&mut Node, &[Node])| {
            for (lane, node) in below.iter().enumerate() {
                to.set(lane, &node.union());
            }
        };
        if count <= STREAM_TASK {
            to.iter_mut().zip(from.chunks(LANES)).for_each(join);
        } else {
            let nodes = to.par_iter_mut().with_min_len(STREAM_TASK / LANES);
            nodes.zip(from.par_chunks(LANES)).for_each(join);
        }
        if !self.tags.is_empty() {
            let (from, to) = self.tags.split_at_mut(start);
            let (from, to) = (&from[below..], &mut to[..count]);
            if count <= STREAM_TASK {
                let nodes = to.iter_mut().zip(from.chunks(LANES));
                return nodes.for_each(|(to, node)| *to = Tag::union(node));
            }
            let entries = to.par_iter_mut().with_min_len(STREAM_TASK);
            let nodes = entries.zip(from.par_chunks(LANES));
            nodes.for_each(|(to, node)| *to = Tag::union(node));
        }
    }

    /// Returns the entries of a node that overlap a probe.
    ///
    /// # Safety
    ///
    /// `start` is the first entry of a node: that of the last level, or one below an entry that
    /// overlaps something. The processor suits `L`.
    #[inline(always)]
    pub(super) unsafe fn overlap<L: Lanes>(&self, start: usize, probe: &Probe) -> u32 {
        // SAFETY: levels are whole nodes, and each entry that is no padding has a node below it.
        // The processor suits `L` by the caller's promise.
        unsafe { self.nodes.get_unchecked(start / LANES).overlap::<L>(probe) }
    }

    /// Asks for the memory of the node that begins with an entry.
    #[inline(always)]
    pub(super) fn ask(&self, start: usize) {
        prefetch(&self.nodes, Some(&((start / LANES) as u32)));
    }

    /// Returns the first entry of the node below an entry.
    #[inline(always)]
    pub(super) fn below(&self, level: usize, entry: usize) -> usize {
        self.starts[level - 1] + (entry - self.starts[level]) * LANES
    }
}
