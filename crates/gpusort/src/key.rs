//! The six key types and the map from each to an unsigned integer that sorts in the same order.
//!
//! Unsigned integers map to themselves, signed ones with the sign bit flipped. Negative floats map
//! with all bits flipped, other floats with the sign bit flipped, which gives the total order of
//! IEEE 754 (§5.10). `-0.0` maps like `+0.0`, so the two are equal keys. A radix sort of the result
//! never compares floats.

use bytemuck::Pod;
use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::ops::{BitAnd, BitOr, BitXor};

mod sealed {
    pub trait Sealed {}
}

/// The unsigned integer that a [`Key`] maps to: `u32` or `u64`.
///
/// The trait is sealed: no other type implements it.
pub trait OrderedBits:
    sealed::Sealed
    + Pod
    + Ord
    + Hash
    + Debug
    + Display
    + Send
    + Sync
    + Into<u64>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
{
    /// The number of bits: 32 or 64.
    const BITS: u32;

    /// Returns the low [`Self::BITS`] bits of `value`.
    fn from_low_bits(value: u64) -> Self;
}

impl sealed::Sealed for u32 {}
impl OrderedBits for u32 {
    const BITS: u32 = u32::BITS;

    #[inline(always)]
    fn from_low_bits(value: u64) -> Self {
        value as u32
    }
}

impl sealed::Sealed for u64 {}
impl OrderedBits for u64 {
    const BITS: u32 = u64::BITS;

    #[inline(always)]
    fn from_low_bits(value: u64) -> Self {
        value
    }
}

/// The key types as values, for code that selects a kernel or reads a file header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyType {
    /// `u32`
    U32,
    /// `i32`
    I32,
    /// `f32`
    F32,
    /// `u64`
    U64,
    /// `i64`
    I64,
    /// `f64`
    F64,
}

impl KeyType {
    /// Returns the number of bits of a key: 32 or 64.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::U32 | Self::I32 | Self::F32 => 32,
            Self::U64 | Self::I64 | Self::F64 => 64,
        }
    }

    #[cfg(cuda)]
    pub(crate) const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// Returns the Rust name of the type, such as `"f32"`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::F32 => "f32",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F64 => "f64",
        }
    }
}

impl Display for KeyType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A type that every sort takes as its key: `u32 i32 f32 u64 i64 f64`.
///
/// ```
/// use gpusort::Key;
///
/// assert!((-1.5_f32).to_ordered_bits() < 2.0_f32.to_ordered_bits());
/// assert_eq!((-0.0_f32).to_ordered_bits(), 0.0_f32.to_ordered_bits());
/// assert!(f64::INFINITY.to_ordered_bits() < f64::NAN.copysign(1.0).to_ordered_bits());
/// assert!(f64::NAN.copysign(-1.0).to_ordered_bits() < f64::NEG_INFINITY.to_ordered_bits());
/// assert_eq!(i32::MIN.to_ordered_bits(), 0);
/// ```
///
/// # Safety
///
/// The trait is sealed, so no other crate implements it. The kernels rely on this for the six
/// types: `BITS` is `8 * size_of::<Self>()`, `size_of::<Self::Bits>() == size_of::<Self>()`, and
/// `TYPE` names `Self`.
pub unsafe trait Key: sealed::Sealed + Pod + PartialOrd + Debug + Send + Sync {
    /// The unsigned integer of the same size.
    type Bits: OrderedBits;

    /// The key type as a value.
    const TYPE: KeyType;

    /// The number of bits: 32 or 64.
    const BITS: u32 = Self::TYPE.bits();

    /// Maps the key to bits in the same order: `a < b` implies `a.to_ordered_bits() <
    /// b.to_ordered_bits()`.
    ///
    /// `-0.0` and `+0.0` map to the same bits. NaNs of negative sign come before all other keys,
    /// NaNs of positive sign after them, each ordered by their bits. A descending sort uses the
    /// complement of the result.
    fn to_ordered_bits(self) -> Self::Bits;
}

macro_rules! integer_key {
    ($key:ident, $bits:ident, $type:ident) => {
        // SAFETY: the two types have the same size, and `TYPE` names the key.
        unsafe impl Key for $key {
            type Bits = $bits;
            const TYPE: KeyType = KeyType::$type;

            #[inline(always)]
            fn to_ordered_bits(self) -> $bits {
                // `MIN` is zero for unsigned types and the sign bit for signed ones.
                self as $bits ^ $key::MIN as $bits
            }
        }
    };
}

macro_rules! float_key {
    ($key:ident, $bits:ident, $type:ident) => {
        impl sealed::Sealed for $key {}
        // SAFETY: the two types have the same size, and `TYPE` names the key.
        unsafe impl Key for $key {
            type Bits = $bits;
            const TYPE: KeyType = KeyType::$type;

            #[inline(always)]
            fn to_ordered_bits(self) -> $bits {
                const SIGN: $bits = 1 << ($bits::BITS - 1);
                let bits = self.to_bits();
                let bits = if bits == SIGN { 0 } else { bits };
                bits ^ if bits & SIGN == 0 { SIGN } else { $bits::MAX }
            }
        }
    };
}

impl sealed::Sealed for i32 {}
impl sealed::Sealed for i64 {}
integer_key!(u32, u32, U32);
integer_key!(i32, u32, I32);
integer_key!(u64, u64, U64);
integer_key!(i64, u64, I64);
float_key!(f32, u32, F32);
float_key!(f64, u64, F64);

#[cfg(test)]
mod tests {
    use super::*;

    fn ascending<K: Key>(keys: &[K]) {
        let bits: Vec<_> = keys.iter().map(|key| key.to_ordered_bits()).collect();
        assert!(bits.is_sorted_by(|a, b| a < b), "{keys:?}: {bits:?}");
    }

    #[test]
    fn ordered_bits_follow_the_documented_order() {
        ascending(&[u32::MIN, 1, u32::MAX / 2, u32::MAX]);
        ascending(&[i32::MIN, -1, 0, 1, i32::MAX]);
        ascending(&[u64::MIN, 1, u64::MAX]);
        ascending(&[i64::MIN, -1, 0, i64::MAX]);
        ascending(&[
            f32::from_bits(0xffff_ffff), // NaNs of negative sign, the largest magnitude first
            f32::from_bits(0xffc0_0000),
            f32::from_bits(0xff80_0001),
            f32::NEG_INFINITY,
            f32::MIN,
            -1.0,
            -f32::MIN_POSITIVE,
            f32::from_bits(0x8000_0001), // the smallest denormal, negative
            0.0,
            f32::from_bits(1),
            f32::MIN_POSITIVE,
            1.0,
            f32::MAX,
            f32::INFINITY,
            f32::from_bits(0x7f80_0001), // signalling
            f32::from_bits(0x7fc0_0000), // quiet
            f32::from_bits(0x7fff_ffff),
        ]);
        ascending(&[
            f64::from_bits(u64::MAX),
            f64::NEG_INFINITY,
            -5e-324,
            0.0,
            5e-324,
            f64::INFINITY,
            f64::from_bits(0x7ff0_0000_0000_0001),
        ]);
    }

    #[test]
    fn zeros_are_equal_keys() {
        assert_eq!((-0.0_f32).to_ordered_bits(), 1 << 31);
        assert_eq!(0.0_f32.to_ordered_bits(), 1 << 31);
        assert_eq!((-0.0_f64).to_ordered_bits(), 1 << 63);
        assert_eq!(0.0_f64.to_ordered_bits(), 1 << 63);
    }
}
