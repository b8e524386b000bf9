//! Counting sort into small groups, each of which insertion then sorts.

use super::tuning::MAX_SQUARES;

/// Turns the counts of groups into their first positions. Returns whether the groups are small
/// enough for insertion, which makes about a quarter of the square of a size in comparisons.
pub(super) fn prefix_sums(counts: &mut [u32]) -> bool {
    let (mut before, mut squares) = (0, 0);
    for count in counts {
        squares += u64::from(*count) * u64::from(*count);
        before += std::mem::replace(count, before);
    }
    squares <= MAX_SQUARES * u64::from(before)
}

/// Sorts keys that are near their ranks.
pub(super) fn insertion_sort(keys: &mut [u64]) {
    for i in 1..keys.len() {
        let key = keys[i];
        let mut j = i;
        while j > 0 && keys[j - 1] > key {
            keys[j] = keys[j - 1];
            j -= 1;
        }
        keys[j] = key;
    }
}
