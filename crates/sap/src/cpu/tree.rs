//! A tree over boxes that stay: eight children a node, boxes in Morton order, a node tested at once.

use super::accept::Accept;
use super::collect::Task;
use super::key::{lift, ordered};
use super::lanes::{Bounds, Job, LANES, Lanes, Naming, each_bit};
use super::tuning::{MEET_GROUP, MOST_NODES};
use crate::query::morton_order;
use crate::{Aabb, OverlapRule};
use rayon::prelude::*;

/// Boxes and the unions above them. A node is [`LANES`] entries; entry `i` of level `l + 1` is the union of node `i` of level
/// `l`; the last level is one node.
#[derive(Default)]
pub(super) struct Tree {
    /// All levels one after the other, in whole nodes, what is missing filled up with boxes that overlap nothing.
    min: Bounds<3>,
    max: Bounds<3>,
    /// Where each level begins.
    starts: Vec<usize>,
    /// The boxes of level 0, and what fills it up.
    index: Vec<u32>,
    count: usize,
}

impl Tree {
    /// A tree of the boxes that `held` accepts. O(n log n), on all threads.
    pub(super) fn new(
        boxes: &[Aabb],
        rule: OverlapRule,
        held: impl Fn(usize) -> bool + Sync,
    ) -> Self {
        let mut index = morton_order(boxes, held);
        let sorted: Vec<Aabb> = index.par_iter().map(|&i| boxes[i as usize]).collect();
        index.resize(index.len().next_multiple_of(LANES), 0);
        let (mut starts, mut counts) = (Vec::new(), Vec::new());
        let (mut total, mut count) = (0, sorted.len());
        loop {
            starts.push(total);
            counts.push(count);
            total += count.div_ceil(LANES).max(1) * LANES;
            if count <= LANES {
                break;
            }
            count = count.div_ceil(LANES);
        }
        let lift = lift(rule);
        let bound = |none: i32, of: &(dyn Fn(&Aabb) -> i32 + Sync), union: fn(i32, i32) -> i32| {
            let mut all = vec![none; total];
            let boxes = sorted.par_iter();
            all.par_iter_mut()
                .zip(boxes)
                .for_each(|(to, b)| *to = of(b));
            for level in 1..starts.len() {
                let (below, above) = all.split_at_mut(starts[level]);
                let nodes = below[starts[level - 1]..].par_chunks(LANES);
                above[..counts[level]]
                    .par_iter_mut()
                    .zip(nodes)
                    .for_each(|(to, node)| *to = node.iter().copied().fold(none, union));
            }
            all
        };
        Self {
            min: std::array::from_fn(|k| bound(i32::MAX, &|b| ordered(b.min[k]) + lift, i32::min)),
            max: std::array::from_fn(|k| bound(i32::MIN, &|b| ordered(b.max[k]), i32::max)),
            starts,
            index,
            count: sorted.len(),
        }
    }

    /// The boxes by their place.
    pub(super) fn boxes(&self) -> &[u32] {
        &self.index[..self.count]
    }

    /// Takes the box at a place out; the unions stay.
    pub(super) fn remove(&mut self, place: usize) {
        for k in 0..3 {
            (self.min[k][place], self.max[k][place]) = (i32::MAX, i32::MIN);
        }
    }
}

/// Finds the boxes of a tree that overlap some others of the same frame: neighbours, best.
pub(super) struct Meet<'a, 'b> {
    pub(super) tree: &'a Tree,
    pub(super) boxes: &'a [Aabb],
    pub(super) some: &'a [u32],
    pub(super) rule: OverlapRule,
    pub(super) accept: &'a Accept<'a>,
    pub(super) task: &'a mut Task<'b>,
}

/// A box as the least and the greatest bounds.
type Probe = [[i32; 3]; 2];

impl Meet<'_, '_> {
    fn probe(&self, p: u32) -> Option<Probe> {
        let b = &self.boxes[p as usize];
        let least = b.min.map(|value| ordered(value) + lift(self.rule));
        (!b.is_empty()).then(|| [least, b.max.map(ordered)])
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
            let kept = self.accept.keeps(p.min(q), p.max(q));
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

impl Tree {
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
