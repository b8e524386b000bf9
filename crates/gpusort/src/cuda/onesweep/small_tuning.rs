//! Launch shapes of Onesweep for small inputs, by the number of keys.

/// The shape of the blocks of `onesweep_small.cu`: a tile has `threads * rows` keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct SmallShape {
    pub threads: u32,
    /// Keys of a thread in a tile.
    pub rows: u32,
    /// Max keys for this shape.
    up_to: u64,
}

const fn shape(threads: u32, rows: u32, up_to: u64) -> SmallShape {
    SmallShape {
        threads,
        rows,
        up_to,
    }
}

/// The shapes, for more keys than one block sorts (`block.rs`). A sort takes the first that admits
/// its number of keys and whose blocks the device runs at once.
///
/// Measured on an H200: pairs of u32, microseconds between two events, the best of each size bold.
///
/// | shape | 2^12 | 2^14 | 2^15 | 2^16 | 2^17 | 2^18 | 2^19 | 2^20 |
/// | --- | --- | --- | --- | --- | --- | --- | --- | --- |
/// | 256 x 1 | **19.2** | **20.0** | **22.0** | | | | | |
/// | 256 x 2 | 21.1 | 22.0 | 22.5 | 24.4 | | | | |
/// | 256 x 4 | 25.0 | 26.0 | 25.5 | 26.7 | 28.4 | | | |
/// | 256 x 8 | 31.4 | 31.8 | 32.5 | 33.1 | 34.3 | 37.1 | | |
/// | 512 x 1 | 21.1 | 22.3 | 22.4 | **23.8** | | | | |
/// | 512 x 2 | 24.2 | 25.0 | 25.4 | 26.0 | **27.1** | | | |
/// | 512 x 4 | 28.2 | 29.0 | 29.7 | 30.0 | 30.2 | **32.0** | | |
/// | 512 x 8 | | 38.0 | 37.7 | 39.6 | 40.1 | 40.2 | **42.3** | |
/// | 512 x 16 | | 54.9 | 54.3 | 54.6 | 57.3 | 58.0 | 60.0 | 60.9 |
/// | a launch for each step | | | | | | 48.8 | 51.8 | 62.7 |
///
/// Keys alone at 2^20 take 47.5, and 54.8 with a launch for each step. The best shapes have a block
/// for each multiprocessor and as few rows as that allows. Replayed from a graph the launch takes 5
/// to 6 less, which is the host's share.
pub(super) const SHAPES: &[SmallShape] = &[
    shape(256, 1, 1 << 15),
    shape(512, 1, 1 << 16),
    shape(512, 2, 1 << 17),
    shape(512, 4, 1 << 18),
    shape(512, 8, 1 << 19),
    shape(512, 16, 1 << 20),
];

/// Max keys of any shape.
pub(super) const LIMIT: u64 = 1 << 20;
/// Max keys if an element has more than four bytes. Uniform keys take the same time either way at
/// 2^20. Uneven keys take 87 µs in one launch, where shared memory is too small for their parts,
/// and 63 µs otherwise.
pub(super) const WIDE_LIMIT: u64 = 1 << 19;
/// The smallest tile of a grid, in keys. Not measured.
pub(super) const MIN_TILE: u64 = 256;

impl SmallShape {
    /// Bytes of the kernel's `Shared`, without what depends on the shape.
    pub const FIXED_BYTES: u32 = 3200;

    pub fn tile(&self) -> u64 {
        u64::from(self.threads * self.rows)
    }

    /// Returns the number of blocks for `n` keys, if the shape admits them.
    pub fn blocks(&self, n: u64) -> Option<u64> {
        (n <= self.up_to).then(|| n.div_ceil(self.tile()))
    }

    /// Returns the keys of a thread that fit into `shared_bytes` of shared memory, an even number.
    /// It may exceed a tile's, because a block's share of the sorted keys may. Returns 0 if not
    /// even a tile fits.
    pub fn capacity(&self, element_bytes: u32, shared_bytes: u32) -> u32 {
        let needed = self.rows.next_multiple_of(2);
        let available = shared_bytes.saturating_sub(self.shared_bytes(element_bytes, 0));
        let rows = available / (2 * self.threads * element_bytes) / 2 * 2;
        match rows {
            rows if rows < needed => 0,
            rows => rows.min(MAX_ROWS),
        }
    }

    /// Returns the bytes of `Shared`, of twice 256 counters for each warp, and of two exchanges.
    pub fn shared_bytes(&self, element_bytes: u32, capacity: u32) -> u32 {
        Self::FIXED_BYTES + self.threads / 32 * 2048 + 2 * self.threads * capacity * element_bytes
    }
}

/// Max keys of a thread in shared memory: twice the largest tile, because more is never used.
const MAX_ROWS: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_fit_the_kernels() {
        for shape in SHAPES {
            assert!([256, 512].contains(&shape.threads), "{shape:?}");
            assert!(shape.up_to <= LIMIT, "{shape:?}");
            assert!(shape.tile() >= MIN_TILE, "{shape:?}");
            assert!(shape.tile() < 1 << 15, "a published count has 15 bits");
            for bytes in [4, 8, 12, 16] {
                for shared in [48, 64, 99, 227].map(|kib| kib * 1024) {
                    let capacity = shape.capacity(bytes, shared);
                    assert!(capacity == 0 || capacity >= shape.rows && capacity % 2 == 0);
                    assert!(shape.shared_bytes(bytes, capacity) <= shared);
                }
            }
        }
    }
}
