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

/// By key (4, 8 bytes), then value (none, 4, 8 bytes): shapes within the 64 KiB of shared memory that a block has on Turing.
///
/// Measured on an H200 at 2^28 elements (G/s; 8-byte keys 2^24): wide tiles win, because each tile's counts and look-back
/// cost the same whatever it holds, until registers spill or two blocks no longer share a multiprocessor.
/// u32 keys: 384x20 59.5, 384x24 60.9, 384x28 65.3, **384x32 66.2**, 384x36 63.3, 256x36 66.3, 512x32 60.9, 384x48 63.9.
/// u32 pairs: 384x16 31.4, 384x24 34.6, 384x28 38.1, **384x32 39.1**, 512x24 38.6, 512x28 39.4, 256x32 31.1, 1024x20 35.7.
const TILES: [[Tile; 3]; 2] = [
    [tile(384, 32), tile(384, 32), tile(384, 16)],
    [tile(384, 16), tile(384, 16), tile(384, 16)],
];

/// The same for devices whose blocks have [`WIDE_SHARED`] bytes.
///
/// u32 + u64 at 2^28: 384x16 26.9, **384x24 29.5**, 512x16 28.8. u64 keys: 384x16 17.4, 384x20 18.1, **384x24 18.7**, 512x16 18.0. u64 + u32: 384x16 12.3, 384x20 12.8, **384x24 13.2**,
/// 512x16 13.2, 512x20 13.0.
const WIDE: [[Tile; 3]; 2] = [
    [tile(384, 32), tile(384, 32), tile(384, 24)],
    [tile(384, 24), tile(384, 24), tile(384, 16)],
];

const WIDE_SHARED: u32 = 96 * 1024;

/// Tiles whose counts are added up to one look-back word: `GROUP` in onesweep.cu.
pub(super) const GROUP: usize = 8;

/// The shape for keys and values of that many bytes where a block has that many bytes of shared memory.
pub(super) fn tile_for(key_bytes: usize, value_bytes: usize, shared_bytes: u32) -> Tile {
    let table = if shared_bytes < WIDE_SHARED {
        &TILES
    } else {
        &WIDE
    };
    table[key_bytes / 8][value_bytes / 4]
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
            + self.threads * self.items * key_bytes.max(value_bytes) as u32
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
    fn tiles_fit_their_devices() {
        for key in [4, 8] {
            for value in [0, 4, 8] {
                for offset in [4, 8] {
                    for most in [64 * 1024, WIDE_SHARED] {
                        let tile = tile_for(key, value, most);
                        assert!(tile.shared_bytes(key, value, offset) <= most);
                        assert!(tile.threads >= 256 && tile.threads.is_multiple_of(32));
                        assert!(tile.keys() >= tile_for(key, value, 0).keys());
                    }
                }
            }
        }
    }
}
