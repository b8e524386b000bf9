//! Checks of the buffers that a caller passes.

use crate::error::same_length;
use crate::{Error, Result};
use bytemuck::Pod;
use gpu::{DevicePtr, Memory, Slice, SliceMut};

/// A buffer of a call, with the name that errors use.
#[derive(Debug, Clone, Copy)]
struct Named {
    what: &'static str,
    ptr: u64,
    bytes: u64,
    alignment: u64,
    written: bool,
}

impl Named {
    fn read<T: Pod>(what: &'static str, slice: &Slice<'_, T>) -> Self {
        Self {
            what,
            ptr: slice.ptr(),
            bytes: slice.bytes() as u64,
            alignment: align_of::<T>() as u64,
            written: false,
        }
    }

    fn written<T: Pod>(what: &'static str, slice: &SliceMut<'_, T>) -> Self {
        Self {
            written: true,
            ..Self::read(what, &slice.as_slice())
        }
    }

    fn scratch(slice: &SliceMut<'_, u8>) -> Self {
        Self {
            alignment: gpu::ALIGNMENT as u64,
            ..Self::written("scratch", slice)
        }
    }

    fn check(&self) -> Result<()> {
        if self.bytes != 0 && self.ptr == 0 {
            return Err(Error::Null { what: self.what });
        }
        if self.bytes != 0 && !self.ptr.is_multiple_of(self.alignment) {
            return Err(Error::Misaligned {
                what: self.what,
                address: self.ptr,
                alignment: self.alignment,
            });
        }
        Ok(())
    }

    fn overlaps(&self, other: &Self) -> bool {
        let (a, b) = (
            self.ptr.saturating_add(self.bytes),
            other.ptr.saturating_add(other.bytes),
        );
        self.bytes != 0 && other.bytes != 0 && self.ptr < b && other.ptr < a
    }
}

/// The buffers of a call, except scratch memory.
#[derive(Debug)]
pub(super) struct Buffers {
    keys: usize,
    named: Vec<Named>,
    /// Shares in the buffers' memory, because kernels know their addresses only.
    memory: Vec<Memory>,
}

impl Buffers {
    /// Makes an empty list for a call with that many keys.
    pub fn new(keys: usize) -> Self {
        Self {
            keys,
            named: Vec::new(),
            memory: Vec::new(),
        }
    }

    pub fn keys(&self) -> usize {
        self.keys
    }

    /// Adds a buffer that is read, with one element for each key. Returns its address.
    pub fn reads<T: Pod>(
        &mut self,
        what: &'static str,
        slice: &Slice<'_, T>,
    ) -> Result<DevicePtr<T>> {
        same_length(self.keys, slice.len())?;
        self.named.push(Named::read(what, slice));
        self.memory.push(slice.memory()?);
        Ok(slice.device_ptr())
    }

    /// Adds a buffer that is written, with one element for each key. Returns its address.
    pub fn writes<T: Pod>(
        &mut self,
        what: &'static str,
        slice: &SliceMut<'_, T>,
    ) -> Result<DevicePtr<T>> {
        same_length(self.keys, slice.len())?;
        self.named.push(Named::written(what, slice));
        self.memory.push(slice.memory()?);
        Ok(slice.device_ptr())
    }

    /// Adds a buffer of one number that is read. Returns its address.
    pub fn number(&mut self, what: &'static str, slice: &Slice<'_, u64>) -> Result<DevicePtr<u64>> {
        same_length(1, slice.len())?;
        self.named.push(Named::read(what, slice));
        self.memory.push(slice.memory()?);
        Ok(slice.device_ptr())
    }

    /// Fails unless all buffers have addresses and are aligned, no written buffer overlaps another,
    /// and scratch memory has as many bytes as the sort needs. Returns the memory of all, for
    /// [`Stream::using`](gpu::Stream::using).
    pub fn check(
        mut self,
        scratch: &SliceMut<'_, u8>,
        needed: impl FnOnce() -> Result<u64>,
    ) -> Result<Vec<Memory>> {
        self.named.push(Named::scratch(scratch));
        self.memory.push(scratch.memory()?);
        for (i, first) in self.named.iter().enumerate() {
            first.check()?;
            for second in &self.named[i + 1..] {
                if (first.written || second.written) && first.overlaps(second) {
                    return Err(Error::Overlap {
                        first: first.what,
                        second: second.what,
                    });
                }
            }
        }
        let (needed, given) = (needed()?, scratch.len() as u64);
        if given < needed {
            return Err(Error::ScratchTooSmall { needed, given });
        }
        Ok(self.memory)
    }
}
