//! The kernels' map from keys to ordered bits: `kernels/common/radix_key.cuh`.

use crate::key_masks::KeyMasks;
use crate::{KeyType, Order};
use bytemuck::{Pod, Zeroable};
use gpu::assert_layout;
use std::ops::Range;

/// The map from keys to ordered bits, and the bit window: `KeyOrder` in
/// `kernels/common/radix_key.cuh`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct KeyOrder {
    /// Bits that are flipped in every key.
    pub flip: u64,
    /// Bits that are flipped in negative floats besides.
    pub fold: u64,
    /// The first bit of the window.
    pub begin: u32,
    /// The end of the window, one past its last bit.
    pub end: u32,
    /// A mask of the ordered bits in the window.
    pub window: u64,
    /// A key whose ordered bits are all ones, so that no key sorts behind it.
    pub padding: u64,
}

assert_layout!(KeyOrder, 40: flip 0, fold 8, begin 16, end 20, window 24, padding 32);

impl KeyOrder {
    /// Returns the order of keys of a type, by the bits of a window.
    pub fn new(key: KeyType, order: Order, window: Range<u32>) -> Self {
        let KeyMasks {
            flip,
            fold,
            window: mask,
        } = KeyMasks::new(key, order, &window);
        let all = u64::MAX >> (64 - key.bits());
        let sign = 1 << (key.bits() - 1);
        // The key whose ordered bits are all ones is positive if that bit pattern has a clear sign
        // bit, else negative.
        let positive = flip ^ all;
        let padding = if positive & sign == 0 {
            positive
        } else {
            positive ^ fold
        };
        Self {
            flip,
            fold,
            begin: window.start,
            end: window.end,
            window: mask,
            padding,
        }
    }

    /// Returns the number of digits of `bits` bits in the window.
    pub fn digits(&self, bits: u32) -> u32 {
        (self.end - self.begin).div_ceil(bits)
    }

    /// Returns the same order with a window of no digits.
    pub fn without_digits(self) -> Self {
        Self {
            begin: 0,
            end: 0,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_sorts_behind_the_padding() {
        use KeyType::{F32, F64, I32, I64, U32, U64};
        for key in [U32, I32, F32, U64, I64, F64] {
            let all = u64::MAX >> (64 - key.bits());
            for direction in [Order::Ascending, Order::Descending] {
                let order = KeyOrder::new(key, direction, 0..key.bits());
                let is_negative = order.padding >> (key.bits() - 1) == 1;
                let fold = if is_negative { order.fold } else { 0 };
                let ordered = order.padding ^ order.flip ^ fold;
                assert_eq!(ordered, all, "{key} {direction:?}");
            }
        }
    }

    #[test]
    fn digits_divide_the_window() {
        let order = |range| KeyOrder::new(KeyType::U64, Order::Ascending, range);
        let passes = |range| order(range).digits(8);
        let ranges = [0..0, 5..6, 3..11, 3..12, 0..64];
        assert_eq!(ranges.map(passes), [0, 1, 1, 2, 8]);
        assert_eq!(order(3..12).digits(2), 5);
    }
}
