//! The byte limit of a sort: the time to move the bytes that its algorithm must move, at the
//! device's copy rate.

use radsweep::BroadPhase;
#[cfg(cuda)]
use radsweep::gpu::{self, Stream};
use radsweep::sort::Algorithm;
#[cfg(cuda)]
use std::time::Instant;

/// Returns the bytes that an index sort moves per key: those of a sort of pairs with 4-byte values,
/// less the values that its first pass does not read and the keys that its last pass does not
/// write.
#[must_use]
pub fn index_sort_bytes(algorithm: Algorithm, key_bytes: usize, n: u64) -> f64 {
    algorithm.bytes_per_element(key_bytes, 4, n) - 4.0 - key_bytes as f64
}

/// Measures the copy rate of a broad phase's device, in GB/s read plus written. It takes some
/// milliseconds.
///
/// Returns `None` unless the broad phase runs on CUDA. On the CPU the sorted keys are in cache.
#[must_use]
pub fn copy_rate_of(broad_phase: &BroadPhase) -> Option<f64> {
    // A rate that cannot be measured is unknown.
    #[cfg(cuda)]
    let rate = broad_phase
        .stream()
        .and_then(|stream| copy_rate(stream).ok());
    #[cfg(not(cuda))]
    let (rate, _) = (None, broad_phase);
    rate
}

/// Measures the copy rate of a device, in GB/s read plus written: the median of several copies.
///
/// # Errors
///
/// Errors of the device, such as a refused allocation.
#[cfg(cuda)]
pub fn copy_rate(stream: &Stream) -> gpu::Result<f64> {
    const MAX_BYTES: u64 = 1 << 30;
    const WARM_UP: usize = 3;
    const RUNS: usize = 11;
    /// No further copy starts after this time; three are made in any case.
    const MAX_SECONDS: f64 = 1.0;
    let bytes = MAX_BYTES.min(stream.device().info().memory_bytes / 64) as usize;
    let from = stream.alloc_zeroed::<u8>(bytes)?;
    let mut to = stream.alloc::<u8>(bytes)?;
    let begun = Instant::now();
    let mut times = Vec::with_capacity(RUNS);
    for run in 0..WARM_UP + RUNS {
        let start = stream.record()?;
        stream.copy(to.slice_mut(), from.slice())?;
        let end = stream.record()?;
        end.synchronize()?;
        if run >= WARM_UP {
            times.push(f64::from(start.elapsed_ms(&end)?));
        }
        if times.len() >= 3 && begun.elapsed().as_secs_f64() > MAX_SECONDS {
            break;
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(2.0 * bytes as f64 / times[times.len() / 2] / 1e6)
}
