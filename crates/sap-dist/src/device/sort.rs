//! The sort of [`crate::sort_keys`] between devices.
//!
//! Many keys of 32 bits: each rank sorts its elements by the highest bits only. Keys that have
//! these in common are a segment, and each rank gets whole segments, of which a block sorts one.
//!
//! Others, and those of which a segment is too large, by a sample sort: each rank sorts its
//! elements, and splitters divide them into `pieces` parts for each rank, in order. A rank then
//! merges the sorted runs of all ranks.
//!
//! Either way, in round `p` each rank sends every rank the part that is piece `p` of that rank's
//! result, while what came in the round before becomes a part of the result.

mod counts;
mod elements;
mod kernels;
mod rounds;
mod segments;

use super::owned_pairs::Sorting;
use super::transport::DeviceTransport;
use super::tuning::{MAX_PIECES, MEAN_SEGMENT, MIN_PIECE_BYTES, MIN_SEGMENTED};
use crate::error::{Result, WORDS, agree, failed, fault};
use crate::sort::Plan;
use crate::{Cause, List};
use counts::Counts;
use elements::{Elements, Form, Kept};
use gpu::{Buffer, Device, Slice, Stream};
use gpusort::cuda::{Request, Value};
use gpusort::{Key, SortOptions};
use kernels::Kernels;
use rounds::{Join, Pieces, Rounds};
use segments::{Division, Prepared, Segments};
use std::ops::Range;

/// Sorts the keys of several ranks, each on its CUDA device: in the same order over all ranks as
/// [`sort_keys`](crate::sort_keys), but the borders between ranks may differ.
///
/// No rank gets more than `2 n / s` of the `n` keys of `s` ranks (rounded up). With `n / s` keys on
/// each, a sort takes `O(n / s log s)` on the device and moves all keys but one in `s` between
/// devices. Between sorts it keeps memory for the keys and values of a rank twice, for up to three
/// pieces, and for tables: up to 256 KiB times the ranks. A piece is an eighth of what a rank gets,
/// or less than 128 MiB if ranks have less than 1 GiB each. Memory that had to grow is up to half
/// as large again.
///
/// From 2^24 keys of 32 bits of all ranks on, each rank first sorts by the highest bits alone
/// (docs/distributed.md). If too many keys have these in common, that was in vain, and takes two
/// thirds of the time of its own sort. The next 15 sorts of that type do not try it.
///
/// The first sort of a type of keys and values loads its kernels, which the driver may have to
/// compile: that can take seconds, within the time limits of the other ranks.
///
/// ```
/// use sap_dist::{DeviceSorter, Peers, Threads, Transport};
/// use std::time::Duration;
///
/// let Ok(count @ 1..) = gpu::Device::count() else { return Ok(()) }; // no GPU here
/// let parts = Threads::run(2, Duration::from_secs(60), |threads| {
///     let rank = threads.rank();
///     let mut sorter = DeviceSorter::new(rank % count)?;
///     let stream = sorter.stream().clone();
///     let keys = [vec![5_u32, 1, 4], vec![2, 2]];
///     let keys = stream.from_slice(&keys[rank]).expect("the device has memory");
///     let mut transport = Peers::new(threads, stream.device())?;
///     let sorted = sorter.sort_keys(&mut transport, keys.slice())?;
///     Ok(stream.to_vec(sorted.slice()).expect("the device works"))
/// })?;
/// let sorted: Vec<u32> = parts.into_iter().collect::<sap_dist::Result<Vec<_>>>()?.concat();
/// assert_eq!(sorted, [1, 2, 2, 4, 5]);
/// # Ok::<(), sap_dist::Error>(())
/// ```
pub struct DeviceSorter {
    stream: Stream,
    /// What comes in odd rounds.
    odd: Stream,
    /// Merges what has come, while more comes.
    merging: Stream,
    sorting: Sorting,
    /// The kernels for keys of 32 and of 64 bits, once they are loaded.
    kernels: [Option<Kernels>; 2],
    segments: Prepared,
    /// What this rank has sorted itself.
    own: Kept,
    pieces: Pieces,
    min_piece_bytes: u64,
    min_segmented: u64,
    mean_segment: u64,
    by_segments: bool,
}

impl DeviceSorter {
    /// Makes a sorter on the device of this number.
    ///
    /// # Errors
    ///
    /// [`Error::Rank`](crate::Error::Rank) with the rank 0 if there is no such device, or if it
    /// refuses memory.
    pub fn new(device: usize) -> Result<Self> {
        let make = || -> Result<Self, Cause> {
            let device = Device::open(device)?;
            Ok(Self {
                stream: Stream::new(&device)?,
                odd: Stream::new(&device)?,
                merging: Stream::new(&device)?,
                sorting: Sorting::new(&device)?,
                kernels: [None, None],
                segments: Prepared::default(),
                own: Kept::default(),
                pieces: Pieces::default(),
                min_piece_bytes: MIN_PIECE_BYTES,
                min_segmented: MIN_SEGMENTED,
                mean_segment: MEAN_SEGMENT,
                by_segments: false,
            })
        };
        make().map_err(failed(0))
    }

    /// For tests: pieces of few keys.
    #[doc(hidden)]
    #[must_use]
    pub const fn min_piece_bytes(mut self, bytes: u64) -> Self {
        self.min_piece_bytes = bytes;
        self
    }

    /// For tests: few keys in segments, or none.
    #[doc(hidden)]
    #[must_use]
    pub const fn min_segmented(mut self, keys: u64) -> Self {
        self.min_segmented = keys;
        self
    }

    /// For tests: few keys in a segment on average, as with fewer bits for very many.
    #[doc(hidden)]
    #[must_use]
    pub const fn mean_segment(mut self, keys: u64) -> Self {
        self.mean_segment = keys;
        self
    }

    /// For tests: whether the last sort was by segments.
    #[doc(hidden)]
    #[must_use]
    pub const fn was_by_segments(&self) -> bool {
        self.by_segments
    }

    /// Returns the stream that keys are read on, and on which the result is ready.
    #[must_use]
    pub const fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Sorts the keys of all ranks, ascending by [`Key::to_ordered_bits`]. Each rank gets a sorted
    /// part, and no key of a rank is above one of a later rank. All ranks must call it. The keys
    /// are unchanged.
    ///
    /// # Errors
    ///
    /// [`Error::Rank`](crate::Error::Rank) on all ranks if one fails,
    /// [`Error::Transport`](crate::Error::Transport) if a rank is missing.
    pub fn sort_keys<T: DeviceTransport, K: Key>(
        &mut self,
        transport: &mut T,
        keys: Slice<K>,
    ) -> Result<Buffer<K>> {
        let (keys, _) = self.sort(transport, keys, None::<Slice<u32>>)?;
        Ok(keys)
    }

    /// Sorts keys with a value each, as [`DeviceSorter::sort_keys`]. The sort is stable: equal keys
    /// keep the order of their ranks, and within a rank that of their positions.
    ///
    /// ```
    /// use sap_dist::{DeviceSorter, Staged, Threads, Transport};
    /// use std::time::Duration;
    ///
    /// if gpu::Device::first().is_err() { return Ok(()) } // no GPU here
    /// let parts = Threads::run(2, Duration::from_secs(60), |threads| {
    ///     let rank = threads.rank() as u64;
    ///     let mut sorter = DeviceSorter::new(0)?;
    ///     let stream = sorter.stream().clone();
    ///     let keys = stream.from_slice(&[7_u32, 7]).expect("the device has memory");
    ///     let values = stream.from_slice(&[rank; 2]).expect("the device has memory");
    ///     let mut transport = Staged::new(threads);
    ///     let (_, values) = sorter.sort_pairs(&mut transport, keys.slice(), values.slice())?;
    ///     Ok(stream.to_vec(values.slice()).expect("the device works"))
    /// })?;
    /// let values: Vec<u64> = parts.into_iter().collect::<sap_dist::Result<Vec<_>>>()?.concat();
    /// assert_eq!(values, [0, 0, 1, 1]);
    /// # Ok::<(), sap_dist::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`DeviceSorter::sort_keys`], and [`Cause::LengthMismatch`] if there is not one value for
    /// each key.
    pub fn sort_pairs<T: DeviceTransport, K: Key, V: Value>(
        &mut self,
        transport: &mut T,
        keys: Slice<K>,
        values: Slice<V>,
    ) -> Result<(Buffer<K>, Buffer<V>)> {
        self.sort(transport, keys, Some(values))
    }

    fn sort<K: Key, V: Value>(
        &mut self,
        transport: &mut dyn DeviceTransport,
        keys: Slice<K>,
        values: Option<Slice<V>>,
    ) -> Result<(Buffer<K>, Buffer<V>)> {
        let form = Form::new::<K, V>(values.is_some());
        let n = keys.len();
        let given = match values.filter(|values| values.len() != n) {
            Some(values) => Err(Cause::LengthMismatch {
                what: List::Values,
                expected: n as u64,
                given: values.len() as u64,
            }),
            None => Ok((keys, values)),
        };
        if transport.size() > 1 {
            return self.sort_all(transport, form, n, given);
        }
        let sorted = given.and_then(|given| {
            let mut result = allocated(&self.stream, form, n)?;
            let sorted = Elements::of(&mut result, form)?;
            sort_own(&self.stream, &mut self.sorting, given, sorted, 0..K::BITS)?;
            Ok(result)
        });
        sorted.map_err(failed(transport.rank()))
    }

    /// Sorts with other ranks what was given to this one.
    fn sort_all<K: Key, V: Value>(
        &mut self,
        transport: &mut dyn DeviceTransport,
        form: Form,
        n: usize,
        given: Result<(Slice<K>, Option<Slice<V>>), Cause>,
    ) -> Result<(Buffer<K>, Buffer<V>)> {
        let (rank, ranks) = (transport.rank(), transport.size());
        // Others may still copy what was sent in an odd round, and a call that failed may still
        // merge.
        let own = given.and_then(|given| {
            self.stream.wait(&self.odd.record()?)?;
            self.stream.wait(&self.merging.record()?)?;
            Ok((given, self.own.reserve(&self.stream, n, form)?))
        });
        let places = self.segments.places(self.stream.device(), form, ranks);
        let rows = transport.all_gather(&[&fault(&own)[..], &[n as u64, places]].concat())?;
        agree(&rows, WORDS + 2, (rank, &own))?;
        let (given, mut own) = own.map_err(failed(rank))?;
        let of_ranks = |word: usize| {
            rows.chunks_exact(WORDS + 2)
                .map(move |row| row[WORDS + word])
        };
        let lengths: Vec<u64> = of_ranks(0).collect();
        let (all, places) = (lengths.iter().sum::<u64>(), of_ranks(1).min().unwrap_or(0));
        let bytes = (form.key_bytes() + form.value_bytes) as u64;
        let pieces = all / ranks as u64 * bytes / self.min_piece_bytes.max(1);
        let pieces = pieces.clamp(1, MAX_PIECES) as usize;

        let mut sort =
            |own: Elements, bits| sort_own(&self.stream, &mut self.sorting, given, own, bits);
        let mut found = None;
        let wanted = (self.min_segmented, self.mean_segment);
        let division = Division::new(form, all, wanted, (places, pieces));
        if let Some(division) = division {
            let bits = K::BITS - division.bits..K::BITS;
            let sorted = sort(own.reborrow(), bits).map(|()| &own);
            let (stream, kept) = (&self.stream, &mut self.segments);
            found = Segments::divide(transport, stream, kept, sorted, division)?;
        }
        let (join, counts) = match found {
            Some((segments, cuts)) => {
                let counts = cuts.counts(rank);
                (Join::Segments(segments, cuts), counts)
            }
            None => {
                if division.is_some() {
                    self.segments.was_vain(form, ranks);
                }
                let sorted = sort(own.reborrow(), 0..K::BITS).map(|()| &own);
                let (stream, kept, into) = (&self.stream, &mut self.kernels, (&*lengths, pieces));
                let (kernels, counts) = divide(transport, stream, kept, sorted, into)?;
                (Join::Merges(kernels), counts)
            }
        };
        self.by_segments = matches!(join, Join::Segments(..));
        let mut result = allocated(&self.stream, form, counts.of_rounds().sum());
        let sorted = result.as_mut().map_err(|cause| cause.clone());
        let rounds = sorted.and_then(|result| {
            let sorted = Elements::of(result, form)?;
            let streams = [&self.stream, &self.odd, &self.merging];
            Rounds::new(streams, (own, join), &mut self.pieces, sorted, &counts)
        });
        let rows = transport.all_gather(&fault(&rounds))?;
        agree(&rows, WORDS, (rank, &rounds))?;
        let state = rounds.map_err(failed(rank))?.run(transport, &counts)?;
        let rows = transport.all_gather(&fault(&state))?;
        agree(&rows, WORDS, (rank, &state))?;
        result.map_err(failed(rank))
    }
}

/// Allocates a list of keys, and one of values if there are some.
fn allocated<K: Key, V: Value>(
    stream: &Stream,
    form: Form,
    count: usize,
) -> Result<(Buffer<K>, Buffer<V>), Cause> {
    let values = if form.value_bytes > 0 { count } else { 0 };
    Ok((stream.alloc::<K>(count)?, stream.alloc::<V>(values)?))
}

/// Divides the sorted elements of all ranks, of which each has one of `lengths`, among them.
fn divide(
    transport: &mut dyn DeviceTransport,
    stream: &Stream,
    kept: &mut [Option<Kernels>; 2],
    sorted: Result<&Elements, Cause>,
    (lengths, pieces): (&[u64], usize),
) -> Result<(Kernels, Counts)> {
    let rank = transport.rank();
    let plan = Plan::new(lengths, pieces as u64);
    let sorted = sorted.and_then(|own| {
        let kernels = loaded(kept, stream.device(), own.form.key.bits())?;
        Ok((kernels, own))
    });
    // A rank that fails goes on until all agree on what travels.
    let samples = sorted.as_ref().map_err(Cause::clone);
    let samples = samples.and_then(|(kernels, own)| kernels.samples(stream, own, &plan, rank));
    let mut words = samples.clone().unwrap_or_default();
    words.resize(plan.width(), 0);
    let splitters = plan.splitters(&transport.all_gather(&words)?);
    let ends = samples
        .and(sorted)
        .and_then(|(kernels, own)| Ok((kernels.ends(stream, own, &splitters, rank)?, kernels)));
    let (ends, kernels) = match ends {
        Ok((ends, kernels)) => (Ok(ends), Ok(kernels)),
        Err(cause) => (Err(cause.clone()), Err(cause)),
    };
    let counts = Counts::agree(transport, &ends, pieces)?;
    Ok((kernels.map_err(failed(rank))?, counts))
}

/// Sorts the elements of a rank by some bits of the keys.
fn sort_own<K: Key, V: Value>(
    stream: &Stream,
    sorting: &mut Sorting,
    (keys, values): (Slice<K>, Option<Slice<V>>),
    sorted: Elements,
    bits: Range<u32>,
) -> Result<(), Cause> {
    let mut request = Request::keys(keys, sorted.keys.cast()?);
    if let Some(values) = values {
        request = request.values(values, sorted.values.cast()?);
    }
    sorting.sort_by(stream, request, &SortOptions::new().bits(bits))
}

/// Returns the kernels for keys of a width, and loads them if that was not done.
fn loaded(kernels: &mut [Option<Kernels>; 2], device: &Device, bits: u32) -> gpu::Result<Kernels> {
    let of_width = match &mut kernels[usize::from(bits == 64)] {
        Some(loaded) => loaded,
        none => none.insert(Kernels::new(device, bits)?),
    };
    Ok(of_width.clone())
}
