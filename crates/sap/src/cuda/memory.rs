//! Host memory that the device reads and writes, kept from update to update.

use crate::cuda::tuning::{COPY_ALONE, COPY_SHARE, MAX_PINNED, MIN_PINNED, STAGED_PIECE, STAGING};
use crate::try_alloc::zeros;
use crate::{Pair, Result};
use bytemuck::Pod;
use gpu::{Device, Pinned, Slice, SliceMut, Stream};
use rayon::prelude::*;
use std::ops::{Deref, DerefMut};

/// Host memory that the device copies to and from. It is pinned where the system grants that, else
/// plain: copies then take longer.
pub(crate) enum HostBuffer<T> {
    Pinned(Pinned<T>),
    Plain(Vec<T>),
}

impl<T> Default for HostBuffer<T> {
    fn default() -> Self {
        Self::Plain(Vec::new())
    }
}

impl<T: Pod> HostBuffer<T> {
    /// Allocates `len` zeroed elements.
    ///
    /// # Errors
    ///
    /// [`crate::Error::OutOfMemory`] where plain memory is refused too.
    pub(crate) fn new(device: &Device, len: usize) -> Result<Self> {
        // A device that has failed reports it at the next call too; plain memory is only slower.
        match Pinned::new(device, len) {
            Ok(pinned) => Ok(Self::Pinned(pinned)),
            Err(_) => Ok(Self::Plain(zeros(len)?)),
        }
    }
}

impl<T> Deref for HostBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Pinned(pinned) => pinned,
            Self::Plain(vec) => vec,
        }
    }
}

impl<T> DerefMut for HostBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Pinned(pinned) => pinned,
            Self::Plain(vec) => vec,
        }
    }
}

/// Uploads from any memory at the speed of pinned memory: all threads copy a large piece there
/// while the one before is under way.
#[derive(Default)]
pub(crate) struct Uploader {
    staging: Option<HostBuffer<u8>>,
    used: usize,
}

impl Uploader {
    /// Starts a frame: waits until no earlier upload is under way.
    pub(crate) fn start(&mut self, stream: &Stream) -> Result<()> {
        if self.used > 0 {
            stream.synchronize()?;
        }
        self.used = 0;
        Ok(())
    }

    /// Queues the upload of a list.
    pub(crate) fn upload<T: Pod>(
        &mut self,
        stream: &Stream,
        to: SliceMut<T>,
        from: &[T],
    ) -> Result<()> {
        let from: &[u8] = bytemuck::cast_slice(from);
        let mut to = to.cast::<u8>()?;
        if self.staging.is_none() && !from.is_empty() {
            self.staging = Some(HostBuffer::new(stream.device(), STAGING)?);
        }
        let Some(staging) = &mut self.staging else {
            return Ok(());
        };
        for piece in from.chunks(STAGED_PIECE) {
            if self.used + piece.len() > STAGING {
                stream.synchronize()?;
                self.used = 0;
            }
            let staged = &mut staging[self.used..self.used + piece.len()];
            if piece.len() <= COPY_ALONE {
                staged.copy_from_slice(piece);
            } else {
                let shares = staged
                    .par_chunks_mut(COPY_SHARE)
                    .zip(piece.par_chunks(COPY_SHARE));
                shares.for_each(|(to, from)| to.copy_from_slice(from));
            }
            let (head, tail) = to.split_at(piece.len())?;
            // SAFETY: the staging memory is used again only after waiting for the stream, here or
            // in `start`, and its owner waits for the stream before it frees it (`Engine::drop`).
            unsafe { stream.upload_pinned(head, staged)? };
            to = tail;
            self.used += piece.len();
        }
        Ok(())
    }
}

/// Pairs on the host. Up to 1 GiB they are in pinned memory, so that downloads are fast. Beyond,
/// pinning would cost more than it saves and starve the system.
#[derive(Default)]
pub(crate) struct HostPairs {
    memory: HostBuffer<Pair>,
    len: usize,
}

impl HostPairs {
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Replaces the list by one on the device. It is empty after an error.
    pub(crate) fn download(&mut self, stream: &Stream, pairs: Slice<Pair>) -> Result<()> {
        self.len = 0;
        let len = pairs.len();
        if self.memory.len() < len {
            // Pinned memory is slow to make: it grows seldom.
            let generous = (len + len / 4).max(2 * self.memory.len()).max(MIN_PINNED);
            self.memory = HostBuffer::default();
            self.memory = if len <= MAX_PINNED {
                HostBuffer::new(stream.device(), generous.min(MAX_PINNED))?
            } else {
                HostBuffer::Plain(zeros(len)?)
            };
        }
        stream.download(pairs, &mut self.memory[..len])?;
        self.len = len;
        Ok(())
    }
}

impl Deref for HostPairs {
    type Target = [Pair];

    fn deref(&self) -> &[Pair] {
        &self.memory[..self.len]
    }
}
