//! Sorts of groups so small that insertion puts each in order.

use super::tuning::MAX_SQUARES;

/// Turns the counts of groups into where each begins. Says whether insertion sorts the groups well:
/// it compares a quarter of the square of their sizes.
pub(super) fn add_up(counts: &mut [u32]) -> bool {
    let (mut before, mut squares) = (0, 0);
    for count in counts {
        squares += u64::from(*count) * u64::from(*count);
        before += std::mem::replace(count, before);
    }
    squares <= MAX_SQUARES * u64::from(before)
}

/// Sorts keys of which few are far from their rank.
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
