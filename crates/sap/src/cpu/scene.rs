//! The lists of a frame as the engine stores them, and how they are read and compared.

use super::tuning::{READ_HERE, STREAM_TASK};
use crate::frame::Boxes;
use crate::query::Labels;
use crate::threads::on_threads;
use crate::{
    Aabb, Aabb64, Config, Error, Filter, Frame, Invalid, InvalidReason, OnInvalid, Pair, Result,
};
use crate::{packing, try_alloc};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A frame as the engine stores it: checked, in `f32`, with margins, owned.
#[derive(Default)]
pub(crate) struct Scene {
    /// The boxes to sweep, with margins. Invalid boxes are stored as [`Aabb::EMPTY`].
    pub(crate) boxes: Vec<Aabb>,
    /// The boxes without margins; empty if there is no margin.
    pub(crate) tight: Vec<Aabb>,
    pub(crate) filters: Option<Vec<Filter>>,
    pub(crate) worlds: Option<Vec<u32>>,
    pub(crate) excluded: Vec<Pair>,
    /// The `f64` bounds for the exact test of pairs.
    pub(crate) exact: Option<Vec<Aabb64>>,
    pub(crate) invalid: Option<Invalid>,
}

impl Scene {
    /// Reads a frame into this scene, whose memory it reuses. With a margin, a box keeps its stored
    /// bounds of the `last` scene as long as they contain it.
    pub(crate) fn read(
        &mut self,
        frame: &Frame,
        on_invalid: OnInvalid,
        margin: f32,
        last: &Self,
    ) -> Result<()> {
        let invalid = InvalidBoxes::default();
        match frame.boxes {
            Boxes::Plain(boxes) => self.fill(boxes.len(), |i| {
                invalid.or_empty(i, boxes[i].check(), || boxes[i])
            })?,
            Boxes::Swept(start, end) => self.fill(start.len(), |i| {
                let reason = start[i].check().and_then(|()| end[i].check());
                invalid.or_empty(i, reason, || start[i].merged(&end[i]))
            })?,
            Boxes::Exact(boxes) => self.fill(boxes.len(), |i| {
                invalid.or_empty(i, boxes[i].check(), || boxes[i].outward())
            })?,
        }
        self.invalid = invalid.report(frame);
        Invalid::check(self.invalid, on_invalid)?;
        let exact = match frame.boxes {
            Boxes::Exact(boxes) if margin == 0.0 => Some(boxes),
            _ => None,
        };
        copy(&mut self.exact, exact)?;
        copy(&mut self.filters, frame.filters)?;
        copy(&mut self.worlds, frame.worlds)?;
        try_alloc::copy(&mut self.excluded, frame.excluded)?;
        self.tight.clear();
        if margin > 0.0 {
            try_alloc::copy(&mut self.tight, &self.boxes)?;
            let store = |(i, tight): (usize, &mut Aabb)| match last.boxes.get(i) {
                Some(stored) if stored.contains(tight) && !tight.is_empty() => *tight = *stored,
                _ => *tight = tight.loosened(margin),
            };
            if self.boxes.len() <= STREAM_TASK {
                self.boxes.iter_mut().enumerate().for_each(store);
            } else {
                let boxes = self.boxes.par_iter_mut().with_min_len(STREAM_TASK);
                on_threads(|| {
                    boxes.enumerate().for_each(store);
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Copies the labels, and the excluded pairs: what decides pairs beside the boxes.
    pub(super) fn copy_labels(&mut self, from: &Self) -> Result<()> {
        copy(&mut self.filters, from.filters.as_deref())?;
        copy(&mut self.worlds, from.worlds.as_deref())?;
        try_alloc::copy(&mut self.excluded, &from.excluded)
    }

    /// Tells whether a box has the same labels in both scenes, whose excluded pairs are the same.
    pub(super) fn same_labels(&self, other: &Self, i: usize) -> bool {
        let filter = |scene: &Self| scene.filters.as_ref().map(|all| all[i]);
        let world = |scene: &Self| scene.worlds.as_ref().map(|all| all[i]);
        filter(self) == filter(other) && world(self) == world(other)
    }

    /// Returns what decides the order of the boxes in a tree.
    pub(super) fn for_packing(&self) -> packing::PackingInput<'_> {
        packing::PackingInput {
            boxes: &self.boxes,
            filters: self.filters.as_deref(),
            worlds: self.worlds.as_deref(),
            ..packing::PackingInput::default()
        }
    }

    /// Tells whether a frame may differ from this scene in its listed boxes only. That needs the
    /// same kinds of lists, the same excluded pairs, and no invalid box in this scene.
    pub(super) fn has_form_of(&self, frame: &Frame, config: &Config) -> bool {
        let exact = matches!(frame.boxes, Boxes::Exact(_)) && config.margin == 0.0;
        self.invalid.is_none()
            && self.exact.is_some() == exact
            && self.filters.is_some() == frame.filters.is_some()
            && self.worlds.is_some() == frame.worlds.is_some()
            && self.excluded == frame.excluded
    }

    /// Copies some boxes, given by ascending indices. Indices beyond the end are left out.
    pub(super) fn subset(&self, boxes: &[u32]) -> Result<Self> {
        let some = &boxes[..boxes.partition_point(|&i| (i as usize) < self.boxes.len())];
        let tight = if self.tight.is_empty() { &[] } else { some };
        Ok(Self {
            boxes: pick(&self.boxes, some)?,
            tight: pick(&self.tight, tight)?,
            filters: pick_some(self.filters.as_deref(), some)?,
            worlds: pick_some(self.worlds.as_deref(), some)?,
            exact: pick_some(self.exact.as_deref(), some)?,
            ..Self::default()
        })
    }

    /// Reads some boxes of a frame, given by ascending indices. `self` has these boxes as they were
    /// in the last frame. Returns None if one is invalid and is to be skipped.
    pub(super) fn read_subset(
        &self,
        frame: &Frame,
        boxes: &[u32],
        config: &Config,
    ) -> Result<Option<Self>> {
        let some = &boxes[..boxes.partition_point(|&i| (i as usize) < frame.len())];
        let (filters, worlds) = (
            pick_some(frame.filters, some)?,
            pick_some(frame.worlds, some)?,
        );
        let (first, second, exact);
        let boxes = match frame.boxes {
            Boxes::Plain(all) => {
                first = pick(all, some)?;
                Boxes::Plain(&first)
            }
            Boxes::Swept(start, end) => {
                (first, second) = (pick(start, some)?, pick(end, some)?);
                Boxes::Swept(&first, &second)
            }
            Boxes::Exact(all) => {
                exact = pick(all, some)?;
                Boxes::Exact(&exact)
            }
        };
        let part = Frame {
            boxes,
            filters: filters.as_deref(),
            worlds: worlds.as_deref(),
            excluded: &[],
            changed: None,
        };
        let mut read = Self::default();
        match read.read(&part, config.on_invalid, config.margin, self) {
            Err(Error::InvalidAabb { index, reason }) => Err(Error::InvalidAabb {
                index: some[index] as usize,
                reason,
            }),
            Err(error) => Err(error),
            Ok(()) => Ok(read.invalid.is_none().then_some(read)),
        }
    }

    /// Reserves memory for `n` boxes, so that [`Scene::put`] allocates nothing.
    pub(super) fn reserve(&mut self, n: usize) -> Result<()> {
        fn some<T>(list: &mut Option<Vec<T>>, n: usize) -> Result<()> {
            list.as_mut()
                .map_or(Ok(()), |list| try_alloc::reserve(list, n))
        }
        try_alloc::reserve(&mut self.boxes, n)?;
        if !self.tight.is_empty() {
            try_alloc::reserve(&mut self.tight, n)?;
        }
        some(&mut self.filters, n)?;
        some(&mut self.worlds, n)?;
        some(&mut self.exact, n)
    }

    /// Replaces some boxes of this scene, given by ascending indices, and sets the number of boxes
    /// to `n`.
    pub(super) fn put(&mut self, boxes: &[u32], some: &Self, n: usize) {
        replace(&mut self.boxes, &some.boxes, boxes, n);
        if !self.tight.is_empty() || !some.tight.is_empty() {
            replace(&mut self.tight, &some.tight, boxes, n);
        }
        replace_some(&mut self.filters, &some.filters, boxes, n);
        replace_some(&mut self.worlds, &some.worlds, boxes, n);
        replace_some(&mut self.exact, &some.exact, boxes, n);
    }

    fn fill(&mut self, n: usize, of: impl Fn(usize) -> Aabb + Send + Sync) -> Result<()> {
        if n <= READ_HERE {
            return try_alloc::refill(&mut self.boxes, (0..n).map(of));
        }
        let boxes = (0..n).into_par_iter().with_min_len(STREAM_TASK).map(of);
        on_threads(|| try_alloc::fill(&mut self.boxes, boxes))
    }

    /// Returns the filters and worlds; empty lists if there are none.
    pub(crate) fn labels(&self) -> Labels<'_> {
        Labels {
            filters: self.filters.as_deref().unwrap_or_default().into(),
            worlds: self.worlds.as_deref().unwrap_or_default().into(),
        }
    }

    /// Returns the boxes without margins.
    pub(crate) fn given(&self) -> &[Aabb] {
        if self.tight.is_empty() {
            &self.boxes
        } else {
            &self.tight
        }
    }

    /// Tells whether all that decides the pairs of two scenes is equal bit for bit.
    pub(crate) fn same_pairs(&self, other: &Self) -> bool {
        self.boxes.len() == other.boxes.len()
            && same_bits(&self.boxes, &other.boxes)
            && self.filters == other.filters
            && self.worlds == other.worlds
            && self.excluded == other.excluded
            && match (&self.exact, &other.exact) {
                (Some(x), Some(y)) => same_bits(x, y),
                (None, None) => true,
                _ => false,
            }
    }

    /// Tells whether both scenes have box `i`, and all that decides its pairs is equal bit for bit.
    #[inline(always)]
    pub(super) fn same_box(&self, other: &Self, i: usize) -> bool {
        fn same<T>(
            x: &Option<Vec<T>>,
            y: &Option<Vec<T>>,
            same: impl Fn(&T, &T) -> bool,
            i: usize,
        ) -> bool {
            match (x, y) {
                (Some(x), Some(y)) => same(&x[i], &y[i]),
                (None, None) => true,
                _ => false,
            }
        }
        let bits = |b: &Aabb| bytemuck::cast::<Aabb, [u64; 3]>(*b);
        let wide = |b: &Aabb64| bytemuck::cast::<Aabb64, [u64; 6]>(*b);
        i < other.boxes.len()
            && bits(&self.boxes[i]) == bits(&other.boxes[i])
            && same(&self.filters, &other.filters, |x, y| x == y, i)
            && same(&self.worlds, &other.worlds, |x, y| x == y, i)
            && same(&self.exact, &other.exact, |x, y| wide(x) == wide(y), i)
    }

    /// Adds `f64` bounds to a scene of `f32` boxes.
    pub(crate) fn make_exact(&mut self) -> Result<()> {
        if self.exact.is_none() {
            let wide = |b: &Aabb| Aabb64::new(b.min.map(f64::from), b.max.map(f64::from));
            self.exact = Some(try_alloc::gather(self.boxes.par_iter().map(wide))?);
        }
        Ok(())
    }
}

/// Returns the longest side of a box.
pub(super) fn size(b: &Aabb) -> f32 {
    (0..3).fold(0.0_f32, |size, k| size.max(b.max[k] - b.min[k]))
}

/// Copies an optional list, reusing memory.
fn copy<T: Copy>(to: &mut Option<Vec<T>>, from: Option<&[T]>) -> Result<()> {
    match from {
        Some(from) => try_alloc::copy(to.get_or_insert_default(), from),
        None => {
            *to = None;
            Ok(())
        }
    }
}

fn pick<T: Copy>(all: &[T], some: &[u32]) -> Result<Vec<T>> {
    try_alloc::collect(some.iter().map(|&i| all[i as usize]))
}

fn pick_some<T: Copy>(all: Option<&[T]>, some: &[u32]) -> Result<Option<Vec<T>>> {
    all.map(|all| pick(all, some)).transpose()
}

/// Replaces some elements and sets the length to `n`. Indices ascend; those beyond the end are
/// consecutive.
fn replace<T: Copy>(all: &mut Vec<T>, some: &[T], indices: &[u32], n: usize) {
    all.truncate(n);
    for (&value, &i) in some.iter().zip(indices) {
        match all.get_mut(i as usize) {
            Some(old) => *old = value,
            None => all.push(value),
        }
    }
}

fn replace_some<T: Copy>(
    all: &mut Option<Vec<T>>,
    some: &Option<Vec<T>>,
    indices: &[u32],
    n: usize,
) {
    if let (Some(all), Some(some)) = (all, some) {
        replace(all, some, indices, n);
    }
}

fn same_bits<T: bytemuck::Pod>(x: &[T], y: &[T]) -> bool {
    bytemuck::cast_slice::<T, u8>(x) == bytemuck::cast_slice::<T, u8>(y)
}

/// Counts the invalid boxes that all threads find.
struct InvalidBoxes {
    first: AtomicUsize,
    count: AtomicU64,
}

impl Default for InvalidBoxes {
    fn default() -> Self {
        Self {
            first: AtomicUsize::new(usize::MAX),
            count: AtomicU64::new(0),
        }
    }
}

impl InvalidBoxes {
    /// Returns the box if its check has succeeded, else an empty one, and counts that.
    fn or_empty(
        &self,
        index: usize,
        check: Result<(), InvalidReason>,
        valid: impl FnOnce() -> Aabb,
    ) -> Aabb {
        if check.is_ok() {
            return valid();
        }
        self.first.fetch_min(index, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
        Aabb::EMPTY
    }

    /// Returns the count, and the first invalid box of the frame.
    fn report(self, frame: &Frame) -> Option<Invalid> {
        let (first, count) = (self.first.into_inner(), self.count.into_inner());
        let reason = match frame.boxes {
            _ if count == 0 => return None,
            Boxes::Plain(boxes) => boxes[first].check(),
            Boxes::Swept(start, end) => start[first].check().and_then(|()| end[first].check()),
            Boxes::Exact(boxes) => boxes[first].check(),
        };
        reason.err().map(|reason| Invalid {
            count,
            first,
            reason,
        })
    }
}
