//! The calls that others make. What they have in common is in `job.rs`.

use super::auto::Calibration;
use super::buffers::Buffers;
use super::config::SorterConfig;
use super::context::Context;
use super::family::Shape;
use super::gather::{self, Records};
use super::job::{Job, Plan};
use super::order::KeyOrder;
use super::outcome::SortOutcome;
use super::payload::{Payload, Value};
use super::registry::family;
use super::{adaptive, onesweep};
use crate::{Algorithm, Error, Key, Result, SortOptions, SortReport};
use bytemuck::Pod;
use gpu::{Device, Slice, SliceMut, Stream};
use std::sync::Arc;

/// Sorts on one device. Cheap to clone; usable from several threads and on several streams at once, each sort with its own scratch.
///
/// The calls only give work to the stream: they allocate nothing and do not wait, so that they can be captured in a graph once
/// [`Sorter::prepare`] has loaded the kernels. All sorts are stable and give the same bits each time. An error means that
/// nothing was launched, unless it is the driver's.
///
/// Time is O(n · passes), a pass for each 8 bits of the window in which not all keys agree; none where the keys are in order
/// already. Adinets and Merrill, *Onesweep*, 2022; how it works is told in `kernels/sort/onesweep.cu`.
///
/// ```
/// use gpusort::cuda::{Payload, Sorter, SorterConfig};
/// use gpusort::SortOptions;
///
/// # fn main() -> gpusort::Result<()> {
/// let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
/// let stream = gpu::Stream::new(&device)?;
/// let sorter = Sorter::new(&device, SorterConfig::default())?;
/// let keys = stream.from_slice(&[3.0_f32, -1.0, 2.0])?;
/// let mut index = stream.alloc::<u32>(3)?;
/// let mut scratch = stream.alloc::<u8>(Sorter::scratch_bytes::<f32>(3, Payload::Index)? as usize)?;
/// sorter.sort_index(&stream, keys.slice(), None, index.slice_mut(), scratch.slice_mut(), &SortOptions::default())?;
/// assert_eq!(stream.to_vec(index.slice())?, [1, 2, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Sorter(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    context: Context,
    calibration: Calibration,
}

impl Sorter {
    /// A sorter for `device`. Kernels are loaded, and compiled by the driver where it has not kept them from before, by the first sort of
    /// a key width or by [`Sorter::prepare`].
    ///
    /// # Errors
    ///
    /// None so far.
    pub fn new(device: &Device, config: SorterConfig) -> Result<Self> {
        Self::with_calibration(device, config, Calibration::default())
    }

    /// As [`Sorter::new`], with [`Algorithm::Auto`] by `calibration` instead of the built-in table.
    ///
    /// # Errors
    ///
    /// None so far.
    pub fn with_calibration(
        device: &Device,
        config: SorterConfig,
        calibration: Calibration,
    ) -> Result<Self> {
        Ok(Self(Arc::new(Inner {
            context: Context::new(device, config),
            calibration,
        })))
    }

    /// Loads the kernels for sorts of up to `n` keys of type `K` by `algorithm`, with any payload.
    ///
    /// # Errors
    ///
    /// [`Error::Gpu`] where the driver cannot load them.
    pub fn prepare<K: Key>(&self, algorithm: Algorithm, n: u64) -> Result<()> {
        for payload in [Payload::None, Payload::U32, Payload::U64] {
            let shape = self.shape::<K>(n, payload.value_bytes());
            for algorithm in self.0.calibration.may_run(algorithm, &shape) {
                family(algorithm).prepare(&self.0.context, &shape)?;
            }
        }
        gather::kernel(&self.0.context, 4).map(drop)
    }

    /// Bytes of scratch memory for a sort of `n` keys by [`Algorithm::Auto`], aligned to [`gpu::ALIGNMENT`]: enough for whichever
    /// algorithm a [`Calibration`] makes of it. Enough for less keys too. Needs no device.
    ///
    /// About `n` keys and values, and 1 KiB for each tile of some thousand keys; for [`Payload::Index`] and [`Payload::Records`] room
    /// for the keys once more, which is only used where the sorted keys are not asked for.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyKeys`].
    pub fn scratch_bytes<K: Key>(n: u64, payload: Payload) -> Result<u64> {
        Self::scratch_bytes_for::<K>(Algorithm::Auto, n, payload)
    }

    /// As [`Sorter::scratch_bytes`], by that algorithm.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyKeys`].
    pub fn scratch_bytes_for<K: Key>(
        algorithm: Algorithm,
        n: u64,
        payload: Payload,
    ) -> Result<u64> {
        scratch_bytes::<K>(algorithm, n, payload, 1)
    }

    /// As [`Sorter::scratch_bytes_for`], for `N` arrays of `n` keys each, sorted side by side.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyKeys`].
    pub fn scratch_bytes_axes<K: Key, const N: usize>(
        algorithm: Algorithm,
        n: u64,
        payload: Payload,
    ) -> Result<u64> {
        scratch_bytes::<K>(algorithm, n, payload, N)
    }

    /// Sorts `input` into `output`.
    ///
    /// # Errors
    ///
    /// [`Error::BitWindow`], [`Error::LengthMismatch`], [`Error::TooManyKeys`], [`Error::ScratchTooSmall`], [`Error::Overlap`],
    /// [`Error::Misaligned`], [`Error::Null`]; [`Error::Gpu`] for the driver's.
    pub fn sort_keys<K: Key>(
        &self,
        stream: &Stream,
        input: Slice<'_, K>,
        output: SliceMut<'_, K>,
        scratch: SliceMut<'_, u8>,
        options: &SortOptions,
    ) -> Result<()> {
        let mut job = Job::of("input", &input)?;
        job.arrays[0].keys_out = Some(job.buffers.writes("output", &output)?);
        job.run::<K>(
            (&self.0.context, &self.0.calibration),
            stream,
            scratch,
            options,
        )
    }

    /// As [`Sorter::sort_keys`], for as many keys as `count` says when the sort runs, at most those of `input`: the host need not know.
    /// What is behind them in `output` stays.
    ///
    /// # Errors
    ///
    /// As [`Sorter::sort_keys`]; [`Error::LengthMismatch`] unless `count` is one number.
    pub fn sort_keys_counted<K: Key>(
        &self,
        stream: &Stream,
        count: Slice<'_, u64>,
        input: Slice<'_, K>,
        output: SliceMut<'_, K>,
        scratch: SliceMut<'_, u8>,
        options: &SortOptions,
    ) -> Result<()> {
        let mut job = Job::of("input", &input)?;
        job.arrays[0].keys_out = Some(job.buffers.writes("output", &output)?);
        job.device_count = job.buffers.number("count", &count)?;
        job.run::<K>(
            (&self.0.context, &self.0.calibration),
            stream,
            scratch,
            options,
        )
    }

    /// Sorts `keys` where they are.
    ///
    /// # Errors
    ///
    /// As [`Sorter::sort_keys`].
    pub fn sort_keys_in_place<K: Key>(
        &self,
        stream: &Stream,
        keys: SliceMut<'_, K>,
        scratch: SliceMut<'_, u8>,
        options: &SortOptions,
    ) -> Result<()> {
        let job = Job::in_place("keys", &keys)?;
        job.run::<K>(
            (&self.0.context, &self.0.calibration),
            stream,
            scratch,
            options,
        )
    }

    /// Sorts keys into `keys_out` and moves the value of each key to the same place of `values_out`.
    ///
    /// # Errors
    ///
    /// As [`Sorter::sort_keys`].
    #[expect(
        clippy::too_many_arguments,
        reason = "four buffers, scratch, and what to do"
    )]
    pub fn sort_pairs<K: Key, V: Value>(
        &self,
        stream: &Stream,
        keys_in: Slice<'_, K>,
        values_in: Slice<'_, V>,
        keys_out: SliceMut<'_, K>,
        values_out: SliceMut<'_, V>,
        scratch: SliceMut<'_, u8>,
        options: &SortOptions,
    ) -> Result<()> {
        let job = pairs(&keys_in, &values_in, &keys_out, &values_out)?;
        job.run::<K>(
            (&self.0.context, &self.0.calibration),
            stream,
            scratch,
            options,
        )
    }

    /// As [`Sorter::sort_pairs`], for as many pairs as `count` says when the sort runs; see [`Sorter::sort_keys_counted`].
    ///
    /// # Errors
    ///
    /// As [`Sorter::sort_keys_counted`].
    #[expect(
        clippy::too_many_arguments,
        reason = "four buffers, count, scratch, and what to do"
    )]
    pub fn sort_pairs_counted<K: Key, V: Value>(
        &self,
        stream: &Stream,
        count: Slice<'_, u64>,
        keys_in: Slice<'_, K>,
        values_in: Slice<'_, V>,
        keys_out: SliceMut<'_, K>,
        values_out: SliceMut<'_, V>,
        scratch: SliceMut<'_, u8>,
        options: &SortOptions,
    ) -> Result<()> {
        let mut job = pairs(&keys_in, &values_in, &keys_out, &values_out)?;
        job.device_count = job.buffers.number("count", &count)?;
        job.run::<K>(
            (&self.0.context, &self.0.calibration),
            stream,
            scratch,
            options,
        )
    }

    /// Sorts keys and their values where they are.
    ///
    /// # Errors
    ///
    /// As [`Sorter::sort_keys`].
    pub fn sort_pairs_in_place<K: Key, V: Value>(
        &self,
        stream: &Stream,
        keys: SliceMut<'_, K>,
        values: SliceMut<'_, V>,
        scratch: SliceMut<'_, u8>,
        options: &SortOptions,
    ) -> Result<()> {
        let mut job = Job::in_place("keys", &keys)?;
        job.value_bytes = size_of::<V>();
        let address = job.buffers.writes("values", &values)?;
        job.arrays[0].values_in = address;
        job.arrays[0].values_out = address;
        job.run::<K>(
            (&self.0.context, &self.0.calibration),
            stream,
            scratch,
            options,
        )
    }

    /// Writes the permutation that sorts: `keys[index[0]]` is the first key in order, and so on; and the sorted keys where asked for.
    /// The places 0, 1, 2, … that it starts from are not read from memory.
    ///
    /// # Errors
    ///
    /// As [`Sorter::sort_keys`]; [`Error::TooManyKeys`] for more than `u32::MAX` keys.
    pub fn sort_index<K: Key>(
        &self,
        stream: &Stream,
        keys: Slice<'_, K>,
        keys_out: Option<SliceMut<'_, K>>,
        index: SliceMut<'_, u32>,
        scratch: SliceMut<'_, u8>,
        options: &SortOptions,
    ) -> Result<()> {
        let mut job = Job::of("keys", &keys)?;
        job.value_bytes = size_of::<u32>();
        job.arrays[0].values_out = job.buffers.writes("index", &index)?;
        if let Some(keys_out) = keys_out {
            job.arrays[0].keys_out = Some(job.buffers.writes("keys_out", &keys_out)?);
        }
        job.run::<K>(
            (&self.0.context, &self.0.calibration),
            stream,
            scratch,
            options,
        )
    }

    /// Sorts records of any size by their keys: an index sort, then one read and one write of each record, in pieces of up to 16
    /// bytes (as size and addresses allow). Writes the sorted keys too where asked for.
    ///
    /// # Errors
    ///
    /// As [`Sorter::sort_index`].
    #[expect(
        clippy::too_many_arguments,
        reason = "four buffers, scratch, and what to do"
    )]
    pub fn sort_records<K: Key, R: Pod>(
        &self,
        stream: &Stream,
        keys: Slice<'_, K>,
        records: Slice<'_, R>,
        keys_out: Option<SliceMut<'_, K>>,
        records_out: SliceMut<'_, R>,
        scratch: SliceMut<'_, u8>,
        options: &SortOptions,
    ) -> Result<()> {
        let mut job = Job::of("keys", &keys)?;
        job.value_bytes = size_of::<u32>();
        job.records = Some(Records {
            input: job.buffers.reads("records", &records)?,
            output: job.buffers.writes("records_out", &records_out)?,
            bytes: size_of::<R>(),
        });
        if let Some(keys_out) = keys_out {
            job.arrays[0].keys_out = Some(job.buffers.writes("keys_out", &keys_out)?);
        }
        job.run::<K>(
            (&self.0.context, &self.0.calibration),
            stream,
            scratch,
            options,
        )
    }

    /// Sorts `N` arrays of one length, 1 to 3, such as a coordinate of each axis, side by side: in as many launches as one takes.
    /// `Sorter::scratch_bytes_axes::<K, N>(algorithm, n, Payload::None)` bytes of scratch are enough. [`Sorter::report`] tells of the first.
    ///
    /// # Errors
    ///
    /// As [`Sorter::sort_keys`].
    pub fn sort_keys_axes<K: Key, const N: usize>(
        &self,
        stream: &Stream,
        inputs: [Slice<'_, K>; N],
        outputs: [SliceMut<'_, K>; N],
        scratch: SliceMut<'_, u8>,
        options: &SortOptions,
    ) -> Result<()> {
        let mut job = axes("input", &inputs)?;
        for (axis, output) in outputs.iter().enumerate() {
            job.arrays[axis].keys_out = Some(job.buffers.writes("output", output)?);
        }
        job.run::<K>(
            (&self.0.context, &self.0.calibration),
            stream,
            scratch,
            options,
        )
    }

    /// As [`Sorter::sort_keys_axes`], writing the permutation of each array, as [`Sorter::sort_index`] does, and its sorted keys where
    /// asked for. `Sorter::scratch_bytes_axes::<K, N>(algorithm, n, Payload::Index)` bytes of scratch are enough.
    ///
    /// ```
    /// use gpusort::cuda::{Payload, Sorter, SorterConfig};
    /// use gpusort::{Algorithm, SortOptions};
    ///
    /// # fn main() -> gpusort::Result<()> {
    /// let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
    /// let stream = gpu::Stream::new(&device)?;
    /// let sorter = Sorter::new(&device, SorterConfig::default())?;
    /// let (x, y) = (stream.from_slice(&[3.0_f32, -1.0, 2.0])?, stream.from_slice(&[0.5_f32, 0.25, 7.0])?);
    /// let (mut by_x, mut by_y) = (stream.alloc::<u32>(3)?, stream.alloc::<u32>(3)?);
    /// let mut scratch = stream.alloc::<u8>(Sorter::scratch_bytes_axes::<f32, 2>(Algorithm::Auto, 3, Payload::Index)? as usize)?;
    /// sorter.sort_index_axes(
    ///     &stream,
    ///     [x.slice(), y.slice()],
    ///     None,
    ///     [by_x.slice_mut(), by_y.slice_mut()],
    ///     scratch.slice_mut(),
    ///     &SortOptions::default(),
    /// )?;
    /// assert_eq!(stream.to_vec(by_x.slice())?, [1, 2, 0]);
    /// assert_eq!(stream.to_vec(by_y.slice())?, [1, 0, 2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Sorter::sort_index`].
    pub fn sort_index_axes<K: Key, const N: usize>(
        &self,
        stream: &Stream,
        keys: [Slice<'_, K>; N],
        keys_out: Option<[SliceMut<'_, K>; N]>,
        index: [SliceMut<'_, u32>; N],
        scratch: SliceMut<'_, u8>,
        options: &SortOptions,
    ) -> Result<()> {
        let mut job = axes("keys", &keys)?;
        job.value_bytes = size_of::<u32>();
        for (axis, index) in index.iter().enumerate() {
            job.arrays[axis].values_out = job.buffers.writes("index", index)?;
        }
        for (axis, keys_out) in keys_out.iter().flatten().enumerate() {
            job.arrays[axis].keys_out = Some(job.buffers.writes("keys_out", keys_out)?);
        }
        job.run::<K>(
            (&self.0.context, &self.0.calibration),
            stream,
            scratch,
            options,
        )
    }

    /// Whether the keys are in the order that `options` ask for. Reads each key once and waits for the answer.
    /// `Sorter::scratch_bytes::<K>(0, Payload::None)` bytes of scratch are enough.
    ///
    /// # Errors
    ///
    /// As [`Sorter::sort_keys`].
    pub fn is_sorted<K: Key>(
        &self,
        stream: &Stream,
        keys: Slice<'_, K>,
        scratch: SliceMut<'_, u8>,
        options: &SortOptions,
    ) -> Result<bool> {
        let window = options.window::<K>()?;
        let mut buffers = Buffers::new(keys.len());
        buffers.reads("keys", &keys)?;
        let memory = buffers.check(&scratch, || Ok(onesweep::HEADER_BYTES as u64))?;
        if keys.is_empty() {
            return Ok(true);
        }
        let shape = self.shape::<K>(keys.len() as u64, 0);
        let order = KeyOrder::new(K::TYPE, options.order, window);
        stream.using(&memory, || {
            onesweep::is_sorted(&self.0.context, stream, &shape, order, keys.ptr(), scratch)
        })
    }

    /// What the last sort with this scratch memory did; waits for it. Stages have times where [`SorterConfig::timings`] is set, and are
    /// those of the last sort of this sorter.
    ///
    /// # Errors
    ///
    /// [`Error::ScratchTooSmall`] where no sort can have used the memory; [`Error::Gpu`] for the driver's.
    pub fn report(&self, stream: &Stream, scratch: Slice<'_, u8>) -> Result<SortReport> {
        let outcome = Self::outcome(scratch)?;
        let stages = self.0.context.times(stream)?;
        let mut downloaded = [SortOutcome::default()];
        stream.download(outcome, &mut downloaded)?;
        Ok(downloaded[0].report(stages))
    }

    /// Where the last sort with this scratch memory left its [`SortOutcome`]. Memory that no sort has used may hold anything.
    ///
    /// # Errors
    ///
    /// [`Error::ScratchTooSmall`] where no sort can have used the memory.
    pub fn outcome(scratch: Slice<'_, u8>) -> Result<Slice<'_, SortOutcome>> {
        let bytes = size_of::<SortOutcome>();
        if scratch.len() < bytes {
            return Err(Error::ScratchTooSmall {
                needed: bytes as u64,
                given: scratch.len() as u64,
            });
        }
        Ok(scratch.range(..bytes)?.cast()?)
    }

    /// For tests: keys of a tile, where sizes are worth trying.
    #[doc(hidden)]
    pub fn tile_keys<K: Key>(algorithm: Algorithm, payload: Payload) -> usize {
        family(algorithm).tile_keys(&Shape::new::<K>(0, payload))
    }

    /// For tests: elements of the core and of each halo of a window of nearly sorted input.
    #[doc(hidden)]
    pub fn nearly_sorted_window<K: Key>() -> [usize; 2] {
        adaptive::window_elements(K::TYPE)
    }

    fn shape<K: Key>(&self, n: u64, value_bytes: usize) -> Shape {
        Shape {
            n,
            key: K::TYPE,
            value_bytes,
            large: self.0.context.config.force_large,
            parameter: self.0.context.config.parameter,
        }
    }
}

/// The buffers of a pair sort.
fn pairs<K: Key, V: Value>(
    keys_in: &Slice<'_, K>,
    values_in: &Slice<'_, V>,
    keys_out: &SliceMut<'_, K>,
    values_out: &SliceMut<'_, V>,
) -> Result<Job> {
    let mut job = Job::of("keys_in", keys_in)?;
    job.value_bytes = size_of::<V>();
    job.arrays[0].values_in = job.buffers.reads("values_in", values_in)?;
    job.arrays[0].keys_out = Some(job.buffers.writes("keys_out", keys_out)?);
    job.arrays[0].values_out = job.buffers.writes("values_out", values_out)?;
    Ok(job)
}

/// A sort of arrays side by side.
fn axes<K: Key, const N: usize>(what: &'static str, arrays: &[Slice<'_, K>; N]) -> Result<Job> {
    const { assert!(N >= 1 && N <= 3, "one to three arrays") };
    let mut job = Job::new(arrays[0].len());
    for keys in arrays {
        job.keys(what, keys)?;
    }
    Ok(job)
}

/// Bytes of scratch memory for that many arrays.
fn scratch_bytes<K: Key>(
    algorithm: Algorithm,
    n: u64,
    payload: Payload,
    arrays: usize,
) -> Result<u64> {
    let plan = Plan {
        algorithm,
        shape: Shape::new::<K>(n, payload),
        arrays,
        implicit: payload.implicit(),
        spare_keys: payload.implicit(),
        records: payload == Payload::Records,
    };
    plan.check_count()?;
    plan.scratch_bytes()
}
