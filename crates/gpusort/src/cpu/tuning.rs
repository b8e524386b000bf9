//! The constants of the CPU sorts, each with the measurement that chose it (`benches/cpu_sorts.rs`, 2 cores of an EPYC
//! with 48 KiB of L1 data cache).

/// Bits of a digit. 11 bits save a pass of four over 32-bit keys and cost the same per pass while all of it fits the L2
/// cache (0.53 ns per key, 0.52 with 8 bits), but clearing and scanning the counts costs more than that at 2^12 keys,
/// and at 2^20 keys a pass takes 2.3 ns: 2048 places to write to are more than the L1 cache has lines for.
pub(super) const DIGIT_WIDTH: u32 = 8;

/// At most so many keys go to the stable sort of `std`: at 2^8 keys it takes 1.2 µs where the counts alone take 1,
/// at 2^10 both take 5.
pub(super) const SMALL: usize = 512;

/// Fewest elements that a thread is woken for. Each pass wakes all threads twice, up to 0.1 ms each time here: two threads
/// lose with 2^17 elements each (1.6 ms against 1.1) and win with 2^18 (2.0 ms against 2.9).
pub(super) const LEAST_SHARE: usize = 1 << 18;
