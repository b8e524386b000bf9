//! Device addresses as a type.

use bytemuck::{Pod, Zeroable};
use core::marker::PhantomData;
use std::fmt;

/// The device address of a `T`, or null: what a `T*` is in a struct that a kernel is passed.
///
/// It borrows nothing: what it points to must last until the kernel is done
/// ([`Stream::using`](crate::Stream::using)). [`Slice::device_ptr`](crate::Slice::device_ptr)
/// makes one.
///
/// ```
/// use gpu::DevicePtr;
///
/// /// `Args` in a kernel: `struct Args { const float* input; uint64_t n; };`
/// #[repr(C)]
/// #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
/// struct Args {
///     input: DevicePtr<f32>,
///     n: u64,
/// }
/// let empty = Args { input: DevicePtr::NULL, n: 0 };
/// assert_eq!(bytemuck::bytes_of(&empty), [0; 16]);
/// ```
#[repr(transparent)]
pub struct DevicePtr<T> {
    // Kernel arguments point at this field.
    pub(crate) address: u64,
    element: PhantomData<fn() -> T>,
}

impl<T> DevicePtr<T> {
    /// No address.
    pub const NULL: Self = Self::new(0);

    pub(crate) const fn new(address: u64) -> Self {
        Self {
            address,
            element: PhantomData,
        }
    }

    /// The number.
    #[must_use]
    pub fn address(self) -> u64 {
        self.address
    }

    /// Whether it is 0.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.address == 0
    }

    /// The same address, of another type.
    #[must_use]
    pub fn cast<U>(self) -> DevicePtr<U> {
        DevicePtr::new(self.address)
    }

    /// The address that many bytes behind.
    #[must_use]
    pub fn byte_add(self, bytes: u64) -> Self {
        Self::new(self.address.wrapping_add(bytes))
    }
}

impl<T> Clone for DevicePtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for DevicePtr<T> {}

impl<T> PartialEq for DevicePtr<T> {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}
impl<T> Eq for DevicePtr<T> {}

impl<T> fmt::Debug for DevicePtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.address)
    }
}

// SAFETY: a `u64` by `repr(transparent)`, of which 0 is a value.
unsafe impl<T: 'static> Zeroable for DevicePtr<T> {}
// SAFETY: as above: no padding, and every bit pattern is an address.
unsafe impl<T: 'static> Pod for DevicePtr<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_number_of_64_bits() {
        assert_eq!(size_of::<DevicePtr<[u8; 3]>>(), 8);
        let pointer: DevicePtr<u32> = bytemuck::cast(0x1000_u64);
        assert_eq!(pointer.byte_add(8).address(), 0x1008);
        assert_eq!(pointer.cast::<u8>().cast::<u32>(), pointer);
        assert!(DevicePtr::<u32>::NULL.is_null() && !pointer.is_null());
        assert_eq!(format!("{pointer:?}"), "0x1000");
    }
}
