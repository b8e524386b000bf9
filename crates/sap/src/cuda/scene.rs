//! A frame on the device: uploaded, checked, in `f32`, loosened, with nothing borrowed.

use super::kernels::Kernels;
use super::memory::{Grow, Uploader};
use super::params::{Prepare, State};
use crate::frame::Boxes;
use crate::{Aabb, Aabb64, Filter, Frame, Invalid, InvalidReason, Pair, Result};
use bytemuck::Pod;
use gpu::{Buffer, Slice, Stream};

/// What decides the pairs of a frame.
#[derive(Default)]
pub(super) struct Scene {
    pub(super) n: usize,
    /// The boxes of the first of two sets; 0 = one set.
    pub(super) split: usize,
    /// What is swept; bad boxes are empty.
    stored: Grow<Aabb>,
    /// The boxes before they were loosened, with a margin.
    given: Option<Grow<Aabb>>,
    pub(super) filters: Option<Grow<Filter>>,
    pub(super) worlds: Option<Grow<u32>>,
    pub(super) last_world: u32,
    pub(super) exact: Option<Grow<Aabb64>>,
    excluded: Vec<Pair>,
    excluded_codes: Grow<u64>,
    /// Boxes as they came, and by set where on the device they are.
    raw: Grow<u64>,
    places: Vec<u64>,
}

/// Boxes that come from the host, or lie on the device already.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    Host(&'a Frame<'a>),
    Device(Slice<'a, Aabb>),
}

impl<'a> Source<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Host(frame) => frame.len(),
            Self::Device(boxes) => boxes.len(),
        }
    }

    fn frame(&self) -> Option<&'a Frame<'a>> {
        if let Self::Host(frame) = self {
            Some(frame)
        } else {
            None
        }
    }

    fn is_exact(&self) -> bool {
        self.frame()
            .is_some_and(|frame| matches!(frame.boxes, Boxes::Exact(_)))
    }

    /// The bad boxes by what the kernels counted: how many, and `2^32` less the index of the first.
    pub(super) fn invalid(
        &self,
        stream: &Stream,
        count: u64,
        first_code: u64,
    ) -> Result<Option<Invalid>> {
        if count == 0 {
            return Ok(None);
        }
        let first = ((1 << 32) - first_code) as usize;
        let checked = match self {
            Self::Host(frame) => match frame.boxes {
                Boxes::Plain(boxes) => boxes[first].check(),
                Boxes::Swept(start, end) => start[first].check().and_then(|()| end[first].check()),
                Boxes::Exact(boxes) => boxes[first].check(),
            },
            Self::Device(boxes) => stream.to_vec(boxes.range(first..=first)?)?[0].check(),
        };
        // A box on the device may have been mended in the meantime; that it was bad stands.
        let reason = checked.err().unwrap_or(InvalidReason::NanMin { axis: 0 });
        Ok(Some(Invalid {
            count,
            first,
            reason,
        }))
    }
}

/// What reading a frame needs of the engine.
pub(super) struct Tools<'a> {
    pub(super) stream: &'a Stream,
    pub(super) kernels: &'a Kernels,
    pub(super) uploader: &'a mut Uploader,
    pub(super) state: &'a Buffer<State>,
}

impl Tools<'_> {
    /// Uploads a list for each box where any set has one; `default` stands for the boxes of a set that has none.
    fn list<T: Pod>(
        &mut self,
        room: &mut Option<Grow<T>>,
        sets: &[Source],
        of: impl for<'a> Fn(&'a Frame<'a>) -> Option<&'a [T]>,
        default: T,
    ) -> Result<()> {
        let n = sets.iter().map(Source::len).sum();
        if sets
            .iter()
            .filter_map(Source::frame)
            .all(|frame| of(frame).is_none())
        {
            *room = None;
            return Ok(());
        }
        let mut room = room.get_or_insert_default().reserve(self.stream, n)?;
        for set in sets {
            let (part, rest) = room.split_at(set.len())?;
            match set.frame().and_then(&of) {
                Some(list) => self.uploader.upload(self.stream, part, list)?,
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
    /// Uploads one set, or two one after the other. With a margin nothing is tested in `f64`.
    pub(super) fn upload(&mut self, tools: &mut Tools, sets: &[Source], margin: f32) -> Result<()> {
        self.n = sets.iter().map(Source::len).sum();
        self.split = if let [first, _] = sets {
            first.len()
        } else {
            0
        };
        tools.list(
            &mut self.filters,
            sets,
            |frame| frame.filters,
            Filter::default(),
        )?;
        tools.list(&mut self.worlds, sets, |frame| frame.worlds, 0)?;
        let worlds = sets.iter().filter_map(|set| set.frame()?.worlds);
        self.last_world = worlds.flatten().copied().max().unwrap_or(0);

        self.excluded.clear();
        self.excluded.extend_from_slice(
            sets.first()
                .and_then(Source::frame)
                .map_or(&[], |frame| frame.excluded),
        );
        let codes: Vec<u64> = self.excluded.iter().map(|pair| pair.code()).collect();
        tools.uploader.upload(
            tools.stream,
            self.excluded_codes.reserve(tools.stream, codes.len())?,
            &codes,
        )?;

        if margin == 0.0 && sets.iter().any(Source::is_exact) {
            self.exact
                .get_or_insert_default()
                .reserve(tools.stream, self.n)?;
        } else {
            self.exact = None;
        }
        self.upload_boxes(tools, sets)
    }

    fn upload_boxes(&mut self, tools: &mut Tools, sets: &[Source]) -> Result<()> {
        let stream = tools.stream;
        // Boxes to test in f64 go where they are tested; kernels read 8 bytes at once, so that boxes on the device at other
        // addresses are moved.
        let tested = self.exact.is_some();
        let words = |set: &Source| match set {
            Source::Host(frame) => match frame.boxes {
                Boxes::Plain(_) => BOX_WORDS * set.len(),
                Boxes::Exact(_) if tested => 0,
                Boxes::Swept(..) | Boxes::Exact(_) => 2 * BOX_WORDS * set.len(),
            },
            Source::Device(boxes) => {
                if boxes.ptr().is_multiple_of(8) {
                    0
                } else {
                    BOX_WORDS * set.len()
                }
            }
        };
        let mut raw = self.raw.reserve(stream, sets.iter().map(words).sum())?;
        self.places.clear();
        let mut base = 0;
        for set in sets {
            let (mut part, rest) = raw.split_at(words(set))?;
            raw = rest;
            let mut place = part.ptr();
            match set {
                Source::Host(frame) => match frame.boxes {
                    Boxes::Plain(boxes) => tools.uploader.upload(stream, part.cast()?, boxes)?,
                    Boxes::Swept(start, end) => {
                        let half = part.len() / 2;
                        tools.uploader.upload(
                            stream,
                            part.reborrow().range(..half)?.cast()?,
                            start,
                        )?;
                        tools
                            .uploader
                            .upload(stream, part.range(half..)?.cast()?, end)?;
                    }
                    Boxes::Exact(boxes) => match &mut self.exact {
                        Some(exact) => {
                            let part = exact.part_mut(self.n)?.range(base..base + boxes.len())?;
                            place = part.ptr();
                            tools.uploader.upload(stream, part, boxes)?;
                        }
                        None => tools.uploader.upload(stream, part.cast()?, boxes)?,
                    },
                },
                Source::Device(boxes) if part.is_empty() => place = boxes.ptr(),
                Source::Device(boxes) => stream.copy(part.cast()?, *boxes)?,
            }
            self.places.push(place);
            base += set.len();
        }
        Ok(())
    }

    /// Checks and stores the boxes uploaded. `last` is the scene of the last update, for margins and to see what changed. Where
    /// static and sleeping boxes are held `apart`, empty ones among them are not counted.
    pub(super) fn prepare(
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
                let swept = set
                    .frame()
                    .is_some_and(|frame| matches!(frame.boxes, Boxes::Swept(..)));
                // SAFETY: `place` holds the set's boxes in their form. `stored` and `given` have room for `base + n`; those of the
                // last update for `known`.
                unsafe {
                    match (set.is_exact(), swept) {
                        (true, _) => kernels.prepare_exact(stream, place, p)?,
                        (_, true) => kernels.prepare_swept(
                            stream,
                            place,
                            place + (n * size_of::<Aabb>()) as u64,
                            p,
                        )?,
                        _ => kernels.prepare_plain(stream, place, p)?,
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
    pub(super) fn begin_part(
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
    pub(super) fn like(&self, other: &Self) -> bool {
        self.n == other.n
            && self.filters.is_some() == other.filters.is_some()
            && self.worlds.is_some() == other.worlds.is_some()
            && self.excluded == other.excluded
            && self.exact.is_none()
            && other.exact.is_none()
    }

    /// The boxes to sweep.
    pub(super) fn boxes(&self) -> Result<Slice<'_, Aabb>> {
        self.stored.part(self.n)
    }

    /// The boxes as they were given.
    pub(super) fn given(&self) -> Result<Slice<'_, Aabb>> {
        self.given.as_ref().unwrap_or(&self.stored).part(self.n)
    }

    /// The pairs never to report, as sorted numbers: where they are, and how many.
    pub(super) fn excluded(&self) -> (u64, u64) {
        (self.excluded_codes.ptr(), self.excluded.len() as u64)
    }
}

/// The address of a list, 0 for none.
pub(super) fn address<T: Pod>(list: &Option<Grow<T>>) -> u64 {
    list.as_ref().map_or(0, Grow::ptr)
}
