//! The sample sort of [`crate::sort_keys`] between devices.
//!
//! Each rank sorts its elements, and splitters divide them into `pieces` parts for each rank, in
//! order. In round `p` each rank sends every rank the part that is piece `p` of that rank's result.
//! A rank then has a sorted run from each, and merges these while the next round travels. Where
//! devices reach each other's memory, nothing is sent: merges read the runs where they are.

mod elements;
mod kernels;
mod rounds;

use super::owned_pairs::Sorting;
use super::transport::{DeviceTransport, Lent};
use super::tuning::{MAX_PIECES, MIN_PIECE_BYTES};
use crate::error::{Result, WORDS, agree, failed, fault};
use crate::sort::Plan;
use crate::{Cause, List};
use elements::{Elements, Form, Kept};
use gpu::{Buffer, Device, Slice, Stream};
use gpusort::Key;
use gpusort::cuda::{Request, Value};
use kernels::Kernels;
use rounds::{Counts, Pieces, Rounds};

/// Sorts the keys of several ranks, each on its CUDA device: in the same order over all ranks as
/// [`sort_keys`](crate::sort_keys), but the borders between ranks may differ.
///
/// No rank gets more than `2 n / s` of the `n` keys of `s` ranks (rounded up). With `n / s` keys on
/// each, a sort takes `O(n / s log s)` on the device and moves all keys but one in `s` between
/// devices. Between sorts it keeps memory for the keys and values of a rank twice, and for three
/// pieces: each an eighth of them, or less than 128 MiB if a rank has less than 1 GiB. After a sort
/// of more than before it is up to half as much again. By [`Peers`](crate::Peers), where all
/// devices reach each other's memory, two ranks need no pieces, and three or four only one.
///
/// ```
/// use sap_dist::{DeviceSorter, Staged, Threads, Transport};
/// use std::time::Duration;
///
/// if gpu::Device::first().is_err() { return Ok(()) } // no GPU here
/// let parts = Threads::run(2, Duration::from_secs(60), |threads| {
///     let keys = [vec![5_u32, 1, 4], vec![2, 2]];
///     let mut sorter = DeviceSorter::new(0)?;
///     let stream = sorter.stream().clone();
///     let keys = stream.from_slice(&keys[threads.rank()]).expect("the device has memory");
///     let sorted = sorter.sort_keys(&mut Staged::new(threads), keys.slice())?;
///     Ok(stream.to_vec(sorted.slice()).expect("the device works"))
/// })?;
/// let sorted: Vec<u32> = parts.into_iter().collect::<sap_dist::Result<Vec<_>>>()?.concat();
/// assert_eq!(sorted, [1, 2, 2, 4, 5]);
/// # Ok::<(), sap_dist::Error>(())
/// ```
pub struct DeviceSorter {
    stream: Stream,
    /// Merges what has come, while more comes.
    merging: Stream,
    sorting: Sorting,
    /// The kernels for keys of 32 and of 64 bits, once they are loaded.
    kernels: [Option<Kernels>; 2],
    /// What this rank has sorted itself.
    own: Kept,
    pieces: Pieces,
    min_piece_bytes: u64,
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
                merging: Stream::new(&device)?,
                sorting: Sorting::new(&device)?,
                kernels: [None, None],
                own: Kept::default(),
                pieces: Pieces::default(),
                min_piece_bytes: MIN_PIECE_BYTES,
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
        let rank = transport.rank();
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
        let allocated = |stream: &Stream, count: usize| -> Result<_, Cause> {
            let values = if form.value_bytes > 0 { count } else { 0 };
            Ok((stream.alloc::<K>(count)?, stream.alloc::<V>(values)?))
        };
        if transport.size() == 1 {
            let sorted = given.and_then(|given| {
                let mut result = allocated(&self.stream, n)?;
                let sorted = Elements::of(&mut result, form)?;
                sort_own(&self.stream, &mut self.sorting, given, sorted)?;
                Ok(result)
            });
            return sorted.map_err(failed(rank));
        }
        let streams = (&self.stream, &self.merging);
        let own = given.and_then(|given| {
            // An earlier call that failed may still merge.
            self.stream.wait(&self.merging.record()?)?;
            let mut own = self.own.reserve(&self.stream, n, form)?;
            sort_own(&self.stream, &mut self.sorting, given, own.reborrow())?;
            let kernels = loaded(&mut self.kernels, self.stream.device(), K::BITS)?;
            Ok((kernels, own))
        });
        let divided = divide(transport, &self.stream, self.min_piece_bytes, own)?;
        let mut result = allocated(&self.stream, divided.2.of_rounds().sum());
        let sorted = result.as_mut().map_err(|cause| cause.clone());
        let sorted = sorted.and_then(|result| Ok(Elements::of(result, form)?));
        exchange(transport, streams, (divided, &mut self.pieces), sorted)?;
        result.map_err(failed(rank))
    }
}

/// A rank's sorted elements, with the kernels for them, those of the other ranks if it can read
/// them, and the elements of all parts.
type Divided<'a> = (Kernels, (Elements<'a>, Option<Lent>), Counts);

/// Divides the sorted elements of all ranks among them.
fn divide<'a>(
    transport: &mut dyn DeviceTransport,
    stream: &Stream,
    min_piece_bytes: u64,
    own: Result<(Kernels, Elements<'a>), Cause>,
) -> Result<Divided<'a>> {
    let (rank, ranks) = (transport.rank(), transport.size());
    let length = own.as_ref().map_or(0, |(_, own)| own.len() as u64);
    let rows = transport.all_gather(&[&fault(&own)[..], &[length]].concat())?;
    agree(&rows, WORDS + 1, (rank, &own))?;
    let (kernels, own) = own.map_err(failed(rank))?;
    let lengths: Vec<u64> = rows.chunks_exact(WORDS + 1).map(|row| row[WORDS]).collect();
    let bytes = (own.form.key_bytes() + own.form.value_bytes) as u64;
    let of_rank = lengths.iter().sum::<u64>() / ranks as u64 * bytes;
    let pieces = (of_rank / min_piece_bytes.max(1)).clamp(1, MAX_PIECES);
    let plan = Plan::new(&lengths, pieces);

    // A rank that fails goes on until all agree on what travels.
    let samples = kernels.samples(stream, &own, &plan, rank);
    let mut words = samples.clone().unwrap_or_default();
    words.resize(plan.width(), 0);
    let splitters = plan.splitters(&transport.all_gather(&words)?);
    let ends = samples.and_then(|_| kernels.ends(stream, &own, &splitters, rank));
    let mut counts = Counts::agree(transport, &ends, pieces as usize)?;
    let lent = transport.lend(stream, &[own.keys(), own.values.as_slice()])?;
    if lent.is_some() && ranks == 2 {
        // Nothing comes, and nothing is between merges, so that pieces would save no memory.
        counts = counts.in_one_piece();
    }
    Ok((kernels, (own, lent), counts))
}

/// Exchanges the pieces of all ranks, and merges what comes to `sorted`.
fn exchange(
    transport: &mut dyn DeviceTransport,
    streams: (&Stream, &Stream),
    ((kernels, own, counts), memory): (Divided, &mut Pieces),
    sorted: Result<Elements, Cause>,
) -> Result<()> {
    let rank = transport.rank();
    let rounds =
        sorted.and_then(|sorted| Rounds::new(streams, kernels, own, memory, sorted, &counts));
    let rows = transport.all_gather(&fault(&rounds))?;
    agree(&rows, WORDS, (rank, &rounds))?;
    let mut rounds = rounds.map_err(failed(rank))?;

    let mut state = Ok(());
    for piece in 0..counts.pieces() {
        rounds.exchange(transport, &counts, piece)?;
        // A rank whose device fails still sends, so that no other waits for it.
        state = state.and_then(|()| rounds.merge(&counts, piece));
    }
    // In any case, before what others lend is given back.
    let state = state.and(rounds.finish());
    let rows = transport.all_gather(&fault(&state))?;
    agree(&rows, WORDS, (rank, &state))
}

/// Sorts the elements of a rank.
fn sort_own<K: Key, V: Value>(
    stream: &Stream,
    sorting: &mut Sorting,
    (keys, values): (Slice<K>, Option<Slice<V>>),
    sorted: Elements,
) -> Result<(), Cause> {
    let mut request = Request::keys(keys, sorted.keys.cast()?);
    if let Some(values) = values {
        request = request.values(values, sorted.values.cast()?);
    }
    sorting.sort(stream, request)
}

/// Returns the kernels for keys of a width, and loads them if that was not done.
fn loaded(kernels: &mut [Option<Kernels>; 2], device: &Device, bits: u32) -> gpu::Result<Kernels> {
    let of_width = match &mut kernels[usize::from(bits == 64)] {
        Some(loaded) => loaded,
        none => none.insert(Kernels::new(device, bits)?),
    };
    Ok(of_width.clone())
}
