//! Buffers, checked against the limits of the device before it is asked.

use crate::{Device, Result};
use bytemuck::Pod;
use wgpu::{Buffer, BufferDescriptor, BufferUsages};

impl Device {
    /// Makes a buffer of zeros.
    ///
    /// ```
    /// use wgpu_device::{Adapters, BufferUsages, Device, Error};
    ///
    /// # fn main() -> wgpu_device::Result<()> {
    /// let Ok(device) = Device::new(Adapters::Any) else { return Ok(()) }; // no driver here
    /// assert_eq!(device.buffer("scratch", 64, BufferUsages::STORAGE)?.size(), 64);
    /// let refused = device.buffer("scratch", 1 << 60, BufferUsages::STORAGE);
    /// assert!(matches!(refused, Err(Error::TooLarge { what: "scratch", .. })));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`](crate::Error::TooLarge) beyond the limits of the device: of a
    /// binding, if `usage` has [`BufferUsages::STORAGE`]. Those of [`Device::checked`].
    pub fn buffer(&self, what: &'static str, bytes: u64, usage: BufferUsages) -> Result<Buffer> {
        self.create(what, bytes, usage, Contents::Zeros)
    }

    /// Makes a buffer of these elements. Elements of less than 4 bytes are padded at the end.
    ///
    /// # Errors
    ///
    /// Those of [`Device::buffer`].
    pub fn upload<T: Pod>(
        &self,
        what: &'static str,
        elements: &[T],
        usage: BufferUsages,
    ) -> Result<Buffer> {
        let bytes: &[u8] = bytemuck::cast_slice(elements);
        let buffer = self.create(what, bytes.len() as u64, usage, Contents::Mapped)?;
        if !bytes.is_empty() {
            let end = bytes.len() as u64;
            let mut mapped = buffer
                .get_mapped_range_mut(..end.next_multiple_of(4))
                .map_err(|error| self.failed("get_mapped_range_mut", error.to_string()))?;
            mapped.slice(..bytes.len()).copy_from_slice(bytes);
        }
        self.checked("unmap", || buffer.unmap())?;
        Ok(buffer)
    }

    fn create(
        &self,
        what: &'static str,
        bytes: u64,
        usage: BufferUsages,
        contents: Contents,
    ) -> Result<Buffer> {
        let limits = self.limits();
        let limit = if usage.contains(BufferUsages::STORAGE) {
            limits
                .max_buffer_size
                .min(limits.max_storage_buffer_binding_size)
        } else {
            limits.max_buffer_size
        };
        self.within(what, bytes, limit)?;
        let descriptor = BufferDescriptor {
            label: Some(what),
            // A binding may not be empty.
            size: bytes.max(4).next_multiple_of(4),
            usage,
            mapped_at_creation: contents == Contents::Mapped,
        };
        self.checked("create_buffer", || self.wgpu().create_buffer(&descriptor))
    }
}

/// What a new buffer holds.
#[derive(Clone, Copy, PartialEq)]
enum Contents {
    Zeros,
    /// What the host writes before it unmaps the buffer.
    Mapped,
}
