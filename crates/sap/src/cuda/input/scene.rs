//! A frame on the device: checked boxes in `f32` with their margin, and the lists that decide about
//! pairs. It borrows nothing of the caller's.

use crate::cuda::abi::{Accept, Candidates, Clear, Prepare, State};
use crate::cuda::input::patch::{self, Patch};
use crate::cuda::input::reader::{RawBoxes, Reader};
use crate::cuda::input::source::{BoxLists, List, Source};
use crate::{Aabb, Aabb64, Filter, OverlapRule, Pair, Result, try_alloc};
use bytemuck::Pod;
use gpu::{DevicePtr, Grow, Slice, SliceMut, Stream};
use std::ops::Range;

/// A frame on the device.
#[derive(Default)]
pub(crate) struct Scene {
    pub(crate) n: usize,
    /// The boxes of the first of two sets; 0 = one set.
    pub(crate) split: usize,
    /// The boxes that are swept; invalid ones are empty.
    stored: Grow<Aabb>,
    /// The boxes before the margin was added, if there is one.
    given: Option<Grow<Aabb>>,
    pub(crate) filters: Option<Grow<Filter>>,
    pub(crate) worlds: Option<Grow<u32>>,
    pub(crate) last_world: u32,
    exact: Option<Grow<Aabb64>>,
    excluded: Vec<Pair>,
    excluded_codes: Grow<u64>,
    /// Copies of the boxes as they came, by set, starts and ends, and where these are.
    raw: [[Grow<u64>; 2]; 2],
    raw_boxes: Vec<RawBoxes>,
    /// Changed boxes, on the host and the device.
    patches: (Vec<Patch>, Grow<Patch>),
    /// Whether some boxes were invalid: they are stored as empty ones.
    pub(crate) has_bad: bool,
}

impl Scene {
    /// Uploads one set, or two one after the other. With a margin nothing is tested in `f64`. When
    /// the frame lists its changed boxes, only those are uploaded, and the rest is copied from
    /// `last`.
    pub(crate) fn upload(
        &mut self,
        stream: &Stream,
        reader: &mut Reader,
        sets: &[Source],
        margin: f32,
        last: Option<&Self>,
    ) -> Result<()> {
        self.upload_excluded(stream, reader, sets)?;
        if let Some(last) = last
            && patch::collect(&mut self.patches.0, sets, |set| last.takes_patches_of(set))
        {
            return self.upload_changed(stream, reader, last);
        }
        self.n = sets.iter().map(Source::len).sum();
        self.split = match sets {
            [first, _] => first.len(),
            _ => 0,
        };
        reader.list(
            stream,
            &mut self.filters,
            sets,
            |set| set.filters,
            Filter::default(),
        )?;
        reader.list(stream, &mut self.worlds, sets, |set| set.worlds, 0)?;
        let last_world = sets.iter().filter_map(|set| match set.worlds? {
            List::Host(worlds) => worlds.iter().copied().max(),
            // They were not looked at.
            List::Device(_) => Some(u32::MAX),
        });
        self.last_world = last_world.max().unwrap_or(0);
        if margin == 0.0 && sets.iter().any(Source::is_exact) {
            self.exact.get_or_insert_default().reserve(stream, self.n)?;
        } else {
            self.exact = None;
        }
        self.upload_boxes(stream, reader, sets)
    }

    /// Tells whether patches turn this scene into that of a set on the host: both have the same
    /// lists.
    fn takes_patches_of(&self, set: &Source) -> bool {
        self.n == set.len()
            && !self.has_bad
            && self.exact.is_none()
            && self.filters.is_some() == set.filters.is_some()
            && self.worlds.is_some() == set.worlds.is_some()
    }

    fn upload_excluded(
        &mut self,
        stream: &Stream,
        reader: &mut Reader,
        sets: &[Source],
    ) -> Result<()> {
        let excluded = sets.first().map_or(&[][..], |set| set.excluded);
        try_alloc::copy(&mut self.excluded, excluded)?;
        let codes = try_alloc::collect(excluded.iter().map(|pair| pair.code()))?;
        let memory = self.excluded_codes.reserve(stream, codes.len())?;
        reader.copy(stream, memory, List::Host(&codes))
    }

    /// Copies the boxes of the last update, and replaces the changed ones.
    fn upload_changed(&mut self, stream: &Stream, reader: &mut Reader, last: &Self) -> Result<()> {
        let n = last.n;
        let (patches, uploaded) = &mut self.patches;
        (self.n, self.split, self.exact) = (n, 0, None);
        let worlds = patches.iter().map(|patch| patch.world);
        self.last_world = last.last_world.max(worlds.max().unwrap_or(0));
        copy(stream, &mut self.filters, &last.filters, n)?;
        copy(stream, &mut self.worlds, &last.worlds, n)?;
        let mut uploaded = uploaded.reserve(stream, patches.len())?;
        reader.copy(stream, uploaded.reborrow(), List::Host(patches))?;
        let [[memory, _], _] = &mut self.raw;
        let words = n * size_of::<Aabb>() / size_of::<u64>();
        let mut boxes: SliceMut<Aabb> = memory.reserve(stream, words)?.cast()?;
        stream.copy(boxes.reborrow(), last.given()?)?;
        self.raw_boxes.clear();
        self.raw_boxes.push(RawBoxes::Plain(boxes.device_ptr()));
        let (filters, worlds) = (address(&self.filters), address(&self.worlds));
        // SAFETY: lists that there are were made `n` long above, and the indices are below `n`
        // (`Frame::check_lengths`).
        unsafe { reader.patch(stream, uploaded.as_slice(), boxes, filters, worlds) }
    }

    /// Brings the boxes to the device as they are. Those to test in `f64` go where they are tested.
    fn upload_boxes(
        &mut self,
        stream: &Stream,
        reader: &mut Reader,
        sets: &[Source],
    ) -> Result<()> {
        self.raw_boxes.clear();
        let mut base = 0;
        for (set, [first, second]) in sets.iter().zip(&mut self.raw) {
            let end = base + set.len();
            self.raw_boxes.push(match (set.boxes, &mut self.exact) {
                (BoxLists::Plain(boxes), _) => {
                    RawBoxes::Plain(reader.on_device(stream, boxes, first)?)
                }
                (BoxLists::Swept(start, end), _) => RawBoxes::Swept(
                    reader.on_device(stream, start, first)?,
                    reader.on_device(stream, end, second)?,
                ),
                (BoxLists::Exact(boxes), None) => {
                    RawBoxes::Exact(reader.on_device(stream, boxes, first)?)
                }
                (BoxLists::Exact(boxes), Some(exact)) => {
                    let mut part = exact.part_mut(self.n)?.range(base..end)?;
                    reader.copy(stream, part.reborrow(), boxes)?;
                    RawBoxes::Exact(part.device_ptr())
                }
            });
            base = end;
        }
        Ok(())
    }

    /// Checks and stores the boxes uploaded. `last` is the scene of the last update, for margins
    /// and to see what changed. Where the search `leaves_resting` boxes out, empty ones among them
    /// are not counted. With a neighbour list its candidates are tested too.
    pub(crate) fn prepare(
        &mut self,
        stream: &Stream,
        reader: &Reader,
        beside: Beside,
        sets: &[Source],
        margin: f32,
        last: Option<Last>,
    ) -> Result<()> {
        self.stored.reserve(stream, self.n)?;
        self.given = (margin > 0.0).then(|| self.given.take().unwrap_or_default());
        if let Some(given) = &mut self.given {
            given.reserve(stream, self.n)?;
        }
        let leaves_resting = last.is_some_and(|last| last.leaves_resting);
        let list = last.and_then(|last| last.list);
        let last = last.map(|last| last.scene);
        let mut p = Prepare {
            n: 0,
            base: 0,
            second: 0,
            known: last.map_or(0, |last| last.n as u32),
            margin,
            resting: leaves_resting.into(),
            last: last.map_or(DevicePtr::NULL, |last| last.stored.device_ptr()),
            stored: self.stored.device_ptr(),
            given: address(&self.given),
            // Compared only where both updates have them.
            filters: last
                .and_then(|last| last.filters.as_ref())
                .map_or(DevicePtr::NULL, |_| address(&self.filters)),
            last_filters: last.map_or(DevicePtr::NULL, |last| address(&last.filters)),
            worlds: last
                .and_then(|last| last.worlds.as_ref())
                .map_or(DevicePtr::NULL, |_| address(&self.worlds)),
            last_worlds: last.map_or(DevicePtr::NULL, |last| address(&last.worlds)),
            state: beside.state,
            clear: beside.clear,
        };
        for (set, &boxes) in sets.iter().zip(&self.raw_boxes) {
            let (n, base) = (set.len(), p.base as usize);
            p.n = n as u32;
            if n > 0 {
                // SAFETY: `upload` left the addresses of the set's boxes. `stored` and `given` have
                // memory for `base + n` boxes, those of the last update for `known`.
                unsafe { reader.prepare(stream, boxes, p, list)? };
                p.clear = [Clear::NOTHING; 3];
                // A set that came in f32, where the other is tested in f64.
                if let Some(exact) = self.exact.as_mut().filter(|_| !set.is_exact()) {
                    let own = base..base + n;
                    let boxes = self.stored.part(self.n)?.range(own.clone())?;
                    reader.widen(stream, boxes, exact.part_mut(self.n)?.range(own)?)?;
                }
            }
            p.base += p.n;
            p.second = 1;
        }
        Ok(())
    }

    /// Makes this the scene of `n` boxes of another one. Reserves memory for them and for their
    /// worlds, and returns the addresses.
    pub(crate) fn begin_part(
        &mut self,
        stream: &Stream,
        whole: &Self,
        n: usize,
    ) -> Result<(DevicePtr<Aabb>, DevicePtr<u32>)> {
        self.n = n;
        self.last_world = whole.last_world;
        self.worlds = (whole.worlds.is_some()).then(|| self.worlds.take().unwrap_or_default());
        if let Some(worlds) = &mut self.worlds {
            worlds.reserve(stream, n)?;
        }
        self.stored.reserve(stream, n)?;
        Ok((self.stored.device_ptr(), address(&self.worlds)))
    }

    /// Tells whether both have the same pairs if no box, filter or world differs. `f64` boxes are
    /// not compared.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.n == other.n
            && self.filters.is_some() == other.filters.is_some()
            && self.worlds.is_some() == other.worlds.is_some()
            && self.excluded == other.excluded
            && self.exact.is_none()
            && other.exact.is_none()
    }

    /// Tells whether the boxes came in `f32`, as one set.
    pub(crate) const fn is_plain(&self) -> bool {
        matches!(self.raw_boxes.as_slice(), [RawBoxes::Plain(_)])
    }

    /// Returns the boxes to sweep.
    pub(crate) fn boxes(&self) -> Result<Slice<'_, Aabb>> {
        Ok(self.stored.part(self.n)?)
    }

    /// Returns the boxes without margin.
    pub(crate) fn given(&self) -> Result<Slice<'_, Aabb>> {
        Ok(self.given.as_ref().unwrap_or(&self.stored).part(self.n)?)
    }

    /// Returns the sets of boxes beyond the first.
    pub(crate) fn sets(&self) -> usize {
        usize::from(self.split > 0)
    }

    /// Returns how many boxes may be the first of a pair.
    pub(crate) const fn smaller_indices(&self) -> usize {
        if self.split > 0 { self.split } else { self.n }
    }

    /// Returns the conditions for pairs with `a` in a range.
    pub(crate) fn accept(&self, rule: OverlapRule, a: Range<u64>) -> Accept {
        let all = rule == OverlapRule::Closed
            && self.filters.is_none()
            && self.exact.is_none()
            && self.excluded.is_empty()
            && self.split == 0
            && a == (0..self.n as u64);
        Accept {
            filters: address(&self.filters),
            exact: address(&self.exact),
            excluded: self.excluded_codes.device_ptr(),
            excluded_len: self.excluded.len() as u64,
            split: self.split as u64,
            a_begin: a.start,
            a_end: a.end,
            open: (rule == OverlapRule::Open).into(),
            all: all.into(),
        }
    }

    /// Returns the bits that an index takes. A packed pair has twice as many.
    pub(crate) fn index_bits(&self) -> u32 {
        usize::BITS - self.n.saturating_sub(1).leading_zeros()
    }
}

/// What the kernels of the stage `bounds` write beside the scene.
pub(crate) struct Beside {
    pub(crate) state: DevicePtr<State>,
    /// What the first launch sets to zero.
    pub(crate) clear: [Clear; 3],
}

/// The scene of the last update, and what is kept of it.
#[derive(Clone, Copy)]
pub(crate) struct Last<'a> {
    pub(crate) scene: &'a Scene,
    /// Whether the resting set is left out of the search.
    pub(crate) leaves_resting: bool,
    /// The neighbour list that has the pairs. The boxes are plain, of one set, without margin.
    pub(crate) list: Option<Candidates>,
}

/// Returns the address of a list, null for none.
pub(crate) fn address<T: Pod>(list: &Option<Grow<T>>) -> DevicePtr<T> {
    list.as_ref().map_or(DevicePtr::NULL, Grow::device_ptr)
}

/// Copies the list of another scene, if it has one.
fn copy<T: Pod>(
    stream: &Stream,
    to: &mut Option<Grow<T>>,
    from: &Option<Grow<T>>,
    n: usize,
) -> Result<()> {
    let Some(from) = from else {
        *to = None;
        return Ok(());
    };
    let memory = to.get_or_insert_default().reserve(stream, n)?;
    Ok(stream.copy(memory, from.part(n)?)?)
}
