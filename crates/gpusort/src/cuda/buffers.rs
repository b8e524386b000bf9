//! Checks of the memory that a caller gives.

use crate::{Error, Result};
use bytemuck::Pod;
use gpu::{Slice, SliceMut};

/// One of a call's buffers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named {
    what: &'static str,
    ptr: u64,
    bytes: u64,
    alignment: u64,
    written: bool,
}

impl Named {
    pub fn read<T: Pod>(what: &'static str, slice: &Slice<'_, T>) -> Self {
        Self {
            what,
            ptr: slice.ptr(),
            bytes: slice.bytes() as u64,
            alignment: align_of::<T>() as u64,
            written: false,
        }
    }

    pub fn written<T: Pod>(what: &'static str, slice: &SliceMut<'_, T>) -> Self {
        Self {
            written: true,
            ..Self::read(what, &slice.as_slice())
        }
    }

    pub fn scratch(slice: &SliceMut<'_, u8>) -> Self {
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

/// Fails unless all buffers are there, aligned, and those that are written apart from all others.
pub(super) fn check(buffers: &[Named]) -> Result<()> {
    for (i, first) in buffers.iter().enumerate() {
        first.check()?;
        for second in &buffers[i + 1..] {
            if (first.written || second.written) && first.overlaps(second) {
                return Err(Error::Overlap {
                    first: first.what,
                    second: second.what,
                });
            }
        }
    }
    Ok(())
}

/// Fails unless there is a value for each key.
pub(super) fn same_length(keys: usize, values: usize) -> Result<()> {
    if keys == values {
        Ok(())
    } else {
        Err(Error::LengthMismatch { keys, values })
    }
}

/// Fails for scratch memory with less bytes than the sort needs.
pub(super) fn enough_scratch(needed: u64, scratch: &SliceMut<'_, u8>) -> Result<()> {
    let given = scratch.len() as u64;
    if given < needed {
        Err(Error::ScratchTooSmall { needed, given })
    } else {
        Ok(())
    }
}
