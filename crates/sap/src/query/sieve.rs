//! Chooses the boxes that a query may meet, by their filters and worlds.

use super::labels::{Labels, Mark, marks};
use super::tree::Tree;
use crate::{Filter, Result};

/// Lets through the boxes that a query is for.
pub(crate) struct Sieve<'a> {
    filter: Option<Filter>,
    world: Option<u32>,
    labels: Labels<'a>,
    /// The marks of the nodes of the tree that is searched; empty where a list is searched.
    marks: &'a [Vec<Mark>],
}

impl<'a> Sieve<'a> {
    pub(crate) fn new(filter: Option<Filter>, world: Option<u32>, labels: Labels<'a>) -> Self {
        Self {
            filter,
            world,
            labels,
            marks: &[],
        }
    }

    /// Takes the marks of a tree, so that whole nodes are left out.
    pub(crate) fn of(mut self, tree: &'a Tree) -> Result<Self> {
        let labels = &self.labels;
        self.marks = (tree.marks).get_or_make(tree.threads(), |threads| {
            marks(&tree.order, labels, threads)
        })?;
        Ok(self)
    }

    /// Whether it lets a box through.
    pub(crate) fn passes(&self, index: u32) -> bool {
        self.world
            .is_none_or(|world| world == self.labels.world(index))
            && (self.filter).is_none_or(|filter| filter.allows(&self.labels.filter(index)))
    }

    /// Whether it may let a box below a node through.
    pub(crate) fn enters(&self, level: usize, node: usize) -> bool {
        let mark = &self.marks[level][node];
        let [low, high] = mark.worlds;
        self.world.is_none_or(|world| low <= world && world <= high)
            && (self.filter).is_none_or(|filter| {
                filter.layers & mark.mask != 0 && mark.layers & filter.mask != 0
            })
    }
}
