//! Tile shapes of Satish's radix sort, the same as in `kernels/sort/satish_radix_tuning.cuh`.

use crate::cuda::tile::{Tile, Tiles, tile};

/// Shapes with registers for four blocks a multiprocessor (three for pairs of 16 bytes).
///
/// Measured on an H200, G keys/s of 2²⁶ and 2²⁰ `u32`: 16 a thread 27.4 and 12.5, 24 a thread 28.1
/// and 10.7, 12 a thread 27.7 and 10.1; 512 threads of 16 24.4; five blocks of fewer registers
/// 26.8. Pairs of `u32`: 16 a thread 14.5, 20 a thread 14.2. Keys of 8 bytes, 2²⁴: 12 a thread 7.0,
/// 16 a thread 6.9.
const TILES: Tiles = [
    [tile(256, 16), tile(256, 16), tile(256, 12)],
    [tile(256, 12), tile(256, 12), tile(256, 12)],
];

/// Shapes of the one block that sorts by all digits, by the bytes of the larger of key and value
/// (4, 8). A sort takes the first that holds its keys.
///
/// Fewer warps have fewer counts to add up. Measured on an H200: 1,024 keys in a graph take 11 µs
/// with eight warps, 21 with 32. Sixteen warps sort as many keys as 48 KiB hold; 12,288 `u32` take
/// 38 µs, 16,384 in sixteen launches 42.
const SMALL: [[Tile; 2]; 2] = [
    [tile(256, 16), tile(512, 24)],
    [tile(256, 8), tile(512, 12)],
];

/// Max tiles for which the scatter adds up the table itself. With more, a scan kernel runs (step
/// 3).
///
/// Measured on an H200, G keys/s of 2²¹ `u32`, 512 tiles: 17.8 without the kernel, 16.1 with it;
/// 1024 tiles: 21.0 both.
pub(super) const UNSCANNED_TILES: u64 = 512;

/// Threads of a block of the scan kernel: `SCAN_THREADS` in satish_radix.cu. Not measured.
pub(super) const SCAN_THREADS: u32 = 1024;
/// Words of the table that each of these threads takes at once: `SCAN_ITEMS` in satish_radix.cu.
/// Not measured.
pub(super) const SCAN_ITEMS: u64 = 16;

/// Returns the tile for keys and values of that many bytes.
pub(super) fn tile_for(key_bytes: usize, value_bytes: usize) -> Tile {
    Tile::of(&TILES, key_bytes, value_bytes)
}

/// Returns the shape of the one block that sorts `n` keys, if there is one.
pub(super) fn small_for(n: u64, key_bytes: usize, value_bytes: usize) -> Option<Tile> {
    let shapes = SMALL[key_bytes.max(value_bytes) / 8];
    shapes.into_iter().find(|tile| tile.keys() >= n)
}

impl Tile {
    /// Returns the bytes of `Split::Shared`: 16 counts of 2 bytes for each warp, in an odd number
    /// of vectors of 8 counts.
    fn split_bytes(self) -> u32 {
        16 * ((self.threads / 256) | 1) * 16
    }

    /// Returns the bytes of `Tile::Shared`: the sorted keys and values, and the bits in which a
    /// warp's keys differ.
    pub(super) fn tile_shared_bytes(self, key_bytes: usize, value_bytes: usize) -> u32 {
        self.keys() as u32 * (key_bytes + value_bytes) as u32
            + 16
            + self.split_bytes()
            + self.threads / 32 * key_bytes as u32
    }

    /// Returns the bytes of `Small::Shared`, which holds the keys and the values in turn.
    pub(super) fn small_shared_bytes(self, key_bytes: usize, value_bytes: usize) -> u32 {
        self.keys() as u32 * key_bytes.max(value_bytes) as u32 + self.split_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fit_the_oldest_device() {
        for key in [4, 8] {
            for value in [0, 4, 8] {
                assert!(tile_for(key, value).tile_shared_bytes(key, value) <= 64 * 1024);
                for small in SMALL[key.max(value) / 8] {
                    assert!(small.small_shared_bytes(key, value) <= 64 * 1024);
                }
            }
        }
    }
}
