//! The byte limit of a sort: the bytes that its algorithm must move, at the rate at which the device copies.

use radsweep::BroadPhase;
#[cfg(cuda)]
use radsweep::gpu::{self, Stream};
use radsweep::sort::Algorithm;
#[cfg(cuda)]
use std::time::Instant;

/// Bytes that an index sort moves for a key, by the algorithm's table for keys with values of 4 bytes.
///
/// It never reads the values in its first pass and writes no keys in its last.
#[must_use]
pub fn index_sort_bytes(algorithm: Algorithm, key_bytes: usize, n: u64) -> f64 {
    algorithm.bytes_per_element(key_bytes, 4, n) - 4.0 - key_bytes as f64
}

/// Measures how fast the device of a broad phase copies, in GB/s read plus written: some milliseconds. None on the CPU, whose
/// caches hold what is sorted.
#[must_use]
pub fn copy_rate_of(broad_phase: &BroadPhase) -> Option<f64> {
    #[cfg(cuda)]
    let rate = broad_phase
        .stream()
        .and_then(|stream| copy_rate(stream).ok());
    #[cfg(not(cuda))]
    let (rate, _) = (None, broad_phase);
    rate
}

/// Measures how fast a device copies, in GB/s read plus written: the median of some copies.
///
/// # Errors
///
/// Those of the device, such as no memory for the copies.
#[cfg(cuda)]
pub fn copy_rate(stream: &Stream) -> gpu::Result<f64> {
    const MAX_BYTES: u64 = 1 << 30;
    const WARM_UP: usize = 3;
    const RUNS: usize = 11;
    /// No further copy is begun after so long; three are made in any case.
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
