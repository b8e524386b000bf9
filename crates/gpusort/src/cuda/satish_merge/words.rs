//! The merge sort of keys of many words: the launches of `kernels/sort/satish_merge_words.cu`.

use super::layout::{LAST, shared_bytes};
use super::plan::{Level, Plan, Tile, tile_for};
use super::steps::{self, Kernels, Step};
use super::tuning::SAMPLE;
use crate::cuda::buffers::Buffers;
use crate::cuda::config::SorterConfig;
use crate::cuda::context::Context;
use crate::cuda::family::measured;
use crate::cuda::gather;
use crate::cuda::outcome::SortOutcome;
use crate::{Error, Order, Result};
use bytemuck::{Pod, Zeroable};
use gpu::{Device, DevicePtr, Layout, Slice, SliceMut, Stream, assert_layout};
use radsweep_kernels as images;
use std::sync::Arc;

/// A key of one word or more, compared word by word from the first on: `[u32; W]` or `[u64; W]`.
/// The trait is sealed.
pub trait Words: Pod + Send + Sync + sealed::Sealed {
    /// The number of words of a key.
    const WORDS: usize;
    /// The number of bits of a word.
    const WORD_BITS: u32;
}

mod sealed {
    pub trait Sealed {}
    impl<const W: usize> Sealed for [u32; W] {}
    impl<const W: usize> Sealed for [u64; W] {}
}

impl<const W: usize> Words for [u32; W]
where
    [u32; W]: Pod,
{
    const WORDS: usize = W;
    const WORD_BITS: u32 = 32;
}

impl<const W: usize> Words for [u64; W]
where
    [u64; W]: Pod,
{
    const WORDS: usize = W;
    const WORD_BITS: u32 = 64;
}

/// Sorts keys of many words on one device, by merge sort. It is cheap to clone. Several threads and
/// streams may use it at once, each sort with scratch memory of its own.
///
/// A sort only queues work on the stream: it neither allocates nor waits. Sorts are stable and give
/// the same bits each time. They make O(n log n) comparisons (Satish, Harris and Garland 2009,
/// §IV).
///
/// ```
/// use gpusort::Order;
/// use gpusort::cuda::MergeSorter;
///
/// # fn main() -> gpusort::Result<()> {
/// let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
/// let stream = gpu::Stream::new(&device)?;
/// let sorter = MergeSorter::new(&device);
/// let keys = stream.from_slice(&[[2_u32, 1, 9], [1, 7, 0], [2, 1, 3]])?;
/// let mut index = stream.alloc::<u32>(3)?;
/// let mut scratch = stream.alloc::<u8>(MergeSorter::scratch_bytes::<[u32; 3]>(3)? as usize)?;
/// let (to, scratch) = (index.slice_mut(), scratch.slice_mut());
/// sorter.sort_index(&stream, keys.slice(), None, to, scratch, Order::Ascending)?;
/// assert_eq!(stream.to_vec(index.slice())?, [1, 2, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct MergeSorter(Arc<Context>);

/// The arguments of the kernels: `Args` in satish_merge_words.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Args {
    words: DevicePtr<u8>,
    prefixes_in: DevicePtr<u64>,
    prefixes_out: DevicePtr<u64>,
    index_in: DevicePtr<u32>,
    index_out: DevicePtr<u32>,
    sample_prefixes: DevicePtr<u64>,
    sample_index: DevicePtr<u32>,
    splits: DevicePtr<u8>,
    outcome: DevicePtr<SortOutcome>,
    n: u64,
    flip: u64,
    level: Level,
    words_each: u32,
    passes: u32,
    flags: u32,
    unused: u32,
}

assert_layout!(
    Args, 128:
    words 0, prefixes_in 8, prefixes_out 16, index_in 24, index_out 32, sample_prefixes 40,
    sample_index 48, splits 56, outcome 64, n 72, flip 80, level 88, words_each 112, passes 116,
    flags 120, unused 124,
);

/// The shape of a block: it moves the first 64 bits of each key.
const TILE: Tile = tile_for(8);

impl MergeSorter {
    /// Makes a sorter for `device`. The first sort, or [`MergeSorter::prepare`], loads the kernels.
    #[must_use]
    pub fn new(device: &Device) -> Self {
        Self(Arc::new(Context::new(device, SorterConfig::default())))
    }

    /// Loads the kernels for keys of type `K`.
    ///
    /// # Errors
    ///
    /// [`Error::Gpu`] if the driver cannot load them.
    pub fn prepare<K: Words>(&self) -> Result<()> {
        self.kernels(K::WORD_BITS)?;
        gather::kernel(&self.0, 4).map(drop)
    }

    /// Returns the bytes of scratch memory for a sort of up to `n` keys, which must be aligned to
    /// [`gpu::ALIGNMENT`]: about 21 bytes a key, for any number of words. The call needs no device.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyKeys`] for more than `u32::MAX`.
    pub fn scratch_bytes<K: Words>(n: u64) -> Result<u64> {
        if n > u32::MAX.into() {
            let limit = u32::MAX.into();
            return Err(Error::TooManyKeys { keys: n, limit });
        }
        measured(|layout| carve(layout, &Plan::new(n, TILE)))
    }

    /// Writes the permutation that sorts: `keys[index[0]]` is the first key in order, and so on.
    /// With `keys_out` it writes the sorted keys too. Keys that are equal in all words keep their
    /// order, also in descending order.
    ///
    /// Keys that differ in their first 64 bits are compared by these alone, on chip. A comparison
    /// of keys that agree there reads both keys from memory.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::TooManyKeys`], [`Error::ScratchTooSmall`],
    /// [`Error::Overlap`], [`Error::Misaligned`], [`Error::Null`]; [`Error::Gpu`] for errors of the
    /// driver. Nothing is launched then, unless the error comes from the driver.
    pub fn sort_index<K: Words>(
        &self,
        stream: &Stream,
        keys: Slice<'_, K>,
        keys_out: Option<SliceMut<'_, K>>,
        index: SliceMut<'_, u32>,
        scratch: SliceMut<'_, u8>,
        order: Order,
    ) -> Result<()> {
        const { assert!(K::WORDS > 0, "a key has a word") };
        let (n, mut buffers) = (keys.len() as u64, Buffers::new(keys.len()));
        let (keys, index) = (
            buffers.reads("keys", &keys)?,
            buffers.writes("index", &index)?,
        );
        let keys_out = keys_out
            .map(|out| buffers.writes("keys_out", &out))
            .transpose()?;
        let memory = buffers.check(&scratch, || Self::scratch_bytes::<K>(n))?;
        let plan = Plan::new(n, TILE);
        let regions = carve(&mut Layout::over(scratch)?, &plan)?;
        if n == 0 {
            return Ok(stream.fill_bytes(regions.outcome, 0)?);
        }

        let prefixes = [
            regions.prefixes.device_ptr(),
            regions.spare_prefixes.device_ptr(),
        ];
        let indices = [index, regions.spare_index.device_ptr()];
        let args = |step: &Step| Args {
            words: keys.cast(),
            prefixes_in: prefixes[step.from],
            prefixes_out: prefixes[step.to],
            index_in: indices[step.from],
            index_out: indices[step.to],
            sample_prefixes: regions.sample_prefixes.device_ptr(),
            sample_index: regions.sample_index.device_ptr(),
            splits: regions.splits.device_ptr(),
            outcome: regions.outcome.device_ptr(),
            n,
            flip: if order == Order::Descending {
                u64::MAX
            } else {
                0
            },
            level: step.level,
            words_each: K::WORDS as u32,
            passes: plan.levels.len() as u32,
            flags: if step.last { LAST } else { 0 },
            unused: 0,
        };
        stream.using(&memory, || {
            steps::run(
                &self.0,
                stream,
                &self.kernels(K::WORD_BITS)?,
                (&plan, TILE),
                args,
            )?;
            let Some(keys_out) = keys_out else {
                return Ok(());
            };
            let moved = gather::Records {
                input: keys.cast(),
                output: keys_out.cast(),
                bytes: size_of::<K>(),
            };
            gather::launch(&self.0, stream, n, index, &moved)
        })
    }

    fn kernels(&self, word_bits: u32) -> Result<Kernels> {
        let shared = shared_bytes(TILE, 8, 0);
        let kernel = |step: &str, shared| {
            let name = format!("satish_merge_{step}_words_{word_bits}");
            self.0.kernel(&images::SATISH_MERGE_WORDS, &name, shared)
        };
        Ok(Kernels {
            tile: kernel("tile", shared[0])?,
            rank: kernel("rank", 0)?,
            pieces: kernel("pieces", shared[1])?,
            shared,
        })
    }
}

/// The regions of a sort's scratch memory.
struct Regions<'a> {
    outcome: SliceMut<'a, SortOutcome>,
    sample_prefixes: SliceMut<'a, u64>,
    sample_index: SliceMut<'a, u32>,
    splits: SliceMut<'a, u8>,
    prefixes: SliceMut<'a, u64>,
    spare_prefixes: SliceMut<'a, u64>,
    spare_index: SliceMut<'a, u32>,
}

fn carve<'a>(layout: &mut Layout<'a>, plan: &Plan) -> Result<Regions<'a>> {
    // A size that overflows saturates, and `take` refuses it.
    let n = plan.moved();
    let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    Ok(Regions {
        outcome: layout.take(1)?,
        sample_prefixes: layout.take(size(n.div_ceil(SAMPLE)))?,
        sample_index: layout.take(size(n.div_ceil(SAMPLE)))?,
        splits: layout.take(size(plan.splits()))?,
        prefixes: layout.take(size(n))?,
        spare_prefixes: layout.take(size(n))?,
        spare_index: layout.take(size(n))?,
    })
}
