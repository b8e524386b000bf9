//! A tree over the boxes of a frame, kept from frame to frame: eight children a node, a node tested at once.

use super::accept::Accept;
use super::collect::Task;
use super::kept::Changed;
use super::key::{lift, ordered};
use super::lanes::{Bounds, Job, LANES, Lanes, Naming, each_bit};
use super::tuning::{MEET_GROUP, MOST_NODES, ROOM, STREAM_TASK};
use crate::query::morton_order;
use crate::room::{self, gather, zeros};
use crate::{Aabb, OverlapRule, Result};
use rayon::prelude::*;

/// Boxes and the unions above them. A node is [`LANES`] entries; entry `i` of level `l + 1` is the union of node `i` of level
/// `l`; the last level is one node. Boxes were in Morton order when the tree was made.
pub(super) struct Tree {
    /// All levels one after the other, in whole nodes, what is missing filled up with boxes that overlap nothing.
    min: Bounds<3>,
    max: Bounds<3>,
    /// Where each level begins, and the number of its entries.
    starts: Vec<usize>,
    counts: Vec<usize>,
    /// The boxes of level 0, and what fills it up.
    index: Vec<u32>,
    /// The place of each box in level 0.
    places: Vec<u32>,
    /// Places that no box has.
    free: Vec<u32>,
    rule: OverlapRule,
}

/// A box as the least and the greatest bounds.
type Probe = [[i32; 3]; 2];

/// Overlaps nothing, and changes no union.
const NONE: Probe = [[i32::MAX; 3], [i32::MIN; 3]];

fn least(values: &[i32]) -> i32 {
    values.iter().copied().fold(i32::MAX, i32::min)
}

fn most(values: &[i32]) -> i32 {
    values.iter().copied().fold(i32::MIN, i32::max)
}

fn probe(b: &Aabb, rule: OverlapRule) -> Probe {
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
    pub(super) fn new(boxes: &[Aabb], rule: OverlapRule) -> Result<Self> {
        let mut index = morton_order(boxes, |_| true)?;
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
        let free = room::collect((n as u32..index.len() as u32).rev())?;
        let mut tree = Self {
            min,
            max,
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

    /// Takes the boxes that have changed, of which those beyond the end are gone. Gives those that are not in the order of their
    /// places: neighbours near each other. None where there is no room for new ones, or memory is refused: then it is of no use
    /// any more.
    pub(super) fn take(&mut self, boxes: &[Aabb], changed: &[u32]) -> Option<Vec<u32>> {
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
    }

    /// Which entries of a node overlap a probe.
    ///
    /// # Safety
    ///
    /// `start` is the first entry of a node: the one of the last level, or that below an entry that overlaps something.
    #[inline(always)]
    unsafe fn overlap<L: Lanes>(&self, start: usize, [least, most]: &Probe) -> u32 {
        // SAFETY: levels are whole nodes, and there is a node below each entry that is no filling.
        unsafe { L::overlap(&self.min, &self.max, start, [least, most]) }
    }

    /// The node below an entry.
    #[inline(always)]
    fn below(&self, level: usize, entry: usize) -> usize {
        self.starts[level - 1] + (entry - self.starts[level]) * LANES
    }
}

/// Finds the boxes of a tree that overlap some that have changed: neighbours, best.
pub(super) struct Meet<'a, 'b> {
    pub(super) tree: &'a Tree,
    pub(super) boxes: &'a [Aabb],
    pub(super) some: &'a [u32],
    pub(super) changed: &'a Changed,
    pub(super) accept: &'a Accept<'a>,
    /// Whether that accepts all.
    pub(super) any: bool,
    pub(super) task: &'a mut Task<'b>,
}

impl Meet<'_, '_> {
    fn probe(&self, p: u32) -> Option<Probe> {
        let b = &self.boxes[p as usize];
        (!b.is_empty()).then(|| probe(b, self.tree.rule))
    }

    /// Adds the nodes of a level that touch the probe, below the top: false where they become more than `most`.
    #[inline(always)]
    fn descend<L: Lanes>(&self, probe: &Probe, to: usize, most: usize, nodes: &mut Nodes) -> bool {
        let (tree, top) = (self.tree, self.tree.starts.len() - 1);
        nodes.found.clear();
        nodes.open.clear();
        nodes.open.push((top, tree.starts[top]));
        while let Some((level, start)) = nodes.open.pop() {
            if level == to {
                nodes.found.push(start);
                if nodes.found.len() > most {
                    return false;
                }
                continue;
            }
            // SAFETY: as for `overlap`.
            let mask = unsafe { tree.overlap::<L>(start, probe) };
            each_bit(mask, |lane| {
                nodes
                    .open
                    .push((level - 1, tree.below(level, start + lane)));
            });
        }
        true
    }

    /// The boxes below a node of level 0 that overlap box `p`.
    #[inline(always)]
    fn leaf<L: Lanes>(&mut self, p: u32, probe: &Probe, start: usize, storing: bool) {
        let index = &self.tree.index;
        // SAFETY: as for `overlap`.
        let mut mask = unsafe { self.tree.overlap::<L>(start, probe) };
        self.task.found.tests += LANES as u64;
        each_bit(mask, |lane| {
            let q = index[start + lane];
            // Two that have changed find each other.
            let again = q <= p && self.changed.has(q);
            let kept = !again && (self.any || self.accept.keeps(p.min(q), p.max(q)));
            mask &= !(u32::from(!kept) << lane);
        });
        if storing && mask != 0 {
            // SAFETY: `index` has as many entries as level 0, which is whole nodes.
            unsafe {
                self.task
                    .push_mask::<L>(index, start, mask, p, Naming::Smaller)
            };
        } else {
            self.task.count(mask.count_ones());
        }
    }
}

/// Nodes to be looked at, and those found.
#[derive(Default)]
struct Nodes {
    open: Vec<(usize, usize)>,
    found: Vec<usize>,
}

impl Job for Meet<'_, '_> {
    #[inline(always)]
    fn run<L: Lanes>(mut self) {
        let storing = self.task.storing();
        let mut nodes = Nodes::default();
        // Most levels once for several boxes.
        let low = usize::from(self.tree.starts.len() > 1);
        for group in self.some.chunks(MEET_GROUP) {
            let union = |[a, b]: Probe, [c, d]: Probe| {
                let least = std::array::from_fn(|k| a[k].min(c[k]));
                [least, std::array::from_fn(|k| b[k].max(d[k]))]
            };
            let Some(all) = group.iter().filter_map(|&p| self.probe(p)).reduce(union) else {
                continue;
            };
            let near = self.descend::<L>(&all, low, MOST_NODES, &mut nodes);
            for &p in group {
                let Some(probe) = self.probe(p) else {
                    continue;
                };
                if !near {
                    self.descend::<L>(&probe, low, usize::MAX, &mut nodes);
                }
                for &start in &nodes.found {
                    if low == 0 {
                        self.leaf::<L>(p, &probe, start, storing);
                        continue;
                    }
                    // SAFETY: as for `overlap`.
                    let mask = unsafe { self.tree.overlap::<L>(start, &probe) };
                    each_bit(mask, |lane| {
                        let leaf = self.tree.below(low, start + lane);
                        self.leaf::<L>(p, &probe, leaf, storing);
                    });
                }
            }
        }
    }
}
