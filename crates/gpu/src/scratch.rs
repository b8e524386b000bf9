//! Working memory that is kept from call to call.

use crate::{Buffer, Result, SliceMut, Stream};

/// One byte buffer that grows when more is asked for and is reused otherwise. Its contents are
/// unspecified at each [`Scratch::reserve`].
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
    /// Without memory.
    pub fn new() -> Scratch {
        Scratch::default()
    }

    /// Bytes held.
    pub fn capacity(&self) -> usize {
        self.buffer.as_ref().map_or(0, Buffer::len)
    }

    /// `bytes` bytes, for work on `stream`, at a multiple of 256.
    ///
    /// Growing gives half as much again as was held, or what is asked for if that is more; when
    /// that much is not free, what is asked for. What was held is freed first, on its own
    /// stream. Another stream than last time gets new memory, as the old may still be in use.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory), and then nothing is held;
    /// [`Error::Capturing`](crate::Error::Capturing) when it must grow on a stream that is
    /// being captured, and then what was held is kept.
    pub fn reserve(&mut self, stream: &Stream, bytes: usize) -> Result<SliceMut<'_, u8>> {
        let held = self
            .buffer
            .take_if(|held| held.stream().same(stream) && held.len() >= bytes);
        let buffer = match held {
            Some(held) => held,
            None => {
                stream.refuse_capture("growing a scratch buffer")?;
                let generous = self
                    .capacity()
                    .saturating_add(self.capacity() / 2)
                    .max(bytes);
                self.buffer = None;
                stream.alloc(generous).or_else(|_| stream.alloc(bytes))?
            }
        };
        self.buffer.insert(buffer).range_mut(..bytes)
    }

    /// Frees what is held.
    pub fn clear(&mut self) {
        self.buffer = None;
    }
}
