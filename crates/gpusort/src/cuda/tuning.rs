//! The constants of what is no family: the sort for nearly sorted input.

/// Max keys that are taken out of a window: `REMOVED` in adaptive_window.cuh. Not measured.
pub(super) const MAX_REMOVED: u32 = 1024;

/// Min bytes of keys and values for which the hint is used, so that a wrong one costs at most 5 %
/// once attempts are rare, or 8 % where keys have few different values.
///
/// Measured on an H200 (`bench_nearly_sorted`, which ignores this limit): times without the hint
/// divided by those with it, each a mean of 64 sorts, of which one attempts in vain.
///
/// | MiB | u32, 16 | 24 | u32 and u32, 16 | 24 | 32 | u64 and u32, 24 | 36 |
/// | --- | --- | --- | --- | --- | --- | --- | --- |
/// | 1 % moved up to 1000 | 1.54 | 1.73 | 2.13 | 2.21 | 2.04 | 2.18 | 3.10 |
/// | sorted | 0.75 | 1.00 | 0.92 | 1.28 | 1.02 | 0.96 | 1.28 |
/// | 1 % swapped, up to 1000 | 0.95 | 0.97 | 0.93 | 0.96 | 0.97 | 0.96 | 0.98 |
/// | one far away | 0.97 | 0.97 | 0.95 | 0.96 | 0.97 | 0.96 | 0.98 |
/// | random | 0.97 | 0.99 | 0.92 | 0.97 | 0.98 | 0.95 | 0.98 |
/// | 16 values at random | 0.92 | 0.95 | 0.92 | 0.93 | 0.94 | 0.96 | 0.98 |
pub(super) const MIN_ADAPTIVE_BYTES: u64 = 24 << 20;
