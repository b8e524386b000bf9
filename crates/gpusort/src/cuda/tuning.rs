//! Tile shapes of Onesweep, the same as in `kernels/sort/onesweep_tuning.cuh`.
//!
//! A pass kernel's name carries its shape, so a table that differs from the image's finds no kernel.

/// How a block of a pass is shaped: its tile has `threads * items` keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tile {
    pub threads: u32,
    pub items: u32,
}

const fn tile(threads: u32, items: u32) -> Tile {
    Tile { threads, items }
}

/// By key (4, 8 bytes), then value (none, 4, 8 bytes).
///
/// Chosen so that three blocks share a multiprocessor (1152 threads of 56 registers) within the 64 KiB of shared memory a
/// block has on Turing; wider tiles write longer runs of equal digits.
const TILES: [[Tile; 3]; 2] = [
    [tile(384, 20), tile(384, 16), tile(384, 11)],
    [tile(384, 16), tile(384, 11), tile(384, 8)],
];

/// The shape for keys and values of that many bytes.
pub(super) fn tile_for(key_bytes: usize, value_bytes: usize) -> Tile {
    TILES[key_bytes / 8][value_bytes / 4]
}

impl Tile {
    pub fn keys(self) -> u64 {
        u64::from(self.threads * self.items)
    }

    /// Bytes of the kernel's `Pass::Shared`: counters of 256 digits a warp, 256 offsets, 48 bytes of small things, the exchange.
    pub fn shared_bytes(self, key_bytes: usize, value_bytes: usize, offset_bytes: usize) -> u32 {
        let fixed = 256 * offset_bytes + 48;
        self.threads / 32 * 256 * 4
            + fixed as u32
            + self.threads * self.items * (key_bytes + value_bytes) as u32
    }
}

// The histogram kernel's shape: `HISTOGRAM_THREADS` and `CHUNK` in onesweep.cu.

/// Threads of a block of the histogram kernel.
pub(super) const HISTOGRAM_THREADS: u32 = 512;
/// Bytes of keys that such a block reads at once.
pub(super) const HISTOGRAM_CHUNK_BYTES: u64 = 512 * 2 * 16;
/// Blocks of it for each multiprocessor: all the threads that one holds.
pub(super) const HISTOGRAM_BLOCKS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fit_the_oldest_device() {
        for key in [4, 8] {
            for value in [0, 4, 8] {
                for offset in [4, 8] {
                    let tile = tile_for(key, value);
                    assert!(tile.shared_bytes(key, value, offset) <= 64 * 1024);
                    assert!(tile.threads >= 256 && tile.threads.is_multiple_of(32));
                }
            }
        }
    }
}
