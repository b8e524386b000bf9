//! Entries: a key and its index as one number, and the two libraries that sort them.

use bytemuck::{Pod, TransparentWrapper};
use rayon::prelude::*;
use rdst::tuner::{Algorithm, Tuner, TuningParams};
use rdst::{RadixKey, RadixSort};

/// A number with the key bits above and the index below. No two entries are equal, so any sort of
/// them sorts the keys stably.
pub(super) trait Entry: Pod + Ord + Send + Sync {
    /// Makes an entry. The key bits are at the upper end of `bits`; those that do not fit are the
    /// same for all keys.
    fn new(bits: u64, index: u32) -> Self;
    fn index(self) -> u32;
    /// Sorts by the key bits alone with `radsort`. The sort is stable, so it needs no pass over the
    /// index.
    fn radsort(entries: &mut [Self]);
    /// Sorts by the key bits alone with `rdst`, on all threads.
    fn rdst(entries: &mut [Self]);
}

/// The entry of keys that differ within 32 adjacent bits.
impl Entry for u64 {
    #[inline(always)]
    fn new(bits: u64, index: u32) -> Self {
        bits & !u64::from(u32::MAX) | u64::from(index)
    }
    #[inline(always)]
    fn index(self) -> u32 {
        self as u32
    }
    fn radsort(entries: &mut [Self]) {
        radsort::sort_by_key(entries, |entry| (entry >> 32) as u32);
    }
    fn rdst(entries: &mut [Self]) {
        rdst_by_key(entries, |entry| (entry >> 56) as u8);
    }
}

/// The entry of all other keys.
impl Entry for u128 {
    #[inline(always)]
    fn new(bits: u64, index: u32) -> Self {
        u128::from(bits) << 64 | u128::from(index)
    }
    #[inline(always)]
    fn index(self) -> u32 {
        self as u32
    }
    fn radsort(entries: &mut [Self]) {
        radsort::sort_by_key(entries, |entry| (entry >> 64) as u64);
    }
    fn rdst(entries: &mut [Self]) {
        rdst_by_key(entries, |entry| (entry >> 120) as u8);
    }
}

/// An entry that shows `rdst` its key bits only.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct KeyOf<E>(E);

// SAFETY: it is `repr(transparent)` over its one field.
unsafe impl<E> TransparentWrapper<E> for KeyOf<E> {}

impl RadixKey for KeyOf<u64> {
    const LEVELS: usize = 4;
    #[inline(always)]
    fn get_level(&self, level: usize) -> u8 {
        (self.0 >> (32 + 8 * level)) as u8
    }
}

impl RadixKey for KeyOf<u128> {
    const LEVELS: usize = 8;
    #[inline(always)]
    fn get_level(&self, level: usize) -> u8 {
        (self.0 >> (64 + 8 * level)) as u8
    }
}

/// Selects the one parallel sort of `rdst` that is stable.
struct Stable;

impl Tuner for Stable {
    fn pick_algorithm(&self, _: &TuningParams, _: &[usize]) -> Algorithm {
        Algorithm::MtLsb
    }
}

/// Max elements that `rdst` sorts by comparisons for every tuner. That sort is not stable.
const COMPARED: usize = 128;

/// Sorts with `rdst`, or with the merge sort of `rayon`. If the top digit is in order already,
/// `rdst` would sort the entries of each of its values separately, and so fall back to its sort by
/// comparisons. A merge sort is fast on such entries.
fn rdst_by_key<E: Entry>(entries: &mut [E], top: impl Fn(&E) -> u8)
where
    KeyOf<E>: RadixKey,
{
    if entries.len() <= COMPARED || entries.is_sorted_by_key(top) {
        entries.par_sort();
    } else {
        let keys = KeyOf::wrap_slice_mut(entries);
        keys.radix_sort_builder().with_tuner(&Stable).sort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<E: Entry + std::fmt::Debug>(n: u32, bits: impl Fn(u64) -> u64) {
        let entries: Vec<E> = (0..n).map(|i| E::new(bits(i.into()), i)).collect();
        let mut expected = entries.clone();
        expected.sort();
        let mut got = entries.clone();
        E::radsort(&mut got);
        assert!(got == expected);
        for threads in [1, 2, 5] {
            let mut got = entries.clone();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.expect("threads").install(|| E::rdst(&mut got));
            assert!(got == expected, "{n} entries, {threads} threads");
        }
    }

    #[test]
    fn both_libraries_are_stable_for_any_number_of_threads() {
        let mix = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for n in [0, 1, 2, 100, 129, 5000, 300_000] {
            check::<u64>(n, mix);
            check::<u128>(n, mix);
            check::<u64>(n, |i| mix(i) & 3 << 62); // few distinct keys
            check::<u128>(n, |i| mix(i) & 3 << 62 | mix(i) >> 62);
            // The top digit is in order. Below it few keys repeat, in groups that `rdst` would sort
            // by comparisons.
            check::<u64>(n, |i| (i / 100) << 56 | (mix(i) >> 63) << 40);
            check::<u128>(n, |i| (i * 256 / u64::from(n)) << 56 | mix(i) >> 62);
        }
    }
}
