//! How many pairs may be kept.

use crate::{Config, Pair};

/// Pairs of 64 MiB: not worth asking for the memory available.
const FEW_PAIRS: u64 = 8 * 1024 * 1024;

/// The pairs of so many boxes when all overlap.
pub(super) const fn most_pairs(boxes: usize) -> u64 {
    let boxes = boxes as u64;
    boxes * boxes.saturating_sub(1) / 2
}

/// The most pairs that an update may keep which finds no more than `most`: what [`Config::pair_memory`] holds, else half of the memory available,
/// for the sorted list and the blocks it is sorted from; no limit where the system does not tell.
pub(super) fn pair_limit(config: &Config, most: u64) -> u64 {
    let pair = size_of::<Pair>() as u64;
    match config.pair_memory {
        Some(bytes) => bytes / pair,
        None if most <= FEW_PAIRS => u64::MAX,
        None => available().map_or(u64::MAX, |bytes| bytes / 2 / (2 * pair)),
    }
}

/// Bytes that Linux says can be had without swapping.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}
