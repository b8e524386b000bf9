//! Rows for the vertex stage, in several buffers.

use bytemuck::NoUninit;
use std::marker::PhantomData;
use wgpu::{Buffer, BufferDescriptor, BufferUsages, Device, Queue};

/// Rows of one type. Buffers only grow. None has more than [`Rows::CHUNK`] rows, so that a million
/// bodies stay within the buffer size of 256 MiB that every driver supports.
#[derive(Debug)]
pub(super) struct Rows<T> {
    chunks: Vec<Buffer>,
    len: usize,
    of: PhantomData<T>,
}

impl<T: NoUninit> Rows<T> {
    /// Max rows of a buffer: 52 MiB of instances.
    const CHUNK: usize = 1 << 20;

    pub const fn new() -> Self {
        Self {
            chunks: Vec::new(),
            len: 0,
            of: PhantomData,
        }
    }

    /// Replaces all rows.
    pub fn write(&mut self, device: &Device, queue: &Queue, rows: &[T]) {
        self.len = rows.len();
        for (index, rows) in rows.chunks(Self::CHUNK).enumerate() {
            let bytes: &[u8] = bytemuck::cast_slice(rows);
            let held = self.chunks.get(index);
            if held.is_none_or(|buffer| buffer.size() < bytes.len() as u64) {
                let size = rows.len().next_power_of_two() * size_of::<T>();
                let buffer = device.create_buffer(&BufferDescriptor {
                    label: None,
                    size: size as u64,
                    usage: BufferUsages::VERTEX | BufferUsages::COPY_DST,
                    mapped_at_creation: false,
                });
                self.chunks.truncate(index);
                self.chunks.push(buffer);
            }
            queue.write_buffer(&self.chunks[index], 0, bytes);
        }
    }

    /// Returns the buffers with their numbers of rows.
    pub fn iter(&self) -> impl Iterator<Item = (&Buffer, u32)> {
        let rows_of = |index| {
            self.len
                .saturating_sub(index * Self::CHUNK)
                .min(Self::CHUNK)
        };
        let chunks = self.chunks.iter().enumerate();
        chunks
            .map(move |(index, buffer)| (buffer, rows_of(index) as u32))
            .filter(|&(_, rows)| rows > 0)
    }
}
