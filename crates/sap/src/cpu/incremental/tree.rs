//! A tree over the boxes of a frame, kept from frame to frame: eight children a node, a node tested at once.

use super::tag::Tag;
use crate::cpu::key::{lift, ordered};
use crate::cpu::lanes::{Bounds, LANES, Lanes};
use crate::cpu::scene::Scene;
use crate::cpu::tuning::{ROOM, STREAM_TASK};
use crate::packing;
use crate::room::{self, gather, zeros};
use crate::{Aabb, OverlapRule, Result};
use rayon::prelude::*;
use std::ops::Range;

/// Boxes and the unions above them. A node is [`LANES`] entries; entry `i` of level `l + 1` is the
/// union of node `i` of level `l`; the last level is one node. Boxes were in the order of [`packing`]
/// when the tree was made.
pub(in crate::cpu) struct Tree {
    /// All levels one after the other, in whole nodes, what is missing filled up with boxes that overlap nothing.
    min: Bounds<3>,
    max: Bounds<3>,
    /// What filters and worlds say of each entry; empty where a frame has neither.
    pub(super) tags: Vec<Tag>,
    /// Where each level begins, and the number of its entries.
    pub(super) starts: Vec<usize>,
    counts: Vec<usize>,
    /// The boxes of level 0, and what fills it up.
    pub(super) index: Vec<u32>,
    /// The place of each box in level 0.
    pub(super) places: Vec<u32>,
    /// Places that no box has.
    free: Vec<u32>,
    pub(super) rule: OverlapRule,
}

/// Entries of a node, as a power of two.
pub(super) const LANES_LOG2: usize = LANES.trailing_zeros() as usize;

/// A box as the least and the greatest bounds.
pub(super) type Probe = [[i32; 3]; 2];

/// Overlaps nothing, and changes no union.
const NONE: Probe = [[i32::MAX; 3], [i32::MIN; 3]];

fn least(values: &[i32]) -> i32 {
    values.iter().copied().fold(i32::MAX, i32::min)
}

fn most(values: &[i32]) -> i32 {
    values.iter().copied().fold(i32::MIN, i32::max)
}

pub(super) fn probe(b: &Aabb, rule: OverlapRule) -> Probe {
    if b.is_empty() {
        return NONE;
    }
    [
        b.min.map(|value| ordered(value) + lift(rule)),
        b.max.map(ordered),
    ]
}

impl Tree {
    /// A tree of these boxes, with room for some more. O(n log n), on all threads.
    pub(in crate::cpu) fn new(scene: &Scene, rule: OverlapRule) -> Result<Self> {
        let boxes = &scene.boxes;
        let (mut index, _) = packing::order(scene.packed())?;
        let n = index.len();
        let mut places = zeros(n)?;
        for (place, &i) in (0..).zip(&index) {
            places[i as usize] = place;
        }
        room::resize(&mut index, (n + n / ROOM + 1).next_multiple_of(LANES), 0)?;
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
        let probes = index[..n].par_iter();
        let sorted = gather(probes.map(|&i| probe(&boxes[i as usize], rule)))?;
        let (mut min, mut max) = (Bounds::<3>::default(), Bounds::<3>::default());
        for (end, bounds) in [&mut min, &mut max].into_iter().enumerate() {
            for (k, all) in bounds.iter_mut().enumerate() {
                room::resize(all, total, NONE[end][k])?;
                let boxes = all.par_iter_mut().zip(&sorted);
                boxes.for_each(|(to, b)| *to = b[end][k]);
            }
        }
        let mut tags = Vec::new();
        if Tag::is_needed(scene) {
            room::resize(&mut tags, total, Tag::NONE)?;
            let places = tags.par_iter_mut().zip(&index[..n]);
            places.for_each(|(tag, &i)| *tag = Tag::of(scene, i as usize));
        }
        let free = room::collect((n as u32..index.len() as u32).rev())?;
        let mut tree = Self {
            min,
            max,
            tags,
            starts,
            counts,
            free,
            index,
            places,
            rule,
        };
        for level in 1..tree.starts.len() {
            tree.join_all(level);
        }
        Ok(tree)
    }

    /// The boxes in the order of a tree that was just made.
    pub(in crate::cpu) fn walk(&self) -> &[u32] {
        &self.index[..self.places.len()]
    }

    /// Some boxes that are not empty, neighbours near each other.
    pub(in crate::cpu) fn in_order(&self, boxes: Range<u32>) -> Result<Vec<u32>> {
        let places = &self.places[boxes.start as usize..boxes.end as usize];
        let mut places = room::collect(places.iter().copied())?;
        places.sort_unstable();
        room::collect(places.into_iter().map(|place| self.index[place as usize]))
    }

    /// Takes the boxes that have changed, of which those beyond the end are gone. Gives those that are not in the order of their
    /// places: neighbours near each other. None where there is no room for new ones, or memory is refused: then it is of no use
    /// any more.
    pub(in crate::cpu) fn take(&mut self, scene: &Scene, changed: &[u32]) -> Option<Vec<u32>> {
        let boxes = &scene.boxes;
        if self.tags.is_empty() == Tag::is_needed(scene) {
            return None;
        }
        let here = changed.partition_point(|&i| (i as usize) < boxes.len());
        let kept = boxes.len().min(self.places.len());
        let (mut gone, mut places) = (Vec::new(), Vec::new());
        room::copy(&mut gone, &self.places[kept..]).ok()?;
        self.places.truncate(kept);
        let free = self.free.len() + gone.len();
        room::reserve(&mut self.free, free).ok()?;
        room::reserve(&mut self.places, boxes.len()).ok()?;
        room::reserve(&mut places, here + gone.len()).ok()?;
        while self.places.len() < boxes.len() {
            let place = self.free.pop()?;
            // A frame has fewer boxes than a u32 counts.
            self.index[place as usize] = self.places.len() as u32;
            self.places.push(place);
        }
        places.extend(changed[..here].iter().map(|&i| self.places[i as usize]));
        places.par_sort_unstable();
        let walk = room::collect(places.iter().map(|&place| self.index[place as usize])).ok()?;
        for (&place, &i) in places.iter().zip(&walk) {
            self.set(place, &probe(&boxes[i as usize], self.rule));
            if let Some(tag) = self.tags.get_mut(place as usize) {
                *tag = Tag::of(scene, i as usize);
            }
        }
        gone.iter().for_each(|&place| self.set(place, &NONE));
        self.free.extend(&gone);
        places.append(&mut gone);
        for level in 1..self.starts.len() {
            places.iter_mut().for_each(|entry| *entry /= LANES as u32);
            places.dedup();
            if places.len() > self.counts[level] / 4 {
                self.join_all(level);
            } else {
                places
                    .iter()
                    .for_each(|&entry| self.join(level, entry as usize));
            }
        }
        Some(walk)
    }

    fn set(&mut self, place: u32, [least, most]: &Probe) {
        for k in 0..3 {
            self.min[k][place as usize] = least[k];
            self.max[k][place as usize] = most[k];
        }
    }

    /// Makes an entry of a level anew.
    fn join(&mut self, level: usize, entry: usize) {
        let to = self.starts[level] + entry;
        let from = self.starts[level - 1] + entry * LANES;
        let node = from..from + LANES;
        self.min
            .iter_mut()
            .for_each(|all| all[to] = least(&all[node.clone()]));
        self.max
            .iter_mut()
            .for_each(|all| all[to] = most(&all[node.clone()]));
        if !self.tags.is_empty() {
            self.tags[to] = Tag::union(&self.tags[node]);
        }
    }

    /// Makes all entries of a level anew.
    fn join_all(&mut self, level: usize) {
        let [below, start] = [level - 1, level].map(|level| self.starts[level]);
        let count = self.counts[level];
        let join = |all: &mut Vec<i32>, union: fn(&[i32]) -> i32| {
            let (from, to) = all.split_at_mut(start);
            let nodes = from[below..].par_chunks(LANES);
            let entries = to[..count].par_iter_mut().with_min_len(STREAM_TASK);
            entries.zip(nodes).for_each(|(to, node)| *to = union(node));
        };
        self.min.iter_mut().for_each(|all| join(all, least));
        self.max.iter_mut().for_each(|all| join(all, most));
        if !self.tags.is_empty() {
            let (from, to) = self.tags.split_at_mut(start);
            let nodes = from[below..].par_chunks(LANES);
            let entries = to[..count].par_iter_mut().with_min_len(STREAM_TASK);
            entries
                .zip(nodes)
                .for_each(|(to, node)| *to = Tag::union(node));
        }
    }

    /// Which entries of a node overlap a probe.
    ///
    /// # Safety
    ///
    /// `start` is the first entry of a node: the one of the last level, or that below an entry that overlaps something.
    #[inline(always)]
    pub(super) unsafe fn overlap<L: Lanes>(&self, start: usize, [least, most]: &Probe) -> u32 {
        // SAFETY: levels are whole nodes, and there is a node below each entry that is no filling.
        unsafe { L::overlap(&self.min, &self.max, start, [least, most]) }
    }

    /// The node below an entry.
    #[inline(always)]
    pub(super) fn below(&self, level: usize, entry: usize) -> usize {
        self.starts[level - 1] + (entry - self.starts[level]) * LANES
    }
}
