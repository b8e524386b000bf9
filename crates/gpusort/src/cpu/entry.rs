//! A key and the place it came from, as one number; and the two libraries on them.

use bytemuck::{Pod, TransparentWrapper};
use rayon::prelude::*;
use rdst::tuner::{Algorithm, Tuner, TuningParams};
use rdst::{RadixKey, RadixSort};

/// Key bits above, index below. No two are equal, so that any sort of them is a stable sort of the keys.
pub(super) trait Entry: Pod + Ord + Send + Sync {
    /// The key bits are at the upper end of `bits`; those that do not fit are the same for all keys.
    fn new(bits: u64, index: u32) -> Self;
    fn index(self) -> u32;
    /// By the key bits alone: a stable sort needs no pass over the index.
    fn radsort(entries: &mut [Self]);
    /// The same, on all threads.
    fn rdst(entries: &mut [Self]);
}

/// Keys that differ within 32 adjacent bits.
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

/// All others.
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

/// An entry of which `rdst` sees the key bits only.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct KeyOf<E>(E);

// SAFETY: `repr(transparent)` over the one field.
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

/// The one parallel sort of `rdst` that is stable.
struct Stable;

impl Tuner for Stable {
    fn pick_algorithm(&self, _: &TuningParams, _: &[usize]) -> Algorithm {
        Algorithm::MtLsb
    }
}

/// At most so many elements `rdst` compares, whatever it is told: not a stable sort.
const COMPARED: usize = 128;

/// Where the top digit is in order already, `rdst` would go on with each of its values alone, and so come to compare. A
/// merge sort is good at those, so `rayon` has them.
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
            // The top digit in order, below it few keys many times, in groups that `rdst` would compare.
            check::<u64>(n, |i| (i / 100) << 56 | (mix(i) >> 63) << 40);
            check::<u128>(n, |i| (i * 256 / u64::from(n)) << 56 | mix(i) >> 62);
        }
    }
}
