//! Owned device memory.

use core::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;

use bytemuck::Pod;

use crate::memory::{Allocation, Owner};
use crate::{ALIGNMENT, Error, Result, Slice, SliceMut, Stream};

/// `len` elements of device memory. Dropping it, on any thread, frees it after the work that its
/// stream was given before and the work of other streams that used it, or with the last graph that
/// uses it.
///
/// Made by [`Stream::alloc`], [`Stream::alloc_zeroed`] and [`Stream::from_slice`].
pub struct Buffer<T> {
    allocation: Arc<Allocation>,
    len: usize,
    element: PhantomData<fn() -> T>,
}

impl<T: Pod> Buffer<T> {
    pub(crate) fn new(stream: &Stream, len: usize) -> Result<Buffer<T>> {
        let size = size_of::<T>();
        // Half the address space bounds a Rust slice, and with it every host copy.
        let bytes = len
            .checked_mul(size)
            .filter(|&bytes| isize::try_from(bytes).is_ok());
        let bytes = bytes.ok_or(Error::TooLarge { len, size })?;
        if align_of::<T>() > ALIGNMENT {
            return Err(Error::Alignment {
                address: ALIGNMENT as u64,
                alignment: align_of::<T>(),
            });
        }
        Ok(Buffer {
            allocation: Allocation::new(stream, bytes)?,
            len,
            element: PhantomData,
        })
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True without elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device address, a multiple of 256; 0 for a buffer of no bytes.
    pub fn ptr(&self) -> u64 {
        self.allocation.ptr()
    }

    /// The stream that made it and frees it.
    pub fn stream(&self) -> &Stream {
        self.allocation.stream()
    }

    /// All of it, to read.
    pub fn slice(&self) -> Slice<'_, T> {
        Slice::new(self.ptr(), self.len, Owner::Buffer(&self.allocation))
    }

    /// All of it, to write.
    pub fn slice_mut(&mut self) -> SliceMut<'_, T> {
        SliceMut::new(self.ptr(), self.len, Owner::Buffer(&self.allocation))
    }

    /// A part, to read.
    ///
    /// # Errors
    ///
    /// [`Error::Range`].
    pub fn range(&self, range: impl RangeBounds<usize>) -> Result<Slice<'_, T>> {
        self.slice().range(range)
    }

    /// A part, to write.
    ///
    /// # Errors
    ///
    /// [`Error::Range`].
    pub fn range_mut(&mut self, range: impl RangeBounds<usize>) -> Result<SliceMut<'_, T>> {
        self.slice_mut().range(range)
    }
}

impl<T> core::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Buffer")
            .field("ptr", &self.allocation.ptr())
            .field("len", &self.len)
            .finish()
    }
}

const _: () = {
    const fn sendable<T: Send + Sync>() {}
    sendable::<Buffer<u32>>();
};
