//! The constants of the CPU sorts, each with the measurement that chose it: `benches/cpu_sorts.rs`, 2 cores of an EPYC
//! that was doing other work too.

/// At most so many keys go to `std`. `radsort` has counts to clear, 1 KiB per byte of the key: index sorts cross at 2^9
/// (f32: 1.1 to 1.4 µs at 2^8, 5.3 to 4.5 at 2^10) and 2^10 (f64), `u32` keys at 2^9, `u64` keys only at 2^13.
pub(super) const SMALL: usize = 512;

/// From so many keys on, `rdst` and all threads of the pool are used, if there are two or more. One thread of `radsort`
/// against two of `rdst`, in ms: `u32` keys 3.8 to 3.3 at 2^20 and 21 to 12 at 2^22, `u64` keys 9.0 to 7.2 and 91 to 33,
/// f32 index sort 6.0 to 9.7 and 47 to 41. Keys alone cross at 2^19 and index sorts at 2^21; this lies between.
pub(super) const PARALLEL: usize = 1 << 20;

/// From so many pairs on, those that `radsort` can carry are dealt to parts for all threads (`parts.rs`). One thread of `radsort`
/// against that with two, in ms, on a busy machine: 39 to 39 at 2^20, 200 to 108 at 2^22, 1142 to 521 at 2^24; `rdst` (stable) takes 271
/// and 1667 for the last two.
pub(super) const PARALLEL_PAIRS: usize = 1 << 22;
