//! Scratch memory that is kept from call to call.

use crate::{Buffer, Result, SliceMut, Stream};

/// A buffer of bytes that is reused from call to call, and grows when a call needs more. Its
/// contents are unspecified after each [`Scratch::reserve`].
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
#[derive(Debug, Default)]
pub struct Scratch {
    buffer: Option<Buffer<u8>>,
}

impl Scratch {
    /// Makes one without memory.
    pub fn new() -> Scratch {
        Scratch::default()
    }

    /// Returns the capacity in bytes.
    pub fn capacity(&self) -> usize {
        self.buffer.as_ref().map_or(0, Buffer::len)
    }

    /// Returns `bytes` bytes for work on `stream`, aligned to 256 bytes.
    ///
    /// If it is too small, the buffer grows by half, or to `bytes` if that is more; if so much is
    /// not free, to `bytes`. The old memory is freed first, on its own stream. For another stream
    /// than last time as much new memory is allocated, because the old may still be in use.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); the buffer is empty then.
    /// [`Error::Capturing`](crate::Error::Capturing) if it must grow on a stream that is being
    /// captured; the buffer is unchanged then.
    pub fn reserve(&mut self, stream: &Stream, bytes: usize) -> Result<SliceMut<'_, u8>> {
        let kept = self
            .buffer
            .take_if(|kept| kept.stream().same(stream) && kept.len() >= bytes);
        let buffer = match kept {
            Some(kept) => kept,
            None => {
                stream.refuse_capture("growing a scratch buffer")?;
                let capacity = self.capacity();
                let generous = match capacity < bytes {
                    true => capacity.saturating_add(capacity / 2).max(bytes),
                    false => capacity,
                };
                self.buffer = None;
                stream.alloc(generous).or_else(|_| stream.alloc(bytes))?
            }
        };
        self.buffer.insert(buffer).range_mut(..bytes)
    }

    /// Frees the memory.
    pub fn clear(&mut self) {
        self.buffer = None;
    }
}
