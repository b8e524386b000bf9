//! Borrowed slices of device memory.

use core::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use bytemuck::Pod;

use crate::memory::{Memory, Owner};
use crate::pointer::DevicePtr;
use crate::{Error, Result};

/// Marks the element type. It is `Send` and `Sync` for every `T`, because the elements are not on
/// the host.
type Element<T> = PhantomData<fn() -> T>;

/// A shared slice of device memory. The host cannot read it directly;
/// [`Stream::download`](crate::Stream::download) copies it.
#[derive(Debug)]
pub struct Slice<'a, T> {
    // Kernel arguments point to this field.
    pub(crate) ptr: u64,
    len: usize,
    pub(crate) owner: Owner<'a>,
    element: Element<T>,
}

/// A mutable slice of device memory.
#[derive(Debug)]
pub struct SliceMut<'a, T> {
    pub(crate) ptr: u64,
    len: usize,
    pub(crate) owner: Owner<'a>,
    element: Element<T>,
}

impl<T> Clone for Slice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Slice<'_, T> {}

macro_rules! common {
    ($Slice:ident) => {
        impl<'a, T: Pod> $Slice<'a, T> {
            /// Makes a slice from a device address. An empty slice may have any address, 0
            /// included.
            ///
            /// # Safety
            ///
            /// The `len` elements at `ptr` must be memory of the stream's device, aligned for `T`.
            /// This must hold for `'a`, and until all work that uses this slice is done. Nothing
            /// else may write the elements meanwhile (nor read them, for a `SliceMut`).
            pub unsafe fn from_raw(ptr: u64, len: usize) -> Self {
                Self::new(ptr, len, Owner::Unchecked)
            }

            /// Makes a slice of `owner`'s memory; the caller has borrowed all elements of the
            /// slice.
            pub(crate) fn new(ptr: u64, len: usize, owner: Owner<'a>) -> Self {
                $Slice {
                    ptr,
                    len,
                    owner,
                    element: PhantomData,
                }
            }

            /// Returns a share in the slice's memory, for work that knows its address only
            /// ([`Stream::using`]).
            ///
            /// # Errors
            ///
            /// [`Error::Measured`].
            ///
            /// [`Stream::using`]: crate::Stream::using
            pub fn memory(&self) -> Result<Memory> {
                Memory::of(self.owner)
            }

            /// Returns the device address of the first element.
            pub fn ptr(&self) -> u64 {
                self.ptr
            }

            /// Returns the device address of the first element, typed, for a struct that is passed
            /// to a kernel.
            pub fn device_ptr(&self) -> DevicePtr<T> {
                DevicePtr::new(self.ptr)
            }

            /// Returns the number of elements.
            pub fn len(&self) -> usize {
                self.len
            }

            /// Returns whether the slice has no elements.
            pub fn is_empty(&self) -> bool {
                self.len == 0
            }

            /// Returns the number of bytes, which never overflows.
            pub fn bytes(&self) -> usize {
                self.len * size_of::<T>()
            }

            /// Returns the elements in `range`.
            ///
            /// # Errors
            ///
            /// [`Error::Range`].
            pub fn range(self, range: impl RangeBounds<usize>) -> Result<Self> {
                let (start, end) = bounds(range, self.len)?;
                let ptr = self.ptr + (start * size_of::<T>()) as u64;
                Ok(Self::new(ptr, end - start, self.owner))
            }

            /// Returns the same bytes as elements of another type.
            ///
            /// # Errors
            ///
            /// [`Error::Length`] if the bytes are no whole number of elements, [`Error::Alignment`]
            /// if the address is not aligned for `U`.
            pub fn cast<U: Pod>(self) -> Result<$Slice<'a, U>> {
                let len = cast_len::<U>(self.ptr, self.bytes())?;
                Ok($Slice::new(self.ptr, len, self.owner))
            }
        }
    };
}
common!(Slice);
common!(SliceMut);

impl<'a, T: Pod> SliceMut<'a, T> {
    /// Borrows the slice again for a shorter lifetime, to pass it on and keep it.
    pub fn reborrow(&mut self) -> SliceMut<'_, T> {
        SliceMut::new(self.ptr, self.len, self.owner)
    }

    /// Borrows the slice as a shared slice.
    pub fn as_slice(&self) -> Slice<'_, T> {
        Slice::new(self.ptr, self.len, self.owner)
    }

    /// Converts the slice to a shared slice.
    pub fn into_slice(self) -> Slice<'a, T> {
        Slice::new(self.ptr, self.len, self.owner)
    }

    /// Splits the slice into the first `at` elements and the rest.
    ///
    /// # Errors
    ///
    /// [`Error::Range`] if `at` is greater than the length.
    pub fn split_at(self, at: usize) -> Result<(SliceMut<'a, T>, SliceMut<'a, T>)> {
        let (_, at) = bounds(..at, self.len)?;
        let rest = self.ptr + (at * size_of::<T>()) as u64;
        Ok((
            SliceMut::new(self.ptr, at, self.owner),
            SliceMut::new(rest, self.len - at, self.owner),
        ))
    }
}

/// Returns start and end of `range`, checked against `0..len`.
fn bounds(range: impl RangeBounds<usize>, len: usize) -> Result<(usize, usize)> {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => len,
    };
    if start <= end && end <= len {
        Ok((start, end))
    } else {
        Err(Error::Range { start, end, len })
    }
}

fn cast_len<U>(ptr: u64, bytes: usize) -> Result<usize> {
    let (size, alignment) = (size_of::<U>(), align_of::<U>());
    if bytes != 0 && (size == 0 || !bytes.is_multiple_of(size)) {
        let needed = bytes.checked_next_multiple_of(size).unwrap_or(0) as u64;
        return Err(Error::Length {
            what: "bytes of a cast slice",
            needed,
            given: bytes as u64,
        });
    }
    if !ptr.is_multiple_of(alignment as u64) {
        return Err(Error::Alignment {
            address: ptr,
            alignment,
        });
    }
    Ok(bytes.checked_div(size).unwrap_or(0))
}

/// Fails unless the two lengths are equal.
pub(crate) fn same_len(what: &'static str, needed: usize, given: usize) -> Result<()> {
    if needed == given {
        return Ok(());
    }
    Err(Error::Length {
        what,
        needed: needed as u64,
        given: given as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(ptr: u64, len: usize) -> Slice<'static, u32> {
        // SAFETY: only address and length are read, never the memory.
        unsafe { Slice::from_raw(ptr, len) }
    }

    #[test]
    fn ranges() {
        let part = slice(256, 10).range(2..=4).unwrap();
        assert_eq!((part.ptr(), part.len(), part.bytes()), (264, 3, 12));
        assert_eq!(slice(256, 10).range(..).unwrap().len(), 10);
        assert!(slice(256, 10).range(10..).unwrap().is_empty());
        assert_eq!(
            slice(256, 10).range(5..11).unwrap_err(),
            Error::Range {
                start: 5,
                end: 11,
                len: 10
            }
        );
        #[expect(clippy::reversed_empty_ranges)]
        let reversed = slice(256, 10).range(5..4);
        assert_eq!(
            reversed.unwrap_err(),
            Error::Range {
                start: 5,
                end: 4,
                len: 10
            }
        );
        assert!(slice(256, 10).range(..=usize::MAX).is_err());
        assert!(
            slice(256, 10)
                .range((Bound::Excluded(usize::MAX), Bound::Unbounded))
                .is_err()
        );
    }

    #[test]
    fn splits_do_not_overlap() {
        // SAFETY: only address and length are read, never the memory.
        let whole = || unsafe { SliceMut::<u64>::from_raw(512, 5) };
        let (head, tail) = whole().split_at(2).unwrap();
        assert_eq!(
            (head.ptr(), head.len(), tail.ptr(), tail.len()),
            (512, 2, 528, 3)
        );
        assert!(whole().split_at(5).unwrap().1.is_empty());
        assert!(whole().split_at(6).is_err());
    }

    #[test]
    fn casts_check_size_and_alignment() {
        assert_eq!(slice(256, 10).cast::<u64>().unwrap().len(), 5);
        assert_eq!(slice(256, 10).cast::<u8>().unwrap().len(), 40);
        assert_eq!(
            slice(256, 9).cast::<u64>().unwrap_err(),
            Error::Length {
                what: "bytes of a cast slice",
                needed: 40,
                given: 36
            }
        );
        assert_eq!(
            slice(260, 10).cast::<u64>().unwrap_err(),
            Error::Alignment {
                address: 260,
                alignment: 8
            }
        );
        assert!(
            slice(256, 1).cast::<[u32; 0]>().is_err(),
            "elements of no size"
        );
        assert!(slice(0, 0).cast::<[u32; 0]>().unwrap().is_empty());
        assert!(slice(0, 0).cast::<u64>().unwrap().is_empty());
    }
}
