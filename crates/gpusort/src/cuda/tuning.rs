//! The constants of what is no family: the sort for nearly sorted input.

/// Max keys that are taken out of a window: `REMOVED` in adaptive_window.cuh. Not measured.
pub(super) const MAX_REMOVED: u32 = 1024;

/// Min number of keys for which the hint is used. Measured on an H200, pairs of u32 with 1 % and
/// 0.1 % of them displaced: 2^19 pairs take 33.9 and 28.5 µs with the hint, 31.4 and 32.0 without;
/// 2^20 pairs take 36.3 and 32.1 µs with it, 59.5 and 61.0 without.
pub(super) const MIN_ADAPTIVE_KEYS: u64 = (1 << 19) + 1;
