//! Typed device addresses.

use bytemuck::{Pod, Zeroable};
use core::marker::PhantomData;
use std::fmt;

/// The device address of a `T`, or null: the counterpart of a `T*` in a struct that is passed to a
/// kernel.
///
/// It borrows nothing. The memory must stay allocated until the kernel is done, for which
/// [`Stream::using`](crate::Stream::using) serves. [`Slice::device_ptr`](crate::Slice::device_ptr)
/// makes one.
///
/// ```
/// use gpu::DevicePtr;
///
/// /// The kernel's `struct Args { const float* input; uint64_t n; };`
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
    // Kernel arguments point to this field.
    pub(crate) address: u64,
    element: PhantomData<fn() -> T>,
}

impl<T> DevicePtr<T> {
    /// The null pointer.
    pub const NULL: Self = Self::new(0);

    pub(crate) const fn new(address: u64) -> Self {
        Self {
            address,
            element: PhantomData,
        }
    }

    /// Returns the address as a number.
    #[must_use]
    pub fn address(self) -> u64 {
        self.address
    }

    /// Returns whether the address is 0.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.address == 0
    }

    /// Returns the same address with another element type.
    #[must_use]
    pub fn cast<U>(self) -> DevicePtr<U> {
        DevicePtr::new(self.address)
    }

    /// Returns the address `bytes` bytes further on.
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

// SAFETY: by `repr(transparent)` it is a `u64`, for which all zero bytes are a value.
unsafe impl<T: 'static> Zeroable for DevicePtr<T> {}
// SAFETY: by `repr(transparent)` it is a `u64`, without padding, and every bit pattern is a value.
unsafe impl<T: 'static> Pod for DevicePtr<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_64_bit_numbers() {
        assert_eq!(size_of::<DevicePtr<[u8; 3]>>(), 8);
        let pointer: DevicePtr<u32> = bytemuck::cast(0x1000_u64);
        assert_eq!(pointer.byte_add(8).address(), 0x1008);
        assert_eq!(pointer.cast::<u8>().cast::<u32>(), pointer);
        assert!(DevicePtr::<u32>::NULL.is_null() && !pointer.is_null());
        assert_eq!(format!("{pointer:?}"), "0x1000");
    }
}
