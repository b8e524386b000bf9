//! Keys as the sort compares them, and one look at all of them.

use crate::{Key, Order, OrderedBits, Result, SortOptions};
use rayon::prelude::*;

/// Maps a key to the unsigned number that ascending order is made by.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<B> {
    flip: B,
    mask: B,
    /// Bits of the window.
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

    /// The ordered bits that gave `bits`, for a window of all.
    #[inline(always)]
    pub(super) fn flipped(self, bits: B) -> B {
        bits ^ self.flip
    }

    /// The order check, which ends at the first key out of order.
    pub(super) fn is_sorted<K: Key<Bits = B>>(self, keys: &[K], parallel: bool) -> bool {
        let sorted = |keys: &[K]| keys.is_sorted_by(|&a, &b| self.of(a) <= self.of(b));
        if !parallel {
            return sorted(keys);
        }
        // One key of overlap; few at a time, so that all threads stop soon after one has found disorder.
        let starts = (0..keys.len()).into_par_iter().step_by(CHECKED_AT_ONCE);
        starts.all(|start| sorted(&keys[start..keys.len().min(start + CHECKED_AT_ONCE + 1)]))
    }

    /// The bits in which two of the keys differ.
    pub(super) fn varying<K: Key<Bits = B>>(self, keys: &[K], parallel: bool) -> u64 {
        let Some(&first) = keys.first() else { return 0 };
        let zero = B::from_low_bits(0);
        let fold = |bits: B, &key: &K| bits | (self.of(key) ^ self.of(first));
        let bits = if parallel {
            let bits = keys
                .par_chunks(CHECKED_AT_ONCE)
                .map(|keys| keys.iter().fold(zero, fold));
            bits.reduce(|| zero, |a, b| a | b)
        } else {
            keys.iter().fold(zero, fold)
        };
        bits.into()
    }
}

/// Keys per task of the parallel checks.
const CHECKED_AT_ONCE: usize = 1 << 16;
