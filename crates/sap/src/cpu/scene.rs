//! A frame as the engine keeps it: checked, in `f32`, loosened, with nothing borrowed.

use super::tuning::STREAM_TASK;
use crate::frame::Boxes;
use crate::threads::on_threads;
use crate::{
    Aabb, Aabb64, Config, Error, Filter, Frame, Invalid, InvalidReason, OnInvalid, Pair, Result,
};
use crate::{packing, room};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A frame as the engine keeps it.
#[derive(Default)]
pub(super) struct Scene {
    /// What is swept; [`Aabb::EMPTY`] stands for a bad box.
    pub(super) boxes: Vec<Aabb>,
    /// The boxes before they were loosened; empty without a margin.
    pub(super) tight: Vec<Aabb>,
    pub(super) filters: Option<Vec<Filter>>,
    pub(super) worlds: Option<Vec<u32>>,
    pub(super) excluded: Vec<Pair>,
    pub(super) exact: Option<Vec<Aabb64>>,
    pub(super) invalid: Option<Invalid>,
}

impl Scene {
    /// Reads a frame of `boxes` into this scene, whose memory it uses again. `last` holds the
    /// stored boxes to keep where `margin` is above 0.
    pub(super) fn read(
        &mut self,
        frame: &Frame,
        on_invalid: OnInvalid,
        margin: f32,
        last: &Self,
    ) -> Result<()> {
        let bad = Bad::default();
        match frame.boxes {
            Boxes::Plain(boxes) => self.fill(boxes.len(), |i| {
                bad.unless(i, boxes[i].check(), || boxes[i])
            })?,
            Boxes::Swept(start, end) => self.fill(start.len(), |i| {
                let reason = start[i].check().and_then(|()| end[i].check());
                bad.unless(i, reason, || start[i].merged(&end[i]))
            })?,
            Boxes::Exact(boxes) => self.fill(boxes.len(), |i| {
                bad.unless(i, boxes[i].check(), || boxes[i].outward())
            })?,
        }
        self.invalid = bad.found(frame);
        if let (
            OnInvalid::Error,
            Some(Invalid {
                first: index,
                reason,
                ..
            }),
        ) = (on_invalid, self.invalid)
        {
            return Err(Error::InvalidAabb { index, reason });
        }
        let exact = match frame.boxes {
            Boxes::Exact(boxes) if margin == 0.0 => Some(boxes),
            _ => None,
        };
        copy(&mut self.exact, exact)?;
        copy(&mut self.filters, frame.filters)?;
        copy(&mut self.worlds, frame.worlds)?;
        room::copy(&mut self.excluded, frame.excluded)?;
        self.tight.clear();
        if margin > 0.0 {
            room::copy(&mut self.tight, &self.boxes)?;
            let stored = |(i, tight): (usize, &mut Aabb)| match last.boxes.get(i) {
                Some(kept) if kept.contains(tight) && !tight.is_empty() => *tight = *kept,
                _ => *tight = tight.loosened(margin),
            };
            if self.boxes.len() <= STREAM_TASK {
                self.boxes.iter_mut().enumerate().for_each(stored);
            } else {
                let boxes = self.boxes.par_iter_mut().with_min_len(STREAM_TASK);
                on_threads(|| {
                    boxes.enumerate().for_each(stored);
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// What decides where the boxes go in a tree.
    pub(super) fn packed(&self) -> packing::Scene<'_> {
        packing::Scene {
            boxes: &self.boxes,
            filters: self.filters.as_deref(),
            worlds: self.worlds.as_deref(),
        }
    }

    /// Tells whether a list of changed boxes says all of a frame: it has the same form and excluded
    /// pairs as this one, in which no box was bad.
    pub(super) fn is_like(&self, frame: &Frame, config: &Config) -> bool {
        let exact = matches!(frame.boxes, Boxes::Exact(_)) && config.margin == 0.0;
        self.invalid.is_none()
            && self.exact.is_some() == exact
            && self.filters.is_some() == frame.filters.is_some()
            && self.worlds.is_some() == frame.worlds.is_some()
            && self.excluded == frame.excluded
    }

    /// Copies some boxes, by index in order; those beyond the end are left out.
    pub(super) fn some(&self, boxes: &[u32]) -> Result<Self> {
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

    /// Reads some boxes of a frame, by index in order, `self` being what they were. None where a
    /// bad one is to be skipped.
    pub(super) fn read_some(
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

    /// Reserves memory for `n` boxes, so that [`Scene::put`] needs no more.
    pub(super) fn reserve(&mut self, n: usize) -> Result<()> {
        fn some<T>(list: &mut Option<Vec<T>>, n: usize) -> Result<()> {
            list.as_mut().map_or(Ok(()), |list| room::reserve(list, n))
        }
        room::reserve(&mut self.boxes, n)?;
        if !self.tight.is_empty() {
            room::reserve(&mut self.tight, n)?;
        }
        some(&mut self.filters, n)?;
        some(&mut self.worlds, n)?;
        some(&mut self.exact, n)
    }

    /// Replaces some boxes of this scene, by index in order; it then has `n`.
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
        if n <= STREAM_TASK {
            return room::refill(&mut self.boxes, (0..n).map(of));
        }
        let boxes = (0..n).into_par_iter().with_min_len(STREAM_TASK).map(of);
        on_threads(|| room::fill(&mut self.boxes, boxes))
    }

    /// The boxes that were given.
    pub(super) fn given(&self) -> &[Aabb] {
        if self.tight.is_empty() {
            &self.boxes
        } else {
            &self.tight
        }
    }

    /// Whether the pairs of both are the same for sure: nothing that decides them has another bit.
    pub(super) fn same_pairs(&self, other: &Self) -> bool {
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

    /// Whether there is such a box in both, and nothing that decides its pairs has another bit.
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

    /// The boxes in `f64` for an exact test, made from `f32` where the frame was.
    pub(super) fn make_exact(&mut self) -> Result<()> {
        if self.exact.is_none() {
            let wide = |b: &Aabb| Aabb64::new(b.min.map(f64::from), b.max.map(f64::from));
            self.exact = Some(room::gather(self.boxes.par_iter().map(wide))?);
        }
        Ok(())
    }
}

/// Copies a list into memory that is there already.
fn copy<T: Copy>(to: &mut Option<Vec<T>>, from: Option<&[T]>) -> Result<()> {
    match from {
        Some(from) => room::copy(to.get_or_insert_default(), from),
        None => {
            *to = None;
            Ok(())
        }
    }
}

fn pick<T: Copy>(all: &[T], some: &[u32]) -> Result<Vec<T>> {
    room::collect(some.iter().map(|&i| all[i as usize]))
}

fn pick_some<T: Copy>(all: Option<&[T]>, some: &[u32]) -> Result<Option<Vec<T>>> {
    all.map(|all| pick(all, some)).transpose()
}

/// Replaces some elements. Indices are in order, those beyond the end one after the other.
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

/// Counts bad boxes from all threads.
struct Bad {
    first: AtomicUsize,
    count: AtomicU64,
}

impl Default for Bad {
    fn default() -> Self {
        Self {
            first: AtomicUsize::new(usize::MAX),
            count: AtomicU64::new(0),
        }
    }
}

impl Bad {
    /// The box, or the empty one where there is a reason against it.
    fn unless(
        &self,
        index: usize,
        reason: std::result::Result<(), InvalidReason>,
        of: impl FnOnce() -> Aabb,
    ) -> Aabb {
        if reason.is_ok() {
            return of();
        }
        self.first.fetch_min(index, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
        Aabb::EMPTY
    }

    fn found(self, frame: &Frame) -> Option<Invalid> {
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
