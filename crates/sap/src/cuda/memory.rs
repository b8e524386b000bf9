//! Memory that is kept from update to update: device buffers that grow, and host memory that the device writes to.

use crate::{Error, Pair, Result};
use bytemuck::Pod;
use gpu::{Buffer, Device, Pinned, Slice, SliceMut, Stream};
use rayon::prelude::*;
use std::ops::Deref;

/// A device buffer that is replaced by a larger one, its contents lost, when more is needed.
pub(super) struct Grow<T>(Option<Buffer<T>>);

impl<T> Default for Grow<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Pod> Grow<T> {
    pub(super) fn capacity(&self) -> usize {
        self.0.as_ref().map_or(0, Buffer::len)
    }

    /// Room for `len` elements, and half as many again as there was when that is little. Contents are lost when it grows.
    pub(super) fn reserve(&mut self, stream: &Stream, len: usize) -> Result<SliceMut<'_, T>> {
        if self.capacity() < len {
            let generous = len.max(self.capacity() + self.capacity() / 2);
            self.0 = None;
            self.0 = Some(stream.alloc(generous).or_else(|_| stream.alloc(len))?);
        }
        self.part_mut(len)
    }

    /// Room for exactly `len` elements at least.
    pub(super) fn reserve_exact(&mut self, stream: &Stream, len: usize) -> Result<()> {
        if self.capacity() < len {
            self.0 = None;
            self.0 = Some(stream.alloc(len)?);
        }
        Ok(())
    }

    /// The first `len` elements, which are there.
    pub(super) fn part(&self, len: usize) -> Result<Slice<'_, T>> {
        match &self.0 {
            Some(buffer) => Ok(buffer.range(..len)?),
            // SAFETY: a slice of nothing may be anywhere, and more is refused.
            None => Ok(unsafe { Slice::from_raw(0, 0) }.range(..len)?),
        }
    }

    /// The first `len` elements, to write.
    pub(super) fn part_mut(&mut self, len: usize) -> Result<SliceMut<'_, T>> {
        match &mut self.0 {
            Some(buffer) => Ok(buffer.range_mut(..len)?),
            // SAFETY: as above.
            None => Ok(unsafe { SliceMut::from_raw(0, 0) }.range(..len)?),
        }
    }

    /// Its address, 0 without memory.
    pub(super) fn ptr(&self) -> u64 {
        self.0.as_ref().map_or(0, Buffer::ptr)
    }
}

/// Uploads from any memory at the speed of pinned memory: pieces are copied there by all threads while the one before
/// is on its way.
#[derive(Default)]
pub(super) struct Uploader {
    pinned: Option<Pinned<u8>>,
    used: usize,
}

/// Bytes of pinned memory that uploads pass through, of one piece, and of what one thread copies of it.
const ROOM: usize = 32 << 20;
const PIECE: usize = 4 << 20;
const SHARE: usize = 256 << 10;

impl Uploader {
    /// Starts a frame: nothing that was uploaded before is still on its way.
    pub(super) fn start(&mut self, stream: &Stream) -> Result<()> {
        if self.used > 0 {
            stream.synchronize()?;
        }
        self.used = 0;
        Ok(())
    }

    pub(super) fn upload<T: Pod>(
        &mut self,
        stream: &Stream,
        to: SliceMut<T>,
        from: &[T],
    ) -> Result<()> {
        let from: &[u8] = bytemuck::cast_slice(from);
        let mut to = to.cast::<u8>()?;
        if self.pinned.is_none() && !from.is_empty() {
            self.pinned = Some(Pinned::new(stream.device(), ROOM)?);
        }
        let Some(pinned) = &mut self.pinned else {
            return Ok(());
        };
        for piece in from.chunks(PIECE) {
            if self.used + piece.len() > ROOM {
                stream.synchronize()?;
                self.used = 0;
            }
            let staged = &mut pinned[self.used..self.used + piece.len()];
            if piece.len() <= SHARE {
                staged.copy_from_slice(piece);
            } else {
                let shares = staged.par_chunks_mut(SHARE).zip(piece.par_chunks(SHARE));
                shares.for_each(|(to, from)| to.copy_from_slice(from));
            }
            let (head, tail) = to.split_at(piece.len())?;
            // SAFETY: the pinned memory is used again only after waiting for the stream, here or in `start`, and its
            // owner waits for the stream before it frees it (`Engine::drop`).
            unsafe { stream.upload_pinned(head, staged)? };
            to = tail;
            self.used += piece.len();
        }
        Ok(())
    }
}

/// Pairs on the host. Pinned, so that downloads are fast, up to 1 GiB; beyond that pinning would cost more than it saves
/// and starve the system.
#[derive(Default)]
pub(super) struct HostPairs {
    memory: HostMemory,
    len: usize,
}

#[derive(Default)]
enum HostMemory {
    #[default]
    None,
    Pinned(Pinned<Pair>),
    Plain(Vec<Pair>),
}

const MOST_PINNED: usize = (1 << 30) / size_of::<Pair>();

impl HostPairs {
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Replaces the list by that on the device.
    pub(super) fn download(&mut self, stream: &Stream, pairs: Slice<Pair>) -> Result<()> {
        self.len = 0;
        let len = pairs.len();
        if len == 0 {
            return Ok(());
        }
        if self.room().len() < len {
            self.memory = HostMemory::None;
            self.memory = grown(stream.device(), len)?;
        }
        stream.download(pairs, &mut self.room()[..len])?;
        self.len = len;
        Ok(())
    }

    fn room(&mut self) -> &mut [Pair] {
        match &mut self.memory {
            HostMemory::None => &mut [],
            HostMemory::Pinned(pinned) => pinned,
            HostMemory::Plain(vec) => vec,
        }
    }
}

fn grown(device: &Device, len: usize) -> Result<HostMemory> {
    let generous = len + len / 4;
    if generous <= MOST_PINNED {
        return Ok(HostMemory::Pinned(Pinned::new(device, generous)?));
    }
    Ok(HostMemory::Plain(zeroed_pairs(len)?))
}

/// That many pairs of zeros, or an error where the host has no memory for them.
pub(super) fn zeroed_pairs(len: usize) -> Result<Vec<Pair>> {
    let mut vec = Vec::new();
    let bytes = (len * size_of::<Pair>()) as u64;
    vec.try_reserve_exact(len)
        .map_err(|_| Error::OutOfMemory { bytes })?;
    vec.resize(len, Pair::default());
    Ok(vec)
}

impl Deref for HostPairs {
    type Target = [Pair];

    fn deref(&self) -> &[Pair] {
        let memory: &[Pair] = match &self.memory {
            HostMemory::None => &[],
            HostMemory::Pinned(pinned) => pinned,
            HostMemory::Plain(vec) => vec,
        };
        &memory[..self.len]
    }
}
