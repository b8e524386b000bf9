//! Keys of every distribution, and the expected results of every sort, for the tests of CPU and
//! GPU.

#![allow(dead_code, reason = "each test program uses a part of this")]

use gpusort::{Key, Order, SortOptions};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::ops::Range;

/// The properties of a key type that tests need. `rank` is implemented differently from
/// `Key::to_ordered_bits`, which it checks.
pub trait TestKey: Key {
    /// Returns the key whose bit pattern is the low bits of `raw`.
    fn from_raw(raw: u64) -> Self;
    /// Returns the bit pattern.
    fn raw(self) -> u64;
    /// Maps -1 to 1 to the range of an integer, or to -1000 to 1000 for a float.
    fn from_unit(unit: f64) -> Self;
    /// Returns the rank in the documented order, with 0 the first.
    fn rank(self) -> u64;
}

macro_rules! test_key {
    ($key:ident, $bits:ident, |$unit:ident| $from_unit:expr, |$self:ident| $rank:expr, $from:expr, $to:expr) => {
        impl TestKey for $key {
            fn from_raw(raw: u64) -> Self {
                $from(raw as $bits)
            }
            fn raw(self) -> u64 {
                u64::from($to(self))
            }
            fn from_unit($unit: f64) -> Self {
                $from_unit
            }
            fn rank(self) -> u64 {
                let $self = self;
                $rank
            }
        }
    };
}

test_key!(
    u32,
    u32,
    |x| ((x + 1.0) * 0.5 * 4294967295.0) as u32,
    |k| u64::from(k),
    |b| b,
    |k| k
);
test_key!(
    u64,
    u64,
    |x| ((x + 1.0) * 0.5 * 18446744073709551615.0) as u64,
    |k| k,
    |b| b,
    |k| k
);
test_key!(
    i32,
    u32,
    |x| (x * 2147483647.0) as i32,
    |k| (i64::from(k) + (1 << 31)) as u64,
    |b| b as i32,
    |k| k as u32
);
test_key!(
    i64,
    u64,
    |x| (x * 9223372036854775807.0) as i64,
    |k| (i128::from(k) + (1 << 63)) as u64,
    |b| b as i64,
    |k| k as u64
);
test_key!(
    f32,
    u32,
    |x| (x * 1000.0) as f32,
    |k| {
        // Converts the sign-magnitude number to two's complement, as `f32::total_cmp` does, shifted
        // to start at 0.
        let magnitude = i64::from(k.to_bits() & 0x7fff_ffff);
        let signed = if k == 0.0 || k.is_sign_positive() {
            magnitude
        } else {
            -1 - magnitude
        };
        (signed + (1 << 31)) as u64
    },
    f32::from_bits,
    f32::to_bits
);
test_key!(
    f64,
    u64,
    |x| x * 1000.0,
    |k| {
        let magnitude = i128::from(k.to_bits() & (u64::MAX >> 1));
        let signed = if k == 0.0 || k.is_sign_positive() {
            magnitude
        } else {
            -1 - magnitude
        };
        (signed + (1 << 63)) as u64
    },
    f64::from_bits,
    f64::to_bits
);

/// A distribution and arrangement of keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Every bit pattern is equally likely: floats of all magnitudes, including NaNs.
    UniformBits,
    /// Values are uniform over the range.
    Uniform,
    /// Each is the sum of four uniform values.
    Gaussian,
    Sorted,
    Reverse,
    Constant,
    /// Blocks, each of which holds an ascending run of the same value ranges (Helman, Bader and
    /// JáJá).
    Bucket,
    /// Blocks of narrow, disjoint ranges, out of order (the same).
    Staggered,
    /// The probability of value k is proportional to 1 / k (Zipf).
    Zipf,
    /// There are only this many distinct values.
    Few(u64),
    /// The bitwise AND of 1 + so many uniform patterns, of which each lowers the entropy (Thearling
    /// and Smith).
    And(u32),
    /// Only bits of this window vary.
    Bits(u32, u32),
    /// Sorted, then 1 % of neighbours less than 64 apart exchanged.
    LocalSwaps,
    /// Sorted, then a few keys moved anywhere.
    Displaced,
    /// Sorted except for the last 5 %.
    SortedPart,
    /// Two sorted halves.
    TwoRuns,
    SawUp,
    SawDown,
    /// Ascending, then descending.
    PipeOrgan,
    /// The smallest and the largest pattern, with which tiles are padded, and others.
    Extremes,
    /// Only the largest pattern.
    AllMax,
}

impl Distribution {
    pub const ALL: &[Self] = &[
        Self::UniformBits,
        Self::Uniform,
        Self::Gaussian,
        Self::Sorted,
        Self::Reverse,
        Self::Constant,
        Self::Bucket,
        Self::Staggered,
        Self::Zipf,
        Self::Few(2),
        Self::Few(16),
        Self::And(1),
        Self::And(2),
        Self::And(3),
        Self::And(4),
        Self::And(5),
        Self::Bits(0, 8),
        Self::Bits(5, 17),
        Self::Bits(24, 32),
        Self::LocalSwaps,
        Self::Displaced,
        Self::SortedPart,
        Self::TwoRuns,
        Self::SawUp,
        Self::SawDown,
        Self::PipeOrgan,
        Self::Extremes,
        Self::AllMax,
    ];

    /// Returns `n` keys, the same for the same seed.
    #[inline(never)]
    pub fn keys<K: TestKey>(self, n: usize, seed: u64) -> Vec<K> {
        let of_unit = |unit| K::from_unit(unit).raw();
        let rank = |raw| K::from_raw(raw).rank();
        let patterns = self.patterns(n, seed, of_unit, rank);
        patterns.into_iter().map(K::from_raw).collect()
    }

    /// Returns the bit patterns of keys. It is one function for all types, which is built once.
    fn patterns(
        self,
        n: usize,
        seed: u64,
        of_unit: fn(f64) -> u64,
        rank: fn(u64) -> u64,
    ) -> Vec<u64> {
        let rng = &mut SmallRng::seed_from_u64(seed);
        let sorted = |mut patterns: Vec<u64>| {
            patterns.sort_by_cached_key(|&pattern| rank(pattern));
            patterns
        };
        let mut uniform: Vec<u64> = (0..n)
            .map(|_| of_unit(rng.random_range(-1.0..=1.0)))
            .collect();
        let ramp =
            |i: usize, of: usize| of_unit(2.0 * (i % of.max(1)) as f64 / of.max(1) as f64 - 1.0);
        let blocks = (n as f64).sqrt().sqrt().ceil().max(1.0) as usize;
        let block = n.div_ceil(blocks).max(1);
        match self {
            Self::UniformBits => (0..n).map(|_| rng.random()).collect(),
            Self::Uniform => uniform,
            Self::Gaussian => {
                let unit = |rng: &mut SmallRng| rng.random_range(-1.0..=1.0);
                (0..n)
                    .map(|_| of_unit((0..4).map(|_| unit(rng)).sum::<f64>() / 4.0))
                    .collect()
            }
            Self::Sorted => sorted(uniform),
            Self::Reverse => sorted(uniform).into_iter().rev().collect(),
            Self::Constant => vec![of_unit(0.3); n],
            Self::Bucket => {
                let part = block.div_ceil(blocks).max(1);
                let low = |i: usize| 2.0 * (i % block / part) as f64 / blocks as f64 - 1.0;
                (0..n)
                    .map(|i| of_unit(low(i) + 2.0 * rng.random::<f64>() / blocks as f64))
                    .collect()
            }
            Self::Staggered => {
                let place = |b: usize| {
                    if b < blocks / 2 {
                        2 * b + 1
                    } else {
                        2 * b - blocks / 2 * 2
                    }
                };
                let low = |i: usize| 2.0 * place(i / block) as f64 / blocks as f64 - 1.0;
                (0..n)
                    .map(|i| of_unit(low(i) + 2.0 * rng.random::<f64>() / blocks as f64))
                    .collect()
            }
            Self::Zipf => {
                let value = |rng: &mut SmallRng| {
                    (n.max(2) as f64).powf(rng.random()).floor() / n.max(2) as f64
                };
                (0..n).map(|_| of_unit(value(rng))).collect()
            }
            Self::Few(values) => (0..n)
                .map(|_| of_unit(2.0 * rng.random_range(0..values) as f64 / values as f64 - 1.0))
                .collect(),
            Self::And(extra) => (0..n)
                .map(|_| (0..=extra).fold(u64::MAX, |bits, _| bits & rng.random::<u64>()))
                .collect(),
            Self::Bits(begin, end) => {
                let mask = (1_u64 << end) - (1 << begin);
                (0..n)
                    .map(|_| 0x2aaa_5555_2aaa_5555 & !mask | rng.random::<u64>() & mask)
                    .collect()
            }
            Self::LocalSwaps => {
                uniform = sorted(uniform);
                for _ in 0..n / 100 {
                    let i = rng.random_range(0..n);
                    uniform.swap(i, (i + rng.random_range(0..64)).min(n - 1));
                }
                uniform
            }
            Self::Displaced => {
                uniform = sorted(uniform);
                for _ in 0..n.min(5) {
                    uniform.swap(rng.random_range(0..n), rng.random_range(0..n));
                }
                uniform
            }
            Self::SortedPart => {
                let tail = uniform.split_off(n - n / 20);
                sorted(uniform).into_iter().chain(tail).collect()
            }
            Self::TwoRuns => {
                let tail = uniform.split_off(n / 2);
                sorted(uniform).into_iter().chain(sorted(tail)).collect()
            }
            Self::SawUp => (0..n).map(|i| ramp(i, block)).collect(),
            Self::SawDown => (0..n).map(|i| ramp(n - i, block)).collect(),
            Self::PipeOrgan => (0..n).map(|i| ramp(i.min(n - i), n)).collect(),
            Self::Extremes => {
                let patterns = [0, u64::MAX, 1, u64::MAX >> 1, !(u64::MAX >> 1)];
                (0..n)
                    .map(|i| {
                        if i % 3 == 0 {
                            rng.random()
                        } else {
                            patterns[i % patterns.len()]
                        }
                    })
                    .collect()
            }
            Self::AllMax => vec![u64::MAX; n],
        }
    }
}

/// Returns the number by which `options` compare a key, smallest first.
pub fn compared<K: TestKey>(key: K, options: &SortOptions) -> u64 {
    let Range { start, end } = options.bits.clone().unwrap_or(0..K::BITS);
    let window = (u128::from(key.rank()) & ((1 << end) - 1)) >> start;
    match options.order {
        Order::Ascending => window as u64,
        Order::Descending => u64::MAX - window as u64,
    }
}

/// Returns the numbers by which `options` compare keys.
#[inline(never)]
pub fn all_compared<K: TestKey>(keys: &[K], options: &SortOptions) -> Vec<u64> {
    keys.iter().map(|&key| compared(key, options)).collect()
}

/// Returns the stable argsort, by `std`.
pub fn expected_index<K: TestKey>(keys: &[K], options: &SortOptions) -> Vec<u32> {
    index_of(&all_compared(keys, options))
}

/// Returns the stable argsort of numbers.
pub fn index_of(numbers: &[u64]) -> Vec<u32> {
    let mut index: Vec<u32> = (0..numbers.len() as u32).collect();
    index.sort_by_cached_key(|&i| numbers[i as usize]);
    index
}

/// Returns `all` in the order of an index.
#[inline(never)]
pub fn by_index<T: Copy>(all: &[T], index: &[u32]) -> Vec<T> {
    index.iter().map(|&i| all[i as usize]).collect()
}

/// Asserts equality of all bits, which distinguishes NaNs and zeros.
#[track_caller]
pub fn assert_same_bits<K: TestKey>(got: &[K], expected: &[K], context: impl std::fmt::Display) {
    assert_eq!(got.len(), expected.len(), "{context}: number of keys");
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert!(
            got.raw() == expected.raw(),
            "{context}: place {i} of {}",
            differ(*got, *expected)
        );
    }
}

fn differ<K: TestKey>(got: K, expected: K) -> String {
    format!(
        "has {got:?} ({:#x}), not {expected:?} ({:#x})",
        got.raw(),
        expected.raw()
    )
}

/// Returns each size, one less, and one more.
pub fn around(sizes: &[usize]) -> Vec<usize> {
    sizes.iter().flat_map(|&n| [n - 1, n, n + 1]).collect()
}

/// Returns the special values of floats: zeros, infinities, denormals, quiet and signalling NaNs,
/// of both signs.
pub fn special_f32() -> Vec<f32> {
    let patterns = [
        0,
        1,
        0x007f_ffff,
        0x0080_0000,
        0x3f80_0000,
        0x7f7f_ffff,
        0x7f80_0000,
        0x7f80_0001,
        0x7fbf_ffff,
        0x7fc0_0000,
        0x7fff_ffff,
    ];
    patterns
        .iter()
        .flat_map(|&bits| [f32::from_bits(bits), f32::from_bits(bits | 1 << 31)])
        .collect()
}

/// Returns the special values of `f64`.
pub fn special_f64() -> Vec<f64> {
    let patterns = [
        0,
        1,
        0x000f_ffff_ffff_ffff,
        0x0010_0000_0000_0000,
        0x3ff0_0000_0000_0000,
        0x7fef_ffff_ffff_ffff,
        0x7ff0_0000_0000_0000,
        0x7ff0_0000_0000_0001,
        0x7ff7_ffff_ffff_ffff,
        0x7ff8_0000_0000_0000,
        0x7fff_ffff_ffff_ffff_u64,
    ];
    patterns
        .iter()
        .flat_map(|&bits| [f64::from_bits(bits), f64::from_bits(bits | 1 << 63)])
        .collect()
}

/// Returns `n` keys of `special`, repeated and shuffled.
pub fn sprinkled<K: TestKey>(special: &[K], n: usize, seed: u64) -> Vec<K> {
    let rng = &mut SmallRng::seed_from_u64(seed);
    (0..n)
        .map(|_| special[rng.random_range(0..special.len())])
        .collect()
}

/// Calls `$test::<K>($args)` for each key type.
#[macro_export]
macro_rules! for_each_key_type {
    ($test:ident ( $($args:expr),* )) => {{
        $test::<u32>($($args),*);
        $test::<i32>($($args),*);
        $test::<f32>($($args),*);
        $test::<u64>($($args),*);
        $test::<i64>($($args),*);
        $test::<f64>($($args),*);
    }};
}

/// Returns a pseudo-random number for each index, by the finaliser of SplitMix64.
pub fn scrambled(i: usize) -> u64 {
    let mut x = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}
