//! Device memory that is kept from call to call.

use crate::{Buffer, DevicePtr, Error, Result, Slice, SliceMut, Stream};
use bytemuck::Pod;

/// Scratch memory: bytes that are reused from call to call.
///
/// ```
/// # fn sort(stream: &gpu::Stream, scratch: &mut gpu::Scratch) -> gpu::Result<()> {
/// let memory = scratch.reserve(stream, 1 << 20)?;
/// let mut layout = gpu::Layout::over(memory)?;
/// let counters = layout.take::<u32>(256)?;
/// # drop(counters);
/// # Ok(())
/// # }
/// ```
pub type Scratch = Grow<u8>;

/// A buffer that is reused from call to call, and replaced by a larger one when a call needs more,
/// or by another one for work on another stream. Its contents are lost then; those of new memory
/// are unspecified.
///
/// ```
/// # fn main() -> gpu::Result<()> {
/// # let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
/// # let stream = gpu::Stream::new(&device)?;
/// let mut squares = gpu::Grow::new();
/// stream.upload(squares.reserve(&stream, 3)?, &[1_u32, 4, 9])?;
/// assert_eq!(stream.to_vec(squares.part(2)?)?, [1, 4]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Grow<T> {
    buffer: Option<Buffer<T>>,
}

impl<T> Default for Grow<T> {
    fn default() -> Self {
        Self { buffer: None }
    }
}

impl<T: Pod> Grow<T> {
    /// Makes one without memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the capacity in elements.
    pub fn capacity(&self) -> usize {
        self.buffer.as_ref().map_or(0, Buffer::len)
    }

    /// Returns the first `len` elements, aligned to 256 bytes, for work on `stream`.
    ///
    /// If it is too small, the buffer grows by half, or to `len` if that is more; if so much is not
    /// free, to `len`. The old memory is freed first, on its own stream. On another stream than
    /// last time a new buffer of the same capacity is allocated, because the old may still be in
    /// use.
    ///
    /// # Errors
    ///
    /// [`Error::Capturing`] if memory must be allocated on a stream that is being captured; the
    /// buffer is unchanged then. Those of [`Stream::alloc`]; the buffer is empty then.
    pub fn reserve(&mut self, stream: &Stream, len: usize) -> Result<SliceMut<'_, T>> {
        let capacity = self.capacity();
        let generous = match capacity < len {
            true => capacity.saturating_add(capacity / 2).max(len),
            false => capacity,
        };
        self.reserve_up_to(stream, len, generous)
    }

    /// As [`Grow::reserve`], but a buffer that is too small grows to `len`.
    ///
    /// # Errors
    ///
    /// As [`Grow::reserve`].
    pub fn reserve_exact(&mut self, stream: &Stream, len: usize) -> Result<SliceMut<'_, T>> {
        let capacity = self.capacity();
        self.reserve_up_to(stream, len, capacity.max(len))
    }

    /// As [`Grow::reserve`], but a buffer that is too small grows to `generous`, which is at least
    /// `len`; if so much is not free, to `len`.
    ///
    /// # Errors
    ///
    /// As [`Grow::reserve`].
    pub fn reserve_up_to(
        &mut self,
        stream: &Stream,
        len: usize,
        generous: usize,
    ) -> Result<SliceMut<'_, T>> {
        let kept = self
            .buffer
            .take_if(|kept| kept.stream().same(stream) && kept.len() >= len);
        let buffer = match kept {
            Some(kept) => kept,
            None => {
                stream.refuse_capture("growing a buffer")?;
                self.buffer = None;
                match stream.alloc(generous.max(len)) {
                    Err(Error::OutOfMemory { .. }) if generous > len => stream.alloc(len)?,
                    result => result?,
                }
            }
        };
        self.buffer.insert(buffer).range_mut(..len)
    }

    /// Returns the first `len` elements.
    ///
    /// # Errors
    ///
    /// [`Error::Range`] if the capacity is less.
    pub fn part(&self, len: usize) -> Result<Slice<'_, T>> {
        match &self.buffer {
            Some(buffer) => buffer.range(..len),
            // SAFETY: a slice of no elements may be at any address, and more are an error.
            None => unsafe { Slice::from_raw(0, 0) }.range(..len),
        }
    }

    /// Returns the first `len` elements, to write.
    ///
    /// # Errors
    ///
    /// As [`Grow::part`].
    pub fn part_mut(&mut self, len: usize) -> Result<SliceMut<'_, T>> {
        match &mut self.buffer {
            Some(buffer) => buffer.range_mut(..len),
            // SAFETY: as in `part`.
            None => unsafe { SliceMut::from_raw(0, 0) }.range(..len),
        }
    }

    /// Returns the address, null without memory. It is valid until the next call that reserves or
    /// frees memory.
    pub fn device_ptr(&self) -> DevicePtr<T> {
        let buffer = self.buffer.as_ref();
        buffer.map_or(DevicePtr::NULL, |buffer| buffer.slice().device_ptr())
    }

    /// Frees the memory.
    pub fn clear(&mut self) {
        self.buffer = None;
    }
}
