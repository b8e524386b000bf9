//! The filters and worlds of boxes, and what those below a node have in common.

use super::node::in_nodes;
use crate::threads::Threads;
use crate::try_alloc::into_owned;
use crate::{Filter, Result};
use std::borrow::Cow;

/// The filters and worlds of the boxes of an update; empty where it had none.
#[derive(Default)]
pub(crate) struct Labels<'a> {
    pub(crate) filters: Cow<'a, [Filter]>,
    pub(crate) worlds: Cow<'a, [u32]>,
}

impl Labels<'_> {
    pub(super) fn filter(&self, index: u32) -> Filter {
        self.filters
            .get(index as usize)
            .copied()
            .unwrap_or_default()
    }

    pub(super) fn world(&self, index: u32) -> u32 {
        self.worlds.get(index as usize).copied().unwrap_or_default()
    }

    pub(crate) const fn is_borrowed(&self) -> bool {
        matches!(
            (&self.filters, &self.worlds),
            (Cow::Borrowed(_), Cow::Borrowed(_))
        )
    }

    /// Returns the lists, borrowed from these.
    pub(crate) fn borrowed(&self) -> Labels<'_> {
        Labels {
            filters: (&*self.filters).into(),
            worlds: (&*self.worlds).into(),
        }
    }

    pub(crate) fn into_owned(self) -> Result<Labels<'static>> {
        Ok(Labels {
            filters: into_owned(self.filters)?.into(),
            worlds: into_owned(self.worlds)?.into(),
        })
    }
}

/// What the boxes below a node have in common: all layers and masks that are among them, and
/// between which worlds they are.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    pub(super) layers: u32,
    pub(super) mask: u32,
    pub(super) worlds: [u32; 2],
}

impl Mark {
    fn of(labels: &Labels, index: u32) -> Self {
        let Filter { layers, mask, .. } = labels.filter(index);
        let world = labels.world(index);
        Self {
            layers,
            mask,
            worlds: [world; 2],
        }
    }

    fn union(marks: impl Iterator<Item = Self>) -> Self {
        let none = Self {
            layers: 0,
            mask: 0,
            worlds: [u32::MAX, 0],
        };
        marks.fold(none, |all, mark| Self {
            layers: all.layers | mark.layers,
            mask: all.mask | mark.mask,
            worlds: [
                all.worlds[0].min(mark.worlds[0]),
                all.worlds[1].max(mark.worlds[1]),
            ],
        })
    }
}

/// The marks of all nodes of a tree, level by level.
pub(crate) type Marks = Vec<Vec<Mark>>;

/// The marks of a tree with its boxes in this order.
pub(crate) fn marks(order: &[u32], labels: &Labels, threads: Threads) -> Result<Marks> {
    let mut levels = Vec::new();
    let leaves = |boxes: &[u32]| Mark::union(boxes.iter().map(|&index| Mark::of(labels, index)));
    let mut level = in_nodes(order, threads, leaves)?;
    while level.len() > 1 {
        let above = in_nodes(&level, threads, |nodes| Mark::union(nodes.iter().copied()))?;
        levels.push(std::mem::replace(&mut level, above));
    }
    levels.push(level);
    Ok(levels)
}
