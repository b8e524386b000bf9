//! The pairs that a rank owns, in order on its device, and what started and ended.

use super::abi::{self, Merge, Twice};
use super::frame::DeviceFrame;
use super::kernels::{ITEMS, Kernels, THREADS};
use crate::{Cause, Pair};
use gpu::{ByValue, Grow, Launch, Scratch, Slice, SliceMut, Stream, args, blocks};
use gpusort::cuda::{Request, Sorter, SorterConfig};
use gpusort::{Key, SortOptions};
use sap::BroadPhase;
use sap::internals::differences::{self, List, Space, first_capacity};
use std::mem;

/// A sorter and its scratch memory.
pub(crate) struct Sorting {
    sorter: Sorter,
    scratch: Scratch,
}

impl Sorting {
    pub(crate) fn new(device: &gpu::Device) -> Result<Self, Cause> {
        Ok(Self {
            sorter: Sorter::new(device, SorterConfig::default())?,
            scratch: Scratch::new(),
        })
    }

    pub(crate) fn sort<K: Key>(
        &mut self,
        stream: &Stream,
        request: Request<K>,
    ) -> Result<(), Cause> {
        self.sort_by(stream, request, &SortOptions::new())
    }

    pub(crate) fn sort_by<K: Key>(
        &mut self,
        stream: &Stream,
        request: Request<K>,
        options: &SortOptions,
    ) -> Result<(), Cause> {
        let Self { sorter, scratch } = self;
        Ok(sorter.sort_growing(stream, request, scratch, options)?)
    }
}

/// A list of pairs, in memory that the next one can take over: where other devices reach it, new
/// memory takes milliseconds.
#[derive(Default)]
pub(crate) struct Pairs {
    memory: Grow<Pair>,
    len: usize,
}

impl Pairs {
    pub(crate) fn slice(&self) -> Slice<'_, Pair> {
        // SAFETY: a slice of no elements may be at any address.
        let none = unsafe { Slice::from_raw(0, 0) };
        // There is memory for all.
        self.memory.part(self.len).unwrap_or(none)
    }

    /// Makes it a list of `len` pairs, to be written.
    fn resize(&mut self, stream: &Stream, len: usize) -> gpu::Result<SliceMut<'_, Pair>> {
        self.len = 0;
        let list = self.memory.reserve(stream, len)?;
        self.len = len;
        Ok(list)
    }

    /// Leaves out the pairs of another list, by memory for those that are left. Both are sorted.
    fn leave_out(
        &mut self,
        kernels: &Kernels,
        others: &[Pair],
        left: &mut Self,
    ) -> gpu::Result<()> {
        if self.len == 0 || others.is_empty() {
            return Ok(());
        }
        let stream = &kernels.stream;
        let others = stream.from_slice(others)?;
        let mut none = stream.alloc(0)?;
        let out = [left.resize(stream, self.len)?, none.slice_mut()];
        let [count, _] = differences(kernels, [self.slice(), others.slice()], out)?;
        left.len = count;
        mem::swap(self, left);
        Ok(())
    }
}

/// The lists of an update on one rank, each sorted.
#[derive(Default)]
pub(crate) struct Owned {
    pub(crate) pairs: Pairs,
    pub(crate) started: Pairs,
    pub(crate) ended: Pairs,
    /// Those of `pairs` that are with boxes of other ranks, excluded ones included.
    came: Pairs,
    /// Memory for `pairs` while some are left out.
    left: Pairs,
    /// Whether some pairs were excluded.
    excludes: bool,
}

/// What an engine found among the boxes of a rank: in order, and by the indices of its frame.
#[derive(Clone, Copy)]
pub(crate) struct Own<'a> {
    pub(crate) pairs: Slice<'a, sap::Pair>,
    /// What started and what ended, if the engine knows.
    pub(crate) events: Option<[Slice<'a, sap::Pair>; 2]>,
}

impl<'a> Own<'a> {
    /// What an engine found in its last update.
    pub(crate) fn of(engine: &'a BroadPhase) -> Result<Self, Cause> {
        Ok(Self {
            pairs: engine.device_pairs()?,
            events: Some(engine.device_events()?),
        })
    }

    /// Pairs of which no events are known.
    pub(crate) const fn pairs(pairs: Slice<'a, sap::Pair>) -> Self {
        Self {
            pairs,
            events: None,
        }
    }
}

/// What a rank knows of its boxes once all pairs are found.
#[derive(Clone, Copy)]
pub(crate) struct Brings<'a> {
    pub(crate) frame: &'a DeviceFrame<'a>,
    /// Whether any rank lists its ids. Then several boxes may have the same.
    pub(crate) has_listed_ids: bool,
}

/// The pairs of a rank with boxes of others, in order.
pub(crate) struct Came {
    pairs: Pairs,
    /// What started and what ended among them, if the engine knows the rest.
    events: Option<[Pairs; 2]>,
}

impl Came {
    /// Puts pairs in order, and compares them with those of the last update, if some are given.
    pub(crate) fn new(
        kernels: &Kernels,
        sorting: &mut Sorting,
        (pairs, frame): (Slice<abi::Found>, &DeviceFrame),
        last: Option<&Owned>,
    ) -> Result<Self, Cause> {
        let pairs = sorted(kernels, sorting, pairs, frame)?;
        let compare = |last: &Owned| {
            let mut events = <[Pairs; 2]>::default();
            let lists = [pairs.slice(), last.came.slice()];
            let expected = last.events().map(|list| list.len());
            changes(kernels, lists, expected, events.each_mut())?;
            Ok::<_, Cause>(events)
        };
        let events = last.map(compare).transpose()?;
        Ok(Self { pairs, events })
    }
}

/// Puts pairs that came in order, with the ids of their boxes `a`.
fn sorted(
    kernels: &Kernels,
    sorting: &mut Sorting,
    pairs: Slice<abi::Found>,
    frame: &DeviceFrame,
) -> Result<Pairs, Cause> {
    let (stream, n) = (&kernels.stream, pairs.len());
    let mut sorted = Pairs::default();
    if n == 0 {
        return Ok(sorted);
    }
    let mut out = sorted.resize(stream, n)?;
    let [mut a, mut a_sorted] = [stream.alloc::<u32>(n)?, stream.alloc::<u32>(n)?];
    let [mut b, mut b_sorted] = [stream.alloc::<u64>(n)?, stream.alloc::<u64>(n)?];
    // SAFETY: there is an `a` and a `b` for each pair.
    unsafe {
        kernels.for_each(
            &kernels.split,
            n,
            &args![pairs, n as u64, a.slice_mut(), b.slice_mut()],
        )?
    };
    // By `b`, then by `a`: the sorts are stable.
    let by_b = Request::keys(b.slice(), b_sorted.slice_mut());
    let by_b = by_b.values(a.slice(), a_sorted.slice_mut());
    sorting.sort(stream, by_b)?;
    let by_a = Request::keys(a_sorted.slice(), a.slice_mut());
    let by_a = by_a.values(b_sorted.slice(), b.slice_mut());
    sorting.sort(stream, by_a)?;
    let (memory, ids) = (frame.ids.memory()?, ByValue(frame.ids.abi()));
    stream.using(memory.as_slice(), || {
        // SAFETY: `a` are indices of the frame, and there is memory for each pair.
        unsafe {
            kernels.for_each(
                &kernels.join,
                n,
                &args![a.slice(), b.slice(), n as u64, ids, out.reborrow()],
            )
        }
    })?;
    Ok(sorted)
}

impl Brings<'_> {
    /// Merges pairs of two boxes of this rank with others, and checks that no two are equal if that
    /// is asked for.
    fn merge(
        &self,
        kernels: &Kernels,
        (own, other): (Slice<sap::Pair>, Slice<Pair>),
        checks: bool,
        merged: &mut Pairs,
    ) -> Result<(), Cause> {
        let (stream, n) = (&kernels.stream, other.len());
        let merged = merged.resize(stream, own.len() + n)?;
        let own_blocks = blocks(own.len(), ITEMS);
        let all = own_blocks + blocks(n, THREADS);
        let twice = || stream.alloc_zeroed::<u64>(Twice::WORDS);
        let mut twice = checks.then(twice).transpose()?;
        if all > 0 {
            let merge = ByValue(Merge {
                own: own.device_ptr(),
                own_count: own.len() as u64,
                other: other.device_ptr(),
                count: n as u64,
                ids: self.frame.ids.abi(),
                out: merged.device_ptr(),
                twice: match &mut twice {
                    Some(twice) => twice.slice_mut().device_ptr().cast(),
                    None => gpu::DevicePtr::NULL,
                },
            });
            let launch = Launch::linear(all, THREADS);
            let memory = self.frame.ids.memory()?.into_iter().chain([own.memory()?]);
            stream.using(&memory.collect::<Vec<_>>(), || {
                // SAFETY: both lists are sorted and have their counts, and the result is for all.
                unsafe { stream.launch(&kernels.merge, &launch, &args![merge, own_blocks]) }
            })?;
        }
        if let Some(twice) = twice {
            Twice::check(&stream.to_vec(twice.slice())?)?;
        }
        Ok(())
    }
}

impl Owned {
    /// Makes these the lists of an update: joins the pairs of two boxes of this rank with those
    /// that came, and leaves out the excluded ones. `last` are the lists of the last update if
    /// events are wanted.
    pub(crate) fn fill(
        &mut self,
        kernels: &Kernels,
        brings: Brings,
        (own, came): (Own, Came),
        last: Option<&Self>,
    ) -> Result<(), Cause> {
        self.came = Pairs::default(); // of an earlier update, and not compared any more
        let known = own.events.zip(came.events);
        if let Some((own, [started, ended])) = &known {
            brings.merge(kernels, (own[0], started.slice()), false, &mut self.started)?;
            brings.merge(kernels, (own[1], ended.slice()), false, &mut self.ended)?;
        }
        // After the others, as it waits for all work that reads ids of the frame if these are
        // listed.
        let both = (own.pairs, came.pairs.slice());
        brings.merge(kernels, both, brings.has_listed_ids, &mut self.pairs)?;
        let excluded = brings.frame.excluded;
        self.pairs.leave_out(kernels, excluded, &mut self.left)?;
        match last {
            _ if known.is_some() => {}
            Some(last) => {
                let lists = [self.pairs.slice(), last.pairs.slice()];
                let expected = last.events().map(|list| list.len());
                let events = [&mut self.started, &mut self.ended];
                changes(kernels, lists, expected, events)?;
            }
            None => (self.started.len, self.ended.len) = (0, 0),
        }
        self.came = came.pairs;
        self.excludes = !excluded.is_empty();
        Ok(())
    }

    /// Makes these lists of no pairs.
    pub(crate) fn clear(&mut self) {
        for list in [
            &mut self.pairs,
            &mut self.started,
            &mut self.ended,
            &mut self.came,
        ] {
            list.len = 0;
        }
        self.excludes = false;
    }

    /// Tells whether the events of a frame without other ids are those of its parts: no pair is, or
    /// was, excluded.
    pub(crate) const fn is_whole(&self, frame: &DeviceFrame) -> bool {
        !self.excludes && frame.excluded.is_empty()
    }

    fn events(&self) -> [Slice<'_, Pair>; 2] {
        [self.started.slice(), self.ended.slice()]
    }

    /// Returns the lengths of the three lists.
    pub(crate) fn lengths(&self) -> [u64; 3] {
        [&self.pairs, &self.started, &self.ended].map(|list| list.len as u64)
    }

    /// Drops some of the events that ended and started. Both lists are sorted.
    pub(crate) fn settle(
        &mut self,
        kernels: &Kernels,
        dropped: &[Vec<Pair>; 2],
    ) -> gpu::Result<()> {
        // As a rule nothing is left out here, and `left` is as large as `pairs`.
        let mut left = Pairs::default();
        self.started.leave_out(kernels, &dropped[1], &mut left)?;
        self.ended.leave_out(kernels, &dropped[0], &mut left)
    }
}

/// Finds what started and what ended: the pairs that only the first list has, and those that only
/// the second has, of which there were `expected` the last time. It waits for their numbers.
fn changes(
    kernels: &Kernels,
    lists: [Slice<Pair>; 2],
    expected: [usize; 2],
    [started, ended]: [&mut Pairs; 2],
) -> gpu::Result<()> {
    let stream = &kernels.stream;
    let mut capacity = lists.map(|list| list.len());
    for (capacity, expected) in capacity.iter_mut().zip(expected) {
        *capacity = first_capacity(*capacity).max((2 * expected).min(*capacity));
    }
    loop {
        let out = [
            started.resize(stream, capacity[0])?,
            ended.resize(stream, capacity[1])?,
        ];
        let found = differences(kernels, lists, out)?;
        if found[0] <= capacity[0] && found[1] <= capacity[1] {
            (started.len, ended.len) = (found[0], found[1]);
            return Ok(());
        }
        capacity = found;
    }
}

/// Finds the pairs that only one of two sorted lists has, as far as there is memory for them. It
/// waits for their numbers.
fn differences(
    kernels: &Kernels,
    lists: [Slice<Pair>; 2],
    mut out: [SliceMut<Pair>; 2],
) -> gpu::Result<[usize; 2]> {
    let stream = &kernels.stream;
    // The two totals, then the words.
    let words = differences::words(lists.map(|list| list.len()));
    let mut memory = stream.alloc_zeroed::<u64>(2 + words)?;
    let first = memory.slice_mut().device_ptr();
    let [second, words] = [1, 2].map(|index| first.byte_add(index * size_of::<u64>() as u64));
    let space = Space {
        capacity: out.each_ref().map(|list| list.len() as u64),
        lists: out.each_mut().map(|list| list.device_ptr()),
    };
    let lists = lists.map(|list| List::new(list.device_ptr(), list.len(), gpu::DevicePtr::NULL));
    let totals = [first, second];
    // SAFETY: the kernel is of pairs, the lists and the space have their lengths, totals and words
    // are there, and the words are zero.
    unsafe { differences::find(stream, &kernels.differences, lists, words, space, totals)? };
    let mut found = [0; 2];
    stream.download(memory.range(..2)?, &mut found)?;
    Ok(found.map(|count: u64| count as usize))
}
