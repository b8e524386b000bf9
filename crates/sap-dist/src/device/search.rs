//! The search of a rank in its cell, on its device.

use super::abi::{self, Bounds, FIRST, HOME, Homes, Name, PLACES, SECOND, Segment};
use super::exchange::Flow;
use super::frame::{DeviceFrame, address};
use super::kernels::{ITEMS, Kernels, blocks};
use super::survey::Survey;
use crate::Cause;
use crate::outline::Outline;
use crate::wire::Lists;
use gpu::{Buffer, ByValue, DevicePtr, Launch, Slice, Stream, args};
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

/// The boxes of the cell of a rank.
pub(crate) struct Cell<'a> {
    frame: DeviceFrame<'a>,
    lists: Lists,
    rank: usize,
    /// The boxes of this rank, empty where their home is elsewhere, and the homes that came. `None`
    /// if all boxes of this rank have their home here and no others came.
    homes: Option<Boxes>,
    /// Those with their `min` in the cell on the first axis only, on the second only, on neither.
    copies: Boxes,
    bounds: Buffer<Bounds>,
    /// The boxes that came, by place.
    came: [usize; PLACES],
}

impl<'a> Cell<'a> {
    /// Unpacks the records that came from all ranks.
    pub(crate) fn new(
        kernels: &Kernels,
        frame: DeviceFrame<'a>,
        survey: &Survey,
        (outline, rank): (&Outline, usize),
        (flow, records): (&Flow, Slice<u32>),
    ) -> Result<Self, Cause> {
        let (stream, lists) = (&kernels.stream, outline.lists);
        let (segments, came) = segments(flow, outline);
        let away = if survey.are_all_homes() && came[HOME] == 0 {
            0
        } else {
            frame.len()
        };
        let homes = Boxes::new(stream, away, came[HOME], lists)?;
        let copies = Boxes::new(stream, 0, came[HOME + 1..].iter().sum(), lists)?;
        let mut bounds = stream.from_slice(&[Bounds::EMPTY])?;
        let records_of = records.len() / words_of(lists);
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
                    words_of(lists) as u32,
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
            homes: None,
            copies,
            bounds,
            came,
        };
        if away > 0 || came[HOME] > 0 {
            cell.homes = Some(cell.with_own(kernels, survey, homes)?);
        }
        Ok(cell)
    }

    /// Puts the boxes of this rank before the homes that came.
    fn with_own(&self, kernels: &Kernels, survey: &Survey, mut homes: Boxes) -> gpu::Result<Boxes> {
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
    fn abi(&self) -> Homes {
        let own = self.frame.abi();
        let all = self.homes.as_ref().map_or(own, |homes| abi::Frame {
            boxes: homes.boxes.slice().device_ptr(),
            filters: address(homes.filters.as_ref().map(Buffer::slice)),
            worlds: address(homes.worlds.as_ref().map(Buffer::slice)),
            n: homes.boxes.len() as u64,
        });
        let names = self.homes.as_ref().map(|homes| homes.names.slice());
        Homes {
            all,
            own: own.n,
            first: self.frame.first,
            names: address(names),
            rank: self.rank as u32,
            unused: 0,
        }
    }

    /// Returns the homes as the engine takes them.
    fn engine(&self) -> gpu::Result<sap::DeviceFrame<'_>> {
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

    /// Gathers the homes that meet the bounds of all copies: first into memory for twice as many as
    /// there are copies, then, if that was too little, into enough.
    fn near(&self, kernels: &Kernels) -> Result<(Boxes, usize), Cause> {
        let (stream, homes) = (&kernels.stream, self.abi());
        let mut capacity = 2 * self.copies.boxes.len();
        loop {
            let near = Boxes::new(stream, 0, capacity, self.lists)?;
            let mut count = stream.alloc_zeroed::<u64>(1)?;
            stream.using(&self.frame.memory()?, || {
                let (homes, set) = (ByValue(homes), ByValue(near.named()?));
                let bounds = self.bounds.slice();
                // SAFETY: the homes are as many as they say, and so is the memory for near ones.
                unsafe {
                    kernels.for_each(
                        &kernels.near,
                        homes.0.all.n as usize,
                        &args![homes, bounds, set, capacity as u64, count.slice_mut()],
                    )
                }
            })?;
            let found = stream.to_vec(count.slice())?[0] as usize;
            if found <= capacity {
                return Ok((near, found));
            }
            capacity = found;
        }
    }
}

/// Returns the words of a record: a box, its index, its filter and its world.
pub(crate) const fn words_of(lists: Lists) -> usize {
    7 + 4 * lists.filters as usize + lists.worlds as usize
}

/// Returns where the records of each rank and place begin and where they go, and how many there
/// are by place.
fn segments(flow: &Flow, outline: &Outline) -> (Vec<Segment>, [usize; PLACES]) {
    let mut came = [0; PLACES];
    for rank in 0..outline.headers.len() {
        for (sum, &count) in came.iter_mut().zip(flow.from(rank)) {
            *sum += count as usize;
        }
    }
    // The copies of each place lie side by side.
    let mut next = [0; PLACES];
    for place in HOME + 2..PLACES {
        next[place] = next[place - 1] + came[place - 1] as u64;
    }
    let (mut start, mut segments) = (0, Vec::with_capacity(outline.headers.len() * PLACES));
    for (rank, header) in outline.headers.iter().enumerate() {
        for (place, &count) in flow.from(rank).iter().enumerate() {
            segments.push(Segment {
                start,
                to: next[place],
                first: header.ids[0],
                origin: rank as u32,
                home: u32::from(place == HOME),
            });
            next[place] += count;
            start += count;
        }
    }
    (segments, came)
}

/// The max boxes of two sets that are swept without a plan. On two H100s a sweep with 7,000 and
/// with 32,000 copies took 0.3 ms and less, a planned search 5.3 and 5.9 ms (`bench_devices`).
const MAX_UNPLANNED: usize = 1 << 17;

/// Finds the pairs that a cell reports, with engines that keep their memory between frames.
pub(crate) struct Search {
    pub(crate) engine: BroadPhase,
    /// Finds the pairs of small sets, always by a sweep.
    small: BroadPhase,
}

/// The pairs of a cell.
pub(crate) struct Found {
    /// The pairs of two boxes of this rank, in order. `None`: all pairs that the engine has.
    kept: Option<Buffer<sap::Pair>>,
    /// The others, grouped by the rank that owns them.
    pub(crate) away: Buffer<abi::Found>,
    /// How many of these each rank owns.
    pub(crate) owners: Vec<u64>,
    /// The tests of the engine among the homes, and the pairs found with copies.
    pub(crate) tests: u64,
}

/// Pairs by ids, and how many each rank owns.
struct Named {
    lists: Vec<Buffer<abi::Found>>,
    owners: Buffer<u64>,
}

impl Named {
    /// Adds the pairs of two sets.
    fn add(
        &mut self,
        kernels: &Kernels,
        pairs: Slice<sap::Pair>,
        [a, b]: [Slice<Name>; 2],
    ) -> gpu::Result<u64> {
        let mut named = kernels.stream.alloc::<abi::Found>(pairs.len())?;
        let n = pairs.len() as u64;
        // SAFETY: the indices of the pairs are of these names, whose ranks have a count each.
        unsafe {
            kernels.for_each(
                &kernels.name,
                pairs.len(),
                &args![pairs, n, a, b, named.slice_mut(), self.owners.slice_mut()],
            )?
        };
        self.lists.push(named);
        Ok(n)
    }

    /// Adds the pairs among the homes of which not both boxes are of this rank, and returns the
    /// others.
    fn divide(
        &mut self,
        kernels: &Kernels,
        pairs: Slice<sap::Pair>,
        homes: Homes,
    ) -> gpu::Result<Buffer<sap::Pair>> {
        let (stream, n) = (&kernels.stream, pairs.len() as u64);
        let launch = Launch::linear(blocks(pairs.len(), ITEMS).max(1), super::kernels::THREADS);
        let mut counts = stream.alloc::<u32>(blocks(pairs.len(), ITEMS).max(1) as usize)?;
        // SAFETY: there is a count for each block.
        unsafe {
            stream.launch(
                &kernels.kept,
                &launch,
                &args![pairs, n, homes.own, counts.slice_mut()],
            )?
        };
        let before = kernels.sums(counts.slice())?;
        let kept = kernels.last(&before)?;
        let mut own = stream.alloc::<sap::Pair>(kept as usize)?;
        let mut named = stream.alloc::<abi::Found>((n - kept) as usize)?;
        let homes = ByValue(homes);
        // SAFETY: the kept pairs were counted, and the indices of the pairs are of these homes.
        unsafe {
            stream.launch(
                &kernels.keep,
                &launch,
                &args![
                    pairs,
                    n,
                    homes,
                    before.slice(),
                    own.slice_mut(),
                    named.slice_mut(),
                    self.owners.slice_mut()
                ],
            )?
        };
        self.lists.push(named);
        Ok(own)
    }

    /// Groups all pairs by the rank that owns them, and returns how many each does.
    fn group(self, kernels: &Kernels) -> gpu::Result<(Buffer<abi::Found>, Vec<u64>)> {
        let stream = &kernels.stream;
        let owners = stream.to_vec(self.owners.slice())?;
        let mut sum = 0;
        let starts = owners.iter().map(|count| {
            sum += count;
            sum - count
        });
        let mut next = stream.from_slice(&starts.collect::<Vec<u64>>())?;
        let mut all = stream.alloc::<abi::Found>(sum as usize)?;
        for list in &self.lists {
            let n = list.len() as u64;
            // SAFETY: the counts of all lists give each owner's group its memory.
            unsafe {
                kernels.for_each(
                    &kernels.group,
                    list.len(),
                    &args![list.slice(), n, next.slice_mut(), all.slice_mut()],
                )?
            };
        }
        Ok((all, owners))
    }
}

impl Search {
    pub(crate) const fn new(engine: BroadPhase, small: BroadPhase) -> Self {
        Self { engine, small }
    }

    /// Finds the pairs of two sets, for work on the stream of the kernels.
    fn between<'a>(
        &'a mut self,
        kernels: &Kernels,
        sets: [(&Boxes, Range<usize>); 2],
    ) -> Result<Slice<'a, sap::Pair>, Cause> {
        let boxes: usize = sets.iter().map(|(_, range)| range.len()).sum();
        let [a, b] = sets.map(|(set, range)| set.engine(range));
        let small = self.small.stream().cloned();
        let Some(other) = small.filter(|_| boxes <= MAX_UNPLANNED) else {
            return Ok(self.engine.overlaps_between_device(a?, b?)?);
        };
        other.wait(&kernels.stream.record()?)?;
        let pairs = self.small.overlaps_between_device(a?, b?)?;
        kernels.stream.wait(&other.record()?)?;
        Ok(pairs)
    }

    /// Finds the pairs of home with home, of home with copy, and of copies that have their `min` in
    /// the cell on one axis each.
    pub(crate) fn run(
        &mut self,
        kernels: &Kernels,
        cell: &Cell,
        ranks: usize,
    ) -> Result<Found, Cause> {
        let mut named = Named {
            lists: Vec::new(),
            owners: kernels.stream.alloc_zeroed(ranks)?,
        };
        let mut tests = self.engine.update_device(cell.engine()?)?.stats.tests;
        let kept = match (&cell.homes, self.engine.device_pairs()) {
            (Some(_), Some(pairs)) => Some(named.divide(kernels, pairs, cell.abi())?),
            _ => None,
        };
        let copies = &cell.copies;
        if !copies.boxes.is_empty() {
            let (near, count) = cell.near(kernels)?;
            let sets = [(&near, 0..count), (copies, 0..copies.boxes.len())];
            let pairs = self.between(kernels, sets)?;
            let names = [near.names.slice(), copies.names.slice()];
            tests += named.add(kernels, pairs, names)?;
        }
        let (first, second) = (cell.came[FIRST], cell.came[SECOND]);
        if first > 0 && second > 0 {
            let ranges = [0..first, first..first + second];
            let pairs = self.between(kernels, ranges.clone().map(|range| (copies, range)))?;
            let [a, b] = ranges.map(|range| copies.names.range(range));
            tests += named.add(kernels, pairs, [a?, b?])?;
        }
        let (away, owners) = named.group(kernels)?;
        Ok(Found {
            kept,
            away,
            owners,
            tests,
        })
    }

    /// Returns the pairs of two boxes of this rank.
    pub(crate) fn kept<'a>(&'a self, found: &'a Found) -> Slice<'a, sap::Pair> {
        let none = DevicePtr::<sap::Pair>::NULL.address();
        match (&found.kept, self.engine.device_pairs()) {
            (Some(kept), _) => kept.slice(),
            (None, Some(pairs)) => pairs,
            // SAFETY: a slice of no elements may be at any address.
            (None, None) => unsafe { Slice::from_raw(none, 0) },
        }
    }
}
