//! Tile shapes, the same as in `kernels/sort/ha_radix.cu`.
//!
//! A kernel's name contains its shape. A table that differs from the image's therefore finds no
//! kernel.

/// The shape of a block: its tile has `threads * items` keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tile {
    pub threads: u32,
    pub items: u32,
    /// Number of blocks that share a multiprocessor.
    pub blocks: u32,
}

const fn tile(threads: u32, items: u32, blocks: u32) -> Tile {
    Tile {
        threads,
        items,
        blocks,
    }
}

/// Shapes by bits of a digit (1, 2, 3), then by bytes of a key (4, 8), then of a value (0, 4, 8).
/// The baseline of one bit has kernels for keys of 4 bytes only, alone and with values of 4 bytes.
///
/// Measured on an H200 with 2²⁶ u32 keys, milliseconds: keys alone, four-way 128 × 16: 3.90 with 5
/// blocks, 4.14 with 8 (spills); 256 × 16: 4.03 with 4, 4.16 with 2; 128 × 32: 4.73. Eight-way 128
/// × 12: 2.93 with 6; 256 × 12: 3.02 with 3; 384 × 12: 3.10 with 2. Pairs, four-way 256 × 16: 6.12
/// with 2 blocks; 256 × 12: 6.20 with 3; 128 × 16: 6.55 with 5. Values of 8 bytes: 256 × 12: 8.60
/// with 2, 8.83 with 3. The shapes for keys of 8 bytes are not measured; they follow from these by
/// the registers that they need.
///
/// In eight-way counting eight counters share a thread's 32-bit word, so a thread has at most 15
/// keys.
const TILES: [[[Tile; 3]; 2]; 3] = [
    [[tile(256, 16, 4), tile(256, 16, 3), tile(256, 16, 3)]; 2],
    [
        [tile(128, 16, 5), tile(256, 16, 2), tile(256, 12, 2)],
        [tile(256, 12, 3), tile(256, 12, 2), tile(256, 8, 2)],
    ],
    [
        [tile(128, 12, 6), tile(256, 12, 2), tile(256, 12, 2)],
        [tile(256, 12, 3), tile(256, 12, 2), tile(256, 8, 2)],
    ],
];

/// Returns the shape for digits of that many bits, and keys and values of that many bytes.
pub(super) fn tile_for(bits: u32, key_bytes: usize, value_bytes: usize) -> Tile {
    TILES[bits as usize - 1][key_bytes / 8][value_bytes / 4]
}

impl Tile {
    pub fn keys(self) -> u32 {
        self.threads * self.items
    }

    /// Returns the bytes of the kernel's `Sort::Shared`: the padded tile, two words for each digit,
    /// a counter of each digit for each warp, and 16 bytes of single variables.
    pub fn shared_bytes(self, bits: u32, key_bytes: usize, value_bytes: usize) -> u32 {
        let pad = 128 / key_bytes as u32;
        let padded = self.keys() + self.keys() / pad;
        let pairs = if value_bytes == 0 {
            padded * key_bytes as u32 + 8
        } else {
            padded * (key_bytes + value_bytes) as u32
        };
        pairs + (self.threads / 32 + 2) * 4 * (1 << bits) + 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fit_the_oldest_device() {
        for bits in [2, 3] {
            for key in [4, 8] {
                for value in [0, 4, 8] {
                    let tile = tile_for(bits, key, value);
                    assert!(tile.shared_bytes(bits, key, value) <= 64 * 1024);
                    assert!(tile.items < 1 << (32 >> bits) && tile.keys() < 1 << 16);
                }
            }
        }
    }
}
