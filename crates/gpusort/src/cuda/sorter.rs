//! The sorter: the public calls of the CUDA sorts.

use super::auto::Calibration;
use super::buffers::Buffers;
use super::config::SorterConfig;
use super::context::Context;
use super::family::Shape;
use super::gather;
use super::order::KeyOrder;
use super::outcome::SortOutcome;
use super::payload::Payload;
use super::plan::{self, Plan};
use super::registry::family;
use super::request::Request;
use super::{adaptive, onesweep};
use crate::{Algorithm, Error, Key, Result, SortOptions, SortReport};
use gpu::{Device, Scratch, Slice, SliceMut, Stream};
use std::sync::Arc;

/// Sorts on one device. A sorter is cheap to clone. Several threads and streams may use it at once,
/// each with scratch memory of its own; sorts that follow each other on a stream may share it.
///
/// A sort only queues work on the stream: it neither allocates nor waits, but for
/// [`Sorter::sort_growing`] and for the first sorts with the hint of nearly sorted input, each of
/// which may allocate some hundred bytes. Work that is queued later on that stream finds the
/// results. Once [`Sorter::prepare`] has loaded the kernels, it can be captured into a graph. All
/// sorts are stable and give the same bits each time. After an error nothing is launched, unless
/// the error comes from the driver.
///
/// Onesweep (Adinets and Merrill 2022) takes time O(n · passes). It runs a pass for each 8 bits of
/// the window in which keys differ, or for only the highest of them where blocks can sort the rest
/// on chip, and none if the keys are in order already.
/// `kernels/sort/onesweep.cu` describes it. Few keys, at most 4,096, are sorted by one block in
/// another way. It reports the passes that a sort by digits would have run.
///
/// ```
/// use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
/// use gpusort::SortOptions;
///
/// # fn main() -> gpusort::Result<()> {
/// let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
/// let stream = gpu::Stream::new(&device)?;
/// let sorter = Sorter::new(&device, SorterConfig::default())?;
/// let keys = stream.from_slice(&[3.0_f32, -1.0, 2.0])?;
/// let mut index = stream.alloc::<u32>(3)?;
/// let bytes = Sorter::scratch_bytes::<f32>(3, Payload::Index)?;
/// let mut scratch = stream.alloc::<u8>(bytes as usize)?;
/// let request = Request::index(keys.slice(), index.slice_mut());
/// sorter.sort(&stream, request, scratch.slice_mut(), &SortOptions::new())?;
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
    /// Makes a sorter for `device`. The first sort of a key width, or [`Sorter::prepare`], loads
    /// the kernels; the driver compiles those that it has not cached.
    ///
    /// # Errors
    ///
    /// No error is possible at present.
    pub fn new(device: &Device, config: SorterConfig) -> Result<Self> {
        Self::with_calibration(device, config, Calibration::default())
    }

    /// Makes a sorter whose [`Algorithm::Auto`] follows `calibration` instead of the built-in
    /// table.
    ///
    /// # Errors
    ///
    /// No error is possible at present.
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
    /// ```
    /// # use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
    /// # use gpusort::{Algorithm, SortOptions};
    /// # fn main() -> gpusort::Result<()> {
    /// # let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
    /// # let stream = gpu::Stream::new(&device)?;
    /// # let sorter = Sorter::new(&device, SorterConfig::default())?;
    /// // Sorts of up to this many keys can be captured into a graph from now on.
    /// sorter.prepare::<f32>(Algorithm::Auto, 1_000_000)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Gpu`] if the driver cannot load them.
    pub fn prepare<K: Key>(&self, algorithm: Algorithm, n: u64) -> Result<()> {
        for payload in [Payload::None, Payload::U32, Payload::U64] {
            let shape = self.shape::<K>(n, payload.value_bytes());
            for algorithm in self.0.calibration.may_run(algorithm, &shape) {
                family(algorithm).prepare(&self.0.context, &shape)?;
            }
        }
        gather::kernel(&self.0.context, 4).map(drop)
    }

    /// Returns the bytes of scratch memory for a sort of up to `n` keys by [`Algorithm::Auto`],
    /// enough for every algorithm that a [`Calibration`] may choose. The memory must be aligned to
    /// [`gpu::ALIGNMENT`]. The call needs no device.
    ///
    /// The scratch memory holds about `n` keys and values, and 1 KiB for each tile of some thousand
    /// keys. For [`Payload::Index`] and [`Payload::Records`] it holds the keys once more, which a
    /// sort uses if the caller does not ask for the sorted keys.
    ///
    /// ```
    /// use gpusort::cuda::{Payload, Sorter};
    ///
    /// let keys = Sorter::scratch_bytes::<u32>(1 << 20, Payload::None);
    /// let pairs = Sorter::scratch_bytes::<u32>(1 << 20, Payload::U32);
    /// assert!(keys? >= 4 << 20 && pairs? >= 8 << 20);
    /// # Ok::<(), gpusort::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::TooManyKeys`].
    pub fn scratch_bytes<K: Key>(n: u64, payload: Payload) -> Result<u64> {
        Self::scratch_bytes_for::<K>(Algorithm::Auto, n, payload)
    }

    /// Returns the bytes of scratch memory as [`Sorter::scratch_bytes`] does, for one algorithm.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyKeys`].
    pub fn scratch_bytes_for<K: Key>(
        algorithm: Algorithm,
        n: u64,
        payload: Payload,
    ) -> Result<u64> {
        let plan = Plan {
            algorithm,
            shape: Shape::new::<K>(n, payload),
            implicit: payload.implicit(),
            spare_keys: payload.implicit(),
            records: payload == Payload::Records,
        };
        plan.check_count()?;
        plan.scratch_bytes()
    }

    /// Sorts the buffers of `request`, in the order and by the bits that `options` ask for.
    ///
    /// ```
    /// # use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
    /// # use gpusort::{Algorithm, SortOptions};
    /// # fn main() -> gpusort::Result<()> {
    /// # let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
    /// # let stream = gpu::Stream::new(&device)?;
    /// # let sorter = Sorter::new(&device, SorterConfig::default())?;
    /// let keys = stream.from_slice(&[7_u32, 4, 9])?;
    /// let values = stream.from_slice(&[70_u32, 40, 90])?;
    /// let (mut sorted, mut moved) = (stream.alloc::<u32>(3)?, stream.alloc::<u32>(3)?);
    /// let bytes = Sorter::scratch_bytes::<u32>(3, Payload::U32)?;
    /// let mut scratch = stream.alloc::<u8>(bytes as usize)?;
    ///
    /// let request = Request::keys(keys.slice(), sorted.slice_mut())
    ///     .values(values.slice(), moved.slice_mut());
    /// sorter.sort(&stream, request, scratch.slice_mut(), &SortOptions::new().descending())?;
    /// assert_eq!(stream.to_vec(moved.slice())?, [90, 70, 40]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::Conflict`], [`Error::BitWindow`], [`Error::TooManyKeys`]
    /// (for index and record sorts, more than `u32::MAX`), [`Error::ScratchTooSmall`],
    /// [`Error::Overlap`], [`Error::Misaligned`], [`Error::Null`], [`Error::Unsupported`];
    /// [`Error::Gpu`] for errors of the driver.
    pub fn sort<K: Key>(
        &self,
        stream: &Stream,
        request: Request<'_, K>,
        scratch: SliceMut<'_, u8>,
        options: &SortOptions,
    ) -> Result<()> {
        let sorter = (&self.0.context, &self.0.calibration);
        plan::run(sorter, stream, request, scratch, options)
    }

    /// Sorts as [`Sorter::sort`] does, with scratch memory that grows if this request takes more.
    ///
    /// ```
    /// # use gpusort::cuda::{Request, Sorter, SorterConfig};
    /// # use gpusort::SortOptions;
    /// # fn main() -> gpusort::Result<()> {
    /// # let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
    /// # let stream = gpu::Stream::new(&device)?;
    /// # let sorter = Sorter::new(&device, SorterConfig::default())?;
    /// let mut scratch = gpu::Scratch::new();
    /// let mut keys = stream.from_slice(&[9_u32, 4, 7])?;
    /// let request = Request::in_place(keys.slice_mut());
    /// sorter.sort_growing(&stream, request, &mut scratch, &SortOptions::new())?;
    /// assert_eq!(stream.to_vec(keys.slice())?, [4, 7, 9]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Sorter::sort`]; [`Error::Gpu`] if there is not so much memory, or if it must grow
    /// while `stream` is captured.
    pub fn sort_growing<K: Key>(
        &self,
        stream: &Stream,
        request: Request<'_, K>,
        scratch: &mut Scratch,
        options: &SortOptions,
    ) -> Result<()> {
        let (n, payload) = request.shape()?;
        let bytes = Self::scratch_bytes_for::<K>(options.algorithm, n, payload)?;
        let scratch = scratch.reserve(stream, bytes as usize)?;
        self.sort(stream, request, scratch, options)
    }

    /// Returns whether the keys are in the order that `options` ask for. It reads each key once and
    /// waits for the answer. `Sorter::scratch_bytes::<K>(0, Payload::None)` bytes of scratch memory
    /// are enough.
    ///
    /// ```
    /// # use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
    /// # use gpusort::{Algorithm, SortOptions};
    /// # fn main() -> gpusort::Result<()> {
    /// # let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
    /// # let stream = gpu::Stream::new(&device)?;
    /// # let sorter = Sorter::new(&device, SorterConfig::default())?;
    /// let keys = stream.from_slice(&[1_u32, 5, 5])?;
    /// let bytes = Sorter::scratch_bytes::<u32>(0, Payload::None)?;
    /// let mut scratch = stream.alloc::<u8>(bytes as usize)?;
    /// assert!(sorter.is_sorted(&stream, keys.slice(), scratch.slice_mut(), &SortOptions::new())?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Sorter::sort`].
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
            onesweep::is_sorted(
                &self.0.context,
                stream,
                &shape,
                order,
                keys.device_ptr().cast(),
                scratch,
            )
        })
    }

    /// Reports what the last sort with this scratch memory did, and waits for it. With
    /// [`SorterConfig::timings`], the report has the stage times of this sorter's last sort.
    ///
    /// ```
    /// # use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
    /// # use gpusort::{Algorithm, SortOptions};
    /// # fn main() -> gpusort::Result<()> {
    /// # let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
    /// # let stream = gpu::Stream::new(&device)?;
    /// # let sorter = Sorter::new(&device, SorterConfig::default())?;
    /// let mut keys = stream.from_slice(&[3_u32, 1, 2])?;
    /// let bytes = Sorter::scratch_bytes::<u32>(3, Payload::None)?;
    /// let mut scratch = stream.alloc::<u8>(bytes as usize)?;
    /// let request = Request::in_place(keys.slice_mut());
    /// sorter.sort(&stream, request, scratch.slice_mut(), &SortOptions::new())?;
    /// let report = sorter.report(&stream, scratch.slice())?;
    /// // All keys agree in three of the four digits.
    /// assert_eq!(report.algorithm, "onesweep");
    /// assert_eq!((report.passes_run, report.passes_skipped), (1, 3));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::ScratchTooSmall`] if the memory is too small for any sort; [`Error::Gpu`] for
    /// errors of the driver.
    pub fn report(&self, stream: &Stream, scratch: Slice<'_, u8>) -> Result<SortReport> {
        let outcome = Self::outcome(scratch)?;
        let stages = self.0.context.times(stream)?;
        let mut downloaded = [SortOutcome::default()];
        stream.download(outcome, &mut downloaded)?;
        Ok(downloaded[0].report(stages))
    }

    /// Returns the [`SortOutcome`] of the last sort with this scratch memory. Memory that no sort
    /// has used has unspecified contents.
    ///
    /// # Errors
    ///
    /// [`Error::ScratchTooSmall`] if the memory is too small for any sort.
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

    /// For tests: returns the keys of a tile, because sizes around it are worth a test.
    #[doc(hidden)]
    pub fn tile_keys<K: Key>(algorithm: Algorithm, payload: Payload) -> usize {
        family(algorithm).tile_keys(&Shape::new::<K>(0, payload))
    }

    /// For tests: returns the elements of the core and of each halo of a window of nearly sorted
    /// input.
    #[doc(hidden)]
    pub fn nearly_sorted_window<K: Key>() -> [usize; 2] {
        adaptive::window_elements(K::TYPE)
    }

    fn shape<K: Key>(&self, n: u64, value_bytes: usize) -> Shape {
        Shape {
            n,
            key: K::TYPE,
            value_bytes,
            large: self.0.context.config.knobs.force_large,
            parameter: self.0.context.config.knobs.parameter,
        }
    }
}
