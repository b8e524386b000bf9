//! What a family of sorts is to the rest: sizes that need no device, and work for a stream.

use super::auto::Calibration;
use super::config::SorterConfig;
use super::order::KeyOrder;
use super::{bucket_sort, ha_radix, onesweep, quicksort, satish_merge, satish_radix};
use crate::{Algorithm, Error, Key, KeyType, Result, SortReport};
use bytemuck::{Pod, Zeroable};
use gpu::{Device, Kernel, Launch, Layout, SliceMut, Stages, Stream};
use radsweep_kernels::Image;
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};

/// What goes with the keys, for [`Sorter::scratch_bytes`](super::Sorter::scratch_bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Payload {
    /// Nothing: `sort_keys`.
    None,
    /// A 4-byte value: `sort_pairs`.
    U32,
    /// An 8-byte value: `sort_pairs`.
    U64,
    /// Their places in the input: `sort_index`.
    Index,
    /// Records of any size: `sort_records`.
    Records,
}

impl Payload {
    pub(super) fn value_bytes(self) -> usize {
        match self {
            Payload::None => 0,
            Payload::U32 | Payload::Index | Payload::Records => 4,
            Payload::U64 => 8,
        }
    }

    /// Whether the values are the keys' places, made up on the way.
    pub(super) fn implicit(self) -> bool {
        matches!(self, Payload::Index | Payload::Records)
    }
}

/// What a sort's memory and launches depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub n: u64,
    pub key: KeyType,
    /// 0, 4 or 8.
    pub value_bytes: usize,
    /// For tests: offsets of 64 bits, whatever the number of keys.
    pub large: bool,
    /// For measurements: the paper's parameter, in the place of what the family has tuned.
    pub parameter: Option<u32>,
}

impl Shape {
    pub fn new<K: Key>(n: u64, payload: Payload) -> Self {
        Self {
            n,
            key: K::TYPE,
            value_bytes: payload.value_bytes(),
            large: false,
            parameter: None,
        }
    }

    pub fn key_bytes(&self) -> usize {
        self.key.bits() as usize / 8
    }
}

/// A sort, checked: every address is aligned for its type and has room for `shape.n` elements; `shape.n` is not 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub shape: Shape,
    pub order: KeyOrder,
    pub keys_in: u64,
    /// Equal to `keys_in` for a sort in place, else apart from it; scratch memory where the sorted keys are not wanted.
    pub keys_out: u64,
    /// The sorted keys need not be written.
    pub drop_keys: bool,
    /// 0: the values are the keys' places, 0, 1, 2, …
    pub values_in: u64,
    /// Equal to `values_in` for a sort in place.
    pub values_out: u64,
    /// 0, or where the number of keys stands on the device as a `u64`; at most `shape.n` count.
    pub device_count: u64,
    /// The hint of [`SortOptions`](crate::SortOptions::nearly_sorted).
    pub nearly_sorted: bool,
}

impl Request {
    pub fn in_place(&self) -> bool {
        self.keys_in == self.keys_out
    }
}

/// `Outcome` in `kernels/sort/outcome.cuh`: what every sort leaves at the start of its scratch memory for the report.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
pub(super) struct Outcome {
    /// [`family_id`] of the algorithm that ran.
    pub algorithm: u32,
    /// Passes that the bit window asks for.
    pub passes: u32,
    pub passes_run: u32,
    /// [`EARLY_EXIT`], [`ADAPTIVE`].
    pub early_exit: u32,
    pub n: u64,
    /// A figure of the family's own: see the fields of [`SortReport`](crate::SortReport) that are 0 from other sorts; with
    /// [`ADAPTIVE`] the elements taken out.
    pub detail: u64,
}

/// Bit of [`Outcome::early_exit`]: found in order before all passes were run.
pub(super) const EARLY_EXIT: u32 = 1;
/// Bit of [`Outcome::early_exit`]: the kernel for nearly sorted input sorted.
pub(super) const ADAPTIVE: u32 = 2;

/// Bytes of the scratch memory that `carve` takes.
pub(super) fn measured<R>(carve: impl FnOnce(&mut Layout<'static>) -> Result<R>) -> Result<u64> {
    let mut layout = Layout::measure();
    carve(&mut layout)?;
    Ok(layout.bytes() as u64)
}

impl Outcome {
    /// With the times of the stages.
    pub fn report(&self, stages: Vec<(&'static str, f64)>) -> SortReport {
        let adaptive = self.early_exit & ADAPTIVE != 0;
        let ran = |&&algorithm: &&Algorithm| family_id(algorithm) == self.algorithm;
        let detail_of = |algorithm| {
            let is_its = family_id(algorithm) == self.algorithm;
            if is_its { self.detail } else { 0 }
        };
        SortReport {
            algorithm: Algorithm::ALL
                .iter()
                .find(ran)
                .map_or("none", |ran| ran.name()),
            backend: "cuda",
            n: self.n,
            passes_run: self.passes_run,
            passes_skipped: self.passes.saturating_sub(self.passes_run),
            early_exit: self.early_exit & EARLY_EXIT != 0,
            displaced: adaptive.then_some(self.detail),
            largest_bucket: detail_of(Algorithm::BucketSort),
            partitioned: detail_of(Algorithm::Quicksort),
            largest_piece: detail_of(Algorithm::SatishMerge),
            total_ms: stages.iter().map(|stage| stage.1).sum(),
            stages,
        }
    }
}

/// One family of sorts. Nothing here allocates device memory, waits, or looks at the device's answers.
pub(super) trait Family: Sync {
    /// The most keys that it takes.
    fn limit(&self, shape: &Shape) -> u64;

    /// Bytes of scratch memory. Needs no device. `Outcome` lies at their start.
    fn scratch_bytes(&self, shape: &Shape) -> Result<u64>;

    /// The same for that many arrays of one length, sorted side by side.
    fn scratch_bytes_arrays(&self, shape: &Shape, _arrays: usize) -> Result<u64> {
        self.scratch_bytes(shape)
    }

    /// For tests: keys of a tile, where sizes are worth trying.
    fn tile_keys(&self, shape: &Shape) -> usize;

    /// Loads the kernels.
    fn prepare(&self, context: &Context, shape: &Shape) -> Result<()>;

    /// Launches the sort; `scratch` has at least [`Family::scratch_bytes`], aligned to [`gpu::ALIGNMENT`], with anything in it.
    fn sort(
        &self,
        context: &Context,
        stream: &Stream,
        request: &Request,
        scratch: SliceMut<'_, u8>,
    ) -> Result<()>;

    /// Launches the sorts of arrays of one length, with [`Family::scratch_bytes_arrays`]; their requests differ in the buffers only.
    /// One after the other where the family has no better way.
    fn sort_arrays(
        &self,
        context: &Context,
        stream: &Stream,
        requests: &[Request],
        mut scratch: SliceMut<'_, u8>,
    ) -> Result<()> {
        requests
            .iter()
            .try_for_each(|request| self.sort(context, stream, request, scratch.reborrow()))
    }
}

/// The family of an algorithm, `Auto` apart.
pub(super) fn family(algorithm: Algorithm) -> &'static dyn Family {
    match algorithm {
        Algorithm::FourWayRadix => &ha_radix::FOUR_WAY,
        Algorithm::EightWayRadix => &ha_radix::EIGHT_WAY,
        Algorithm::SatishRadix => &satish_radix::SatishRadix,
        Algorithm::SatishMerge => &satish_merge::SatishMerge,
        Algorithm::Quicksort => &quicksort::Quicksort,
        Algorithm::BucketSort => &bucket_sort::BucketSort,
        Algorithm::Onesweep | Algorithm::Auto => &onesweep::Onesweep,
    }
}

/// The number of an algorithm in [`Outcome`]; `kernels/sort/outcome.cuh` has the same. 0 is none.
pub(super) fn family_id(algorithm: Algorithm) -> u32 {
    match algorithm {
        Algorithm::Auto => 0,
        Algorithm::Onesweep => 1,
        Algorithm::FourWayRadix => 2,
        Algorithm::EightWayRadix => 3,
        Algorithm::SatishRadix => 4,
        Algorithm::SatishMerge => 5,
        Algorithm::Quicksort => 6,
        Algorithm::BucketSort => 7,
    }
}

/// What the families share on one device: kernels once loaded, and the stages' clock.
#[derive(Debug)]
pub(super) struct Context {
    pub device: Device,
    pub config: SorterConfig,
    pub calibration: Calibration,
    pub onesweep: [OnceLock<onesweep::Kernels>; 4],
    pub onesweep_small: [OnceLock<onesweep::SmallKernels>; 2],
    kernels: RwLock<HashMap<(&'static str, String), Kernel>>,
    stages: Mutex<Stages>,
}

impl Context {
    pub fn new(device: &Device, config: SorterConfig) -> Self {
        Self::with_calibration(device, config, Calibration::default())
    }

    pub fn with_calibration(
        device: &Device,
        config: SorterConfig,
        calibration: Calibration,
    ) -> Self {
        Self {
            device: device.clone(),
            config,
            calibration,
            onesweep: Default::default(),
            onesweep_small: Default::default(),
            kernels: RwLock::default(),
            stages: Mutex::default(),
        }
    }

    /// A kernel of an image, with leave to use that many bytes of dynamic shared memory; kept from the first call on.
    pub fn kernel(&self, image: &'static Image, name: &str, dynamic_shared: u32) -> Result<Kernel> {
        let key = (image.name, name.to_owned());
        if let Some(kernel) = self
            .kernels
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
        {
            return Ok(kernel.clone());
        }
        let kernel = self.device.load(image.name, image.ptx())?.kernel(name)?;
        kernel.set_max_dynamic_shared(dynamic_shared)?;
        self.kernels
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key, kernel.clone());
        Ok(kernel)
    }

    /// Begins the stages of a new sort.
    pub fn begin(&self) {
        if self.config.timings {
            *self.stages() = Stages::new();
        }
    }

    /// The stage before ends here and stage `name` begins, where times are wanted.
    pub fn mark(&self, stream: &Stream, name: &'static str) -> Result<()> {
        if self.config.timings {
            self.stages().mark(stream, name)?;
        }
        Ok(())
    }

    /// The stages of the last sort; waits for them.
    pub fn times(&self, stream: &Stream) -> Result<Vec<(&'static str, f64)>> {
        if !self.config.timings {
            return Ok(Vec::new());
        }
        let mut times = self.stages().finish(stream)?;
        times.pop(); // from the sort's end to now
        Ok(times
            .into_iter()
            .map(|(stage, ms)| (stage, f64::from(ms)))
            .collect())
    }

    fn stages(&self) -> std::sync::MutexGuard<'_, Stages> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enough blocks of 256 threads for `elements`, or to fill the device several times.
    pub fn streaming_launch(&self, elements: u64) -> Launch {
        let most = u64::from(self.device.info().multiprocessors) * 32;
        Launch::linear(elements.div_ceil(256).clamp(1, most) as u32, 256)
    }
}

/// Fails where a sort cannot take its number of keys from the device.
pub(super) fn no_device_count(algorithm: Algorithm, request: &Request) -> Result<()> {
    if request.device_count == 0 {
        return Ok(());
    }
    Err(Error::Unsupported {
        algorithm,
        what: "a number of keys that stands on the device",
    })
}
