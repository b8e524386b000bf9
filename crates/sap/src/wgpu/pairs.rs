//! Lists of pairs that stay on the device.

use super::gpu::Gpu;
use super::launch::Batch;
use super::memory::{Grow, write_at};
use super::search::PackedList;
use super::tuning::GROWTH_SHARE;
use crate::{Pair, Result, try_alloc};
use bytemuck::{Pod, Zeroable};
use radsweep_kernels::wgsl::WORKGROUP;
use std::mem::offset_of;
use wgpu_device::wgpu::Buffer;
use wgpu_device::{BufferUsages, Device};

/// The pairs of the last update on the device, sorted:
/// [`BroadPhase::wgpu_pairs`](crate::BroadPhase::wgpu_pairs) returns them.
///
/// They are in one buffer, or in several if they are more than the device sorts at once. All pairs
/// of a buffer come before those of the next.
#[derive(Debug, Clone, Copy)]
pub struct WgpuPairs<'a> {
    parts: &'a [Part],
}

impl<'a> WgpuPairs<'a> {
    /// Returns the number of all pairs.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.parts.iter().map(|part| part.pairs).sum()
    }

    /// Tells whether there is no pair.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the buffers in order, each with its number of pairs, which is at least 1. A pair is
    /// two `u32`, `a` and `b`; what lies behind the last is undefined. There is no buffer if there
    /// is no pair.
    pub fn buffers(&self) -> impl ExactSizeIterator<Item = (&'a Buffer, u64)> + use<'a> {
        self.parts.iter().map(|part| (&part.buffer, part.pairs))
    }
}

/// A buffer with the number of pairs in it.
#[derive(Debug)]
struct Part {
    buffer: Buffer,
    pairs: u64,
}

/// The bytes of a pair.
const PAIR_BYTES: u64 = size_of::<Pair>() as u64;

/// What a caller may do with the buffers, and what fills them.
const USAGE: BufferUsages = BufferUsages::STORAGE
    .union(BufferUsages::VERTEX)
    .union(BufferUsages::INDEX)
    .union(BufferUsages::COPY_SRC)
    .union(BufferUsages::COPY_DST);

/// `ListParams` in `kernels/wgsl/sap/lists.wgsl`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct ListParams {
    pairs: u32,
    last_pairs: u32,
    index_bits: u32,
    unused: u32,
}

const _: () = {
    assert!(size_of::<ListParams>() == 16);
    assert!(offset_of!(ListParams, last_pairs) == 4);
    assert!(offset_of!(ListParams, index_bits) == 8);
};

/// What says how many pairs a search has found: more than any list has.
const ALL: [u32; 2] = [u32::MAX; 2];

/// A sorted list of pairs in one buffer or several, which are kept when the list is emptied.
#[derive(Default)]
pub(super) struct PairLists {
    parts: Vec<Part>,
    /// The parts that have pairs.
    used: usize,
}

impl PairLists {
    fn used(&self) -> &[Part] {
        &self.parts[..self.used]
    }

    pub(super) fn view(&self) -> WgpuPairs<'_> {
        WgpuPairs { parts: self.used() }
    }

    pub(super) const fn clear(&mut self) {
        self.used = 0;
    }

    /// Adds a part of this many pairs, which are to be written.
    pub(super) fn add(&mut self, device: &Device, pairs: u64) -> Result<&Buffer> {
        let bytes = pairs * PAIR_BYTES;
        let kept = self.parts.get(self.used);
        if kept.is_none_or(|part| part.buffer.size() < bytes) {
            self.parts.truncate(self.used);
            let more = device.buffer("pairs", bytes + bytes / GROWTH_SHARE, USAGE);
            // Less may be had. Any other error comes again.
            let buffer = more.or_else(|_| device.buffer("pairs", bytes, USAGE))?;
            self.parts.push(Part { buffer, pairs });
        }
        let part = &mut self.parts[self.used];
        part.pairs = pairs;
        self.used += 1;
        Ok(&part.buffer)
    }

    /// Adds a part for up to this many pairs, and has those stored there that a search has put in
    /// order and counted.
    pub(super) fn store(
        &mut self,
        gpu: &Gpu,
        batch: &mut Batch,
        [ordered, found]: [&Buffer; 2],
        max: PackedList,
    ) -> Result<()> {
        let (device, kernels) = (gpu.device(), gpu.resident()?);
        let params = ListParams {
            pairs: max.pairs as u32,
            index_bits: max.index_bits,
            ..ListParams::zeroed()
        };
        let part = self.add(device, max.pairs)?;
        let groups = params.pairs.div_ceil(WORKGROUP);
        let lists = [(1, ordered), (3, part), (5, found)];
        batch.step(device, &kernels.store_pairs, params, &lists, groups)
    }

    /// Returns the buffer of the one part with its number of pairs, if there is one part.
    pub(super) fn one(&self) -> Option<(&Buffer, u64)> {
        match self.used() {
            [part] => Some((&part.buffer, part.pairs)),
            _ => None,
        }
    }

    /// Sets the number of pairs of the one part.
    pub(super) fn set_count(&mut self, pairs: u64) {
        self.used = usize::from(pairs > 0);
        if let Some(part) = self.parts.first_mut() {
            part.pairs = pairs;
        }
    }

    /// Takes the pairs of the host, in parts of at most this many.
    pub(super) fn upload(&mut self, device: &Device, pairs: &[Pair], max_list: u64) -> Result<()> {
        self.clear();
        for part in pairs.chunks(max_list.max(1) as usize) {
            let buffer = self.add(device, part.len() as u64)?;
            write_at(device, buffer, 0, bytemuck::cast_slice(part))?;
        }
        Ok(())
    }

    /// Copies the pairs to the host.
    pub(super) fn download(&self, device: &Device) -> Result<Vec<Pair>> {
        let read = |part: &Part| -> Result<Vec<Pair>> {
            let bytes = 0..part.pairs * PAIR_BYTES;
            Ok(device.download(&part.buffer, bytes)?.wait()?)
        };
        if let [part] = self.used() {
            return read(part);
        }
        let mut all = Vec::new();
        try_alloc::reserve(&mut all, self.view().len() as usize)?;
        for part in self.used() {
            all.extend_from_slice(&read(part)?);
        }
        Ok(all)
    }

    /// Counts the pairs that two lists share, and waits for the number.
    pub(super) fn common(
        &self,
        gpu: &Gpu,
        batch: &mut Batch,
        last: &Self,
        counters: &mut Grow,
    ) -> Result<u64> {
        if self.used == 0 || last.used == 0 {
            return Ok(0);
        }
        let device = gpu.device();
        let all = device.upload("all pairs", &ALL, BufferUsages::STORAGE)?;
        let counter = self.count_common(gpu, batch, last, &all, counters)?;
        let counted = batch.submit_and_download(device, &[(counter, 0..8)])?;
        let counted: Vec<u64> = counted.wait()?;
        Ok(counted.first().copied().unwrap_or(0))
    }

    /// Has the pairs counted that two lists share: of the first no more than a search has found.
    pub(super) fn count_common<'c>(
        &self,
        gpu: &Gpu,
        batch: &mut Batch,
        last: &Self,
        found: &Buffer,
        counters: &'c mut Grow,
    ) -> Result<&'c Buffer> {
        let (device, kernels) = (gpu.device(), gpu.resident()?);
        let counter = counters.reserve(device, size_of::<u64>() as u64)?;
        batch.clear(counter, size_of::<u64>() as u64);
        for new in self.used() {
            for old in last.used() {
                let params = ListParams {
                    pairs: new.pairs as u32,
                    last_pairs: old.pairs as u32,
                    ..ListParams::zeroed()
                };
                let lists = [
                    (1, &new.buffer),
                    (14, &old.buffer),
                    (4, counter),
                    (5, found),
                ];
                let groups = params.pairs.div_ceil(WORKGROUP);
                batch.step(device, &kernels.count_common, params, &lists, groups)?;
            }
        }
        Ok(counter)
    }
}
