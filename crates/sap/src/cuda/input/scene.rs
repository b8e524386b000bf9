//! A frame on the device: uploaded, checked, in `f32`, loosened, with nothing borrowed.

use crate::cuda::abi::{Prepare, State};
use crate::cuda::input::device_frame::DeviceBoxes;
use crate::cuda::input::patch::{Patch, patched};
use crate::cuda::input::source::{List, Source};
use crate::cuda::kernels::Kernels;
use crate::cuda::memory::{Grow, Uploader};
use crate::frame::Boxes;
use crate::{Aabb, Aabb64, Filter, Frame, Pair, Result};
use bytemuck::Pod;
use gpu::{Buffer, Slice, SliceMut, Stream};

/// What decides the pairs of a frame.
#[derive(Default)]
pub(crate) struct Scene {
    pub(crate) n: usize,
    /// The boxes of the first of two sets; 0 = one set.
    pub(crate) split: usize,
    /// What is swept; bad boxes are empty.
    stored: Grow<Aabb>,
    /// The boxes before they were loosened, with a margin.
    given: Option<Grow<Aabb>>,
    pub(crate) filters: Option<Grow<Filter>>,
    pub(crate) worlds: Option<Grow<u32>>,
    pub(crate) last_world: u32,
    pub(crate) exact: Option<Grow<Aabb64>>,
    excluded: Vec<Pair>,
    excluded_codes: Grow<u64>,
    /// Boxes as they came, and by set where on the device they are, swept ones with their ends.
    raw: Grow<u64>,
    places: Vec<[u64; 2]>,
    patches: Grow<Patch>,
    /// Whether some boxes were bad: they are stored as empty ones.
    pub(crate) has_bad: bool,
}

/// What reading a frame needs of the engine.
pub(crate) struct Tools<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) kernels: &'a Kernels,
    pub(crate) uploader: &'a mut Uploader,
    pub(crate) state: &'a Buffer<State>,
}

impl Tools<'_> {
    /// Takes a list with an entry for each box where any set has one; `default` stands for the boxes of a set that has none.
    fn list<'a, T: Pod>(
        &mut self,
        room: &mut Option<Grow<T>>,
        sets: &[Source<'a>],
        of: impl Fn(&Source<'a>) -> Option<List<'a, T>>,
        default: T,
    ) -> Result<()> {
        let n = sets.iter().map(Source::len).sum();
        if sets.iter().all(|set| of(set).is_none()) {
            *room = None;
            return Ok(());
        }
        let mut room = room.get_or_insert_default().reserve(self.stream, n)?;
        for set in sets {
            let (part, rest) = room.split_at(set.len())?;
            match of(set) {
                Some(List::Host(list)) => self.uploader.upload(self.stream, part, list)?,
                Some(List::Device(list)) => self.stream.copy(part, list)?,
                None => self
                    .uploader
                    .upload(self.stream, part, &vec![default; set.len()])?,
            }
            room = rest;
        }
        Ok(())
    }
}

/// Words of 8 bytes in a box of `f32`.
const BOX_WORDS: usize = size_of::<Aabb>() / 8;

impl Scene {
    /// Uploads one set, or two one after the other. With a margin nothing is tested in `f64`. When the frame
    /// lists its changed boxes, only those are uploaded, and the rest is copied from `last`.
    pub(crate) fn upload(
        &mut self,
        tools: &mut Tools,
        sets: &[Source],
        margin: f32,
        last: Option<&Self>,
    ) -> Result<()> {
        self.upload_excluded(tools, sets)?;
        if let Some(last) = last
            && let Some((frame, patches)) = patched(sets, |frame| last.takes_patches_of(frame))
        {
            return self.upload_changed(tools, frame.len(), &patches, last);
        }
        self.n = sets.iter().map(Source::len).sum();
        self.split = if let [first, _] = sets {
            first.len()
        } else {
            0
        };
        tools.list(&mut self.filters, sets, Source::filters, Filter::default())?;
        tools.list(&mut self.worlds, sets, Source::worlds, 0)?;
        let last_world = sets.iter().filter_map(|set| {
            Some(match set.worlds()? {
                List::Host(worlds) => worlds.iter().copied().max().unwrap_or(0),
                // Nobody has looked.
                List::Device(_) => u32::MAX,
            })
        });
        self.last_world = last_world.max().unwrap_or(0);

        if margin == 0.0 && sets.iter().any(Source::is_exact) {
            self.exact
                .get_or_insert_default()
                .reserve(tools.stream, self.n)?;
        } else {
            self.exact = None;
        }
        self.upload_boxes(tools, sets)
    }

    /// Whether a frame on the host has the lists that this one has, so that patches make the one of the other.
    fn takes_patches_of(&self, frame: &Frame) -> bool {
        self.n == frame.len()
            && !self.has_bad
            && self.exact.is_none()
            && self.filters.is_some() == frame.filters.is_some()
            && self.worlds.is_some() == frame.worlds.is_some()
    }

    fn upload_excluded(&mut self, tools: &mut Tools, sets: &[Source]) -> Result<()> {
        self.excluded.clear();
        self.excluded
            .extend_from_slice(sets.first().map_or(&[], Source::excluded));
        let codes: Vec<u64> = self.excluded.iter().map(|pair| pair.code()).collect();
        tools.uploader.upload(
            tools.stream,
            self.excluded_codes.reserve(tools.stream, codes.len())?,
            &codes,
        )?;
        Ok(())
    }

    /// Takes the boxes of the last update, but for those that have changed.
    fn upload_changed(
        &mut self,
        tools: &mut Tools,
        n: usize,
        patches: &[Patch],
        last: &Self,
    ) -> Result<()> {
        let stream = tools.stream;
        (self.n, self.split, self.exact) = (n, 0, None);
        let worlds = patches.iter().map(|patch| patch.world);
        self.last_world = last.last_world.max(worlds.max().unwrap_or(0));
        copy(stream, &mut self.filters, &last.filters, n)?;
        copy(stream, &mut self.worlds, &last.worlds, n)?;
        let room = self.patches.reserve(stream, patches.len())?;
        tools.uploader.upload(stream, room, patches)?;
        let mut boxes: SliceMut<Aabb> = self.raw.reserve(stream, BOX_WORDS * n)?.cast()?;
        stream.copy(boxes.reborrow(), last.given()?)?;
        self.places.clear();
        self.places.push([boxes.ptr(), 0]);
        let patches = self.patches.part(patches.len())?;
        let (filters, worlds) = (address(&self.filters), address(&self.worlds));
        // SAFETY: lists that there are were made `n` long above, and the indices are below `n` (`Frame::check_lengths`).
        unsafe {
            tools
                .kernels
                .patch(stream, patches, boxes, filters, worlds)?
        };
        Ok(())
    }

    fn upload_boxes(&mut self, tools: &mut Tools, sets: &[Source]) -> Result<()> {
        let stream = tools.stream;
        // Boxes to test in f64 go where they are tested; kernels read 8 bytes at once, 16 of f64 boxes, so that boxes on the
        // device at other addresses are moved.
        let tested = self.exact.is_some();
        let here = |boxes: Slice<Aabb>| boxes.ptr().is_multiple_of(8);
        let words = |set: &Source| match set {
            Source::Host(frame) => match frame.boxes {
                Boxes::Plain(_) => BOX_WORDS * set.len(),
                Boxes::Exact(_) if tested => 0,
                Boxes::Swept(..) | Boxes::Exact(_) => 2 * BOX_WORDS * set.len(),
            },
            Source::Device(frame) => match frame.boxes {
                DeviceBoxes::Plain(boxes) if here(boxes) => 0,
                DeviceBoxes::Plain(_) => BOX_WORDS * set.len(),
                DeviceBoxes::Swept(start, end) if here(start) && here(end) => 0,
                DeviceBoxes::Exact(_) if tested => 0,
                DeviceBoxes::Exact(boxes) if boxes.ptr().is_multiple_of(16) => 0,
                DeviceBoxes::Swept(..) | DeviceBoxes::Exact(_) => 2 * BOX_WORDS * set.len(),
            },
        };
        let mut raw = self.raw.reserve(stream, sets.iter().map(words).sum())?;
        self.places.clear();
        let mut base = 0;
        for set in sets {
            let (mut part, rest) = raw.split_at(words(set))?;
            raw = rest;
            let (half, own) = (part.len() / 2, base..base + set.len());
            let second = part.ptr() + (half * size_of::<u64>()) as u64;
            let mut place = [part.ptr(), second];
            match set {
                Source::Host(frame) => match frame.boxes {
                    Boxes::Plain(boxes) => tools.uploader.upload(stream, part.cast()?, boxes)?,
                    Boxes::Swept(start, end) => {
                        let first = part.reborrow().range(..half)?.cast()?;
                        tools.uploader.upload(stream, first, start)?;
                        let second = part.range(half..)?.cast()?;
                        tools.uploader.upload(stream, second, end)?;
                    }
                    Boxes::Exact(boxes) => match &mut self.exact {
                        Some(exact) => {
                            let part = exact.part_mut(self.n)?.range(own)?;
                            place[0] = part.ptr();
                            tools.uploader.upload(stream, part, boxes)?;
                        }
                        None => tools.uploader.upload(stream, part.cast()?, boxes)?,
                    },
                },
                Source::Device(frame) => match frame.boxes {
                    DeviceBoxes::Plain(boxes) if part.is_empty() => place[0] = boxes.ptr(),
                    DeviceBoxes::Plain(boxes) => stream.copy(part.cast()?, boxes)?,
                    DeviceBoxes::Swept(start, end) if part.is_empty() => {
                        place = [start.ptr(), end.ptr()];
                    }
                    DeviceBoxes::Swept(start, end) => {
                        stream.copy(part.reborrow().range(..half)?.cast()?, start)?;
                        stream.copy(part.range(half..)?.cast()?, end)?;
                    }
                    DeviceBoxes::Exact(boxes) => match &mut self.exact {
                        Some(exact) => {
                            let part = exact.part_mut(self.n)?.range(own)?;
                            place[0] = part.ptr();
                            stream.copy(part, boxes)?;
                        }
                        None if part.is_empty() => place[0] = boxes.ptr(),
                        None => stream.copy(part.cast()?, boxes)?,
                    },
                },
            }
            self.places.push(place);
            base += set.len();
        }
        Ok(())
    }

    /// Checks and stores the boxes uploaded. `last` is the scene of the last update, for margins and to see what changed. Where
    /// static and sleeping boxes are held `apart`, empty ones among them are not counted.
    pub(crate) fn prepare(
        &mut self,
        tools: &Tools,
        sets: &[Source],
        margin: f32,
        last: Option<&Self>,
        apart: bool,
    ) -> Result<()> {
        let (stream, kernels) = (tools.stream, tools.kernels);
        self.stored.reserve(stream, self.n)?;
        self.given = (margin > 0.0).then(|| self.given.take().unwrap_or_default());
        if let Some(given) = &mut self.given {
            given.reserve(stream, self.n)?;
        }
        let mut p = Prepare {
            n: 0,
            base: 0,
            second: 0,
            known: last.map_or(0, |last| last.n as u32),
            margin,
            apart: apart.into(),
            last: last.map_or(0, |last| last.stored.ptr()),
            stored: self.stored.ptr(),
            given: address(&self.given),
            // Compared only where both updates have them.
            filters: last
                .and_then(|last| last.filters.as_ref())
                .map_or(0, |_| address(&self.filters)),
            last_filters: last.map_or(0, |last| address(&last.filters)),
            worlds: last
                .and_then(|last| last.worlds.as_ref())
                .map_or(0, |_| address(&self.worlds)),
            last_worlds: last.map_or(0, |last| address(&last.worlds)),
            state: tools.state.ptr(),
        };
        for (set, &place) in sets.iter().zip(&self.places) {
            let (n, base) = (set.len(), p.base as usize);
            p.n = n as u32;
            if n > 0 {
                // SAFETY: `place` holds the set's boxes in their form. `stored` and `given` have room for `base + n`; those of the
                // last update for `known`.
                unsafe {
                    match (set.is_exact(), set.is_swept()) {
                        (true, _) => kernels.prepare_exact(stream, place[0], p)?,
                        (_, true) => kernels.prepare_swept(stream, place[0], place[1], p)?,
                        _ => kernels.prepare_plain(stream, place[0], p)?,
                    }
                }
                // A set that came in f32, where the other is tested in f64.
                if let Some(exact) = self.exact.as_mut().filter(|_| !set.is_exact()) {
                    let range = base..base + n;
                    kernels.widen(
                        stream,
                        self.stored.part(self.n)?.range(range.clone())?,
                        exact.part_mut(self.n)?.range(range)?,
                    )?;
                }
            }
            p.base += p.n;
            p.second = 1;
        }
        Ok(())
    }

    /// Makes room for `n` of the boxes of another scene, and for their worlds: where they go.
    pub(crate) fn begin_part(
        &mut self,
        stream: &Stream,
        whole: &Self,
        n: usize,
    ) -> Result<(u64, u64)> {
        self.n = n;
        self.last_world = whole.last_world;
        self.worlds = (whole.worlds.is_some()).then(|| self.worlds.take().unwrap_or_default());
        if let Some(worlds) = &mut self.worlds {
            worlds.reserve(stream, n)?;
        }
        self.stored.reserve(stream, n)?;
        Ok((self.stored.ptr(), address(&self.worlds)))
    }

    /// Whether both have the same pairs if no box, filter or world differs. `f64` boxes are not compared.
    pub(crate) fn like(&self, other: &Self) -> bool {
        self.n == other.n
            && self.filters.is_some() == other.filters.is_some()
            && self.worlds.is_some() == other.worlds.is_some()
            && self.excluded == other.excluded
            && self.exact.is_none()
            && other.exact.is_none()
    }

    /// The boxes to sweep.
    pub(crate) fn boxes(&self) -> Result<Slice<'_, Aabb>> {
        self.stored.part(self.n)
    }

    /// The boxes as they were given.
    pub(crate) fn given(&self) -> Result<Slice<'_, Aabb>> {
        self.given.as_ref().unwrap_or(&self.stored).part(self.n)
    }

    /// The pairs never to report, as sorted numbers: where they are, and how many.
    pub(crate) fn excluded(&self) -> (u64, u64) {
        (self.excluded_codes.ptr(), self.excluded.len() as u64)
    }
}

/// The address of a list, 0 for none.
pub(crate) fn address<T: Pod>(list: &Option<Grow<T>>) -> u64 {
    list.as_ref().map_or(0, Grow::ptr)
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
    let room = to.get_or_insert_default().reserve(stream, n)?;
    Ok(stream.copy(room, from.part(n)?)?)
}
