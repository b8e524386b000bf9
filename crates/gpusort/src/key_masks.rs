//! The masks by which the kernels of a device map keys to ordered bits, on CUDA and on `wgpu`.

use crate::{KeyType, Order};
use std::ops::Range;

/// The masks of a key type, an order and a bit window. The kernels compute what
/// [`Key::to_ordered_bits`](crate::Key::to_ordered_bits) does, complemented for descending order.
#[derive(Debug)]
pub struct KeyMasks {
    /// Bits that are flipped in every key.
    pub flip: u64,
    /// Bits that are flipped in negative floats besides.
    pub fold: u64,
    /// The ordered bits in the window.
    pub window: u64,
}

impl KeyMasks {
    /// Returns the masks of keys in an order, whose bits outside of the window do not count.
    pub fn new(key: KeyType, order: Order, window: &Range<u32>) -> Self {
        let all = u64::MAX >> (64 - key.bits());
        let sign = 1 << (key.bits() - 1);
        let (flip, fold) = match key {
            KeyType::U32 | KeyType::U64 => (0, 0),
            KeyType::I32 | KeyType::I64 => (sign, 0),
            KeyType::F32 | KeyType::F64 => (sign, sign - 1),
        };
        let complement = match order {
            Order::Ascending => 0,
            Order::Descending => all,
        };
        Self {
            flip: flip ^ complement,
            fold,
            window: below(window.end) & !below(window.start),
        }
    }
}

fn below(bit: u32) -> u64 {
    1_u64.checked_shl(bit).map_or(u64::MAX, |next| next - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    /// Computes ordered bits as the kernels do: `-0.0`, whose one bit is the sign, as `+0.0`.
    fn ordered(masks: &KeyMasks, key: u64, sign: u64) -> u64 {
        let is_float = masks.fold != 0;
        let key = if is_float && key == sign { 0 } else { key };
        let is_negative = key & sign != 0;
        key ^ masks.flip ^ if is_negative { masks.fold } else { 0 }
    }

    fn agrees<K: Key>(keys: &[K], raw: impl Fn(K) -> u64) {
        let all = u64::MAX >> (64 - K::BITS);
        for (order, complement) in [(Order::Ascending, 0), (Order::Descending, all)] {
            let masks = KeyMasks::new(K::TYPE, order, &(0..K::BITS));
            for &key in keys {
                let expected: u64 = key.to_ordered_bits().into();
                let got = ordered(&masks, raw(key), 1 << (K::BITS - 1));
                assert_eq!(got, expected ^ complement, "{key:?} {order:?}");
            }
        }
    }

    #[test]
    fn kernels_order_keys_as_the_host_does() {
        agrees(&[0_u32, 1, u32::MAX], |k| k.into());
        agrees(&[0_i32, 1, -1, i32::MIN, i32::MAX], |k| (k as u32).into());
        agrees(&[0_u64, 1, u64::MAX], |k| k);
        agrees(&[0_i64, 1, -1, i64::MIN, i64::MAX], |k| k as u64);
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let floats = [0.0, -0.0, 1.0, -1.0, inf, -inf, nan, -nan, 1e-40];
        agrees(&floats, |k: f32| k.to_bits().into());
        agrees(&floats.map(f64::from), f64::to_bits);
        agrees(&[5e-324], f64::to_bits);
    }

    #[test]
    fn windows_become_masks() {
        let window = |range| KeyMasks::new(KeyType::U64, Order::Ascending, &range).window;
        assert_eq!(window(0..64), u64::MAX);
        assert_eq!(window(0..0), 0);
        assert_eq!(window(64..64), 0);
        assert_eq!(window(8..12), 0xf00);
    }
}
