//! The merge sort of records by an order given as source: `kernels/sort/satish_merge_records.cuh`,
//! compiled at run time.

use super::layout::{LAST, Regions, carve};
use super::nvrtc::{Nvrtc, Source};
use super::plan::{Level, Plan, Tile};
use super::steps::{self, Kernels, Step};
use crate::cuda::buffers::Buffers;
use crate::cuda::config::SorterConfig;
use crate::cuda::context::Context;
use crate::cuda::family::measured;
use crate::cuda::gather;
use crate::cuda::outcome::SortOutcome;
use crate::{Error, Result};
use bytemuck::{Pod, Zeroable};
use gpu::{Device, DevicePtr, Layout, Memory, Slice, SliceMut, Stream, assert_layout};
use radsweep_kernels::sources;
use std::ffi::OsStr;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// An order of records `R`, given as CUDA source, with the merge sort by it. It is cheap to clone.
/// Several threads and streams may use it at once, each sort with scratch memory of its own.
///
/// The source defines a `struct Item`, of the size of `R` and with no stricter alignment, and a
/// function that says which of two comes first: `__device__ bool less(const Item&, const Item&)`.
/// It must be a strict weak order. If it is not, as for floats with NaNs among them, the contents
/// of the output are unspecified. NVRTC, the compiler library of the CUDA toolkit, compiles the
/// source for the device. It is looked for on the dynamic linker's paths, unless
/// [`compile_with`](Self::compile_with) names it.
///
/// A sort only queues work on the stream: it neither allocates nor waits. Sorts are stable and give
/// the same bits each time. They make O(n log n) comparisons (Satish, Harris and Garland 2009,
/// §IV).
///
/// ```
/// use gpusort::cuda::Comparator;
///
/// # fn main() -> gpusort::Result<()> {
/// let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
/// let stream = gpu::Stream::new(&device)?;
/// let source = "struct Item { float x, y; };
///     __device__ float square(const Item& i) { return i.x * i.x + i.y * i.y; }
///     __device__ bool less(const Item& a, const Item& b) { return square(a) < square(b); }";
/// // SAFETY: the source only reads its arguments.
/// let by_length = unsafe { Comparator::<[f32; 2]>::compile(&device, source) };
/// let by_length = match by_length {
///     Err(gpusort::Error::NoCompiler { .. }) => return Ok(()), // no CUDA toolkit here
///     compiled => compiled?,
/// };
/// let points = stream.from_slice(&[[3.0, 4.0], [1.0, 0.0], [0.0, 2.0]])?;
/// let mut sorted = stream.alloc::<[f32; 2]>(3)?;
/// let mut scratch = stream.alloc::<u8>(by_length.scratch_bytes(3)? as usize)?;
/// by_length.sort_records(&stream, points.slice(), sorted.slice_mut(), scratch.slice_mut())?;
/// assert_eq!(stream.to_vec(sorted.slice())?, [[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]]);
/// # Ok(())
/// # }
/// ```
pub struct Comparator<R> {
    inner: Arc<Inner>,
    records: PhantomData<fn(R)>,
}

struct Inner {
    context: Context,
    /// The kernels for records that are small enough to move in each pass.
    records: Option<Kernels>,
    /// The kernels that sort an index of the records.
    index: Kernels,
}

impl<R> Clone for Comparator<R> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            records: PhantomData,
        }
    }
}

impl<R> fmt::Debug for Comparator<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Comparator")
            .field("moves_records", &self.inner.records.is_some())
            .finish_non_exhaustive()
    }
}

/// The arguments of the kernels: `Args` in satish_merge_records.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Args {
    records: DevicePtr<u8>,
    input: DevicePtr<u8>,
    output: DevicePtr<u8>,
    samples: DevicePtr<u8>,
    splits: DevicePtr<u8>,
    outcome: DevicePtr<SortOutcome>,
    n: u64,
    level: Level,
    passes: u32,
    flags: u32,
}

assert_layout!(
    Args, 88:
    records 0, input 8, output 16, samples 24, splits 32, outcome 40, n 48, level 56, passes 80,
    flags 84,
);

/// `THREADS` and `INDEX_ITEMS` in satish_merge_records.cuh.
const INDEX_TILE: Tile = Tile {
    threads: 256,
    items_per_thread: 15,
};
/// Bytes of shared memory for the records of a tile and their indices, within the 64 KiB of Turing.
const STAGED_BYTES: usize = 56 << 10;
/// Max bytes of a record that is staged in shared memory. Of larger ones too few would fit.
const MAX_STAGED: usize = 32;

/// Returns the shape of a block that moves records of that size in each pass, or `None` if they are
/// too large. The items of a thread are odd, which avoids bank conflicts.
fn record_tile(bytes: usize) -> Option<Tile> {
    let threads = INDEX_TILE.threads;
    let items = STAGED_BYTES / (threads as usize * (bytes + 4));
    (bytes <= MAX_STAGED).then(|| Tile {
        threads,
        items_per_thread: ((items as u32 - 1) | 1).min(INDEX_TILE.items_per_thread),
    })
}

/// Returns the bytes of shared memory of `tile` and of `pieces`, for records of that size; 0 for an
/// index.
fn shared_bytes(tile: Tile, record: usize) -> [u32; 2] {
    let indices = (tile.items() + 1).next_multiple_of(4) * 4;
    let bytes = indices + tile.items() * record as u32;
    [bytes, bytes + tile.piece_bytes()]
}

impl<R: Pod> Comparator<R> {
    const BYTES: usize = {
        assert!(size_of::<R>() > 0, "a record has a byte");
        size_of::<R>()
    };

    /// Compiles the order for `device`, which takes some hundred milliseconds.
    ///
    /// # Errors
    ///
    /// [`Error::NoCompiler`] if NVRTC is missing; [`Error::BadComparator`], with the compiler's
    /// log, if the source does not compile; [`Error::Compiler`] if NVRTC fails otherwise;
    /// [`Error::Gpu`] for errors of the driver.
    ///
    /// # Safety
    ///
    /// The source runs on the device unchecked. It must access no memory but its own and the two
    /// items, which may lie in shared memory.
    pub unsafe fn compile(device: &Device, source: &str) -> Result<Self> {
        // SAFETY: the caller promises what the source accesses.
        unsafe { Self::compile_with(device, source, None) }
    }

    /// As [`Comparator::compile`], with the NVRTC of that path or name; `None` is for the usual
    /// one.
    ///
    /// # Errors
    ///
    /// As [`Comparator::compile`].
    ///
    /// # Safety
    ///
    /// As for [`Comparator::compile`].
    pub unsafe fn compile_with(
        device: &Device,
        source: &str,
        nvrtc: Option<&OsStr>,
    ) -> Result<Self> {
        let staged = record_tile(Self::BYTES);
        let mut defines = vec![
            ("RECORD_BYTES", Self::BYTES),
            ("RECORD_ALIGNMENT", align_of::<R>()),
        ];
        if let Some(tile) = staged {
            defines.push(("RECORD_ITEMS", tile.items_per_thread as usize));
        }
        let text = format!(
            "#include <stdint.h>\n#line 1\n{source}\n#include \"satish_merge_records.cuh\"\n"
        );
        let image = Nvrtc::open(nvrtc)?.build(&Source {
            text: &text,
            headers: sources::RECORDS,
            defines,
            capability: device.info().compute_capability,
        })?;
        let module = device.load("comparator", &image)?;
        let kernels = |kind: &str, shared: [u32; 2]| {
            let kernel = |step: &str, bytes| {
                let kernel = module.kernel(&format!("{kind}_{step}"))?;
                kernel.set_max_dynamic_shared(bytes)?;
                Ok::<_, Error>(kernel)
            };
            Ok::<_, Error>(Kernels {
                tile: kernel("tile", shared[0])?,
                rank: kernel("rank", 0)?,
                pieces: kernel("pieces", shared[1])?,
                shared,
            })
        };
        let records = staged.map(|tile| kernels("records", shared_bytes(tile, Self::BYTES)));
        Ok(Self {
            inner: Arc::new(Inner {
                context: Context::new(device, SorterConfig::default()),
                records: records.transpose()?,
                index: kernels("index", shared_bytes(INDEX_TILE, 0))?,
            }),
            records: PhantomData,
        })
    }

    /// Returns the bytes of scratch memory for a sort of up to `n` records, which must be aligned
    /// to [`gpu::ALIGNMENT`]: about 9 bytes a record, or a record's bytes if these are more.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyKeys`] for more than `u32::MAX`.
    pub fn scratch_bytes(&self, n: u64) -> Result<u64> {
        if n > u32::MAX.into() {
            let limit = u32::MAX.into();
            return Err(Error::TooManyKeys { keys: n, limit });
        }
        let by_index = measured(|layout| {
            let plan = Plan::new(n, INDEX_TILE);
            carve(layout, &plan, 4, 0).and_then(|_| carve_index(layout, &plan))
        })?;
        match record_tile(Self::BYTES) {
            Some(tile) => {
                let plan = Plan::new(n, tile);
                let whole = measured(|layout| carve(layout, &plan, Self::BYTES, 0))?;
                Ok(whole.max(by_index))
            }
            None => Ok(by_index),
        }
    }

    /// Writes the permutation that sorts: `records[index[0]]` is the first record in order, and so
    /// on. Each comparison reads two records.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::TooManyKeys`], [`Error::ScratchTooSmall`],
    /// [`Error::Overlap`], [`Error::Misaligned`], [`Error::Null`]; [`Error::Gpu`] for errors of the
    /// driver. Nothing is launched then, unless the error comes from the driver.
    pub fn sort_index(
        &self,
        stream: &Stream,
        records: Slice<'_, R>,
        index: SliceMut<'_, u32>,
        scratch: SliceMut<'_, u8>,
    ) -> Result<()> {
        let n = records.len() as u64;
        let ([records, index], memory) = self.checked(&records, ("index", &index), &scratch)?;
        let plan = Plan::new(n, INDEX_TILE);
        let regions = carve(&mut Layout::over(scratch)?, &plan, 4, 0)?;
        let sorted = (&plan, INDEX_TILE);
        stream.using(&memory, || {
            self.run(stream, &self.inner.index, sorted, records, index, regions)
        })
    }

    /// Sorts records. Records of up to 32 bytes move in each pass, larger ones once, by their
    /// index.
    ///
    /// # Errors
    ///
    /// As for [`Comparator::sort_index`].
    pub fn sort_records(
        &self,
        stream: &Stream,
        records: Slice<'_, R>,
        records_out: SliceMut<'_, R>,
        scratch: SliceMut<'_, u8>,
    ) -> Result<()> {
        let n = records.len() as u64;
        let ([records, output], memory) =
            self.checked(&records, ("records_out", &records_out), &scratch)?;
        if let (Some(kernels), Some(tile)) = (&self.inner.records, record_tile(Self::BYTES)) {
            let plan = Plan::new(n, tile);
            let regions = carve(&mut Layout::over(scratch)?, &plan, Self::BYTES, 0)?;
            return stream.using(&memory, || {
                self.run(stream, kernels, (&plan, tile), records, output, regions)
            });
        }
        let plan = Plan::new(n, INDEX_TILE);
        let mut layout = Layout::over(scratch)?;
        let regions = carve(&mut layout, &plan, 4, 0)?;
        let index = carve_index(&mut layout, &plan)?.device_ptr();
        let moved = gather::Records {
            input: records,
            output,
            bytes: Self::BYTES,
        };
        let sorted = (&plan, INDEX_TILE);
        stream.using(&memory, || {
            self.run(
                stream,
                &self.inner.index,
                sorted,
                records,
                index.cast(),
                regions,
            )?;
            gather::launch(&self.inner.context, stream, n, index, &moved)
        })
    }

    /// Returns the addresses of a call's two buffers, and shares in its memory.
    fn checked<T: Pod>(
        &self,
        records: &Slice<'_, R>,
        (what, output): (&'static str, &SliceMut<'_, T>),
        scratch: &SliceMut<'_, u8>,
    ) -> Result<([DevicePtr<u8>; 2], Vec<Memory>)> {
        let mut buffers = Buffers::new(records.len());
        let addresses = [
            buffers.reads("records", records)?.cast(),
            buffers.writes(what, output)?.cast(),
        ];
        let memory = buffers.check(scratch, || self.scratch_bytes(records.len() as u64))?;
        Ok((addresses, memory))
    }

    fn run(
        &self,
        stream: &Stream,
        kernels: &Kernels,
        (plan, tile): (&Plan, Tile),
        records: DevicePtr<u8>,
        output: DevicePtr<u8>,
        regions: Regions<'_>,
    ) -> Result<()> {
        if plan.n == 0 {
            return Ok(stream.fill_bytes(regions.outcome, 0)?);
        }
        let moved = [output, regions.keys.device_ptr()];
        let args = |step: &Step| Args {
            records,
            input: moved[step.from],
            output: moved[step.to],
            samples: regions.samples.device_ptr(),
            splits: regions.splits.device_ptr(),
            outcome: regions.outcome.device_ptr(),
            n: plan.n,
            level: step.level,
            passes: plan.levels.len() as u32,
            flags: if step.last { LAST } else { 0 },
        };
        steps::run(&self.inner.context, stream, kernels, (plan, tile), args)
    }
}

/// Takes the memory for the index of records that move once at the end, or measures it.
fn carve_index<'a>(layout: &mut Layout<'a>, plan: &Plan) -> Result<SliceMut<'a, u32>> {
    Ok(layout.take(usize::try_from(plan.n).unwrap_or(usize::MAX))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn tiles_of_records_fit_and_merge() {
        for bytes in 1..=MAX_STAGED {
            let tile = record_tile(bytes).expect("small");
            assert!(tile.items_per_thread % 2 == 1 && tile.items_per_thread >= 5);
            assert!(shared_bytes(tile, bytes)[1] <= 64 * 1024);
            assert!(
                Plan::new(1 << 20, tile)
                    .levels
                    .iter()
                    .all(|level| level.spacing > 0)
            );
        }
        assert!(record_tile(MAX_STAGED + 1).is_none());
    }
}
