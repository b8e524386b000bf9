//! Generates keys of every distribution, each with its source.
//!
//! A distribution yields ordered bits ([`radsweep::sort::Key::to_ordered_bits`]), so it is the same
//! problem for every key type. The same `seed` gives the same keys on any number of threads.

use radsweep::sort::Key;
use rayon::prelude::*;
use std::fmt;
use std::str::FromStr;

/// Blocks of [`Distribution::Bucket`] and [`Distribution::Staggered`]: *p* of Cederman and Tsigas
/// §5.3.
const BLOCKS: u64 = 128;
/// Distinct values of [`Distribution::Zipf`].
const ZIPF_VALUES: f64 = (1 << 20) as f64;
/// Max positions by which one swap of [`Distribution::NearlySorted`] moves an element.
const MOVED_BY: u64 = 1000;

/// A distribution of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// Every key is equally likely. Cederman and Tsigas 2009 §5.3; Satish et al. 2009 §V.
    Uniform,
    /// The average of four uniform keys. Cederman and Tsigas §5.3; Ha et al. 2009 §5.
    Gaussian,
    /// Uniform keys, sorted. Cederman and Tsigas §5.3.
    Sorted,
    /// Uniform keys, sorted in descending order.
    Reverse,
    /// All keys equal, to one random key. Cederman and Tsigas §5.3.
    Zero,
    /// *p* blocks of *p* sections; the keys of section *j* lie in the *j*-th of *p* equal parts of
    /// the range. Cederman and Tsigas §5.3.
    Bucket,
    /// *p* blocks; those of the first half lie in the odd ones of *p* equal parts of the range,
    /// those of the second half in the even ones. Cederman and Tsigas §5.3, with blocks counted
    /// from 0.
    Staggered,
    /// The *r*-th of 2^20 values spread over the range is drawn in proportion to 1/*r*. Dehne and
    /// Zaboli 2017, fig. 5, who give no parameters.
    Zipf,
    /// The bitwise AND of this many uniform keys (Thearling and Smith 1992), as in Satish et al.
    /// fig. 6. For 1 to 5 keys of 32 bits the entropy is 32, 25.95, 17.41, 10.78 and 6.42 bits.
    AndEntropy(u32),
    /// Uniform in this many low bits, zero in the others. Satish et al. fig. 5.
    Bits(u32),
    /// Sorted keys with swaps that move 1 % of them, each swap by at most 1000 positions.
    NearlySorted,
    /// Distances of a mesh's vertices from the eye, as `f32`: visibility ordering, Cederman and
    /// Tsigas fig. 7. The mesh is a bumpy torus, its vertices ring by ring.
    Distances,
}

impl Distribution {
    /// All named distributions.
    pub const ALL: [Self; 19] = [
        Self::Uniform,
        Self::Gaussian,
        Self::Sorted,
        Self::Reverse,
        Self::Zero,
        Self::Bucket,
        Self::Staggered,
        Self::Zipf,
        Self::AndEntropy(1),
        Self::AndEntropy(2),
        Self::AndEntropy(3),
        Self::AndEntropy(4),
        Self::AndEntropy(5),
        Self::Bits(8),
        Self::Bits(16),
        Self::Bits(24),
        Self::Bits(32),
        Self::NearlySorted,
        Self::Distances,
    ];

    /// Generates `n` keys of 32 or 64 bits.
    pub fn generate(self, n: usize, bits: u32, seed: u64) -> Vec<u64> {
        let range = if bits == 64 {
            u64::MAX
        } else {
            (1 << bits) - 1
        };
        let random =
            |i: usize, salt: u64| scrambled(i as u64 ^ seed.rotate_left(40) ^ salt << 58) & range;
        let each = |key: &(dyn Fn(usize) -> u64 + Sync)| {
            (0..n).into_par_iter().map(key).collect::<Vec<_>>()
        };
        // A random key in one of the equal parts of the range.
        let part = |i: usize, which: u64| which * (range / BLOCKS + 1) + random(i, 0) / BLOCKS;
        let in_order = || {
            let mut keys = each(&|i| random(i, 0));
            keys.par_sort_unstable();
            keys
        };
        match self {
            Self::Uniform => each(&|i| random(i, 0)),
            Self::Gaussian => each(&|i| (0..4).map(|salt| random(i, salt) / 4).sum()),
            Self::Sorted => in_order(),
            Self::Reverse => {
                let mut keys = in_order();
                keys.reverse();
                keys
            }
            Self::Zero => vec![random(0, 0); n],
            Self::Bucket => {
                let block = n.div_ceil(BLOCKS as usize).max(1);
                each(&|i| part(i, (i % block) as u64 * BLOCKS / block as u64))
            }
            Self::Staggered => {
                let block = n.div_ceil(BLOCKS as usize).max(1);
                each(&|i| {
                    let at = (i / block) as u64;
                    let first_half = at < BLOCKS / 2;
                    part(
                        i,
                        if first_half {
                            2 * at + 1
                        } else {
                            2 * at - BLOCKS
                        },
                    )
                })
            }
            Self::Zipf => each(&|i| {
                // The logarithm of the rank is uniform: rank r has ln((r + 1) / r) of the total.
                let rank = (unit(random(i, 0), range) * (ZIPF_VALUES + 1.0).ln()).exp();
                (rank as u64 - 1).min(ZIPF_VALUES as u64 - 1) * (range / ZIPF_VALUES as u64)
            }),
            Self::AndEntropy(samples) => {
                each(&|i| (0..u64::from(samples)).fold(range, |key, salt| key & random(i, salt)))
            }
            Self::Bits(low) => each(&|i| random(i, 0) & u64::MAX >> (64 - low.min(64))),
            Self::NearlySorted => {
                let mut keys = in_order();
                // Each swap moves two elements.
                for swap in 0..n / 200 {
                    let from = scrambled(swap as u64 ^ !seed) % n as u64;
                    let to = from + 1 + scrambled(from) % MOVED_BY;
                    keys.swap(from as usize, to.min(n as u64 - 1) as usize);
                }
                keys
            }
            Self::Distances => each(&|i| {
                let ordered = distance(i, n, seed).to_ordered_bits();
                u64::from(ordered) << (bits - 32)
            }),
        }
    }
}

/// Scales a random number to [0, 1).
fn unit(random: u64, range: u64) -> f64 {
    random as f64 / (range as f64 + 1.0)
}

/// Returns the distance from the origin to vertex `i` of `n`. Rows of equal length give the tube
/// and ring angles; the bumps have three frequencies.
fn distance(i: usize, n: usize, seed: u64) -> f32 {
    let rows = (n as f64).sqrt().ceil().max(1.0);
    let turn = |part: f64| part * std::f64::consts::TAU;
    let (ring, tube) = (
        turn((i as f64 / rows).floor() / rows),
        turn(i as f64 % rows / rows),
    );
    let phase = (seed % 97) as f64;
    let bumps = 0.05 * (7.0 * ring + phase).sin() * (5.0 * tube).cos()
        + 0.02 * (31.0 * ring + 3.0 * tube).sin()
        + 0.005 * (211.0 * ring).cos() * (173.0 * tube + phase).sin();
    let thickness = 0.4 + bumps;
    let reach = 1.0 + thickness * tube.cos();
    let vertex = [
        reach * ring.cos(),
        reach * ring.sin(),
        3.0 + thickness * tube.sin(),
    ];
    vertex.map(|x| x * x).iter().sum::<f64>().sqrt() as f32
}

/// Returns a random number for `i`: SplitMix64's state and finaliser.
pub fn scrambled(i: u64) -> u64 {
    let mut x = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&match self {
            Self::Uniform => "uniform".into(),
            Self::Gaussian => "gaussian".into(),
            Self::Sorted => "sorted".into(),
            Self::Reverse => "reverse".into(),
            Self::Zero => "zero".into(),
            Self::Bucket => "bucket".into(),
            Self::Staggered => "staggered".into(),
            Self::Zipf => "zipf".into(),
            Self::AndEntropy(samples) => format!("and-entropy-{samples}"),
            Self::Bits(bits) => format!("bits-{bits}"),
            Self::NearlySorted => "nearly-sorted".into(),
            Self::Distances => "distances".into(),
        })
    }
}

impl FromStr for Distribution {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.to_string() == name);
        found.ok_or_else(|| {
            let known = Self::ALL.map(|one| one.to_string()).join(", ");
            format!("unknown distribution `{name}`: known are {known}")
        })
    }
}

/// A key type that can be made from ordered bits.
pub trait BenchKey: Key {
    /// Returns the key whose [`Key::to_ordered_bits`] are the low bits of `bits`; `-0.0` and `+0.0`
    /// differ.
    fn from_ordered(bits: u64) -> Self;
}

macro_rules! bench_keys {
    ($($key:ident, $bits:ident, $from:expr;)*) => {$(
        impl BenchKey for $key {
            fn from_ordered(bits: u64) -> Self {
                let from: fn($bits) -> $key = $from;
                from(bits as $bits)
            }
        }
    )*};
}
bench_keys! {
    u32, u32, |bits| bits;
    u64, u64, |bits| bits;
    i32, u32, |bits| (bits ^ 1 << 31) as i32;
    i64, u64, |bits| (bits ^ 1 << 63) as i64;
    f32, u32, |bits| f32::from_bits(if bits >> 31 == 1 { bits ^ 1 << 31 } else { !bits });
    f64, u64, |bits| f64::from_bits(if bits >> 63 == 1 { bits ^ 1 << 63 } else { !bits });
}

/// Evaluates an expression with `$K` as the type of a [`radsweep::sort::KeyType`].
macro_rules! with_key {
    ($type:expr, $K:ident => $body:expr) => {
        match $type {
            radsweep::sort::KeyType::U32 => {
                type $K = u32;
                $body
            }
            radsweep::sort::KeyType::I32 => {
                type $K = i32;
                $body
            }
            radsweep::sort::KeyType::F32 => {
                type $K = f32;
                $body
            }
            radsweep::sort::KeyType::U64 => {
                type $K = u64;
                $body
            }
            radsweep::sort::KeyType::I64 => {
                type $K = i64;
                $body
            }
            radsweep::sort::KeyType::F64 => {
                type $K = f64;
                $body
            }
        }
    };
}
pub(crate) use with_key;

#[cfg(test)]
mod tests {
    use super::*;

    const N: usize = 1 << 16;

    fn keys(distribution: Distribution) -> Vec<u64> {
        distribution.generate(N, 32, 7)
    }

    #[test]
    fn every_distribution_parses_back_repeats_and_stays_in_range() {
        for distribution in Distribution::ALL {
            let name = distribution.to_string();
            assert_eq!(name.parse::<Distribution>(), Ok(distribution));
            let one = keys(distribution);
            assert_eq!(one.len(), N);
            assert_eq!(one, keys(distribution), "{name}");
            assert!(one.iter().all(|&key| key >> 32 == 0), "{name}");
            for n in [0, 1, 2, 129] {
                assert_eq!(distribution.generate(n, 64, 1).len(), n, "{name}");
            }
        }
        let error = "pareto".parse::<Distribution>().expect_err("unknown");
        assert!(
            error.contains("uniform") && error.contains("and-entropy-5"),
            "{error}"
        );
    }

    #[test]
    fn seeds_differ() {
        let differ = |a: &[u64], b: &[u64]| a.iter().zip(b).filter(|(a, b)| a != b).count();
        let other = Distribution::Uniform.generate(N, 32, 8);
        assert!(differ(&keys(Distribution::Uniform), &other) > N - 10);
    }

    /// Returns the sum of the Shannon entropies of a key's bits.
    fn entropy(keys: &[u64]) -> f64 {
        (0..32)
            .map(|bit| {
                let ones = keys.iter().filter(|&&key| key >> bit & 1 == 1).count();
                let p = ones as f64 / keys.len() as f64;
                let part = |p: f64| if p > 0.0 { -p * p.log2() } else { 0.0 };
                part(p) + part(1.0 - p)
            })
            .sum()
    }

    #[test]
    fn and_entropy_matches_the_paper() {
        for (samples, bits) in [(1, 32.0), (2, 25.95), (3, 17.41), (4, 10.78), (5, 6.42)] {
            let found = entropy(&keys(Distribution::AndEntropy(samples)));
            assert!(
                (found - bits).abs() < 0.15,
                "{samples}: {found}, not {bits}"
            );
        }
    }

    #[test]
    fn bits_are_limited_and_all_used() {
        for bits in [8, 16, 24, 32] {
            let all = keys(Distribution::Bits(bits))
                .into_iter()
                .fold(0, |a, b| a | b);
            assert_eq!(all, u64::from(u32::MAX >> (32 - bits)));
        }
        let wide = Distribution::Bits(32).generate(N, 64, 1);
        assert!(wide.iter().all(|key| key >> 32 == 0));
    }

    #[test]
    fn gaussian_gathers_in_the_middle() {
        let keys = keys(Distribution::Gaussian);
        let middle = keys
            .iter()
            .filter(|&&key| key >> 30 == 1 || key >> 30 == 2)
            .count();
        // Within 1.73 standard deviations of the mean of four uniform numbers.
        assert!(
            (0.90..0.94).contains(&(middle as f64 / N as f64)),
            "{middle}"
        );
    }

    #[test]
    fn bucket_and_staggered_keys_stay_in_their_parts() {
        let part = |key: u64| key >> 25;
        let bucket = keys(Distribution::Bucket);
        let block = N / 128;
        assert!((0..N).all(|i| part(bucket[i]) == (i % block * 128 / block) as u64));
        let staggered = keys(Distribution::Staggered);
        for (i, &key) in staggered.iter().enumerate() {
            let at = (i / block) as u64;
            let expected = if at < 64 { 2 * at + 1 } else { 2 * at - 128 };
            assert_eq!(part(key), expected, "{i}");
        }
    }

    #[test]
    fn zipf_draws_in_proportion_to_the_rank() {
        let keys = keys(Distribution::Zipf);
        let step = u64::from(u32::MAX) / (1 << 20);
        let share = |rank: u64| {
            keys.iter().filter(|&&key| key == (rank - 1) * step).count() as f64 / N as f64
        };
        let total = f64::from((1 << 20) + 1).ln();
        for rank in [1, 2, 3] {
            let expected = (1.0 + 1.0 / rank as f64).ln() / total;
            assert!(
                (share(rank) - expected).abs() < 0.01,
                "{rank}: {}",
                share(rank)
            );
        }
    }

    #[test]
    fn nearly_sorted_moves_few_and_not_far() {
        let keys = keys(Distribution::NearlySorted);
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        let moved = keys.iter().zip(&sorted).filter(|(a, b)| a != b).count();
        assert!((N / 200..=N / 100).contains(&moved), "{moved}");
        for (i, key) in keys
            .iter()
            .enumerate()
            .filter(|(i, key)| **key != sorted[*i])
        {
            let rank = sorted.partition_point(|other| other < key);
            // Some are moved more than once.
            assert!(rank.abs_diff(i) <= 3000, "{i} belongs to {rank}");
        }
        assert!(!keys.is_sorted());
    }

    #[test]
    fn order_of_sorted_reverse_and_zero() {
        assert!(keys(Distribution::Sorted).is_sorted());
        assert!(keys(Distribution::Reverse).is_sorted_by(|a, b| a >= b));
        let zero = keys(Distribution::Zero);
        assert!(zero.iter().all(|key| *key == zero[0]) && zero[0] != 0);
    }

    #[test]
    fn distances_are_those_of_a_mesh_in_front_of_the_eye() {
        let keys = keys(Distribution::Distances);
        let distances: Vec<f32> = keys.iter().map(|&key| f32::from_ordered(key)).collect();
        assert!(distances.iter().all(|d| (2.0..5.0).contains(d)));
        // Neighbours are near each other, but for the ends of rows.
        let near = distances
            .windows(2)
            .filter(|pair| (pair[0] - pair[1]).abs() < 0.1)
            .count();
        assert!(near > N * 9 / 10, "{near}");
    }

    #[test]
    fn keys_come_back_from_their_place_in_the_order() {
        fn check<K: BenchKey>(mask: u64) {
            for i in 0..1000 {
                let bits = scrambled(i) & mask;
                let back: u64 = K::from_ordered(bits).to_ordered_bits().into();
                assert_eq!(back, bits, "{}", K::TYPE);
            }
        }
        check::<u32>(u32::MAX.into());
        check::<i32>(u32::MAX.into());
        check::<f32>(u32::MAX.into());
        check::<u64>(u64::MAX);
        check::<i64>(u64::MAX);
        check::<f64>(u64::MAX);
    }
}
