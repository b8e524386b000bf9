//! Memory on the device that is kept between updates.

use super::tuning::GROWTH_SHARE;
use crate::Result;
use bytemuck::Pod;
use gpusort::Key;
use gpusort::wgpu::{Payload, ReportDownload, Scratch, Sorter};
use wgpu_device::{BufferUsages, Device, wgpu};

/// A buffer that grows. Growing loses what it has.
pub(super) struct Grow {
    what: &'static str,
    buffer: Option<wgpu::Buffer>,
}

impl Grow {
    pub(super) const fn new(what: &'static str) -> Self {
        Self { what, buffer: None }
    }

    /// Returns the capacity in bytes.
    pub(super) fn capacity(&self) -> u64 {
        self.buffer.as_ref().map_or(0, wgpu::Buffer::size)
    }

    /// Returns the buffer with a capacity of this many bytes, or more.
    pub(super) fn reserve(&mut self, device: &Device, bytes: u64) -> Result<&wgpu::Buffer> {
        if self.capacity() < bytes {
            self.buffer = None;
        }
        let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
        let buffer = match self.buffer.take() {
            Some(buffer) => buffer,
            // Less may be had. Any other error comes again.
            None => device
                .buffer(self.what, bytes + bytes / GROWTH_SHARE, usage)
                .or_else(|_| device.buffer(self.what, bytes, usage))?,
        };
        Ok(self.buffer.insert(buffer))
    }

    /// Returns the buffer, if there is one.
    pub(super) const fn buffer(&self) -> Option<&wgpu::Buffer> {
        self.buffer.as_ref()
    }

    /// Writes a list.
    pub(super) fn write<T: Pod>(&mut self, device: &Device, list: &[T]) -> Result<&wgpu::Buffer> {
        let bytes: &[u8] = bytemuck::cast_slice(list);
        let buffer = self.reserve(device, bytes.len() as u64)?;
        write_at(device, buffer, 0, bytes)?;
        Ok(buffer)
    }

    /// Reads the first elements.
    pub(super) fn read<T: Pod>(&mut self, device: &Device, count: u64) -> Result<Vec<T>> {
        let bytes = count * size_of::<T>() as u64;
        let buffer = self.reserve(device, bytes)?;
        Ok(device.download(buffer, 0..bytes)?.wait()?)
    }
}

/// The memory that both ways to search use, one after the other.
pub(super) struct SearchMemory {
    pub(super) entries: Grow,
    pub(super) names: Grow,
    pub(super) starts: Grow,
    pub(super) pairs: Grow,
    pub(super) ordered: Grow,
    pub(super) rows: Grow,
}

impl Default for SearchMemory {
    fn default() -> Self {
        Self {
            entries: Grow::new("boxes in sweep order"),
            names: Grow::new("indices in sweep order"),
            starts: Grow::new("first test of each box"),
            pairs: Grow::new("pairs"),
            ordered: Grow::new("pairs in order"),
            rows: Grow::new("pairs of each box"),
        }
    }
}

/// Writes bytes of the host at an offset.
pub(super) fn write_at(
    device: &Device,
    buffer: &wgpu::Buffer,
    offset: u64,
    bytes: &[u8],
) -> Result<()> {
    if !bytes.is_empty() {
        let write = || device.queue().write_buffer(buffer, offset, bytes);
        device.checked("write_buffer", write)?;
    }
    Ok(())
}

/// Scratch memory of sorts, which grows.
#[derive(Default)]
pub(super) struct GrowScratch {
    /// The memory, and for how many keys and of how many bits it is.
    scratch: Option<(Scratch, u64, u32)>,
}

impl GrowScratch {
    /// Returns the memory, if a sort has had some.
    pub(super) fn get(&self) -> Option<&Scratch> {
        self.scratch.as_ref().map(|(scratch, ..)| scratch)
    }

    /// Submits the copy of the report of the last sort.
    pub(super) fn report(&self, sorter: &Sorter) -> Result<Option<ReportDownload>> {
        let report = self.get().map(|scratch| sorter.download_report(scratch));
        Ok(report.transpose()?)
    }

    /// Returns scratch memory for a sort of `n` keys.
    pub(super) fn reserve<K: Key>(
        &mut self,
        sorter: &Sorter,
        n: u64,
        payload: Payload,
    ) -> Result<&Scratch> {
        let kept = self.scratch.take();
        let kept = kept.filter(|&(_, capacity, bits)| n <= capacity && K::BITS <= bits);
        let kept = match kept {
            Some(kept) => kept,
            None => {
                let more = n + n / GROWTH_SHARE;
                let made = sorter.scratch::<K>(more, payload);
                let made = made.map(|scratch| (scratch, more, K::BITS));
                // As in `Grow::reserve`.
                made.or_else(|_| {
                    Ok::<_, gpusort::Error>((sorter.scratch::<K>(n, payload)?, n, K::BITS))
                })?
            }
        };
        Ok(&self.scratch.insert(kept).0)
    }
}
