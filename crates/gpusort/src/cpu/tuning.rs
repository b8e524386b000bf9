//! The constants of the CPU sorts, each with the measurement that chose it, made by
//! `crates/bench/benches/cpu_sorts.rs` on 2 cores of an EPYC that was doing other work too.

/// Max keys that `std` sorts. `radsort` must clear counts first, 1 KiB per byte of the key. It
/// overtakes `std` in index sorts at 2^9 for f32 (1.1 µs of `std` to 1.4 at 2^8, 5.3 to 4.5 at
/// 2^10) and at 2^10 for f64, for `u32` keys at 2^9, for `u64` keys only at 2^13.
pub(super) const SMALL: usize = 512;

/// Min keys that `rdst` sorts on all threads of the pool, if it has two or more. One thread of
/// `radsort` against two of `rdst`, in ms: `u32` keys 3.8 to 3.3 at 2^20 and 21 to 12 at 2^22,
/// `u64` keys 9.0 to 7.2 and 91 to 33, f32 index sort 6.0 to 9.7 and 47 to 41. `rdst` overtakes at
/// 2^19 for keys alone and at 2^21 for index sorts; this limit lies between.
pub(super) const PARALLEL: usize = 1 << 20;

/// Min pairs that are divided into parts for all threads (`parts.rs`), if `radsort` can move their
/// values. One thread of `radsort` against two with parts, in ms, on a busy machine: 39 to 39 at
/// 2^20, 200 to 108 at 2^22, 1142 to 521 at 2^24. `rdst` (stable) takes 271 and 1667 for the last
/// two.
pub(super) const PARALLEL_PAIRS: usize = 1 << 22;

/// Chunks for each thread in which `parts.rs` counts and moves pairs. Several make the threads
/// finish at about the same time. Not measured.
pub(super) const CHUNKS_PER_THREAD: usize = 4;

/// Tasks for each thread of the steps before and after a parallel sort. Several make the threads
/// finish at about the same time. Not measured.
pub(super) const TASKS_PER_THREAD: usize = 8;

/// Min elements of such a task: far more work than it takes to start one. Not measured.
pub(super) const MIN_TASK: usize = 1 << 13;
