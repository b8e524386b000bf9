//! The kernels of the sort (`kernels/dist/sort.cu`).

use super::elements::{Elements, Form};
use crate::Cause;
use crate::device::abi::{self, KeyMap, Run, Runs};
use crate::device::kernels::THREADS;
use crate::sort::{Plan, Splitter};
use bytemuck::Zeroable;
use gpu::{ByValue, Device, DevicePtr, Kernel, Launch, Stream, args, blocks};
use gpusort::internals::KeyOrder;
use gpusort::{KeyType, Order};

/// The lanes of a warp.
const WARP: u32 = 32;

/// The kernels for keys of a width, and the keys of a block that merges.
#[derive(Clone)]
pub(super) struct Kernels {
    samples: Kernel,
    ends: Kernel,
    /// Where the tiles of a merge begin.
    splits: Kernel,
    /// The merge, for values of 0 (no values), 4 and 8 bytes.
    merges: [Kernel; 3],
    tile: u32,
}

impl Kernels {
    pub(super) fn new(device: &Device, bits: u32) -> gpu::Result<Self> {
        let (image, items) = match bits {
            32 => (&radsweep_kernels::DIST_SORT_32, 15),
            _ => (&radsweep_kernels::DIST_SORT_64, 11),
        };
        let module = device.load(image.name, image.ptx())?;
        Ok(Self {
            samples: module.kernel("dist_sort_samples")?,
            ends: module.kernel("dist_sort_ends")?,
            splits: module.kernel("dist_sort_splits")?,
            merges: [
                module.kernel("dist_sort_merge_0")?,
                module.kernel("dist_sort_merge_4")?,
                module.kernel("dist_sort_merge_8")?,
            ],
            tile: THREADS * items,
        })
    }

    /// Returns the samples of a rank's sorted keys.
    pub(super) fn samples(
        &self,
        stream: &Stream,
        own: &Elements,
        plan: &Plan,
        rank: usize,
    ) -> Result<Vec<u64>, Cause> {
        let count = plan.counts[rank];
        let mut samples = stream.alloc::<u64>(count)?;
        if count > 0 {
            let launch = Launch::linear(blocks(count, THREADS), THREADS);
            let (map, out) = (ByValue(key_map(own.form.key)), samples.slice_mut());
            let (distance, count) = (plan.distance, count as u32);
            // SAFETY: as many samples are among the keys, and there is memory for each.
            unsafe {
                stream.launch(
                    &self.samples,
                    &launch,
                    &args![own.keys(), distance, count, map, out],
                )?
            };
        }
        Ok(stream.to_vec(samples.slice())?)
    }

    /// Returns where the parts of a rank's sorted keys end.
    pub(super) fn ends(
        &self,
        stream: &Stream,
        own: &Elements,
        splitters: &[Splitter],
        rank: usize,
    ) -> Result<Vec<u64>, Cause> {
        let of_device = |splitter: &Splitter| abi::Splitter {
            bits: splitter.bits,
            has_same: u64::from(rank < splitter.rank),
        };
        let of_device: Vec<_> = splitters.iter().map(of_device).collect();
        let of_device = stream.from_slice(&of_device)?;
        let (n, count) = (own.len() as u64, splitters.len());
        let mut found = stream.alloc::<u64>(count)?;
        if count > 0 {
            let launch = Launch::linear(blocks(count, THREADS / WARP), THREADS);
            let (map, splitters) = (ByValue(key_map(own.form.key)), of_device.slice());
            let (count, out) = (count as u32, found.slice_mut());
            // SAFETY: keys and splitters are as many as they say, and there is memory for the end
            // of each.
            unsafe {
                stream.launch(
                    &self.ends,
                    &launch,
                    &args![own.keys(), n, splitters, count, map, out],
                )?
            };
        }
        let mut ends = stream.to_vec(found.slice())?;
        for (end, splitter) in ends.iter_mut().zip(splitters) {
            if splitter.rank == rank {
                *end = splitter.position as u64;
            }
        }
        ends.push(n);
        Ok(ends)
    }

    /// Returns the splits of a merge to so many elements: one for each tile, and one more.
    pub(super) fn splits(&self, elements: usize) -> usize {
        blocks(elements, self.tile) as usize + 1
    }

    /// Merges one or two sorted runs to `out`, which has the length of both.
    ///
    /// # Safety
    ///
    /// The runs have addresses of as many elements of that form as they say, and there is memory
    /// for the splits. None of it is freed before the stream is done.
    pub(super) unsafe fn merge(
        &self,
        stream: &Stream,
        form: Form,
        (runs, splits): (&[Run], DevicePtr<u64>),
        out: Run,
    ) -> gpu::Result<()> {
        let length = out.length as usize;
        if length == 0 {
            return Ok(());
        }
        let [a, b] = [0, 1].map(|i| runs.get(i).copied().unwrap_or(Run::zeroed()));
        let runs = ByValue(Runs {
            a,
            b,
            keys_out: out.keys,
            values_out: out.values,
            splits,
            map: key_map(form.key),
        });
        let count = self.splits(length);
        let launch = Launch::linear(blocks(count, THREADS / WARP), THREADS);
        let merge = &self.merges[form.value_bytes / 4];
        // SAFETY: the caller's promise; a merge has a block for each tile, and one split more.
        unsafe {
            stream.launch(&self.splits, &launch, &args![runs, count as u32])?;
            let launch = Launch::linear(count as u32 - 1, THREADS);
            stream.launch(merge, &launch, &args![runs])
        }
    }
}

/// Returns what keys of a type are compared by: [`Key::to_ordered_bits`].
fn key_map(key: KeyType) -> KeyMap {
    let KeyOrder { flip, fold, .. } = KeyOrder::new(key, Order::Ascending, 0..key.bits());
    let is_float = fold != 0;
    KeyMap {
        flip,
        fold,
        minus_zero: if is_float { 1 << (key.bits() - 1) } else { 0 },
    }
}
