//! Launch shapes of Onesweep for small inputs, by the number of keys.

/// How the blocks of `onesweep_small.cu` are shaped: a tile has `threads * rows` keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct SmallShape {
    pub threads: u32,
    /// Keys of a thread in a tile; at most, where one block sorts everything.
    pub rows: u32,
    /// The most keys that this is the shape for.
    up_to: u64,
}

const fn shape(threads: u32, rows: u32, up_to: u64) -> SmallShape {
    SmallShape {
        threads,
        rows,
        up_to,
    }
}

/// The first that takes the keys, and whose blocks the device runs at once.
///
/// Chosen on an H200 from the fastest of 10 to 30 shapes for each size, u32 keys with u32 values, in microseconds between two events
/// (memset included), by the kernel's form that kept a tile in registers: 2^10 11.6 (512 x 2), 2^12 16.2 and 2^14 16.8 (256 x 1),
/// 2^15 18.0 (256 x 2), 2^16 19.7 (256 x 4), 2^17 23.4 and 2^18 26.8 (512 x 4), 2^19 35.3 (512 x 8). CUB 3.5 in the same program's
/// place: 2^14 47.2, 2^16 50.9, 2^18 60.3. Blocks of 512 and more threads lose below 2^17 by 1 to 3.
pub(super) const SHAPES: &[SmallShape] = &[
    shape(256, 4, 1 << 10),
    shape(512, 4, 1 << 11),
    shape(256, 1, 1 << 14),
    shape(256, 2, 1 << 15),
    shape(256, 4, 1 << 16),
    shape(512, 4, 1 << 18),
    shape(512, 8, 1 << 19),
    shape(512, 16, 1 << 20),
];

/// No shape is for more keys.
pub(super) const LIMIT: u64 = 1 << 20;
/// The same where an element has more than four bytes. At 2^20 the blocks then have no room for parts larger than a tile: pairs
/// take 81 µs in one launch, and 70 in one for each step; keys alone 57 and 60.
pub(super) const WIDE_LIMIT: u64 = 1 << 19;
/// No grid has smaller tiles.
pub(super) const LEAST_TILE: u64 = 256;

impl SmallShape {
    pub fn tile(&self) -> u64 {
        u64::from(self.threads * self.rows)
    }

    /// Whether one block sorts everything.
    pub fn alone(&self) -> bool {
        self.up_to <= self.tile()
    }

    /// Blocks for `n` keys, if this is the shape for them.
    pub fn blocks(&self, n: u64) -> Option<u64> {
        (n <= self.up_to).then(|| n.div_ceil(self.tile()))
    }

    /// Keys of a thread that a block has room for in that much shared memory, an even number; its share of the sorted keys may be
    /// larger than a tile. 0 if not even a tile fits.
    pub fn capacity(&self, element_bytes: u32, shared_bytes: u32) -> u32 {
        let needed = self.rows.next_multiple_of(2);
        let room = shared_bytes.saturating_sub(self.shared_bytes(element_bytes, 0));
        let rows = room / (2 * self.threads * element_bytes) / 2 * 2;
        match rows {
            rows if rows < needed => 0,
            _ if self.alone() => needed,
            rows => rows.min(MOST_ROWS),
        }
    }

    /// Bytes of the kernel's `Shared`, two counters of 256 bins a warp, and two exchanges.
    pub fn shared_bytes(&self, element_bytes: u32, capacity: u32) -> u32 {
        3200 + self.threads / 32 * 2048 + 2 * self.threads * capacity * element_bytes
    }
}

/// Twice the largest tile: more room is of no use.
const MOST_ROWS: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_what_the_kernels_take() {
        for shape in SHAPES {
            assert!([256, 512].contains(&shape.threads), "{shape:?}");
            assert!(shape.up_to <= LIMIT, "{shape:?}");
            assert!(shape.alone() || shape.tile() >= LEAST_TILE, "{shape:?}");
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
