//! The calls that others make.

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
/// use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
/// use gpusort::SortOptions;
///
/// # fn main() -> gpusort::Result<()> {
/// let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
/// let stream = gpu::Stream::new(&device)?;
/// let sorter = Sorter::new(&device, SorterConfig::default())?;
/// let keys = stream.from_slice(&[3.0_f32, -1.0, 2.0])?;
/// let mut index = stream.alloc::<u32>(3)?;
/// let mut scratch = stream.alloc::<u8>(Sorter::scratch_bytes::<f32>(3, Payload::Index)? as usize)?;
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
    /// ```
    /// # use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
    /// # use gpusort::{Algorithm, SortOptions};
    /// # fn main() -> gpusort::Result<()> {
    /// # let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
    /// # let stream = gpu::Stream::new(&device)?;
    /// # let sorter = Sorter::new(&device, SorterConfig::default())?;
    /// sorter.prepare::<f32>(Algorithm::Auto, 1_000_000)?; // sorts of so many can now be captured in a graph
    /// # Ok(())
    /// # }
    /// ```
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
    /// ```
    /// use gpusort::cuda::{Payload, Sorter};
    ///
    /// let [keys, pairs] = [Payload::None, Payload::U32].map(|with| Sorter::scratch_bytes::<u32>(1 << 20, with));
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

    /// Sorts what `request` names, in the order and by the bits that `options` ask for.
    ///
    /// ```
    /// # use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
    /// # use gpusort::{Algorithm, SortOptions};
    /// # fn main() -> gpusort::Result<()> {
    /// # let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
    /// # let stream = gpu::Stream::new(&device)?;
    /// # let sorter = Sorter::new(&device, SorterConfig::default())?;
    /// let (keys, values) = (stream.from_slice(&[7_u32, 4, 9])?, stream.from_slice(&[70_u32, 40, 90])?);
    /// let (mut sorted, mut moved) = (stream.alloc::<u32>(3)?, stream.alloc::<u32>(3)?);
    /// let mut scratch = stream.alloc::<u8>(Sorter::scratch_bytes::<u32>(3, Payload::U32)? as usize)?;
    ///
    /// let request = Request::keys(keys.slice(), sorted.slice_mut()).values(values.slice(), moved.slice_mut());
    /// sorter.sort(&stream, request, scratch.slice_mut(), &SortOptions::new().descending())?;
    /// assert_eq!(stream.to_vec(moved.slice())?, [90, 70, 40]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::Conflict`], [`Error::BitWindow`], [`Error::TooManyKeys`] (more than `u32::MAX` where the
    /// index is made), [`Error::ScratchTooSmall`], [`Error::Overlap`], [`Error::Misaligned`], [`Error::Null`],
    /// [`Error::Unsupported`]; [`Error::Gpu`] for the driver's.
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

    /// Whether the keys are in the order that `options` ask for. Reads each key once and waits for the answer.
    /// `Sorter::scratch_bytes::<K>(0, Payload::None)` bytes of scratch are enough.
    ///
    /// ```
    /// # use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
    /// # use gpusort::{Algorithm, SortOptions};
    /// # fn main() -> gpusort::Result<()> {
    /// # let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
    /// # let stream = gpu::Stream::new(&device)?;
    /// # let sorter = Sorter::new(&device, SorterConfig::default())?;
    /// let keys = stream.from_slice(&[1_u32, 5, 5])?;
    /// let mut scratch = stream.alloc::<u8>(Sorter::scratch_bytes::<u32>(0, Payload::None)? as usize)?;
    /// assert!(sorter.is_sorted(&stream, keys.slice(), scratch.slice_mut(), &SortOptions::new())?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Sorter::sort`].
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

    /// What the last sort with this scratch memory did; waits for it. Stages have times where [`SorterConfig::timings`] is set, and are
    /// those of the last sort of this sorter.
    ///
    /// ```
    /// # use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
    /// # use gpusort::{Algorithm, SortOptions};
    /// # fn main() -> gpusort::Result<()> {
    /// # let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
    /// # let stream = gpu::Stream::new(&device)?;
    /// # let sorter = Sorter::new(&device, SorterConfig::default())?;
    /// let mut keys = stream.from_slice(&[3_u32, 1, 2])?;
    /// let mut scratch = stream.alloc::<u8>(Sorter::scratch_bytes::<u32>(3, Payload::None)? as usize)?;
    /// sorter.sort(&stream, Request::in_place(keys.slice_mut()), scratch.slice_mut(), &SortOptions::new())?;
    /// let report = sorter.report(&stream, scratch.slice())?;
    /// // All keys agree in three of the four digits.
    /// assert_eq!((report.algorithm, report.passes_run, report.passes_skipped), ("onesweep", 1, 3));
    /// # Ok(())
    /// # }
    /// ```
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
