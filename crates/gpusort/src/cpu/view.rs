//! Views: keys as a sort compares them, and reductions over all keys.

use super::tasks::run;
use crate::{Key, Order, OrderedBits, Result, SortOptions};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The map from a key to the unsigned number that sorts ascending.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<B> {
    flip: B,
    mask: B,
    /// The number of bits of the window.
    pub(super) width: u32,
}

impl<B: OrderedBits> View<B> {
    pub(super) fn new<K: Key<Bits = B>>(options: &SortOptions) -> Result<Self> {
        let window = options.window::<K>()?;
        let below = |bit: u32| 1_u64.checked_shl(bit).map_or(u64::MAX, |bit| bit - 1);
        let flip = match options.order {
            Order::Ascending => 0,
            Order::Descending => u64::MAX,
        };
        Ok(Self {
            flip: B::from_low_bits(flip),
            mask: B::from_low_bits(below(window.end) & !below(window.start)),
            width: window.end - window.start,
        })
    }

    #[inline(always)]
    pub(super) fn of<K: Key<Bits = B>>(self, key: K) -> B {
        (key.to_ordered_bits() ^ self.flip) & self.mask
    }

    /// Returns the ordered bits that were mapped to `bits`, if the window covers all bits.
    #[inline(always)]
    pub(super) fn flipped(self, bits: B) -> B {
        bits ^ self.flip
    }

    /// Tells whether the keys are in order. It ends soon after the first key that is out of
    /// order.
    pub(super) fn is_sorted<K: Key<Bits = B>>(self, keys: &[K], parallel: bool) -> bool {
        let sorted = |keys: &[K]| keys.is_sorted_by(|&a, &b| self.of(a) <= self.of(b));
        if !parallel {
            return sorted(keys);
        }
        // Chunks overlap by one key. They are small, so that all threads stop soon after one has
        // found keys out of order.
        let in_order = AtomicBool::new(true);
        let chunks = (0..keys.len()).step_by(CHECKED_AT_ONCE);
        let chunks = chunks.map(|at| &keys[at..keys.len().min(at + CHECKED_AT_ONCE + 1)]);
        run(chunks.map(|keys| {
            || {
                if in_order.load(Relaxed) && !sorted(keys) {
                    in_order.store(false, Relaxed);
                }
            }
        }));
        in_order.into_inner()
    }

    /// Returns the bits in which some keys differ.
    pub(super) fn varying<K: Key<Bits = B>>(self, keys: &[K], parallel: bool) -> u64 {
        let Some(&first) = keys.first() else { return 0 };
        let zero = B::from_low_bits(0);
        let fold = |bits: B, &key: &K| bits | (self.of(key) ^ self.of(first));
        let of_chunk = |keys: &[K]| -> u64 { keys.iter().fold(zero, fold).into() };
        if !parallel {
            return of_chunk(keys);
        }
        let bits = AtomicU64::new(0);
        let chunks = keys.chunks(CHECKED_AT_ONCE);
        run(chunks.map(|keys| || _ = bits.fetch_or(of_chunk(keys), Relaxed)));
        bits.into_inner()
    }
}

/// Number of keys of a task of the parallel reductions.
const CHECKED_AT_ONCE: usize = 1 << 16;
