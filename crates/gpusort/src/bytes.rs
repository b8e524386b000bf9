//! How many bytes an algorithm moves, and so how fast it can be at most.

use crate::Algorithm;

/// Keys that a block of [`Algorithm::SatishMerge`] sorts before the merges, and below which [`Algorithm::Quicksort`] splits no more, in
/// the papers.
const MERGE_TILE: f64 = 256.0;
const QUICKSORT_LEAF: f64 = 1024.0;

impl Algorithm {
    /// Bytes of device memory that the algorithm reads and writes for each of `n` uniform random elements of `key_bytes` and
    /// `value_bytes` (0: keys alone), all bits of the key sorted. The copy bandwidth of a device over this is the rate that the algorithm
    /// can reach on it; what stays in a cache is not taken off.
    ///
    /// [`Algorithm::Auto`] has the figure of [`Algorithm::Onesweep`].
    ///
    /// ```
    /// use gpusort::Algorithm;
    ///
    /// // A histogram that reads every key, and four passes that read and write it.
    /// assert_eq!(Algorithm::Onesweep.bytes_per_element(4, 0, 1 << 20), 36.0);
    /// ```
    #[must_use]
    pub fn bytes_per_element(self, key_bytes: usize, value_bytes: usize, n: u64) -> f64 {
        let (key, element) = (key_bytes as f64, (key_bytes + value_bytes) as f64);
        let bits = 8 * key_bytes as u32;
        let passes = |digit: u32| f64::from(bits.div_ceil(digit));
        let levels = |leaf: f64| (n as f64 / leaf).log2().max(0.0).ceil();
        // A read and a write of every element.
        let moved = 2.0 * element;
        match self {
            // One histogram for all passes (Adinets and Merrill 2022).
            Self::Onesweep | Self::Auto => key + passes(8) * moved,
            // Each pass: the shuffle in the block, then the mapping; the order check rides along (Ha et al. §4).
            Self::FourWayRadix => passes(2) * 2.0 * moved,
            Self::EightWayRadix => passes(3) * 2.0 * moved,
            // Each pass: the tile sorted, then scattered (Satish et al. §III).
            Self::SatishRadix => passes(4) * 2.0 * moved,
            // Tiles, then a level of merges each time the runs double (§IV).
            Self::SatishMerge => moved * (1.0 + levels(MERGE_TILE)),
            // Each level counts, then moves; then the leaves (Cederman and Tsigas §3.1).
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
    fn even_the_smallest_input_is_read_and_written() {
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
