//! Scratch memory that is kept between sorts.
//!
//! New pages can cost as much time as the sort that uses them, as the tables in the module `cpu`
//! show. A [`super::Sorter`] therefore keeps them.

use crate::{Error, Result};
use bytemuck::Pod;

/// A growing block of bytes, which is lent as elements of any type.
#[derive(Default)]
pub(super) struct Scratch(Vec<u8>);

impl Scratch {
    /// Returns `n` elements of unspecified contents. The block only grows; growing discards its
    /// contents.
    pub(super) fn reserve<T: Pod>(&mut self, n: usize) -> Result<&mut [T]> {
        if size_of::<T>() == 0 {
            return Ok(vec![T::zeroed(); n].leak()); // takes no memory
        }
        let bytes = (n as u64).saturating_mul(size_of::<T>() as u64);
        let out_of_memory = || Error::OutOfMemory { bytes };
        let bytes = n
            .checked_mul(size_of::<T>())
            .and_then(|bytes| bytes.checked_add(align_of::<T>()));
        let bytes = bytes.ok_or_else(out_of_memory)?;
        if self.0.len() < bytes {
            self.0 = Vec::new(); // the old block is given back before the new one is asked for
            self.0 = bytemuck::allocation::try_zeroed_vec(bytes).map_err(|()| out_of_memory())?;
        }
        let (_, elements, _) = bytemuck::pod_align_to_mut::<u8, T>(&mut self.0);
        elements.get_mut(..n).ok_or_else(out_of_memory)
    }

    /// Returns the bytes of the block.
    pub(super) fn bytes(&self) -> usize {
        self.0.capacity()
    }
}

/// Returns an empty vector with capacity for `n` elements.
pub(super) fn try_with_capacity<T>(n: usize) -> Result<Vec<T>> {
    let mut all = Vec::new();
    let bytes = (n as u64).saturating_mul(size_of::<T>() as u64);
    all.try_reserve_exact(n)
        .map_err(|_| Error::OutOfMemory { bytes })?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_aligned_and_the_block_is_kept() {
        let mut scratch = Scratch::default();
        assert_eq!(scratch.reserve::<u64>(0).map(|s| s.len()).ok(), Some(0));
        let first = scratch
            .reserve::<u64>(1000)
            .map(|s| s.as_ptr() as usize)
            .ok();
        let again = scratch
            .reserve::<u8>(7000)
            .map(|s| s.as_ptr() as usize)
            .ok();
        assert!(first.is_some_and(|first| again.is_some_and(|again| first.abs_diff(again) < 8)));
        assert!(scratch.bytes() >= 8000);
    }

    #[test]
    fn too_many_bytes_are_an_error() {
        let mut scratch = Scratch::default();
        for n in [usize::MAX, usize::MAX / 8, isize::MAX as usize / 8] {
            assert!(
                matches!(scratch.reserve::<u64>(n), Err(Error::OutOfMemory { .. })),
                "{n}"
            );
        }
    }
}
