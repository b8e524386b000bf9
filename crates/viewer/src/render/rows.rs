//! Rows for the vertex stage in as many buffers as it takes.

use bytemuck::NoUninit;
use std::marker::PhantomData;
use wgpu::{Buffer, BufferDescriptor, BufferUsages, Device, Queue};

/// Rows of one type. Buffers only grow, and none has more than [`Rows::CHUNK`] rows, so that a million bodies stay within the
/// buffer size of 256 MiB that every driver has.
#[derive(Debug)]
pub(super) struct Rows<T> {
    chunks: Vec<Buffer>,
    len: usize,
    of: PhantomData<T>,
}

impl<T: NoUninit> Rows<T> {
    /// Rows of a buffer at most: 52 MiB of instances.
    const CHUNK: usize = 1 << 20;

    pub const fn new() -> Self {
        Self {
            chunks: Vec::new(),
            len: 0,
            of: PhantomData,
        }
    }

    /// Takes the place of what was there.
    pub fn write(&mut self, device: &Device, queue: &Queue, rows: &[T]) {
        self.len = rows.len();
        for (index, rows) in rows.chunks(Self::CHUNK).enumerate() {
            let bytes: &[u8] = bytemuck::cast_slice(rows);
            let held = self.chunks.get(index);
            if held.is_none_or(|buffer| buffer.size() < bytes.len() as u64) {
                let room = rows.len().next_power_of_two() * size_of::<T>();
                let buffer = device.create_buffer(&BufferDescriptor {
                    label: None,
                    size: room as u64,
                    usage: BufferUsages::VERTEX | BufferUsages::COPY_DST,
                    mapped_at_creation: false,
                });
                self.chunks.truncate(index);
                self.chunks.push(buffer);
            }
            queue.write_buffer(&self.chunks[index], 0, bytes);
        }
    }

    /// Buffers with the number of their rows.
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
