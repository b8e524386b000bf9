//! The kernels' map from keys to ordered bits: `kernels/common/radix_key.cuh`.

use crate::{KeyType, Order};
use bytemuck::{Pod, Zeroable};
use gpu::assert_layout;
use std::ops::Range;

/// The map from keys to ordered bits, and the bit window: `KeyOrder` in
/// `kernels/common/radix_key.cuh`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct KeyOrder {
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
    pub fn new(key: KeyType, order: Order, window: Range<u32>) -> Self {
        let all = u64::MAX >> (64 - key.bits());
        let sign = 1 << (key.bits() - 1);
        let (flip, fold) = match key {
            KeyType::U32 | KeyType::U64 => (0, 0),
            KeyType::I32 | KeyType::I64 => (sign, 0),
            KeyType::F32 | KeyType::F64 => (sign, sign - 1),
        };
        let flip = if order == Order::Descending {
            flip ^ all
        } else {
            flip
        };
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
            window: mask_below(window.end) & !mask_below(window.start),
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

fn mask_below(bit: u32) -> u64 {
    1_u64.checked_shl(bit).map_or(u64::MAX, |next| next - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    /// Computes ordered bits as the kernels do.
    fn ordered(order: &KeyOrder, key: KeyType, bits: u64) -> u64 {
        let all = u64::MAX >> (64 - key.bits());
        let float = order.fold != 0;
        let bits = if float && bits == !order.fold & all {
            0
        } else {
            bits
        };
        let sign = if bits >> (key.bits() - 1) == 1 {
            all
        } else {
            0
        };
        bits ^ (order.flip ^ (sign & order.fold))
    }

    fn agrees<K: Key>(keys: &[K], raw: impl Fn(K) -> u64) {
        let all = u64::MAX >> (64 - K::BITS);
        for direction in [Order::Ascending, Order::Descending] {
            let order = KeyOrder::new(K::TYPE, direction, 0..K::BITS);
            let complement = if direction == Order::Descending {
                all
            } else {
                0
            };
            for &key in keys {
                let expected: u64 = key.to_ordered_bits().into();
                assert_eq!(
                    ordered(&order, K::TYPE, raw(key)),
                    expected ^ complement,
                    "{key:?} {direction:?}"
                );
            }
            assert_eq!(
                ordered(&order, K::TYPE, order.padding),
                all,
                "padding of {} {direction:?}",
                K::TYPE
            );
        }
    }

    #[test]
    fn kernels_order_keys_as_the_host_does() {
        agrees(&[0_u32, 1, u32::MAX], |k| k.into());
        agrees(&[0_i32, 1, -1, i32::MIN, i32::MAX], |k| (k as u32).into());
        agrees(&[0_u64, 1, u64::MAX], |k| k);
        agrees(&[0_i64, 1, -1, i64::MIN, i64::MAX], |k| k as u64);
        agrees(
            &[
                0.0,
                -0.0,
                1.0,
                -1.0,
                f32::INFINITY,
                f32::NAN,
                -f32::NAN,
                1e-40,
            ],
            |k: f32| k.to_bits().into(),
        );
        agrees(
            &[
                0.0,
                -0.0,
                1.0,
                -1.0,
                f64::NEG_INFINITY,
                f64::NAN,
                -f64::NAN,
                5e-324,
            ],
            f64::to_bits,
        );
    }

    #[test]
    fn windows_become_masks() {
        let order = |range| KeyOrder::new(KeyType::U64, Order::Ascending, range);
        assert_eq!(order(0..64).window, u64::MAX);
        assert_eq!(order(0..0).window, 0);
        assert_eq!(order(64..64).window, 0);
        assert_eq!(order(8..12).window, 0xf00);
        let passes = |range| order(range).digits(8);
        assert_eq!(
            [
                passes(0..0),
                passes(5..6),
                passes(3..11),
                passes(3..12),
                passes(0..64)
            ],
            [0, 1, 1, 2, 8]
        );
        assert_eq!(order(3..12).digits(2), 5);
    }
}
