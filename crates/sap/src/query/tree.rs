//! An implicit tree of eight branches over boxes in the order of [`packing`].

use super::labels::Marks;
use super::lazy::Lazy;
use super::node::{BRANCH, Node, in_nodes};
use crate::cpu::tuning::SERIAL_TREE;
use crate::threads::Threads;
use crate::{Aabb, Result, packing};

/// The boxes in the order of [`packing`], eight to a node. Child `i` of level `l + 1` is the union
/// of node `i` of level `l`; the last level is one node.
pub(crate) struct Tree {
    pub(super) order: Vec<u32>,
    pub(super) levels: Vec<Vec<Node>>,
    /// Made by the first query with a filter or a world.
    pub(super) marks: Lazy<Marks>,
}

/// Returns the threads that are worth taking for a tree of `boxes`.
pub(crate) fn threads_for(boxes: usize) -> Threads {
    if boxes <= SERIAL_TREE {
        Threads::One
    } else {
        Threads::All
    }
}

impl Tree {
    /// Builds the tree; empty and invalid boxes are left out. Boxes of one world are near each
    /// other in it. O(n log n).
    pub(crate) fn new(boxes: &[Aabb], worlds: &[u32], threads: Threads) -> Result<Self> {
        let (mut order, nonempty) = packing::order(packing::PackingInput {
            boxes,
            worlds: (worlds.len() == boxes.len()).then_some(worlds),
            threads,
            ..packing::PackingInput::default()
        })?;
        order.truncate(nonempty);
        let of = |some: &[u32]| Node::new(some.iter().map(|&index| boxes[index as usize]));
        let mut level = in_nodes(&order, threads, of)?;
        let mut levels = Vec::new();
        while level.len() > 1 {
            let of = |below: &[Node]| Node::new(below.iter().map(Node::union));
            let above = in_nodes(&level, threads, of)?;
            levels.push(std::mem::replace(&mut level, above));
        }
        levels.push(level);
        Ok(Self {
            order,
            levels,
            marks: Lazy::default(),
        })
    }

    pub(super) fn threads(&self) -> Threads {
        threads_for(self.order.len())
    }

    /// How many children a node has.
    pub(super) fn children(&self, level: usize, node: usize) -> usize {
        let below = match level.checked_sub(1) {
            Some(below) => self.levels[below].len(),
            None => self.order.len(),
        };
        (below - node * BRANCH).min(BRANCH)
    }

    /// The level of the root; none without boxes.
    pub(super) fn root(&self) -> Option<usize> {
        (!self.order.is_empty()).then(|| self.levels.len() - 1)
    }
}
