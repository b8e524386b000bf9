//! Buffers: owned device memory.

use core::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;

use bytemuck::Pod;

use crate::memory::{Allocation, Owner};
use crate::{ALIGNMENT, Error, Result, Slice, SliceMut, Stream};

/// An owned array in device memory. It may be dropped on any thread at any time. The memory is
/// freed after the work queued so far on the buffer's stream, and after the work of other streams
/// and of graphs that use it.
///
/// [`Stream::alloc`], [`Stream::alloc_zeroed`] and [`Stream::from_slice`] make buffers.
pub struct Buffer<T> {
    allocation: Arc<Allocation>,
    len: usize,
    element: PhantomData<fn() -> T>,
}

impl<T: Pod> Buffer<T> {
    pub(crate) fn new(stream: &Stream, len: usize) -> Result<Buffer<T>> {
        let size = size_of::<T>();
        // A Rust slice, and so every copy on the host, has at most `isize::MAX` bytes.
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

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the buffer has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the device address, a multiple of 256; 0 for a buffer of no bytes.
    pub fn ptr(&self) -> u64 {
        self.allocation.ptr()
    }

    /// Returns the stream that allocated the buffer and frees it.
    pub fn stream(&self) -> &Stream {
        self.allocation.stream()
    }

    /// Returns all elements as a shared slice.
    pub fn slice(&self) -> Slice<'_, T> {
        Slice::new(self.ptr(), self.len, Owner::Buffer(&self.allocation))
    }

    /// Returns all elements as a mutable slice.
    pub fn slice_mut(&mut self) -> SliceMut<'_, T> {
        SliceMut::new(self.ptr(), self.len, Owner::Buffer(&self.allocation))
    }

    /// Returns the elements in `range` as a shared slice.
    ///
    /// # Errors
    ///
    /// [`Error::Range`].
    pub fn range(&self, range: impl RangeBounds<usize>) -> Result<Slice<'_, T>> {
        self.slice().range(range)
    }

    /// Returns the elements in `range` as a mutable slice.
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
