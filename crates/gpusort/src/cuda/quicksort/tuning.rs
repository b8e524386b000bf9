//! Parameters of GPU-Quicksort (§5.3, table II): shapes, and the rule for the end of phase one.
//!
//! A kernel's name contains its shape. A table that differs from
//! `kernels/sort/quicksort_tuning.cuh` therefore finds no kernel.

/// Threads of a block, except in the kernel that chooses pivots. Not measured.
pub(super) const THREADS: u32 = 512;
/// Threads of a block that chooses pivots: half of `QUICKSORT_SAMPLE`.
pub(super) const PIVOTS_THREADS: u32 = 512;
/// Max keys that one entry of the done list copies: `COPY_PIECE` in quicksort_types.cuh. Not
/// measured.
pub(super) const COPY_PIECE: u64 = 32768;

/// Keys for each thread in a tile and in a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KernelShape {
    pub tile_items: u32,
    pub leaf_items: u32,
}

impl KernelShape {
    /// Returns the keys of a tile, which a block counts or moves at once.
    pub fn tile(self) -> u64 {
        u64::from(THREADS * self.tile_items)
    }

    /// Returns the keys of a leaf, the paper's `minsize`. Shorter sequences are sorted on chip.
    pub fn leaf(self) -> u64 {
        u64::from(THREADS * self.leaf_items)
    }
}

/// Shapes by bytes of a key (4, 8).
const SHAPES: [KernelShape; 2] = [
    KernelShape {
        tile_items: 12,
        leaf_items: 15,
    },
    KernelShape {
        tile_items: 8,
        leaf_items: 11,
    },
];

/// Returns the shape for keys of that many bytes.
pub(super) fn shape_for(key_bytes: usize) -> KernelShape {
    SHAPES[key_bytes / 8]
}

/// Returns a parameter for `s` keys by the paper's rule `optp`: `k s + m`, rounded to a power of
/// two.
fn optp(s: u64, k: f64, m: f64) -> u64 {
    1 << (s as f64 * k + m).log2().round() as u64
}

/// The length that a level's longest class is assumed to have, in multiples of its share of 1 / 32.
/// Sequences that are longer still are left to single blocks in phase two. Measured: two sequences
/// of 2²² keys that are left after two levels take 48 µs, another level takes 35.
const SLACK: f64 = 1.45;

/// Returns the length above which phase one partitions a sequence: the paper's `n / maxseq`, but at
/// least a leaf. The fitted `maxseq` leads to a leaf, because a partition by a single block takes
/// longer than a whole level by all blocks.
pub(super) fn min_length(n: u64, maxseq: Option<u32>, shape: &KernelShape) -> u64 {
    let maxseq = maxseq
        .map_or_else(|| optp(n, 1.0 / 4096.0, 64.0), u64::from)
        .max(1);
    (n / maxseq).max(shape.leaf())
}

/// Returns the keys of a section, which a block of phase one counts or moves tile by tile. Longer
/// sections have fewer counts to write and sum, but there must be enough for all multiprocessors.
/// At 2²⁴ keys, sections of two tiles take 0.69 ms, of one tile 0.75.
pub(super) fn section(n: u64, shape: &KernelShape) -> u64 {
    (n / shape.tile() / 1024).clamp(1, 8) * shape.tile()
}

/// Returns the number of levels of phase one, after which no sequence is expected to be longer than
/// `min_length`. The paper has no such number: it repeats until there are *maxseq* sequences.
pub(super) fn levels(n: u64, min_length: u64) -> u32 {
    let (mut longest, mut levels) = (n as f64, 0);
    while longest > min_length as f64 {
        longest *= SLACK / 32.0;
        levels += 1;
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_rounds_to_powers_of_two() {
        // Table II, 8800GTX, 8 million keys: threads, blocks of phase one, shortest sequence.
        let s = 8 << 20;
        assert_eq!(optp(s, 0.00001172, 53.0), 128);
        assert_eq!(optp(s, 0.00003748, 476.0), 1024);
        assert_eq!(optp(s, 0.00004685, 211.0), 512);
    }

    #[test]
    fn levels_grow_with_the_keys() {
        let shape = shape_for(4);
        let levels = |n| levels(n, min_length(n, None, &shape));
        assert_eq!(levels(1), 0);
        assert_eq!(levels(shape.leaf()), 0);
        assert_eq!(levels(shape.leaf() + 1), 1);
        let all: Vec<_> = (10..33).map(|power| levels((1_u64 << power) - 1)).collect();
        assert!(all.is_sorted() && all[22] <= 5, "{all:?}");
    }
}
