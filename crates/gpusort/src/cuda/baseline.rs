//! The sorts that the papers compare theirs with: `kernels/sort/baselines.cu`. They serve the bench
//! of the papers and are built as described there, without tuning. They sort keys of 32 bits, alone
//! or with values of 32 bits, ascending and out of place.

use super::config::SorterConfig;
use super::context::Context;
use super::family::{Family, Shape, Task};
use super::ha_radix::SPLIT;
use super::order::KeyOrder;
use super::payload::Payload;
use crate::{Error, KeyType, Order, Result};
use gpu::{Device, DevicePtr, Launch, Layout, Slice, SliceMut, Stream};
use radsweep_kernels as images;

/// A baseline sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Baseline {
    /// Batcher's bitonic network over the array, padded to a power of two. It sorts pairs by key,
    /// then by value.
    Bitonic,
    /// Radix sort by one bit at a time, with the order check. Stable.
    Split,
    /// Radix sort by 4-bit digits without a local sort. Stable.
    Radix16,
}

const RADIX16_TILE: u64 = 2048;
const BITONIC_TILE: u64 = 2048;

/// Runs the baseline sorts on one device.
#[derive(Debug)]
pub struct Baselines(Context);

impl Baselines {
    /// Makes one for `device`.
    pub fn new(device: &Device) -> Self {
        Self(Context::new(device, SorterConfig::default()))
    }

    /// Returns the bytes of scratch memory for `n` keys, or `n` pairs.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyKeys`].
    pub fn scratch_bytes(which: Baseline, n: u64, pairs: bool) -> Result<u64> {
        let mut layout = Layout::measure();
        match which {
            Baseline::Split => return SPLIT.scratch_bytes(&shape(n, pairs)),
            Baseline::Radix16 => {
                radix16(&mut layout, checked(n)?, pairs)?;
            }
            Baseline::Bitonic => {
                bitonic(&mut layout, checked(n)?, pairs)?;
            }
        }
        Ok(layout.bytes() as u64)
    }

    /// Sorts `keys_in` into `keys_out`, and moves their values if `values` are given.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::TooManyKeys`], [`Error::ScratchTooSmall`];
    /// [`Error::Gpu`] for errors of the driver.
    pub fn sort(
        &self,
        which: Baseline,
        stream: &Stream,
        keys_in: Slice<'_, u32>,
        keys_out: SliceMut<'_, u32>,
        values: Option<(Slice<'_, u32>, SliceMut<'_, u32>)>,
        scratch: SliceMut<'_, u8>,
    ) -> Result<()> {
        let n = keys_in.len();
        let pairs = values.is_some();
        let (values_in, values_out) = values
            .as_ref()
            .map_or((DevicePtr::NULL, DevicePtr::NULL), |(i, o)| {
                (i.device_ptr(), o.device_ptr())
            });
        let lengths = values.as_ref().map_or([n; 2], |(i, o)| [i.len(), o.len()]);
        for values in [keys_out.len(), lengths[0], lengths[1]] {
            crate::error::same_length(n, values)?;
        }
        let needed = Self::scratch_bytes(which, n as u64, pairs)?;
        if (scratch.len() as u64) < needed {
            let given = scratch.len() as u64;
            return Err(Error::ScratchTooSmall { needed, given });
        }
        if n == 0 {
            return Ok(());
        }
        let job = Job {
            n: checked(n as u64)?,
            keys_in: keys_in.device_ptr(),
            keys_out: keys_out.device_ptr(),
            values_in,
            values_out,
            pairs,
        };
        let mut memory = vec![keys_in.memory()?, keys_out.memory()?, scratch.memory()?];
        if let Some((values_in, values_out)) = &values {
            memory.extend([values_in.memory()?, values_out.memory()?]);
        }
        stream.using(&memory, || match which {
            Baseline::Split => {
                let task = Task {
                    shape: shape(n as u64, pairs),
                    order: KeyOrder::new(KeyType::U32, Order::Ascending, 0..32),
                    keys_in: job.keys_in.cast(),
                    keys_out: job.keys_out.cast(),
                    drop_keys: false,
                    values_in: values_in.cast(),
                    values_out: values_out.cast(),
                    device_count: DevicePtr::NULL,
                    nearly_sorted: false,
                };
                SPLIT.sort(&self.0, stream, &task, scratch)
            }
            Baseline::Radix16 => self.radix16(stream, &job, scratch),
            Baseline::Bitonic => self.bitonic(stream, &job, scratch),
        })
    }

    fn radix16(&self, stream: &Stream, job: &Job, scratch: SliceMut<'_, u8>) -> Result<()> {
        let regions = radix16(&mut Layout::over(scratch)?, job.n, job.pairs)?;
        let kernel = |name| self.0.kernel(&images::BASELINES, name, 0);
        let (count, scan, scatter) = (
            kernel("radix16_count")?,
            kernel("radix16_scan")?,
            kernel("radix16_scatter")?,
        );
        let blocks = u64::from(job.n).div_ceil(RADIX16_TILE) as u32;
        let (launch, one) = (Launch::linear(blocks, 256), Launch::linear(1, 1024));
        let sums = regions.sums.device_ptr();
        let temporary = (regions.keys.device_ptr(), regions.values.device_ptr());
        let (mut keys, mut values) = (job.keys_in, job.values_in);
        for pass in 0..8_u32 {
            let shift = 4 * pass;
            let to = if pass % 2 == 0 {
                temporary
            } else {
                (job.keys_out, job.values_out)
            };
            let values_to = if job.pairs { to.1 } else { DevicePtr::NULL };
            // SAFETY: the arguments match the kernels' parameters; all buffers have `n` elements,
            // and `sums` has 16 for each block.
            unsafe {
                stream.launch(&count, &launch, &gpu::args![keys, job.n, shift, sums])?;
                stream.launch(&scan, &one, &gpu::args![sums, 16 * blocks])?;
                let arguments =
                    gpu::args![keys, values, to.0, values_to, job.n, shift, sums, u32::MAX];
                stream.launch(&scatter, &launch, &arguments)?;
            }
            (keys, values) = to;
        }
        Ok(())
    }

    fn bitonic(&self, stream: &Stream, job: &Job, scratch: SliceMut<'_, u8>) -> Result<()> {
        let words = bitonic(&mut Layout::over(scratch)?, job.n, job.pairs)?.device_ptr();
        let (padded, bytes) = (bitonic_padded(job.n), if job.pairs { 8 } else { 4 });
        let kernel = |name: &str, shared| {
            self.0.kernel(
                &images::BASELINES,
                &format!("bitonic_{name}_{bytes}"),
                shared,
            )
        };
        let shared = BITONIC_TILE as u32 * bytes;
        let (pad, unpad) = (kernel("pad", 0)?, kernel("unpad", 0)?);
        let (tile, step) = (kernel("tile", shared)?, kernel("step", 0)?);
        let all = Launch::linear((padded / 256) as u32, 256);
        let pairs = Launch::linear((padded / 512) as u32, 256);
        let tiles = Launch::linear((padded / BITONIC_TILE) as u32, BITONIC_TILE as u32 / 2);
        let tiles = tiles.dynamic_shared(shared);
        let n = u64::from(job.n);
        // SAFETY: the arguments match the kernels' parameters; `words` has `padded` words, which
        // the launches divide without remainder; the other buffers have `n` elements.
        unsafe {
            stream.launch(
                &pad,
                &all,
                &gpu::args![job.keys_in, job.values_in, words, n],
            )?;
            stream.launch(&tile, &tiles, &gpu::args![words, 2_u64, BITONIC_TILE])?;
            let mut size = 2 * BITONIC_TILE;
            while size <= padded {
                let mut distance = size / 2;
                while distance >= BITONIC_TILE {
                    stream.launch(&step, &pairs, &gpu::args![words, size, distance])?;
                    distance /= 2;
                }
                stream.launch(&tile, &tiles, &gpu::args![words, size, size])?;
                size *= 2;
            }
            let arguments = gpu::args![words, job.keys_out, job.values_out, n];
            stream.launch(&unpad, &all, &arguments)?;
        }
        Ok(())
    }
}

struct Job {
    n: u32,
    keys_in: DevicePtr<u32>,
    keys_out: DevicePtr<u32>,
    values_in: DevicePtr<u32>,
    values_out: DevicePtr<u32>,
    pairs: bool,
}

struct Radix16<'a> {
    sums: SliceMut<'a, u32>,
    keys: SliceMut<'a, u32>,
    values: SliceMut<'a, u32>,
}

fn shape(n: u64, pairs: bool) -> Shape {
    Shape::new::<u32>(n, if pairs { Payload::U32 } else { Payload::None })
}

/// Returns `n` if it is at most 2³¹, the max length of the padded array of the bitonic sort.
fn checked(n: u64) -> Result<u32> {
    let limit = 1 << 31;
    if n > limit {
        return Err(Error::TooManyKeys { keys: n, limit });
    }
    Ok(n as u32)
}

fn radix16<'a>(layout: &mut Layout<'a>, n: u32, pairs: bool) -> Result<Radix16<'a>> {
    let blocks = u64::from(n).div_ceil(RADIX16_TILE) as usize;
    Ok(Radix16 {
        sums: layout.take(16 * blocks)?,
        keys: layout.take(n as usize)?,
        values: layout.take(if pairs { n as usize } else { 0 })?,
    })
}

fn bitonic_padded(n: u32) -> u64 {
    u64::from(n).next_power_of_two().max(BITONIC_TILE)
}

fn bitonic<'a>(layout: &mut Layout<'a>, n: u32, pairs: bool) -> Result<SliceMut<'a, u8>> {
    Ok(layout.take(bitonic_padded(n) as usize * if pairs { 8 } else { 4 })?)
}
