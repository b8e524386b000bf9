//! What a rank brings to an update.

use crate::error::{WORDS, invalid_fault};
use crate::pair::Pair;
use crate::{Cause, List};
use sap::{Aabb, Filter};

/// The ids of the boxes of a rank.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ids<L> {
    /// The ids of consecutive boxes, from this one on.
    From(u64),
    /// A list of the id of each box; on a device it ascends.
    Each(L),
}

impl<L> Ids<L> {
    /// Returns the first id if ids are consecutive.
    pub(crate) const fn first(&self) -> Option<u64> {
        match self {
            Self::From(first) => Some(*first),
            Self::Each(_) => None,
        }
    }
}

/// The boxes that a rank brings to an update, with their ids, and optionally with filters, worlds
/// and excluded pairs. Ids are unique over all ranks; a rank may bring other boxes in each frame.
///
/// ```
/// use sap::Aabb;
/// use sap_dist::{Frame, Pair};
///
/// let boxes = [Aabb::new([0.0; 3], [1.0; 3]); 2];
/// let by_offset = Frame::from_id(1000, &boxes); // ids 1000 and 1001
/// let by_id = Frame::with_ids(&[7, 3], &boxes).worlds(&[0, 1]).excluded(&[Pair { a: 3, b: 9 }]);
/// assert_eq!((by_offset.len(), by_id.len()), (2, 2));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    pub(crate) ids: Ids<&'a [u64]>,
    pub(crate) boxes: &'a [Aabb],
    pub(crate) filters: Option<&'a [Filter]>,
    pub(crate) worlds: Option<&'a [u32]>,
    pub(crate) excluded: &'a [Pair],
}

impl<'a> Frame<'a> {
    /// A frame of boxes with consecutive ids. `first` is that of the first box, so the ids of this
    /// rank are `first..first + boxes.len()`.
    #[must_use]
    pub const fn from_id(first: u64, boxes: &'a [Aabb]) -> Self {
        Self::of(Ids::From(first), boxes)
    }

    /// A frame of boxes with an id each, in any order.
    #[must_use]
    pub const fn with_ids(ids: &'a [u64], boxes: &'a [Aabb]) -> Self {
        Self::of(Ids::Each(ids), boxes)
    }

    const fn of(ids: Ids<&'a [u64]>, boxes: &'a [Aabb]) -> Self {
        Self {
            ids,
            boxes,
            filters: None,
            worlds: None,
            excluded: &[],
        }
    }

    /// Adds a filter for each box. If a rank with boxes adds filters, all with boxes do.
    #[must_use]
    pub const fn filters(self, filters: &'a [Filter]) -> Self {
        Self {
            filters: Some(filters),
            ..self
        }
    }

    /// Adds a world for each box. Boxes of different worlds do not pair. If a rank with boxes adds
    /// worlds, all with boxes do.
    #[must_use]
    pub const fn worlds(self, worlds: &'a [u32]) -> Self {
        Self {
            worlds: Some(worlds),
            ..self
        }
    }

    /// Adds pairs that are never reported, sorted by `(a, b)`, with `a < b` in each. A pair is
    /// listed by the rank that brings box `a`; on other ranks it has no effect.
    #[must_use]
    pub const fn excluded(self, excluded: &'a [Pair]) -> Self {
        Self { excluded, ..self }
    }

    /// Returns the number of boxes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.boxes.len()
    }

    /// Tells whether this rank brings no boxes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.boxes.is_empty()
    }

    /// Returns all ids unless they are consecutive.
    pub(crate) const fn each_id(&self) -> &'a [u64] {
        match self.ids {
            Ids::From(_) => &[],
            Ids::Each(ids) => ids,
        }
    }

    /// Returns the id of a box. The lengths have been checked.
    pub(crate) const fn id(&self, i: usize) -> u64 {
        match self.ids {
            Ids::From(first) => first.wrapping_add(i as u64),
            Ids::Each(ids) => ids[i],
        }
    }

    /// Checks the lengths of all lists and the order of the excluded pairs.
    pub(crate) fn check(&self) -> Result<(), Cause> {
        let boxes = self.len() as u64;
        let ids = match self.ids {
            Ids::From(first) if first.checked_add(boxes).is_none() => {
                return Err(Cause::IdRange { first, boxes });
            }
            Ids::From(_) => None,
            Ids::Each(ids) => Some(ids.len()),
        };
        let lists = [
            (List::Ids, ids),
            (List::Filters, self.filters.map(<[_]>::len)),
            (List::Worlds, self.worlds.map(<[_]>::len)),
        ];
        for (what, given) in lists {
            if let Some(given) = given.filter(|&given| given as u64 != boxes) {
                return Err(Cause::LengthMismatch {
                    what,
                    expected: boxes,
                    given: given as u64,
                });
            }
        }
        check_excluded(self.excluded)
    }

    /// Counts the invalid boxes. The lengths have been checked.
    pub(crate) fn invalid(&self) -> InvalidBoxes {
        let mut found = InvalidBoxes::default();
        for (i, b) in self.boxes.iter().enumerate() {
            if b.check().is_err() {
                found.count += 1;
                if found.first.is_none_or(|(id, _)| self.id(i) < id) {
                    found.first = Some((self.id(i), *b));
                }
            }
        }
        found
    }
}

/// Checks the order of excluded pairs.
pub(crate) fn check_excluded(excluded: &[Pair]) -> Result<(), Cause> {
    let wrong =
        |&i: &usize| excluded[i].a >= excluded[i].b || (i > 0 && excluded[i - 1] > excluded[i]);
    match (0..excluded.len()).find(wrong) {
        Some(index) => Err(Cause::ExcludedOrder {
            index: index as u64,
            pair: excluded[index],
        }),
        None => Ok(()),
    }
}

/// The invalid boxes of a rank: their number, and the one of the smallest id.
#[derive(Default)]
pub(crate) struct InvalidBoxes {
    pub(crate) count: u64,
    pub(crate) first: Option<(u64, Aabb)>,
}

impl InvalidBoxes {
    /// Returns the words of the first, as the fault of a rank; all 0 if there is none.
    pub(crate) fn fault(&self) -> [u64; WORDS] {
        self.first
            .map_or([0; WORDS], |(id, b)| invalid_fault(id, &b))
    }
}
