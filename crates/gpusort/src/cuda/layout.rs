//! What host and kernels share: the arguments, the header in scratch memory, and where everything lies in scratch memory.
//! The kernels' side is at the head of `kernels/sort/onesweep.cu`.

use super::tuning::{Tile, tile_for};
use crate::{Key, KeyType, Order, Result};
use bytemuck::{Pod, Zeroable};
use gpu::{Layout, SliceMut};
use std::ops::Range;

/// The most keys that the images with 32-bit offsets take: two bits of a look-back word are its state.
const SMALL_LIMIT: u64 = (1 << 30) - 1;

/// What goes with the keys, for [`Sorter::scratch_bytes`](super::Sorter::scratch_bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Payload {
    /// Nothing: `sort_keys`.
    None,
    /// A 4-byte value: `sort_pairs`.
    U32,
    /// An 8-byte value: `sort_pairs`.
    U64,
    /// Their places in the input: `sort_index`.
    Index,
    /// Records of any size: `sort_records`.
    Records,
}

impl Payload {
    pub(super) fn value_bytes(self) -> usize {
        match self {
            Payload::None => 0,
            Payload::U32 | Payload::Index | Payload::Records => 4,
            Payload::U64 => 8,
        }
    }
}

/// `Order` in onesweep.cu: how keys map to ordered bits, and the bit window.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct KeyOrder {
    flip: u64,
    fold: u64,
    begin: u32,
    end: u32,
}

/// `Args` in onesweep.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Args {
    /// Device addresses of input, output and temporary keys.
    pub keys: [u64; 3],
    /// The same for values. A null input stands for 0, 1, 2, …
    pub values: [u64; 3],
    pub header: u64,
    pub bins: u64,
    pub lookback: u64,
    /// 0, or the address of the number of keys.
    pub device_count: u64,
    pub n: u64,
    order: KeyOrder,
    order_again: KeyOrder,
    window: u64,
    padding: u64,
    pub flags: u32,
    minus_one: u32,
    pub stall_tile: u32,
    pub stall_cycles: u32,
}

/// Flag of [`Args`]: input and output are one buffer.
pub(super) const IN_PLACE: u32 = 1;
/// Flag of [`Args`]: the sorted keys are not wanted.
pub(super) const DROP_KEYS: u32 = 2;

impl Args {
    /// The arguments for the order and window; buffers are still to be filled in.
    pub fn new(key: KeyType, order: Order, window: Range<u32>, n: u64) -> Self {
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
        // The key whose ordered bits are all ones: a positive one where that has a clear sign bit, else a negative one.
        let positive = flip ^ all;
        let padding = if positive & sign == 0 {
            positive
        } else {
            positive ^ fold
        };
        let order = KeyOrder {
            flip,
            fold,
            begin: window.start,
            end: window.end,
        };
        Self {
            n,
            order,
            order_again: order,
            window: mask_below(window.end) & !mask_below(window.start),
            padding,
            minus_one: u32::MAX,
            stall_tile: u32::MAX,
            ..Self::zeroed()
        }
    }

    /// Digits in the window.
    pub fn passes(&self) -> u32 {
        (self.order.end - self.order.begin).div_ceil(8)
    }

    /// The same with an empty window for the digits: only the order is checked.
    pub fn without_digits(self) -> Self {
        let order = KeyOrder {
            begin: 0,
            end: 0,
            ..self.order
        };
        Self {
            order,
            order_again: order,
            ..self
        }
    }
}

fn mask_below(bit: u32) -> u64 {
    1_u64.checked_shl(bit).map_or(u64::MAX, |next| next - 1)
}

/// `Header` in onesweep.cu, at the start of scratch memory.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
pub(super) struct Header {
    pub unsorted: u32,
    pub finished: u32,
    pub passes_run: u32,
    pub copy_back: u32,
    pub next_tile: [u32; 8],
    pub state: [u32; 8],
    pub n: u64,
    pub passes: u32,
    pub unused: u32,
}

/// The sizes that follow from the number of keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub n: u64,
    pub key_bytes: usize,
    pub value_bytes: usize,
    pub tile: Tile,
    /// Whether offsets take 64 bits.
    pub large: bool,
}

impl Sizes {
    pub fn new<K: Key>(n: u64, value_bytes: usize, large: bool) -> Self {
        let key_bytes = size_of::<K>();
        Self {
            n,
            key_bytes,
            value_bytes,
            tile: tile_for(key_bytes, value_bytes),
            large: large || n > SMALL_LIMIT,
        }
    }

    pub fn offset_bytes(&self) -> usize {
        if self.large { 8 } else { 4 }
    }

    pub fn tiles(&self) -> u64 {
        self.n.div_ceil(self.tile.keys())
    }

    pub fn shared_bytes(&self) -> u32 {
        self.tile
            .shared_bytes(self.key_bytes, self.value_bytes, self.offset_bytes())
    }
}

/// Scratch memory, carved.
#[derive(Debug)]
pub(super) struct Regions<'a> {
    /// Header, bins and look-back words, set to 0 before each sort.
    pub zeroed: SliceMut<'a, u8>,
    /// Where the bins and the look-back words begin in it.
    pub bins: u64,
    pub lookback: u64,
    pub keys: SliceMut<'a, u8>,
    pub values: SliceMut<'a, u8>,
    /// The sorted keys, where the caller does not want them.
    pub spare_keys: SliceMut<'a, u8>,
    /// The sorted index of a record sort.
    pub index: SliceMut<'a, u32>,
}

/// Bytes of the header's place.
pub(super) const HEADER_BYTES: usize = 256;

/// Carves, or measures, the scratch memory of a sort.
pub(super) fn carve<'a>(
    layout: &mut Layout<'a>,
    sizes: &Sizes,
    spare_keys: bool,
    records: bool,
) -> Result<Regions<'a>> {
    // A product beyond an address saturates, and `take` refuses it.
    let n = usize::try_from(sizes.n).unwrap_or(usize::MAX);
    let digits = 256 * sizes.offset_bytes();
    let bins_end = HEADER_BYTES + sizes.key_bytes * digits;
    let tiles = usize::try_from(sizes.tiles()).unwrap_or(usize::MAX);
    let bytes = |each: usize| n.saturating_mul(each);
    Ok(Regions {
        zeroed: layout.take(tiles.saturating_mul(digits).saturating_add(bins_end))?,
        bins: HEADER_BYTES as u64,
        lookback: bins_end as u64,
        keys: layout.take(bytes(sizes.key_bytes))?,
        values: layout.take(bytes(sizes.value_bytes))?,
        spare_keys: layout.take(if spare_keys {
            bytes(sizes.key_bytes)
        } else {
            0
        })?,
        index: layout.take(if records { n } else { 0 })?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ordered bits as the kernels compute them.
    fn ordered(args: &Args, key: KeyType, bits: u64) -> u64 {
        let all = u64::MAX >> (64 - key.bits());
        let float = args.order.fold != 0;
        let bits = if float && bits == !args.order.fold & all {
            0
        } else {
            bits
        };
        let sign = if bits >> (key.bits() - 1) == 1 {
            all
        } else {
            0
        };
        bits ^ (args.order.flip ^ (sign & args.order.fold))
    }

    fn agrees<K: Key>(keys: &[K], raw: impl Fn(K) -> u64) {
        let all = u64::MAX >> (64 - K::BITS);
        for order in [Order::Ascending, Order::Descending] {
            let args = Args::new(K::TYPE, order, 0..K::BITS, 1);
            let complement = if order == Order::Descending { all } else { 0 };
            for &key in keys {
                let expected: u64 = key.to_ordered_bits().into();
                assert_eq!(
                    ordered(&args, K::TYPE, raw(key)),
                    expected ^ complement,
                    "{key:?} {order:?}"
                );
            }
            assert_eq!(
                ordered(&args, K::TYPE, args.padding),
                all,
                "padding of {} {order:?}",
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
        let window = |range| Args::new(KeyType::U64, Order::Ascending, range, 1).window;
        assert_eq!(window(0..64), u64::MAX);
        assert_eq!(window(0..0), 0);
        assert_eq!(window(64..64), 0);
        assert_eq!(window(8..12), 0xf00);
        let passes = |range| Args::new(KeyType::U64, Order::Ascending, range, 1).passes();
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
    }

    #[test]
    fn shared_structs_have_no_surprises() {
        assert_eq!(size_of::<Args>(), 168);
        assert!(size_of::<Header>() <= HEADER_BYTES);
    }
}
