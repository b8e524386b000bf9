//! The tiles and passes of a merge sort.

use super::tuning::{MAX_RUNS, RANK_THREADS, SAMPLE};
use bytemuck::{Pod, Zeroable};
use gpu::assert_layout;

/// The shape of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cuda) struct Tile {
    pub threads: u32,
    pub items_per_thread: u32,
}

impl Tile {
    /// Returns the items that a block sorts: a whole number of samples.
    pub const fn items(self) -> u32 {
        self.threads * self.items_per_thread
    }

    /// Returns the max items that a block merges. Each pair of runs has threads of its own, of
    /// which the last may have fewer items.
    const fn piece(self) -> u32 {
        (self.threads - (MAX_RUNS as u32 / 2 - 1)) * self.items_per_thread
    }

    /// Returns the bytes of `Piece::Shared`.
    pub const fn piece_bytes(self) -> u32 {
        let warps = self.threads / 32;
        let rows = (self.piece() / 32 + MAX_RUNS as u32 + 1).next_multiple_of(warps);
        ((2 * MAX_RUNS as u32 + 1) * 4 + rows * 8).next_multiple_of(16)
    }
}

/// Returns the shape of a block by the bytes of a key: `THREADS` and `ITEMS` in
/// satish_merge_items.cuh.
///
/// Three blocks share a multiprocessor of the H200 (80 registers a thread), and a tile of keys with
/// tags fits the 64 KiB of shared memory that a block has on Turing. The items of a thread are odd,
/// so that writes of a warp's items go to different banks.
pub(super) const fn tile_for(key_bytes: usize) -> Tile {
    Tile {
        threads: 256,
        items_per_thread: if key_bytes == 4 { 23 } else { 15 },
    }
}

/// A pass over runs of `run` elements each: `Level` in satish_merge.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
pub(in crate::cuda) struct Level {
    pub run: u64,
    /// Every `spacing`-th of the merged samples is a splitter.
    pub spacing: u32,
    /// Pieces of `runs` full runs.
    pub pieces: u32,
    /// Runs that are merged to one: 2, 4 or 8.
    pub runs: u32,
    pub unused: u32,
}

assert_layout!(Level, 24: run 0, spacing 8, pieces 12, runs 16, unused 20);

/// The tiles of a sort, and the passes that merge them.
#[derive(Debug, Clone)]
pub(in crate::cuda) struct Plan {
    pub n: u64,
    pub tiles: u64,
    pub levels: Vec<Level>,
}

impl Plan {
    pub fn new(n: u64, tile: Tile) -> Self {
        let mut plan = Self {
            n,
            tiles: n.div_ceil(tile.items().into()),
            levels: Vec::new(),
        };
        // The remaining halvings of the number of runs, divided evenly among the min number of
        // passes.
        let mut halvings = plan.tiles.max(1).next_power_of_two().trailing_zeros();
        let mut run = u64::from(tile.items());
        while halvings > 0 {
            let now = halvings.div_ceil(halvings.div_ceil(MAX_RUNS.trailing_zeros()));
            plan.levels.push(level(n, run, 1 << now, tile));
            run <<= now;
            halvings -= now;
        }
        plan
    }

    /// Returns the elements that passes move: none of a single tile, which needs the outcome only.
    pub fn moved(&self) -> u64 {
        if self.levels.is_empty() { 0 } else { self.n }
    }

    /// Returns the blocks of a pass.
    pub fn blocks(&self, level: &Level) -> u64 {
        self.n.div_ceil(level.run * u64::from(level.runs)) * u64::from(level.pieces)
    }

    /// Returns the blocks of [`RANK_THREADS`] that rank the splitters of a pass. A warp ranks 32
    /// samples of one run.
    pub fn rank_blocks(&self, level: &Level) -> u64 {
        let warps_of_run = (level.run / SAMPLE).div_ceil(32);
        (self.n.div_ceil(level.run) * warps_of_run).div_ceil(u64::from(RANK_THREADS) / 32)
    }

    /// Returns the bytes of the table of splits, for the pass with the most pieces. The kernels
    /// read one piece beyond the last.
    pub fn splits(&self) -> u64 {
        let max_blocks = self.levels.iter().map(|level| self.blocks(level)).max();
        max_blocks.map_or(0, |blocks| (blocks + 1) * MAX_RUNS * 4)
    }
}

/// Returns a pass with as many samples between two splitters as fit a block, or fewer if that makes
/// the pieces even.
fn level(n: u64, run: u64, runs: u64, tile: Tile) -> Level {
    let samples = n.min(run * runs).div_ceil(SAMPLE);
    let max_samples = (u64::from(tile.piece()) - (runs - 1) * (SAMPLE - 1)) / SAMPLE;
    let pieces = samples.div_ceil(max_samples);
    Level {
        run,
        runs: runs as u32,
        spacing: samples.div_ceil(pieces) as u32,
        pieces: pieces as u32,
        unused: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TILE: Tile = Tile {
        threads: 256,
        items_per_thread: 23,
    };
    const KEYS: u64 = 5888;

    #[test]
    fn passes_are_few_and_even() {
        let runs = |n: u64| -> Vec<u32> {
            let plan = Plan::new(n, TILE);
            plan.levels.iter().map(|level| level.runs).collect()
        };
        assert!(runs(KEYS).is_empty());
        assert_eq!(runs(KEYS + 1), [2]);
        assert_eq!(runs(8 * KEYS), [8]);
        assert_eq!(runs(8 * KEYS + 1), [4, 4]);
        assert_eq!(runs(1 << 24), [8, 8, 8, 8]);
        assert_eq!(runs(u32::MAX.into()).iter().product::<u32>(), 1 << 20);
    }

    #[test]
    fn pieces_fit_and_cover() {
        for n in [
            KEYS + 1,
            20_000,
            61_441,
            1 << 20,
            (1 << 24) + 1,
            u64::from(u32::MAX),
        ] {
            let plan = Plan::new(n, TILE);
            let mut run = u64::from(TILE.items());
            for level in &plan.levels {
                let runs = u64::from(level.runs);
                assert_eq!(level.run, run);
                run *= runs;
                let largest = u64::from(level.spacing) * SAMPLE + (runs - 1) * (SAMPLE - 1);
                assert!(largest <= u64::from(TILE.piece()));
                let samples = n.min(run).div_ceil(SAMPLE);
                assert!(u64::from(level.pieces) * u64::from(level.spacing) >= samples);
                assert!(plan.splits() >= plan.blocks(level) * 32);
            }
            assert!(run >= n);
        }
    }
}
