//! The input of an update.

use crate::{Aabb, Aabb64, Error, Filter, Pair, Result};

/// The boxes of a frame in one of their forms.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Boxes<'a> {
    Plain(&'a [Aabb]),
    Swept(&'a [Aabb], &'a [Aabb]),
    Exact(&'a [Aabb64]),
}

/// The input of an update: boxes, and optionally a filter and a world for each box, excluded pairs
/// and a list of changed boxes.
///
/// ```
/// use sap::{Aabb, BroadPhase, Config, Frame, Pair};
///
/// let boxes = [Aabb::new([0.0; 3], [1.0; 3]); 4];
/// let mut broad_phase = BroadPhase::new(Config::default())?;
/// let frame = Frame::boxes(&boxes).worlds(&[0, 0, 7, 7]).excluded(&[Pair { a: 0, b: 1 }]);
/// broad_phase.update(frame)?;
/// assert_eq!(broad_phase.pairs(), [Pair { a: 2, b: 3 }]);
/// # Ok::<(), sap::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    pub(crate) boxes: Boxes<'a>,
    pub(crate) filters: Option<&'a [Filter]>,
    pub(crate) worlds: Option<&'a [u32]>,
    pub(crate) excluded: &'a [Pair],
    pub(crate) changed: Option<&'a [u32]>,
}

impl<'a> Frame<'a> {
    const fn of(boxes: Boxes<'a>) -> Self {
        Self {
            boxes,
            filters: None,
            worlds: None,
            excluded: &[],
            changed: None,
        }
    }

    /// A frame of `f32` boxes.
    #[must_use]
    pub const fn boxes(boxes: &'a [Aabb]) -> Self {
        Self::of(Boxes::Plain(boxes))
    }

    /// A frame of moving boxes, each given by its bounds at the start and at the end of a step.
    /// Pairs are those of the boxes that enclose both. There is one end for each start.
    ///
    /// ```
    /// use sap::{Aabb, BroadPhase, Config, Frame};
    ///
    /// let wall = Aabb::new([5.0, -1.0, -1.0], [5.1, 1.0, 1.0]);
    /// let start = Aabb::new([0.0; 3], [1.0; 3]);
    /// let end = Aabb::new([9.0, 0.0, 0.0], [10.0, 1.0, 1.0]);
    /// let mut broad_phase = BroadPhase::new(Config::default())?;
    /// broad_phase.update(Frame::swept(&[wall, start], &[wall, end]))?;
    /// assert_eq!(broad_phase.pairs().len(), 1); // the moving box passes through the wall
    /// # Ok::<(), sap::Error>(())
    /// ```
    #[must_use]
    pub const fn swept(start: &'a [Aabb], end: &'a [Aabb]) -> Self {
        Self::of(Boxes::Swept(start, end))
    }

    /// A frame of `f64` boxes. They are swept as `f32`, rounded outward, and tested exactly in
    /// `f64`. With a margin, pairs are those of the stored `f32` boxes and nothing is tested in
    /// `f64`.
    ///
    /// ```
    /// use sap::{Aabb64, BroadPhase, Config, Frame};
    ///
    /// let boxes = [
    ///     Aabb64::new([0.0; 3], [1.0; 3]),
    ///     Aabb64::new([1.0 + 1e-12, 0.0, 0.0], [2.0; 3]),
    /// ];
    /// let mut broad_phase = BroadPhase::new(Config::default())?;
    /// assert_eq!(broad_phase.update(Frame::exact(&boxes))?.pairs, 0);
    /// # Ok::<(), sap::Error>(())
    /// ```
    #[must_use]
    pub const fn exact(boxes: &'a [Aabb64]) -> Self {
        Self::of(Boxes::Exact(boxes))
    }

    /// Adds a filter for each box.
    #[must_use]
    pub const fn filters(self, filters: &'a [Filter]) -> Self {
        Self {
            filters: Some(filters),
            ..self
        }
    }

    /// Adds a world for each box. Boxes of different worlds do not pair.
    #[must_use]
    pub const fn worlds(self, worlds: &'a [u32]) -> Self {
        Self {
            worlds: Some(worlds),
            ..self
        }
    }

    /// Adds pairs that are never reported. They are sorted by `(a, b)`, with `a < b` in each pair.
    /// Indices beyond the last box are ignored.
    #[must_use]
    pub const fn excluded(self, excluded: &'a [Pair]) -> Self {
        Self { excluded, ..self }
    }

    /// Adds the indices of the boxes that may have changed since the last update. The caller
    /// promises that all other boxes, with their filters and worlds, are unchanged. Indices may
    /// come in any order and more than once. Boxes added at the end, or removed from there, need
    /// not be listed. After an update that failed, the next one compares all boxes, whatever is
    /// listed.
    ///
    /// The list saves a comparison of all boxes. On the CPU an update by the list reads the changed
    /// boxes only; besides, it passes once over the pairs, or over the candidates of the neighbour
    /// list. With an empty list it takes less than a microsecond, unless the last update failed, or
    /// the last frame had invalid boxes or other excluded pairs. On CUDA only these boxes are
    /// uploaded if they are plain ones of 16,384 or more, of which at most a quarter is listed. The
    /// frame must have all boxes nevertheless, because a full update reads them: that of a first
    /// frame, and on the CPU that of a frame without a neighbour list in which more than a sixth of
    /// the boxes changed, or fewer than 1,024 did not. If a changed box is not listed, either its
    /// old or its new bounds may be used.
    ///
    /// ```
    /// use sap::{Aabb, BroadPhase, Config, Frame, Pair};
    ///
    /// let at = |x: f32| Aabb::new([x, 0.0, 0.0], [x + 1.0, 1.0, 1.0]);
    /// let mut boxes: Vec<Aabb> = (0..5000).map(|i| at(2.0 * i as f32)).collect();
    /// let mut broad_phase = BroadPhase::new(Config::default())?;
    /// broad_phase.update(&boxes)?;
    /// for frame in 0..9 {
    ///     boxes[7] = at(0.5 + 2.0 * frame as f32);
    ///     broad_phase.update(Frame::boxes(&boxes).changed(&[7]))?;
    /// }
    /// assert_eq!(broad_phase.pairs(), [Pair { a: 7, b: 8 }]);
    /// # Ok::<(), sap::Error>(())
    /// ```
    #[must_use]
    pub const fn changed(self, changed: &'a [u32]) -> Self {
        Self {
            changed: Some(changed),
            ..self
        }
    }

    /// Returns the number of boxes.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        match self.boxes {
            Boxes::Plain(boxes) | Boxes::Swept(boxes, _) => boxes.len(),
            Boxes::Exact(boxes) => boxes.len(),
        }
    }

    /// Tells whether the frame has no boxes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the lengths of the lists beside the boxes: ends, filters and worlds.
    #[inline]
    fn other_lengths(&self) -> [Option<usize>; 3] {
        let ends = match self.boxes {
            Boxes::Swept(_, ends) => Some(ends.len()),
            _ => None,
        };
        [
            ends,
            self.filters.map(<[_]>::len),
            self.worlds.map(<[_]>::len),
        ]
    }

    /// Checks the number of boxes, the lengths of all lists and the changed indices. It does not
    /// read the boxes.
    pub(crate) fn check_lengths(&self) -> Result<()> {
        let [ends, filters, worlds] = self.other_lengths();
        check_lists(self.len(), ends, filters, worlds)?;
        let boxes = self.len();
        let beyond = |&&index: &&u32| index as usize >= boxes;
        match self.changed.and_then(|changed| changed.iter().find(beyond)) {
            Some(&index) => Err(Error::ChangedIndex { index, boxes }),
            None => Ok(()),
        }
    }

    /// Checks that the excluded pairs are sorted, and that each has `a < b`.
    pub(crate) fn check_excluded(&self) -> Result<()> {
        check_order(self.excluded, |pair| pair.a < pair.b)
    }

    /// Checks that the excluded pairs of this set with another are sorted.
    pub(crate) fn check_excluded_between(&self) -> Result<()> {
        check_order(self.excluded, |_| true)
    }
}

/// What can be told of a frame without its lists. Two frames that differ only in boxes that are
/// listed as changed have the same form.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    boxes: usize,
    /// Whether there are ends, filters, worlds, `f64` boxes and excluded pairs, a bit each.
    kinds: u32,
}

impl Form {
    /// Returns None if a list does not have one entry for each box.
    #[inline]
    pub(crate) fn of(frame: &Frame) -> Option<Self> {
        let boxes = frame.len();
        let [ends, filters, worlds] = frame.other_lengths();
        let is_exact = matches!(frame.boxes, Boxes::Exact(_));
        let kinds = u32::from(ends.is_some())
            | u32::from(filters.is_some()) << 1
            | u32::from(worlds.is_some()) << 2
            | u32::from(is_exact) << 3
            | u32::from(!frame.excluded.is_empty()) << 4;
        let fits = |given: Option<usize>| given.unwrap_or(boxes) == boxes;
        (fits(ends) & fits(filters) & fits(worlds)).then_some(Self { boxes, kinds })
    }
}

/// Checks that excluded pairs are sorted, and that each is valid.
fn check_order(excluded: &[Pair], is_valid: impl Fn(Pair) -> bool) -> Result<()> {
    let is_wrong = |&index: &usize| {
        let pair = excluded[index];
        !is_valid(pair) || (index > 0 && excluded[index - 1] > pair)
    };
    match (0..excluded.len()).find(is_wrong) {
        Some(index) => Err(Error::ExcludedOrder {
            index,
            pair: excluded[index],
        }),
        None => Ok(()),
    }
}

/// Checks that the boxes are not too many, and that each list given has one entry for each box.
pub(crate) fn check_lists(
    boxes: usize,
    ends: Option<usize>,
    filters: Option<usize>,
    worlds: Option<usize>,
) -> Result<()> {
    let limit = u64::from(u32::MAX);
    if boxes as u64 > limit {
        return Err(Error::TooManyBoxes {
            boxes: boxes as u64,
            limit,
        });
    }
    for (what, given) in [
        ("end boxes", ends),
        ("filters", filters),
        ("worlds", worlds),
    ] {
        if let Some(given) = given.filter(|&given| given != boxes) {
            return Err(Error::LengthMismatch { what, boxes, given });
        }
    }
    Ok(())
}

impl<'a> From<&'a [Aabb]> for Frame<'a> {
    fn from(boxes: &'a [Aabb]) -> Self {
        Self::boxes(boxes)
    }
}

impl<'a> From<&'a Vec<Aabb>> for Frame<'a> {
    fn from(boxes: &'a Vec<Aabb>) -> Self {
        Self::boxes(boxes)
    }
}

impl<'a, const N: usize> From<&'a [Aabb; N]> for Frame<'a> {
    fn from(boxes: &'a [Aabb; N]) -> Self {
        Self::boxes(boxes)
    }
}
