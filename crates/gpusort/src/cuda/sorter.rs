//! The calls: checks, then the launches of `kernels/sort/onesweep.cu` in their fixed order.

use super::buffers::{self, Named, same_length};
use super::kernels::Kernels;
use super::layout::{
    Args, DROP_KEYS, HEADER_BYTES, Header, IN_PLACE, Payload, Regions, Sizes, carve,
};
use super::tuning::{HISTOGRAM_BLOCKS, HISTOGRAM_CHUNK_BYTES, HISTOGRAM_THREADS, tile_for};
use crate::{Algorithm, Error, Key, Result, SortOptions, SortReport};
use bytemuck::Pod;
use gpu::{ByValue, Device, Launch, Layout, Slice, SliceMut, Stages, Stream};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A type that `sort_pairs` moves with a key: `u32` or `u64`. Sealed.
pub trait Value: Pod + Send + Sync + sealed::Sealed {
    /// The same, for [`Sorter::scratch_bytes`].
    const PAYLOAD: Payload;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

impl Value for u32 {
    const PAYLOAD: Payload = Payload::U32;
}
impl Value for u64 {
    const PAYLOAD: Payload = Payload::U64;
}

/// How a [`Sorter`] works.
#[derive(Debug, Clone, Copy, Default)]
pub struct SorterConfig {
    /// Times each stage for [`Sorter::report`]. Costs some microseconds a sort, and a sort can then not be captured in a graph.
    pub timings: bool,
    /// For tests: 64-bit offsets, whatever the number of keys.
    #[doc(hidden)]
    pub force_large: bool,
    /// For tests: this tile of each pass waits that many clock cycles inside the look-back.
    #[doc(hidden)]
    pub stall: Option<(u32, u32)>,
}

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
    device: Device,
    config: SorterConfig,
    /// By key width, then offset width; loaded when first needed.
    kernels: [OnceLock<Kernels>; 4],
    stages: Mutex<Stages>,
}

/// Where a sort's data lies, as device addresses.
struct Job {
    n: usize,
    keys_in: u64,
    /// None: the sorted keys are not wanted.
    keys_out: Option<u64>,
    /// 0: the values are the keys' places.
    values_in: u64,
    values_out: u64,
    value_bytes: usize,
    device_count: u64,
    records: Option<Records>,
}

struct Records {
    input: u64,
    output: u64,
    bytes: usize,
}

impl Sorter {
    /// A sorter for `device`. Kernels are loaded, and compiled by the driver where it has not kept them from before, by the first sort of
    /// a key width or by [`Sorter::prepare`].
    ///
    /// # Errors
    ///
    /// None so far.
    pub fn new(device: &Device, config: SorterConfig) -> Result<Self> {
        let (device, stages) = (device.clone(), Mutex::default());
        Ok(Self(Arc::new(Inner {
            device,
            config,
            kernels: Default::default(),
            stages,
        })))
    }

    /// Loads the kernels for sorts of up to `n` keys of type `K`.
    ///
    /// # Errors
    ///
    /// [`Error::Gpu`] where the driver cannot load them.
    pub fn prepare<K: Key>(&self, n: u64) -> Result<()> {
        self.kernels(&self.sizes::<K>(n, Payload::None)).map(drop)
    }

    /// Bytes of scratch memory for a sort of `n` keys, aligned to [`gpu::ALIGNMENT`]. Enough for less keys too. Needs no device.
    ///
    /// About `n` keys and values, and 1 KiB for each tile of some thousand keys; for [`Payload::Index`] and [`Payload::Records`] room
    /// for the keys once more, which is only used where the sorted keys are not asked for.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyKeys`].
    pub fn scratch_bytes<K: Key>(n: u64, payload: Payload) -> Result<u64> {
        let sizes = Sizes::new::<K>(n, payload.value_bytes(), false);
        check_count(&sizes, matches!(payload, Payload::Index | Payload::Records))?;
        scratch_needed(
            &sizes,
            matches!(payload, Payload::Index | Payload::Records),
            payload == Payload::Records,
        )
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
        self.keys(stream, input, output, None, scratch, options)
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
        self.keys(stream, input, output, Some(count), scratch, options)
    }

    fn keys<K: Key>(
        &self,
        stream: &Stream,
        input: Slice<'_, K>,
        output: SliceMut<'_, K>,
        count: Option<Slice<'_, u64>>,
        scratch: SliceMut<'_, u8>,
        options: &SortOptions,
    ) -> Result<()> {
        same_length(input.len(), output.len())?;
        let mut named = vec![
            Named::read("input", &input),
            Named::written("output", &output),
            Named::scratch(&scratch),
        ];
        let job = Job {
            keys_out: Some(output.ptr()),
            device_count: counted(count, &mut named)?,
            ..Job::new(&input)
        };
        self.sort::<K>(stream, job, &named, scratch, options)
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
        let named = [Named::written("keys", &keys), Named::scratch(&scratch)];
        let job = Job {
            keys_out: Some(keys.ptr()),
            ..Job::new(&keys.as_slice())
        };
        self.sort::<K>(stream, job, &named, scratch, options)
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
        self.pairs(
            stream, keys_in, values_in, keys_out, values_out, None, scratch, options,
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
        self.pairs(
            stream,
            keys_in,
            values_in,
            keys_out,
            values_out,
            Some(count),
            scratch,
            options,
        )
    }

    #[expect(clippy::too_many_arguments, reason = "as its callers")]
    fn pairs<K: Key, V: Value>(
        &self,
        stream: &Stream,
        keys_in: Slice<'_, K>,
        values_in: Slice<'_, V>,
        keys_out: SliceMut<'_, K>,
        values_out: SliceMut<'_, V>,
        count: Option<Slice<'_, u64>>,
        scratch: SliceMut<'_, u8>,
        options: &SortOptions,
    ) -> Result<()> {
        for values in [values_in.len(), keys_out.len(), values_out.len()] {
            same_length(keys_in.len(), values)?;
        }
        let mut named = vec![
            Named::read("keys_in", &keys_in),
            Named::read("values_in", &values_in),
            Named::written("keys_out", &keys_out),
            Named::written("values_out", &values_out),
            Named::scratch(&scratch),
        ];
        let job = Job {
            keys_out: Some(keys_out.ptr()),
            values_in: values_in.ptr(),
            values_out: values_out.ptr(),
            value_bytes: size_of::<V>(),
            device_count: counted(count, &mut named)?,
            ..Job::new(&keys_in)
        };
        self.sort::<K>(stream, job, &named, scratch, options)
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
        same_length(keys.len(), values.len())?;
        let named = [
            Named::written("keys", &keys),
            Named::written("values", &values),
            Named::scratch(&scratch),
        ];
        let job = Job {
            keys_out: Some(keys.ptr()),
            values_in: values.ptr(),
            values_out: values.ptr(),
            value_bytes: size_of::<V>(),
            ..Job::new(&keys.as_slice())
        };
        self.sort::<K>(stream, job, &named, scratch, options)
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
        same_length(keys.len(), index.len())?;
        let mut named = vec![
            Named::read("keys", &keys),
            Named::written("index", &index),
            Named::scratch(&scratch),
        ];
        let job = Job {
            keys_out: wanted(&keys, keys_out, &mut named)?,
            values_out: index.ptr(),
            value_bytes: size_of::<u32>(),
            ..Job::new(&keys)
        };
        self.sort::<K>(stream, job, &named, scratch, options)
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
        same_length(keys.len(), records.len())?;
        same_length(keys.len(), records_out.len())?;
        let mut named = vec![
            Named::read("keys", &keys),
            Named::read("records", &records),
            Named::written("records_out", &records_out),
            Named::scratch(&scratch),
        ];
        let job = Job {
            keys_out: wanted(&keys, keys_out, &mut named)?,
            value_bytes: size_of::<u32>(),
            records: Some(Records {
                input: records.ptr(),
                output: records_out.ptr(),
                bytes: size_of::<R>(),
            }),
            ..Job::new(&keys)
        };
        self.sort::<K>(stream, job, &named, scratch, options)
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
        buffers::check(&[Named::read("keys", &keys), Named::scratch(&scratch)])?;
        check_scratch(HEADER_BYTES as u64, &scratch)?;
        if keys.is_empty() {
            return Ok(true);
        }
        let header = scratch.range(..size_of::<Header>())?.cast::<Header>()?;
        let sizes = self.sizes::<K>(keys.len() as u64, Payload::None);
        let mut args = Args::new(K::TYPE, options.order, window, sizes.n).without_digits();
        args.keys[0] = keys.ptr();
        args.header = header.ptr();
        let mut header = header;
        stream.fill_bytes(header.reborrow(), 0)?;
        self.launch_histogram::<K>(stream, &sizes, &args)?;
        let mut answer = [Header::default()];
        stream.download(header.as_slice(), &mut answer)?;
        Ok(answer[0].unsorted == 0)
    }

    /// What the last sort with this scratch memory did; waits for it. Stages have times where [`SorterConfig::timings`] is set, and are
    /// those of the last sort of this sorter.
    ///
    /// # Errors
    ///
    /// [`Error::ScratchTooSmall`] where no sort can have used the memory; [`Error::Gpu`] for the driver's.
    pub fn report(&self, stream: &Stream, scratch: Slice<'_, u8>) -> Result<SortReport> {
        if scratch.len() < HEADER_BYTES {
            return Err(Error::ScratchTooSmall {
                needed: HEADER_BYTES as u64,
                given: scratch.len() as u64,
            });
        }
        let mut stages = Vec::new();
        if self.0.config.timings {
            let mut times = self
                .0
                .stages
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .finish(stream)?;
            times.pop(); // from the sort's end to now
            stages = times
                .into_iter()
                .map(|(stage, ms)| (stage, f64::from(ms)))
                .collect();
        }
        let mut header = [Header::default()];
        stream.download(scratch.range(..size_of::<Header>())?.cast()?, &mut header)?;
        let [header] = header;
        Ok(SortReport {
            algorithm: Algorithm::Onesweep.name(),
            backend: "cuda",
            n: header.n,
            passes_run: header.passes_run,
            passes_skipped: header.passes.saturating_sub(header.passes_run),
            early_exit: header.unsorted == 0,
            total_ms: stages.iter().map(|stage| stage.1).sum(),
            stages,
        })
    }

    /// For tests: keys of a tile, where sizes are worth trying.
    #[doc(hidden)]
    pub fn tile_keys<K: Key>(payload: Payload) -> usize {
        tile_for(size_of::<K>(), payload.value_bytes()).keys() as usize
    }

    fn sizes<K: Key>(&self, n: u64, payload: Payload) -> Sizes {
        Sizes::new::<K>(n, payload.value_bytes(), self.0.config.force_large)
    }

    fn kernels(&self, sizes: &Sizes) -> Result<&Kernels> {
        let place =
            &self.0.kernels[usize::from(sizes.key_bytes == 8) * 2 + usize::from(sizes.large)];
        match place.get() {
            Some(kernels) => Ok(kernels),
            None => {
                let loaded = Kernels::load(&self.0.device, sizes.key_bytes, sizes.large)?;
                Ok(place.get_or_init(|| loaded))
            }
        }
    }

    fn sort<K: Key>(
        &self,
        stream: &Stream,
        job: Job,
        named: &[Named],
        scratch: SliceMut<'_, u8>,
        options: &SortOptions,
    ) -> Result<()> {
        let window = options.window::<K>()?;
        let sizes = Sizes::new::<K>(job.n as u64, job.value_bytes, self.0.config.force_large);
        let implicit = job.value_bytes != 0 && job.values_in == 0;
        check_count(&sizes, implicit)?;
        buffers::check(named)?;
        let (spare_keys, records) = (job.keys_out.is_none(), job.records.is_some());
        check_scratch(scratch_needed(&sizes, spare_keys, records)?, &scratch)?;
        let mut regions = carve(&mut Layout::over(scratch)?, &sizes, spare_keys, records)?;

        let mut args = Args::new(K::TYPE, options.order, window, sizes.n);
        let keys_out = job.keys_out.unwrap_or(regions.spare_keys.ptr());
        let values_out = if records {
            regions.index.ptr()
        } else {
            job.values_out
        };
        args.keys = [job.keys_in, keys_out, regions.keys.ptr()];
        args.values = [job.values_in, values_out, regions.values.ptr()];
        args.header = regions.zeroed.ptr();
        args.bins = args.header + regions.bins;
        args.lookback = args.header + regions.lookback;
        args.device_count = job.device_count;
        let in_place = keys_out == job.keys_in;
        args.flags = if in_place { IN_PLACE } else { 0 } | if spare_keys { DROP_KEYS } else { 0 };
        if let Some((tile, cycles)) = self.0.config.stall {
            (args.stall_tile, args.stall_cycles) = (tile, cycles);
        }
        self.launch_sort::<K>(stream, &sizes, &args, &mut regions, in_place)?;
        match job.records {
            Some(records) if sizes.n != 0 => {
                self.launch_gather(stream, &sizes, &regions, &records)?
            }
            _ => {}
        }
        self.mark(stream, "end")
    }

    fn launch_sort<K: Key>(
        &self,
        stream: &Stream,
        sizes: &Sizes,
        args: &Args,
        regions: &mut Regions<'_>,
        in_place: bool,
    ) -> Result<()> {
        let kernels = self.kernels(sizes)?;
        if self.0.config.timings {
            *self.0.stages.lock().unwrap_or_else(PoisonError::into_inner) = Stages::new();
        }
        self.mark(stream, "clear")?;
        stream.fill_bytes(regions.zeroed.reborrow(), 0)?;
        if sizes.n == 0 {
            return Ok(());
        }
        self.mark(stream, "histogram")?;
        self.launch_histogram::<K>(stream, sizes, args)?;
        let tiles = u32::try_from(sizes.tiles()).unwrap_or(u32::MAX); // checked by `check_count`
        let launch = Launch::linear(tiles, sizes.tile.threads).dynamic_shared(sizes.shared_bytes());
        // Without digits one launch remains, for the copy to the output.
        for pass in 0..args.passes().max(1) {
            self.mark(stream, PASS_NAMES[pass as usize])?;
            let kernel = kernels.pass(K::TYPE, sizes.value_bytes);
            // SAFETY: `Args` is the kernels' struct; its buffers have `n` elements each and the scratch regions the sizes that the
            // kernels count on, all checked by the caller and borrowed from it.
            unsafe { stream.launch(kernel, &launch, &gpu::args![ByValue(*args), pass])? };
        }
        if in_place {
            self.mark(stream, "copy back")?;
            let launch = self.streaming_launch(sizes.n);
            // SAFETY: as above.
            unsafe {
                stream.launch(
                    kernels.copy_back(sizes.value_bytes),
                    &launch,
                    &gpu::args![ByValue(*args)],
                )?
            };
        }
        Ok(())
    }

    fn launch_histogram<K: Key>(&self, stream: &Stream, sizes: &Sizes, args: &Args) -> Result<()> {
        let most = u64::from(self.0.device.info().multiprocessors * HISTOGRAM_BLOCKS);
        let chunks = (sizes.n * sizes.key_bytes as u64).div_ceil(HISTOGRAM_CHUNK_BYTES);
        let launch = Launch::linear(chunks.clamp(1, most) as u32, HISTOGRAM_THREADS);
        // SAFETY: as in `launch_sort`; without digits the kernel uses the keys and the header only.
        unsafe {
            stream.launch(
                self.kernels(sizes)?.histogram(K::TYPE),
                &launch,
                &gpu::args![ByValue(*args)],
            )?
        };
        Ok(())
    }

    fn launch_gather(
        &self,
        stream: &Stream,
        sizes: &Sizes,
        regions: &Regions<'_>,
        records: &Records,
    ) -> Result<()> {
        self.mark(stream, "gather")?;
        // The largest power of two up to 16 that divides the size and both addresses.
        let power = (records.bytes as u64 | records.input | records.output | 16).trailing_zeros();
        let pieces = (records.bytes >> power) as u32;
        if pieces == 0 {
            return Ok(()); // records of no size
        }
        let launch = self.streaming_launch(sizes.n.saturating_mul(pieces.into()));
        let kernel = &self.kernels(sizes)?.gather[power as usize];
        let args = gpu::args![
            regions.index,
            records.input,
            records.output,
            sizes.n,
            pieces
        ];
        // SAFETY: the index holds numbers below n; both record buffers have n records, whose pieces the addresses are aligned for.
        unsafe { stream.launch(kernel, &launch, &args)? };
        Ok(())
    }

    /// Enough blocks of 256 threads for `elements`, or to fill the device several times.
    fn streaming_launch(&self, elements: u64) -> Launch {
        let most = u64::from(self.0.device.info().multiprocessors) * 32;
        Launch::linear(elements.div_ceil(256).clamp(1, most) as u32, 256)
    }

    fn mark(&self, stream: &Stream, stage: &'static str) -> Result<()> {
        if self.0.config.timings {
            self.0
                .stages
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .mark(stream, stage)?;
        }
        Ok(())
    }
}

const PASS_NAMES: [&str; 8] = [
    "pass 1", "pass 2", "pass 3", "pass 4", "pass 5", "pass 6", "pass 7", "pass 8",
];

impl Job {
    fn new<K: Key>(keys: &Slice<'_, K>) -> Self {
        let (n, keys_in) = (keys.len(), keys.ptr());
        Self {
            n,
            keys_in,
            keys_out: None,
            values_in: 0,
            values_out: 0,
            value_bytes: 0,
            device_count: 0,
            records: None,
        }
    }
}

/// The address of a number of keys on the device; 0 without one.
fn counted(count: Option<Slice<'_, u64>>, named: &mut Vec<Named>) -> Result<u64> {
    let Some(count) = count else { return Ok(0) };
    same_length(1, count.len())?;
    named.push(Named::read("count", &count));
    Ok(count.ptr())
}

/// The address for the sorted keys, where they are wanted.
fn wanted<K: Key>(
    keys: &Slice<'_, K>,
    out: Option<SliceMut<'_, K>>,
    named: &mut Vec<Named>,
) -> Result<Option<u64>> {
    let Some(out) = out else { return Ok(None) };
    same_length(keys.len(), out.len())?;
    named.push(Named::written("keys_out", &out));
    Ok(Some(out.ptr()))
}

/// Fails for more keys than a launch has tiles for, or, where places are numbered, than a `u32` counts.
fn check_count(sizes: &Sizes, numbered: bool) -> Result<()> {
    let tiles = i32::MAX as u64 * sizes.tile.keys();
    let limit = if numbered {
        tiles.min(u32::MAX.into())
    } else {
        tiles
    };
    if sizes.n > limit {
        Err(Error::TooManyKeys {
            keys: sizes.n,
            limit,
        })
    } else {
        Ok(())
    }
}

fn scratch_needed(sizes: &Sizes, spare_keys: bool, records: bool) -> Result<u64> {
    let mut layout = Layout::measure();
    carve(&mut layout, sizes, spare_keys, records)?;
    Ok(layout.bytes() as u64)
}

fn check_scratch(needed: u64, scratch: &SliceMut<'_, u8>) -> Result<()> {
    let given = scratch.len() as u64;
    if given < needed {
        Err(Error::ScratchTooSmall { needed, given })
    } else {
        Ok(())
    }
}
