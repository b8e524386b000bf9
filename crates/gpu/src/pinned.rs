//! Page-locked host memory.

use core::fmt;
use core::ptr::{self, NonNull};
use std::ops::{Deref, DerefMut};

use bytemuck::Pod;

use crate::error::OUT_OF_MEMORY;
use crate::{Device, Error, Result, driver};

/// A slice of page-locked host memory. The device copies from and to it at full speed and
/// asynchronously ([`Stream::upload_pinned`](crate::Stream::upload_pinned)). Such memory is scarce
/// and slow to allocate, so keep it from call to call.
///
/// ```
/// # fn f(device: &gpu::Device) -> gpu::Result<()> {
/// let mut staging = gpu::Pinned::<f32>::new(device, 1000)?;
/// staging[0] = 1.0;
/// # Ok(())
/// # }
/// ```
pub struct Pinned<T> {
    ptr: NonNull<T>,
    len: usize,
    device: Device,
}

// SAFETY: it owns its elements, as a `Vec` does.
unsafe impl<T: Send> Send for Pinned<T> {}
// SAFETY: it gives shared access to its elements only, as a `Vec` does.
unsafe impl<T: Sync> Sync for Pinned<T> {}

impl<T: Pod> Pinned<T> {
    /// Allocates `len` elements, all zero.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`], [`Error::OutOfHostMemory`], [`Error::Alignment`] for a type aligned
    /// more strictly than a page.
    pub fn new(device: &Device, len: usize) -> Result<Pinned<T>> {
        const PAGE: usize = 4096;
        /// `CU_MEMHOSTALLOC_PORTABLE`: pinned for all devices.
        const PORTABLE: u32 = 1;
        let (size, alignment) = (size_of::<T>(), align_of::<T>());
        let bytes = len
            .checked_mul(size)
            .filter(|&bytes| isize::try_from(bytes).is_ok());
        let bytes = bytes.ok_or(Error::TooLarge { len, size })?;
        if alignment > PAGE {
            return Err(Error::Alignment {
                address: PAGE as u64,
                alignment,
            });
        }
        let mut ptr = NonNull::<T>::dangling();
        if bytes != 0 {
            device.bind()?;
            let mut raw = ptr::null_mut();
            // SAFETY: the out pointer is valid.
            unsafe { driver::cuMemHostAlloc(&mut raw, bytes, PORTABLE) }.map_err(|error| {
                match error {
                    Error::Call {
                        code: OUT_OF_MEMORY,
                        ..
                    } => Error::OutOfHostMemory {
                        requested: bytes as u64,
                    },
                    error => error,
                }
            })?;
            ptr = NonNull::new(raw.cast()).ok_or(Error::OutOfHostMemory {
                requested: bytes as u64,
            })?;
            // SAFETY: `len` elements were allocated, aligned to a page; all zeros are a valid value
            // of a `Pod` type.
            unsafe { ptr.write_bytes(0, len) };
        }
        Ok(Pinned {
            ptr,
            len,
            device: device.clone(),
        })
    }
}

impl<T> Deref for Pinned<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: this value owns `len` initialised elements, or none at a dangling address.
        unsafe { core::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Pinned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: this value owns `len` initialised elements, or none at a dangling address, and is
        // borrowed mutably.
        unsafe { core::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        if self.len * size_of::<T>() != 0 && self.device.bind().is_ok() {
            // A drop cannot return an error; if the device has failed, the next call returns it.
            // SAFETY: `new` allocated the memory, and it is freed only here.
            let _ = unsafe { driver::cuMemFreeHost(self.ptr.as_ptr().cast()) };
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Pinned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self[..].fmt(f)
    }
}
