//! The search of a rank in its cell, on its device.

use super::abi::{self, Bounds, FIRST, HOME, Homes, Name, PLACES, SECOND, Segment};
use super::exchange::Flow;
use super::format::Format;
use super::frame::{DeviceFrame, address};
use super::kernels::Kernels;
use super::named_pairs::Named;
use super::survey::Surveyed;
use super::tuning::{GROUPS, MAX_UNPLANNED, MIN_BOXES_PER_AWAY};
use crate::Cause;
use crate::outline::Outline;
use crate::report::Tested;
use crate::wire::Lists;
use bytemuck::{Pod, Zeroable};
use gpu::{Buffer, ByValue, Event, Slice, Stream, args};
use sap::{Aabb, BroadPhase, Filter};
use std::ops::Range;

/// Some boxes of the cell. The first `unnamed` are those of this rank, by their indices.
struct Boxes {
    unnamed: usize,
    boxes: Buffer<Aabb>,
    names: Buffer<Name>,
    filters: Option<Buffer<Filter>>,
    worlds: Option<Buffer<u32>>,
}

impl Boxes {
    fn new(stream: &Stream, unnamed: usize, named: usize, lists: Lists) -> gpu::Result<Self> {
        let all = unnamed + named;
        Ok(Self {
            unnamed,
            boxes: stream.alloc(all)?,
            names: stream.alloc(named)?,
            filters: lists.filters.then(|| stream.alloc(all)).transpose()?,
            worlds: lists.worlds.then(|| stream.alloc(all)).transpose()?,
        })
    }

    /// Copies the first `count` boxes of another set, all named, to where `at` are before them.
    fn put(&mut self, stream: &Stream, at: usize, from: &Self, count: usize) -> gpu::Result<()> {
        fn put<T: Pod>(
            stream: &Stream,
            (to, at): (&mut Buffer<T>, usize),
            (from, count): (&Buffer<T>, usize),
        ) -> gpu::Result<()> {
            stream.copy(to.range_mut(at..at + count)?, from.range(..count)?)
        }
        put(stream, (&mut self.boxes, at), (&from.boxes, count))?;
        put(stream, (&mut self.names, at), (&from.names, count))?;
        if let (Some(to), Some(from)) = (&mut self.filters, &from.filters) {
            put(stream, (to, at), (from, count))?;
        }
        if let (Some(to), Some(from)) = (&mut self.worlds, &from.worlds) {
            put(stream, (to, at), (from, count))?;
        }
        Ok(())
    }

    /// Returns the named boxes as the kernels take them.
    fn named(&self) -> gpu::Result<abi::Set> {
        let from = self.unnamed..;
        let filters = self.filters.as_ref().map(|list| list.range(from.clone()));
        let worlds = self.worlds.as_ref().map(|list| list.range(from.clone()));
        Ok(abi::Set {
            boxes: self.boxes.range(from)?.device_ptr(),
            names: self.names.slice().device_ptr(),
            filters: address(filters.transpose()?),
            worlds: address(worlds.transpose()?),
        })
    }

    /// Returns some of the boxes as the engine takes them.
    fn engine(&self, range: Range<usize>) -> gpu::Result<sap::DeviceFrame<'_>> {
        let mut frame = sap::DeviceFrame::boxes(self.boxes.range(range.clone())?);
        if let Some(filters) = &self.filters {
            frame = frame.filters(filters.range(range.clone())?);
        }
        if let Some(worlds) = &self.worlds {
            frame = frame.worlds(worlds.range(range)?);
        }
        Ok(frame)
    }
}

/// Who finds the pairs of two boxes that one rank brought: the same on all ranks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FoundBy {
    /// The rank that brought them, wherever they lie: its engine works on them where they are,
    /// while others travel. In the cells these pairs are left out.
    Bringer,
    /// The rank in whose cell they overlap, as any other pair.
    Cell,
}

impl FoundBy {
    pub(crate) fn choose(outline: &Outline, away: u64) -> Self {
        if outline.invalid.is_none() && away.saturating_mul(MIN_BOXES_PER_AWAY) <= outline.boxes {
            Self::Bringer
        } else {
            Self::Cell
        }
    }
}

/// What a rank knows of an update before it searches its cell.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) outline: &'a Outline,
    pub(crate) rank: usize,
    pub(crate) found_by: FoundBy,
}

/// The boxes of the cell of a rank.
pub(crate) struct Cell<'a> {
    frame: DeviceFrame<'a>,
    lists: Lists,
    rank: usize,
    cells: abi::Cells,
    found_by: FoundBy,
    /// The boxes of this rank, empty where their home is elsewhere, and the homes that came. `None`
    /// if all boxes of this rank have their home here and no others came, or by
    /// [`FoundBy::Bringer`].
    homes: Option<Boxes>,
    /// The copies in the cell: boxes with their `min` in it on the first axis only, then on the
    /// second only, then on neither. By [`FoundBy::Bringer`] the homes that came are before them.
    copies: Boxes,
    /// The bounds of what came, by groups of ranks: a cell has neighbours on several sides.
    bounds: Buffer<Bounds>,
    groups: usize,
    /// The number of boxes that came, by their place in the cell.
    came: [usize; PLACES],
}

impl<'a> Cell<'a> {
    /// Unpacks the records that came from all ranks.
    pub(crate) fn new(
        kernels: &Kernels,
        frame: DeviceFrame<'a>,
        survey: &Surveyed,
        about: About,
        flow: &Flow,
        records: Slice<u32>,
    ) -> Result<Self, Cause> {
        let About {
            outline,
            rank,
            found_by,
        } = about;
        let (stream, lists) = (&kernels.stream, outline.lists);
        let (segments, came, groups) = segments(flow, about);
        let all: usize = came.iter().sum();
        let [away, came_home] = match found_by {
            FoundBy::Bringer => [0, 0],
            FoundBy::Cell if survey.are_all_homes() && came[HOME] == 0 => [0, 0],
            FoundBy::Cell => [frame.len(), came[HOME]],
        };
        let homes = Boxes::new(stream, away, came_home, lists)?;
        let copies = Boxes::new(stream, 0, all - came_home, lists)?;
        let mut bounds = stream.from_slice(&[Bounds::EMPTY; GROUPS])?;
        let format = Format::of(outline);
        let records_of = records.len() / format.words();
        let segments = stream.from_slice(&segments)?;
        let (of_homes, of_copies) = (ByValue(homes.named()?), ByValue(copies.named()?));
        // SAFETY: the segments divide the records, and each goes to memory for its boxes.
        unsafe {
            kernels.for_each(
                &kernels.receive,
                records_of,
                &args![
                    records,
                    records_of as u64,
                    format.words() as u32,
                    u32::from(format.ids),
                    segments.slice(),
                    segments.len() as u32,
                    of_homes,
                    of_copies,
                    bounds.slice_mut()
                ],
            )?
        };
        let mut cell = Self {
            frame,
            lists,
            rank,
            cells: survey.cells(),
            found_by,
            homes: None,
            copies,
            bounds,
            groups,
            came,
        };
        if away > 0 || came_home > 0 {
            cell.homes = Some(cell.with_own(kernels, survey, homes)?);
        }
        Ok(cell)
    }

    /// Puts the boxes of this rank before the homes that came.
    fn with_own(
        &self,
        kernels: &Kernels,
        survey: &Surveyed,
        mut homes: Boxes,
    ) -> gpu::Result<Boxes> {
        let (stream, own) = (&kernels.stream, self.frame.len());
        stream.using(&self.frame.memory()?, || {
            let (frame, cells) = (ByValue(self.frame.abi()), ByValue(survey.cells()));
            // SAFETY: there is a box of the result for each of the frame.
            unsafe {
                kernels.for_each(
                    &kernels.homes,
                    own,
                    &args![frame, cells, homes.boxes.range_mut(..own)?],
                )
            }
        })?;
        if let (Some(to), Some(from)) = (&mut homes.filters, self.frame.filters) {
            stream.copy(to.range_mut(..own)?, from)?;
        }
        if let (Some(to), Some(from)) = (&mut homes.worlds, self.frame.worlds) {
            stream.copy(to.range_mut(..own)?, from)?;
        }
        Ok(homes)
    }

    /// Returns the homes as the kernels take them.
    pub(crate) fn abi(&self) -> Homes {
        let own = self.frame.abi();
        let all = self.homes.as_ref().map_or(own, |homes| abi::Frame {
            boxes: homes.boxes.slice().device_ptr(),
            filters: address(homes.filters.as_ref().map(Buffer::slice)),
            worlds: address(homes.worlds.as_ref().map(Buffer::slice)),
            ids: own.ids,
            n: homes.boxes.len() as u64,
        });
        let names = self.homes.as_ref().map(|homes| homes.names.slice());
        Homes {
            all,
            own: own.n,
            names: address(names),
            rank: self.rank as u32,
            unused: 0,
        }
    }

    /// Returns the homes as the engine takes them.
    pub(crate) fn engine(&self) -> gpu::Result<sap::DeviceFrame<'_>> {
        match &self.homes {
            Some(homes) => homes.engine(0..homes.boxes.len()),
            None => Ok(self.frame.engine()),
        }
    }

    /// Returns the homes and the copies that came.
    pub(crate) fn came(&self) -> [u64; 2] {
        let copies = self.came[HOME + 1..].iter().sum::<usize>();
        [self.came[HOME] as u64, copies as u64]
    }

    /// Gathers the homes that meet the bounds of a group of what came: first into memory for
    /// `capacity`, then, if that was too little, into enough. The homes that came are behind them
    /// by [`FoundBy::Bringer`]. Returns how many were gathered.
    fn near(&self, kernels: &Kernels, mut capacity: usize) -> Result<(Boxes, usize), Cause> {
        let (stream, homes, came) = (&kernels.stream, self.abi(), self.came_home());
        let cells = match self.found_by {
            FoundBy::Bringer => self.cells,
            FoundBy::Cell => abi::Cells::zeroed(),
        };
        loop {
            let mut near = Boxes::new(stream, 0, capacity + came, self.lists)?;
            let mut count = stream.alloc_zeroed::<u64>(1)?;
            stream.using(&self.frame.memory()?, || {
                let (homes, set) = (ByValue(homes), ByValue(near.named()?));
                let (cells, bounds) = (ByValue(cells), self.bounds.slice());
                // SAFETY: the homes are as many as they say, and so is the memory for near ones.
                unsafe {
                    kernels.for_each(
                        &kernels.near,
                        homes.0.all.n as usize,
                        &args![
                            homes,
                            cells,
                            bounds,
                            self.groups as u32,
                            set,
                            capacity as u64,
                            count.slice_mut()
                        ],
                    )
                }
            })?;
            let found = stream.to_vec(count.slice())?[0] as usize;
            if found <= capacity {
                near.put(stream, found, &self.copies, came)?;
                return Ok((near, found));
            }
            capacity = found;
        }
    }

    /// Returns how many of the first copies are homes.
    fn came_home(&self) -> usize {
        match self.found_by {
            FoundBy::Bringer => self.came[HOME],
            FoundBy::Cell => 0,
        }
    }
}

/// Returns where the records of each rank and place begin and where they go, how many there are by
/// place, and how many groups of ranks sent some.
fn segments(flow: &Flow, about: About) -> (Vec<Segment>, [usize; PLACES], usize) {
    let About {
        outline,
        rank: own,
        found_by,
    } = about;
    let came: [usize; PLACES] = std::array::from_fn(|place| flow.received(place) as usize);
    // The copies of each place lie side by side, after the homes if these are with them.
    let are_homes = |place| place == HOME && found_by == FoundBy::Cell;
    let mut next = [0; PLACES];
    for place in HOME + 1..PLACES {
        let before = if are_homes(place - 1) {
            0
        } else {
            came[place - 1]
        };
        next[place] = next[place - 1] + before as u64;
    }
    let (mut start, mut segments) = (0, Vec::with_capacity(outline.headers.len() * PLACES));
    let mut senders = 0;
    for (rank, header) in outline.headers.iter().enumerate() {
        // The copies of this rank's own boxes need no homes if it finds their pairs.
        let needs_homes = rank != own || found_by == FoundBy::Cell;
        let group = senders % GROUPS;
        senders += usize::from(needs_homes && flow.from(rank).iter().any(|&count| count > 0));
        for (place, &count) in flow.from(rank).iter().enumerate() {
            segments.push(Segment {
                start,
                to: next[place],
                first: header.ids[0],
                origin: rank as u32,
                home: u32::from(are_homes(place)),
                group: match needs_homes && !are_homes(place) {
                    true => group as u32,
                    false => u32::MAX,
                },
                unused: 0,
            });
            next[place] += count;
            start += count;
        }
    }
    (segments, came, senders.min(GROUPS))
}

fn no_device() -> Cause {
    Cause::Engine {
        detail: "the engine has no device".to_owned(),
    }
}

/// Finds the pairs of some boxes, after the event `ready` and before the work that `stream` gets.
/// Returns what was tested.
pub(super) fn search(
    engine: &mut BroadPhase,
    (ready, stream): (&Event, &Stream),
    boxes: sap::DeviceFrame,
) -> Result<Tested, Cause> {
    let own = engine.stream().cloned().ok_or_else(no_device)?;
    own.wait(ready)?;
    let tests = engine.update_device(boxes)?.stats.tests;
    stream.wait(&own.record()?)?;
    Ok(Tested::of(engine, tests))
}

/// Finds the pairs of copies, with engines on the stream of the rank that keep their memory between
/// frames.
pub(crate) struct Copies {
    /// Finds those of small sets, always by a sweep.
    pub(crate) few: BroadPhase,
    pub(crate) many: BroadPhase,
    /// The homes near what came, in the last update.
    pub(crate) near: usize,
}

impl Copies {
    /// Finds the pairs of two sets.
    fn between<'a>(
        &'a mut self,
        sets: [(&Boxes, Range<usize>); 2],
    ) -> Result<Slice<'a, sap::Pair>, Cause> {
        let boxes: usize = sets.iter().map(|(_, range)| range.len()).sum();
        let engine = if boxes <= MAX_UNPLANNED {
            &mut self.few
        } else {
            &mut self.many
        };
        let [a, b] = sets.map(|(set, range)| set.engine(range));
        Ok(engine.overlaps_between_device(a?, b?)?)
    }

    /// Finds the pairs of what came with homes, and of copies that have their `min` in the cell on
    /// one axis each. Returns how many there are, those that are left out included.
    pub(crate) fn find(
        &mut self,
        kernels: &Kernels,
        cell: &Cell,
        named: &mut Named,
    ) -> Result<u64, Cause> {
        let (copies, came_home, mut found) = (&cell.copies, cell.came_home(), 0);
        let between = |[a, b]: [Slice<Name>; 2]| abi::Between {
            a: a.device_ptr(),
            b: b.device_ptr(),
            homes_a: u64::MAX,
            homes_b: 0,
            skips_own: u32::from(cell.found_by == FoundBy::Bringer),
            unused: 0,
        };
        if !copies.boxes.is_empty() {
            // As a rule about as many as the last time.
            let capacity = (2 * copies.boxes.len()).max(self.near + self.near / 4);
            let (near, count) = cell.near(kernels, capacity)?;
            self.near = count;
            let sets = [
                (&near, 0..count + came_home),
                (copies, 0..copies.boxes.len()),
            ];
            let pairs = self.between(sets)?;
            let between = abi::Between {
                homes_a: count as u64,
                homes_b: came_home as u64,
                ..between([near.names.slice(), copies.names.slice()])
            };
            found += named.add(kernels, pairs, between)?;
        }
        let (first, second) = (cell.came[FIRST], cell.came[SECOND]);
        if first > 0 && second > 0 {
            let middle = came_home + first;
            let ranges = [came_home..middle, middle..middle + second];
            let pairs = self.between(ranges.clone().map(|range| (copies, range)))?;
            let [a, b] = ranges.map(|range| copies.names.range(range));
            found += named.add(kernels, pairs, between([a?, b?]))?;
        }
        Ok(found)
    }
}
