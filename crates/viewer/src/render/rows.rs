//! Rows for the vertex stage, in several buffers.

use bytemuck::NoUninit;
use std::marker::PhantomData;
use wgpu::{Buffer, BufferDescriptor, BufferUsages, Device, Queue};

/// Creates a buffer for as many elements, or some more.
pub(in super::super) fn buffer_for<T>(device: &Device, all: &[T], usage: BufferUsages) -> Buffer {
    let size = all.len().next_power_of_two() * size_of::<T>();
    device.create_buffer(&BufferDescriptor {
        label: None,
        size: size as u64,
        usage: usage | BufferUsages::COPY_DST,
        mapped_at_creation: false,
    })
}

/// Writes the begin of a buffer. One that is too small is replaced.
pub(in super::super) fn write<T: NoUninit>(
    device: &Device,
    queue: &Queue,
    buffer: &mut Buffer,
    all: &[T],
) {
    if buffer.size() < size_of_val(all) as u64 {
        *buffer = buffer_for(device, all, buffer.usage());
    }
    queue.write_buffer(buffer, 0, bytemuck::cast_slice(all));
}

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
            if index == self.chunks.len() {
                self.chunks
                    .push(buffer_for(device, rows, BufferUsages::VERTEX));
            }
            write(device, queue, &mut self.chunks[index], rows);
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
