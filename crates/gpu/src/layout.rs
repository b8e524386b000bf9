//! Division of one piece of device memory into typed regions.

use bytemuck::Pod;

use crate::memory::Owner;
use crate::{Error, Result, SliceMut};

/// The alignment in bytes of every region of a [`Layout`] and of every [`Buffer`](crate::Buffer).
/// It suffices for any access of a kernel and for whole memory transactions.
pub const ALIGNMENT: usize = 256;

/// Divides one byte slice into typed regions, one after the other, or only counts the bytes that
/// they would take.
///
/// Write the division once, as a function of a `&mut Layout`. With [`Layout::measure`] it computes,
/// without a device, how many bytes are needed. With [`Layout::over`] it divides real memory.
///
/// ```
/// use gpu::{Layout, Result, SliceMut};
///
/// struct Parts<'a> {
///     histogram: SliceMut<'a, u32>,
///     sums: SliceMut<'a, u64>,
/// }
///
/// fn parts<'a>(layout: &mut Layout<'a>, blocks: usize) -> Result<Parts<'a>> {
///     Ok(Parts { histogram: layout.take(1024)?, sums: layout.take(blocks)? })
/// }
///
/// let mut layout = Layout::measure();
/// parts(&mut layout, 3)?;
/// assert_eq!(layout.bytes(), 1024 * 4 + 256);
/// # Ok::<(), gpu::Error>(())
/// ```
#[derive(Debug)]
pub struct Layout<'a> {
    memory: Option<SliceMut<'a, u8>>,
    used: usize,
}

impl<'a> Layout<'a> {
    /// Makes a layout that only counts. Its regions have no memory; using one returns
    /// [`Error::Measured`].
    pub fn measure() -> Layout<'a> {
        Layout {
            memory: None,
            used: 0,
        }
    }

    /// Makes a layout that divides `memory`.
    ///
    /// # Errors
    ///
    /// [`Error::Alignment`] if `memory` does not start at a multiple of [`ALIGNMENT`].
    pub fn over(memory: SliceMut<'a, u8>) -> Result<Layout<'a>> {
        if !memory.ptr().is_multiple_of(ALIGNMENT as u64) {
            return Err(Error::Alignment {
                address: memory.ptr(),
                alignment: ALIGNMENT,
            });
        }
        Ok(Layout {
            memory: Some(memory),
            used: 0,
        })
    }

    /// Returns the next `len` elements as a region.
    ///
    /// # Errors
    ///
    /// [`Error::Length`], with the bytes needed so far, if the memory is too short;
    /// [`Error::TooLarge`] if the size overflows the address space; [`Error::Alignment`] for a type
    /// with a stricter alignment than [`ALIGNMENT`]. A refused region takes nothing.
    pub fn take<T: Pod>(&mut self, len: usize) -> Result<SliceMut<'a, T>> {
        if align_of::<T>() > ALIGNMENT {
            return Err(Error::Alignment {
                address: ALIGNMENT as u64,
                alignment: align_of::<T>(),
            });
        }
        let size = size_of::<T>();
        let end = len
            .checked_mul(size)
            .and_then(|bytes| self.used.checked_add(bytes));
        let padded = end
            .and_then(|end| end.checked_next_multiple_of(ALIGNMENT))
            .filter(|&end| isize::try_from(end).is_ok());
        let (Some(end), Some(padded)) = (end, padded) else {
            return Err(Error::TooLarge { len, size });
        };
        let (address, owner) = match &self.memory {
            // The last region needs no padding after it.
            Some(memory) if memory.len() < end => {
                return Err(Error::Length {
                    what: "bytes of a layout",
                    needed: end as u64,
                    given: memory.len() as u64,
                });
            }
            Some(memory) => (memory.ptr() + self.used as u64, memory.owner),
            None => (0, Owner::Measured),
        };
        self.used = padded;
        // `used` only grows, so each part of the memory, which this layout has borrowed for `'a`,
        // is returned once.
        Ok(SliceMut::new(address, len, owner))
    }

    /// Returns the bytes taken so far. It is a multiple of [`ALIGNMENT`], so that measured layouts
    /// can follow each other.
    pub fn bytes(&self) -> usize {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(ptr: u64, len: usize) -> SliceMut<'static, u8> {
        // SAFETY: only address and length are read, never the memory.
        unsafe { SliceMut::from_raw(ptr, len) }
    }

    #[test]
    fn regions_are_aligned_and_disjoint() {
        let mut layout = Layout::over(memory(0x1000, 1024)).unwrap();
        let (a, b) = (
            layout.take::<u8>(1).unwrap(),
            layout.take::<u64>(32).unwrap(),
        );
        let (none, c) = (
            layout.take::<u32>(0).unwrap(),
            layout.take::<[f32; 6]>(1).unwrap(),
        );
        assert_eq!(
            [a.ptr(), b.ptr(), none.ptr(), c.ptr()],
            [0x1000, 0x1100, 0x1200, 0x1200]
        );
        assert_eq!((a.len(), b.len(), none.len(), c.len()), (1, 32, 0, 1));
        assert_eq!(layout.bytes(), 768);
    }

    #[test]
    fn measured_bytes_suffice_for_the_regions() {
        for lengths in [[0, 0, 0], [1, 2, 3], [64, 65, 1000], [256, 1, 0]] {
            let carve = |layout: &mut Layout<'static>| -> Result<()> {
                layout.take::<u32>(lengths[0])?;
                layout.take::<u8>(lengths[1])?;
                layout.take::<[u64; 3]>(lengths[2]).map(drop)
            };
            let mut measured = Layout::measure();
            carve(&mut measured).unwrap();
            let bytes = measured.bytes();
            let mut carved = Layout::over(memory(256, bytes)).unwrap();
            carve(&mut carved).unwrap();
            assert_eq!(carved.bytes(), bytes);
        }
    }

    #[test]
    fn wrong_layouts_are_errors() {
        assert_eq!(
            Layout::over(memory(128, 9)).unwrap_err(),
            Error::Alignment {
                address: 128,
                alignment: 256
            }
        );
        let mut layout = Layout::over(memory(256, 300)).unwrap();
        layout.take::<u32>(3).unwrap();
        let short = Error::Length {
            what: "bytes of a layout",
            needed: 301,
            given: 300,
        };
        assert_eq!(layout.take::<u8>(45).unwrap_err(), short);
        assert_eq!(
            layout.take::<u8>(44).unwrap().ptr(),
            512,
            "the refusal took nothing, and the last needs no padding"
        );
        let mut layout = Layout::measure();
        assert_eq!(
            layout.take::<u64>(usize::MAX).unwrap_err(),
            Error::TooLarge {
                len: usize::MAX,
                size: 8
            }
        );
        let half = isize::MAX as usize / 2;
        layout.take::<u8>(half).unwrap();
        layout.take::<u8>(half).unwrap_err();
    }
}
