//! The pairs that a rank owns, in order on its device, and what started and ended.

use super::abi::{self, Merge};
use super::kernels::{ITEMS, Kernels, THREADS, blocks};
use crate::results::Results;
use crate::{Cause, Pair};
use gpu::{Buffer, ByValue, Launch, Scratch, Slice, Stream, args};
use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
use gpusort::{Key, SortOptions};

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

    fn sort<K: Key>(
        &mut self,
        stream: &Stream,
        request: Request<K>,
        (n, payload): (usize, Payload),
    ) -> Result<(), Cause> {
        let bytes = Sorter::scratch_bytes::<K>(n as u64, payload)?;
        let scratch = self.scratch.reserve(stream, bytes as usize)?;
        Ok(self
            .sorter
            .sort(stream, request, scratch, &SortOptions::new())?)
    }
}

/// The lists of an update on one rank, each sorted.
pub(crate) struct Owned {
    pub(crate) pairs: Buffer<Pair>,
    pub(crate) started: Buffer<Pair>,
    pub(crate) ended: Buffer<Pair>,
}

/// The pairs that a rank owns, as they were found.
pub(crate) struct Unordered<'a> {
    /// Those of two of its own boxes, by indices and in order.
    pub(crate) kept: Slice<'a, sap::Pair>,
    /// The others, in any order.
    pub(crate) came: Slice<'a, abi::Found>,
    /// The id of its first box.
    pub(crate) first: u64,
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

    /// Puts the pairs in order. `last` are the pairs of the last update if events are wanted.
    pub(crate) fn new(
        kernels: &Kernels,
        sorting: &mut Sorting,
        found: &Unordered,
        last: Option<&Buffer<Pair>>,
    ) -> Result<Self, Cause> {
        let pairs = merged(kernels, sorting, found)?;
        let (started, ended) = match last {
            Some(last) => (
                without(kernels, pairs.slice(), last.slice())?,
                without(kernels, last.slice(), pairs.slice())?,
            ),
            None => (kernels.stream.alloc(0)?, kernels.stream.alloc(0)?),
        };
        Ok(Self {
            pairs,
            started,
            ended,
        })
    }

    /// Returns the lengths of the three lists.
    pub(crate) fn lengths(&self) -> [u64; 3] {
        [&self.pairs, &self.started, &self.ended].map(|list| list.len() as u64)
    }

    /// Copies the events to the host, where ranks settle them.
    pub(crate) fn events(&self, stream: &Stream) -> gpu::Result<Results> {
        Ok(Results {
            pairs: Vec::new(),
            started: stream.to_vec(self.started.slice())?,
            ended: stream.to_vec(self.ended.slice())?,
        })
    }

    /// Takes back the events that are left.
    pub(crate) fn settled(self, stream: &Stream, events: &Results) -> gpu::Result<Self> {
        Ok(Self {
            pairs: self.pairs,
            started: stream.from_slice(&events.started)?,
            ended: stream.from_slice(&events.ended)?,
        })
    }
}

/// Sorts the pairs that came, and merges them with the kept ones.
fn merged(
    kernels: &Kernels,
    sorting: &mut Sorting,
    found: &Unordered,
) -> Result<Buffer<Pair>, Cause> {
    let (stream, n) = (&kernels.stream, found.came.len());
    let [mut a, mut a_sorted] = [stream.alloc::<u32>(n)?, stream.alloc::<u32>(n)?];
    let [mut b, mut b_sorted] = [stream.alloc::<u64>(n)?, stream.alloc::<u64>(n)?];
    if n > 0 {
        // SAFETY: there is an `a` and a `b` for each pair.
        unsafe {
            kernels.for_each(
                &kernels.split,
                n,
                &args![found.came, n as u64, a.slice_mut(), b.slice_mut()],
            )?
        };
        // By `b`, then by `a`: the sorts are stable.
        let by_b = Request::keys(b.slice(), b_sorted.slice_mut());
        let by_b = by_b.values(a.slice(), a_sorted.slice_mut());
        sorting.sort(stream, by_b, (n, Payload::U32))?;
        let by_a = Request::keys(a_sorted.slice(), a.slice_mut());
        let by_a = by_a.values(b_sorted.slice(), b.slice_mut());
        sorting.sort(stream, by_a, (n, Payload::U64))?;
    }
    let own = found.kept.len();
    let mut pairs = stream.alloc::<Pair>(own + n)?;
    let own_blocks = blocks(own, ITEMS);
    let all = own_blocks + blocks(n, THREADS as usize);
    if all > 0 {
        let merge = ByValue(Merge {
            own: found.kept.device_ptr(),
            own_count: own as u64,
            a: a.slice().device_ptr(),
            b: b.slice().device_ptr(),
            count: n as u64,
            first: found.first,
            out: pairs.slice_mut().device_ptr(),
        });
        let launch = Launch::linear(all, THREADS);
        stream.using(&[found.kept.memory()?], || {
            // SAFETY: both lists are sorted and have their counts, and the result is for all.
            unsafe { stream.launch(&kernels.merge, &launch, &args![merge, own_blocks]) }
        })?;
    }
    Ok(pairs)
}

/// Returns the pairs of `these` that `those` lack. Both are sorted. It waits for their number.
fn without(kernels: &Kernels, these: Slice<Pair>, those: Slice<Pair>) -> gpu::Result<Buffer<Pair>> {
    let (stream, [n, m]) = (&kernels.stream, [these.len() as u64, those.len() as u64]);
    if n == 0 {
        return stream.alloc(0);
    }
    let blocks = blocks(these.len(), ITEMS);
    let launch = Launch::linear(blocks, THREADS);
    let mut counts = stream.alloc::<u32>(blocks as usize)?;
    let null = gpu::DevicePtr::<u64>::NULL;
    // SAFETY: there is a count for each block, and without sums nothing else is written.
    unsafe {
        stream.launch(
            &kernels.missing,
            &launch,
            &args![these, n, those, m, null, counts.slice_mut(), null],
        )?
    };
    let before = kernels.sums(counts.slice())?;
    let mut missing = stream.alloc::<Pair>(kernels.last(&before)? as usize)?;
    if !missing.is_empty() {
        let out = missing.slice_mut();
        // SAFETY: the same launch has counted the pairs.
        unsafe {
            stream.launch(
                &kernels.missing,
                &launch,
                &args![these, n, those, m, before.slice(), null, out],
            )?
        };
    }
    Ok(missing)
}
