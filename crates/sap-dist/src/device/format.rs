//! The records in which boxes travel between devices.

use crate::outline::Outline;
use crate::wire::Lists;

/// What a record has besides a box and its index: the same on all ranks.
#[derive(Clone, Copy)]
pub(crate) struct Format {
    lists: Lists,
    /// Whether it has an id, since those of some rank are not consecutive.
    pub(crate) ids: bool,
}

impl Format {
    pub(crate) fn of(outline: &Outline) -> Self {
        Self {
            lists: outline.lists,
            ids: outline.has_listed_ids(),
        }
    }

    /// Returns the words of a record: a box, its index, its id, its filter and its world.
    pub(crate) const fn words(self) -> usize {
        let Lists { filters, worlds } = self.lists;
        7 + 2 * self.ids as usize + 4 * filters as usize + worlds as usize
    }
}
