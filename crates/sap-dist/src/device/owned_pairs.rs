//! The pairs that a rank owns, in order on its device, and what started and ended.

use super::abi::{self, Merge, Twice};
use super::frame::DeviceFrame;
use super::kernels::{ITEMS, Kernels, THREADS};
use crate::{Cause, Pair};
use gpu::{Buffer, ByValue, Launch, Scratch, Slice, Stream, args, blocks};
use gpusort::cuda::{Request, Sorter, SorterConfig};
use gpusort::{Key, SortOptions};
use sap::internals::differences::{self, List, Space, first_capacity};

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
        let Self { sorter, scratch } = self;
        Ok(sorter.sort_growing(stream, request, scratch, &SortOptions::new())?)
    }
}

/// The lists of an update on one rank, each sorted.
pub(crate) struct Owned {
    pub(crate) pairs: Buffer<Pair>,
    pub(crate) started: Buffer<Pair>,
    pub(crate) ended: Buffer<Pair>,
}

/// The pairs of two boxes of a rank, in order and by the indices of its frame.
#[derive(Clone, Copy)]
pub(crate) struct Own<'a> {
    pub(crate) pairs: Slice<'a, sap::Pair>,
    pub(crate) frame: &'a DeviceFrame<'a>,
    /// Whether any rank lists its ids. Then several boxes may have the same.
    pub(crate) has_listed_ids: bool,
}

/// The pairs of a rank with boxes of others, in order: the indices of their boxes `a`, and the ids
/// of their boxes `b`.
pub(crate) struct Came {
    a: Buffer<u32>,
    b: Buffer<u64>,
}

impl Came {
    /// Puts pairs in order.
    pub(crate) fn new(
        kernels: &Kernels,
        sorting: &mut Sorting,
        pairs: Slice<abi::Found>,
    ) -> Result<Self, Cause> {
        let (stream, n) = (&kernels.stream, pairs.len());
        let [mut a, mut a_sorted] = [stream.alloc::<u32>(n)?, stream.alloc::<u32>(n)?];
        let [mut b, mut b_sorted] = [stream.alloc::<u64>(n)?, stream.alloc::<u64>(n)?];
        if n > 0 {
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
        }
        Ok(Self { a, b })
    }

    /// Merges the pairs with those of two boxes of this rank.
    fn merged(&self, kernels: &Kernels, of: Own) -> Result<Buffer<Pair>, Cause> {
        let Own {
            pairs: kept,
            frame,
            has_listed_ids,
        } = of;
        let (stream, own, n) = (&kernels.stream, kept.len(), self.a.len());
        let mut pairs = stream.alloc::<Pair>(own + n)?;
        let own_blocks = blocks(own, ITEMS);
        let all = own_blocks + blocks(n, THREADS);
        let twice = || stream.alloc_zeroed::<u64>(Twice::WORDS);
        let mut twice = has_listed_ids.then(twice).transpose()?;
        if all > 0 {
            let merge = ByValue(Merge {
                own: kept.device_ptr(),
                own_count: own as u64,
                a: self.a.slice().device_ptr(),
                b: self.b.slice().device_ptr(),
                count: n as u64,
                ids: frame.ids.abi(),
                out: pairs.slice_mut().device_ptr(),
                twice: match &mut twice {
                    Some(twice) => twice.slice_mut().device_ptr().cast(),
                    None => gpu::DevicePtr::NULL,
                },
            });
            let launch = Launch::linear(all, THREADS);
            let memory = frame.ids.memory()?.into_iter().chain([kept.memory()?]);
            stream.using(&memory.collect::<Vec<_>>(), || {
                // SAFETY: both lists are sorted and have their counts, and the result is for all.
                unsafe { stream.launch(&kernels.merge, &launch, &args![merge, own_blocks]) }
            })?;
        }
        if let Some(twice) = twice {
            // This also waits for the last work that reads ids of the frame.
            Twice::check(&stream.to_vec(twice.slice())?)?;
        }
        Ok(pairs)
    }
}

impl Owned {
    /// Lists of no pairs.
    pub(crate) fn none(stream: &Stream) -> gpu::Result<Self> {
        Ok(Self {
            pairs: stream.alloc(0)?,
            started: stream.alloc(0)?,
            ended: stream.alloc(0)?,
        })
    }

    /// Joins the pairs of two boxes of this rank with those that came, and leaves out the excluded
    /// ones. `last` are the lists of the last update if events are wanted.
    pub(crate) fn new(
        kernels: &Kernels,
        own: Own,
        came: &Came,
        last: Option<&Self>,
    ) -> Result<Self, Cause> {
        let pairs = came.merged(kernels, own)?;
        let mut owned = Self {
            pairs: without(kernels, pairs, own.frame.excluded)?,
            ..Self::none(&kernels.stream)?
        };
        if let Some(last) = last {
            [owned.started, owned.ended] = owned.changes(kernels, last)?;
        }
        Ok(owned)
    }

    /// Returns the lengths of the three lists.
    pub(crate) fn lengths(&self) -> [u64; 3] {
        [&self.pairs, &self.started, &self.ended].map(|list| list.len() as u64)
    }

    /// Drops some of the events that ended and started. Both lists are sorted.
    pub(crate) fn settled(self, kernels: &Kernels, dropped: &[Vec<Pair>; 2]) -> gpu::Result<Self> {
        Ok(Self {
            pairs: self.pairs,
            started: without(kernels, self.started, &dropped[1])?,
            ended: without(kernels, self.ended, &dropped[0])?,
        })
    }

    /// Finds what started and what ended: the pairs that only this update has, and those that only
    /// the last one has. It waits for their numbers.
    fn changes(&self, kernels: &Kernels, last: &Self) -> gpu::Result<[Buffer<Pair>; 2]> {
        let (stream, lists) = (&kernels.stream, [self.pairs.slice(), last.pairs.slice()]);
        let [mut capacity, changed] = [lists, [last.started.slice(), last.ended.slice()]]
            .map(|lists| lists.map(|list| list.len()));
        for (capacity, changed) in capacity.iter_mut().zip(changed) {
            *capacity = first_capacity(*capacity).max((2 * changed).min(*capacity));
        }
        loop {
            let mut out = [stream.alloc(capacity[0])?, stream.alloc(capacity[1])?];
            let found = differences(kernels, lists, &mut out)?;
            if found[0] <= capacity[0] && found[1] <= capacity[1] {
                let [started, ended] = out;
                return Ok([
                    shortened(stream, started, found[0])?,
                    shortened(stream, ended, found[1])?,
                ]);
            }
            capacity = found;
        }
    }
}

/// Returns the pairs of a sorted list without those of another one, which is sorted too.
fn without(kernels: &Kernels, pairs: Buffer<Pair>, without: &[Pair]) -> gpu::Result<Buffer<Pair>> {
    if pairs.is_empty() || without.is_empty() {
        return Ok(pairs);
    }
    let stream = &kernels.stream;
    let without = stream.from_slice(without)?;
    let mut out = [stream.alloc(pairs.len())?, stream.alloc(0)?];
    let [count, _] = differences(kernels, [pairs.slice(), without.slice()], &mut out)?;
    let [left, _] = out;
    shortened(stream, left, count)
}

/// Returns the first elements of a list, in memory for as many.
fn shortened(stream: &Stream, list: Buffer<Pair>, count: usize) -> gpu::Result<Buffer<Pair>> {
    let mut exact = stream.alloc(count)?;
    stream.copy(exact.slice_mut(), list.range(..count)?)?;
    Ok(exact)
}

/// Finds the pairs that only one of two sorted lists has, as far as there is memory for them. It
/// waits for their numbers.
fn differences(
    kernels: &Kernels,
    lists: [Slice<Pair>; 2],
    out: &mut [Buffer<Pair>; 2],
) -> gpu::Result<[usize; 2]> {
    let stream = &kernels.stream;
    // The two totals, then the words.
    let words = differences::words(lists.map(|list| list.len()));
    let mut memory = stream.alloc_zeroed::<u64>(2 + words)?;
    let first = memory.slice_mut().device_ptr();
    let [second, words] = [1, 2].map(|index| first.byte_add(index * size_of::<u64>() as u64));
    let space = Space {
        capacity: out.each_ref().map(|list| list.len() as u64),
        lists: out.each_mut().map(|list| list.slice_mut().device_ptr()),
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
