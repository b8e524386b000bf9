//! The bytes of memory that each algorithm moves as its authors give it, which bound its speed.

use crate::Algorithm;

/// The keys of a tile that a block of [`Algorithm::SatishMerge`] sorts before the merges, as in the
/// paper.
const MERGE_TILE: f64 = 256.0;
/// The keys below which [`Algorithm::Quicksort`] partitions no more, as in the paper.
const QUICKSORT_LEAF: f64 = 1024.0;

impl Algorithm {
    /// Returns the bytes of device memory that the algorithm of the paper reads and writes for each
    /// of `n` uniform random elements of `key_bytes` and `value_bytes` (0 for keys alone), sorted
    /// by all bits of the key. The copy bandwidth of a device divided by this is the rate of an
    /// algorithm that waits for memory alone, its *byte limit*.
    ///
    /// The sorts here may be faster: some move fewer bytes than their paper's, such as 44 a `u32`
    /// key in [`Algorithm::Quicksort`] of 2^26 keys where this returns 200, and caches can serve
    /// some. The heads of the kernels' sources count their own bytes.
    ///
    /// [`Algorithm::Auto`] counts as [`Algorithm::Onesweep`].
    ///
    /// ```
    /// use gpusort::Algorithm;
    ///
    /// // A histogram reads every key, and four passes read and write it.
    /// assert_eq!(Algorithm::Onesweep.bytes_per_element(4, 0, 1 << 20), 36.0);
    /// ```
    #[must_use]
    pub fn bytes_per_element(self, key_bytes: usize, value_bytes: usize, n: u64) -> f64 {
        let (key, element) = (key_bytes as f64, (key_bytes + value_bytes) as f64);
        let bits = 8 * key_bytes as u32;
        let passes = |digit: u32| f64::from(bits.div_ceil(digit));
        let levels = |leaf: f64| (n as f64 / leaf).log2().max(0.0).ceil();
        // Every element read and written once.
        let moved = 2.0 * element;
        match self {
            // One histogram for all passes (Adinets and Merrill 2022).
            Self::Onesweep | Self::Auto => key + passes(8) * moved,
            // Each pass shuffles in the block, then maps; the order check reads no bytes of its own
            // (Ha et al. §4).
            Self::FourWayRadix => passes(2) * 2.0 * moved,
            Self::EightWayRadix => passes(3) * 2.0 * moved,
            // Each pass sorts the tiles, then scatters (Satish et al. §III).
            Self::SatishRadix => passes(4) * 2.0 * moved,
            // Tiles, then one level of merges each time that the runs double (Satish et al. §IV).
            Self::SatishMerge => moved * (1.0 + levels(MERGE_TILE)),
            // Each level counts, then moves; the leaves follow (Cederman and Tsigas §3.1).
            Self::Quicksort => levels(QUICKSORT_LEAF) * (key + moved) + moved,
            // Local sort, relocation, sublist sort (Dehne and Zaboli, steps 2, 8 and 9).
            Self::BucketSort => 3.0 * moved,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_papers_steps() {
        let at =
            |algorithm: Algorithm, n| [0, 4].map(|value| algorithm.bytes_per_element(4, value, n));
        for n in [1 << 20, 1 << 28] {
            assert_eq!(at(Algorithm::Onesweep, n), [36.0, 68.0]);
            assert_eq!(at(Algorithm::FourWayRadix, n), [256.0, 512.0]);
            assert_eq!(at(Algorithm::EightWayRadix, n), [176.0, 352.0]);
            assert_eq!(at(Algorithm::SatishRadix, n), [128.0, 256.0]);
            assert_eq!(at(Algorithm::BucketSort, n), [24.0, 48.0]);
        }
        assert_eq!(at(Algorithm::SatishMerge, 1 << 24), [136.0, 272.0]);
        assert_eq!(at(Algorithm::Quicksort, 1 << 20), [128.0, 216.0]);
        assert_eq!(Algorithm::Onesweep.bytes_per_element(8, 4, 1), 200.0);
    }

    #[test]
    fn the_smallest_input_is_read_and_written() {
        for &algorithm in Algorithm::ALL {
            for n in [0, 1, 100] {
                assert!(
                    algorithm.bytes_per_element(4, 4, n) >= 16.0,
                    "{algorithm} {n}"
                );
            }
        }
    }
}
