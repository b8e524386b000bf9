//! Builds, refits and searches the kept tree: leaves of eight boxes, and the unions above them.

use super::halve::leaf_order;
use super::sides::write_sides;
use crate::cpu::key::lift;
use crate::cpu::lanes::{Job, LANES, Lanes, each_bit, prefetch, run_best};
use crate::cpu::node::Node;
use crate::cpu::tuning::{PREFETCH_DISTANCE, STREAM_TASK};
use crate::threads::in_pool;
use crate::{Aabb, OverlapRule, Result, try_alloc};
use rayon::prelude::*;

/// A bit for each entry of a node.
pub(super) const ALL: u32 = (1 << LANES) - 1;

/// The tree. Its boxes are in [`leaf_order`] when it is built, and keep their slots.
pub(super) struct Tree {
    /// The nodes of all levels, from the leaves to the single one at the top, which is no leaf.
    nodes: Vec<Node>,
    /// The first node of each level.
    starts: Vec<usize>,
    /// The box in each slot; 0 in the slots of the last leaf that have none.
    pub(super) index: Vec<u32>,
    boxes: usize,
}

impl Tree {
    /// Builds the tree of some boxes, without their bounds. O(n log n), on all threads.
    pub(super) fn new(boxes: &[Aabb]) -> Result<Self> {
        let mut index = leaf_order(boxes)?;
        try_alloc::resize(&mut index, boxes.len().next_multiple_of(LANES), 0)?;
        let (mut starts, mut total, mut count) = (Vec::new(), 0, index.len() / LANES);
        while count > 1 || starts.is_empty() {
            starts.push(total);
            total += count;
            count = count.div_ceil(LANES);
        }
        starts.push(total);
        let mut nodes = Vec::new();
        try_alloc::resize(&mut nodes, total + 1, Node::NONE)?;
        Ok(Self {
            nodes,
            starts,
            index,
            boxes: boxes.len(),
        })
    }

    /// Returns the level of the node at the top.
    pub(super) const fn top(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the nodes of a level.
    #[inline(always)]
    pub(super) fn level(&self, level: usize) -> &[Node] {
        let end = self.starts.get(level + 1).copied();
        &self.nodes[self.starts[level]..end.unwrap_or(self.nodes.len())]
    }

    /// Takes the bounds of as many boxes as the tree was built for.
    pub(super) fn refit(&mut self, boxes: &[Aabb], rule: OverlapRule) {
        let (leaves, mut above) = self.nodes.split_at_mut(self.starts[1]);
        let (index, count, lift) = (&self.index, self.boxes, lift(rule));
        let take = |(part, (leaves, index)): (usize, (&mut [Node], &[u32]))| {
            run_best(Take {
                leaves,
                boxes,
                index,
                count: count - part * STREAM_TASK,
                lift,
            });
        };
        let in_parts = self.boxes > STREAM_TASK && in_pool();
        if in_parts {
            let leaves = leaves.par_chunks_mut(STREAM_TASK / LANES);
            let parts = leaves.zip(index.par_chunks(STREAM_TASK));
            parts.enumerate().for_each(take);
        } else {
            take((0, (leaves, index)));
        }
        let mut below = leaves;
        for level in 1..self.starts.len() {
            let end = self.starts.get(level + 1).copied();
            let len = end.map_or(1, |end| end - self.starts[level]);
            let (own, rest) = above.split_at_mut(len);
            let join = |(nodes, below): (&mut [Node], &[Node])| run_best(Join { nodes, below });
            if in_parts && len > STREAM_TASK / LANES {
                let nodes = own.par_chunks_mut(STREAM_TASK / LANES);
                nodes.zip(below.par_chunks(STREAM_TASK)).for_each(join);
            } else {
                join((own, below));
            }
            (below, above) = (own, rest);
        }
    }
}

/// Takes the bounds of boxes into leaves.
struct Take<'a> {
    leaves: &'a mut [Node],
    boxes: &'a [Aabb],
    /// The box in each slot, and how many of the slots have one.
    index: &'a [u32],
    count: usize,
    lift: i32,
}

impl Job for Take<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self {
            boxes,
            index,
            count,
            ..
        } = self;
        for (i, leaf) in self.leaves.iter_mut().enumerate() {
            let own = &index[i * LANES..(i + 1) * LANES];
            for k in 0..LANES {
                prefetch(boxes, index.get(i * LANES + k + PREFETCH_DISTANCE));
            }
            let eight = std::array::from_fn(|lane| &boxes[own[lane] as usize]);
            let mut none = write_sides(eight, self.lift, leaf);
            none |= ALL << count.saturating_sub(i * LANES).min(LANES) & ALL;
            each_bit(none, |lane| {
                for k in 0..3 {
                    (leaf.min[k][lane], leaf.max[k][lane]) = (i32::MAX, i32::MIN);
                }
            });
        }
    }
}

/// Makes the entries of nodes the unions of the nodes below them.
struct Join<'a> {
    nodes: &'a mut [Node],
    below: &'a [Node],
}

impl Job for Join<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        for (node, below) in self.nodes.iter_mut().zip(self.below.chunks(LANES)) {
            for (lane, below) in below.iter().enumerate() {
                for k in 0..3 {
                    // SAFETY: the processor suits `L`.
                    unsafe {
                        node.min[k][lane] = L::least(&below.min[k]);
                        node.max[k][lane] = L::greatest(&below.max[k]);
                    }
                }
            }
        }
    }
}
