//! A search that counts instead of sorting: `kernels/wgsl/sap/cells.wgsl`.

use super::counts::Counts;
use super::gpu::Gpu;
use super::launch::Batch;
use super::memory::{Grow, SearchMemory};
use super::params::{Blocks, Params};
use super::steps::Steps;
use super::tuning::{FULL_THREADS, MIN_BLOCK, MIN_THREAD_TESTS};
use crate::Result;
use radsweep_kernels::wgsl::{Cells, SWEEP_ITEMS, WORKGROUP};
use std::ops::Range;
use wgpu_device::wgpu::Buffer;

/// Searches one after the other, with the memory that only they use.
pub(super) struct CellSearch {
    gpu: Gpu,
    cells: Grow,
    /// The sums of the blocks of cells, of entries and of rows.
    sums: [Grow; 3],
    tallies: Grow,
}

/// What a search takes: its parameters, the boxes and their tags, and the numbers that there is
/// memory for.
pub(super) struct Task<'a> {
    pub(super) params: Params,
    pub(super) lists: &'a [Buffer; 2],
    pub(super) capacity: &'a Counts,
}

/// What a search has counted.
pub(super) struct Tallies {
    pub(super) counts: Counts,
    pub(super) common: u64,
    /// Whether a sum or a row was too long for this search.
    pub(super) is_over: bool,
}

impl Tallies {
    const WORDS: usize = 6;
    /// The bytes of the tallies on the device.
    pub(super) const BYTES: u64 = (Self::WORDS * size_of::<u32>()) as u64;

    /// Takes the bytes.
    pub(super) fn new(bytes: &[u8]) -> Self {
        let words: [u32; Self::WORDS] = bytemuck::pod_read_unaligned(bytes);
        let [low, high, tests, copies, over, common] = words;
        Self {
            counts: Counts {
                copies: copies.into(),
                tests: tests.into(),
                pairs: u64::from(low) | u64::from(high) << 32,
            },
            common: common.into(),
            is_over: over != 0,
        }
    }
}

/// Returns the bits of the number of elements of a block.
fn block_bits(elements: u64) -> u32 {
    let least = elements.div_ceil(Cells::MAX_BLOCKS.into());
    least.next_power_of_two().max(MIN_BLOCK).ilog2()
}

const fn blocks(elements: u64, bits: u32) -> u32 {
    elements.div_ceil(1 << bits) as u32
}

impl CellSearch {
    pub(super) fn new(gpu: Gpu) -> Self {
        let sums = ["sums of cells", "sums of tests", "sums of rows"].map(Grow::new);
        Self {
            gpu,
            cells: Grow::new("cells"),
            sums,
            tallies: Grow::new("tallies"),
        }
    }

    /// Adds the launches that find the pairs of boxes, as far as there is memory, and store them
    /// in order; those are counted that the last list, of this many pairs, has too. Returns whether
    /// there are few enough columns for that.
    pub(super) fn search(
        &mut self,
        batch: &mut Batch,
        memory: &mut SearchMemory,
        task: &Task<'_>,
        steps: Steps,
        (stored, last): (&Buffer, Option<(&Buffer, u64)>),
    ) -> Result<bool> {
        let capacity = task.capacity;
        let columns = (task.params.cut_counts.iter())
            .map(|&cuts| u64::from(cuts) + 1)
            .product();
        let Some(grid) = steps.grid(columns, capacity.copies) else {
            return Ok(false);
        };
        // Counts are scanned four at a time.
        let cells = (columns * u64::from(grid.steps)).next_multiple_of(4);
        let n = task.params.entries;
        let mut params = task.params;
        params.grid = grid;
        params.copy_capacity = capacity.copies as u32;
        params.last_pairs = last.map_or(0, |(_, pairs)| pairs as u32);
        params.blocks.cell_bits = block_bits(cells);
        params.blocks.entry_bits = block_bits(capacity.copies);
        params.blocks.row_bits = block_bits(n.into());
        let params = params.scanning(cells, params.blocks.cell_bits);
        let params = params.piece(0..capacity.tests, &(0..n), capacity.pairs);
        self.place_entries(batch, memory, task.lists, params, cells)?;
        self.find(batch, memory, task.lists, params)?;
        let last = last.map(|(list, _)| list);
        self.order_rows(batch, memory, params, (stored, last))?;
        Ok(true)
    }

    /// Returns where the tallies are.
    pub(super) fn tallies(&self) -> Option<(&Buffer, Range<u64>)> {
        let tallies = self.tallies.buffer();
        tallies.map(|tallies| (tallies, 0..Tallies::BYTES))
    }

    /// Stores the copies of boxes as entries in the order of their cells, and numbers their tests.
    fn place_entries(
        &mut self,
        batch: &mut Batch,
        memory: &mut SearchMemory,
        [boxes, tags]: &[Buffer; 2],
        params: Params,
        cells: u64,
    ) -> Result<()> {
        let gpu = self.gpu.clone();
        let (device, kernels) = (gpu.device(), gpu.cells()?);
        let copies = u64::from(params.copy_capacity);
        let counts = self.cells.reserve(device, 4 * cells)?;
        let tallies = self.tallies.reserve(device, Tallies::BYTES)?;
        batch.clear(counts, 4 * cells);
        let [cell_sums, test_sums, _] = &mut self.sums;
        let Blocks {
            cell_bits,
            entry_bits,
            ..
        } = params.blocks;
        let (cell_blocks, entry_blocks) = (blocks(cells, cell_bits), blocks(copies, entry_bits));
        let cell_sums = cell_sums.reserve(device, 4 * u64::from(cell_blocks))?;
        let test_sums = test_sums.reserve(device, 4 * u64::from(entry_blocks))?;
        let groups = params.entries.div_ceil(WORKGROUP);

        let counted = [(1, boxes), (2, counts), (9, tags), (10, tallies)];
        batch.step(device, &kernels.count_cells, params, &counted, groups)?;
        let scanned = [(2, counts), (6, cell_sums), (10, tallies)];
        batch.step(device, &kernels.scan_counts, params, &scanned, cell_blocks)?;
        let params = params.entering(cell_blocks);
        let (entries, names) = (
            memory.entries.reserve(device, 16 * copies)?,
            memory.names.reserve(device, 16 * copies)?,
        );
        let rows = memory
            .rows
            .reserve(device, 4 * u64::from(params.entries).next_multiple_of(4))?;
        let placed = [
            (1, boxes),
            (2, counts),
            (4, entries),
            (5, names),
            (7, cell_sums),
            (9, tags),
            (10, tallies),
            (12, rows),
        ];
        batch.step(device, &kernels.place_entries, params, &placed, groups)?;
        let starts = memory.starts.reserve(device, 4 * copies)?;
        let numbered = [
            (2, counts),
            (5, names),
            (6, test_sums),
            (7, cell_sums),
            (8, starts),
            (10, tallies),
        ];
        batch.step(
            device,
            &kernels.number_tests,
            params,
            &numbered,
            entry_blocks,
        )
    }

    /// Makes the tests, and counts the pairs of each row.
    fn find(
        &mut self,
        batch: &mut Batch,
        memory: &mut SearchMemory,
        [_, tags]: &[Buffer; 2],
        params: Params,
    ) -> Result<()> {
        let gpu = self.gpu.clone();
        let (device, kernels) = (gpu.device(), gpu.cells()?);
        let rows = memory
            .rows
            .reserve(device, 4 * u64::from(params.entries).next_multiple_of(4))?;
        let pairs = memory.pairs.reserve(device, 12 * params.capacity())?;
        let [_, test_sums, _] = &mut self.sums;
        let found = [
            (4, memory.entries.reserve(device, 0)?),
            (5, memory.names.reserve(device, 0)?),
            (7, test_sums.reserve(device, 0)?),
            (8, memory.starts.reserve(device, 0)?),
            (9, tags),
            (10, self.tallies.reserve(device, 0)?),
            (11, pairs),
            (12, rows),
        ];
        let entered = blocks(params.copy_capacity.into(), params.blocks.entry_bits);
        let mut params = params.entering(entered);
        params.thread_tests = (params.tests / FULL_THREADS).clamp(MIN_THREAD_TESTS, SWEEP_ITEMS);
        let shares = params
            .tests
            .div_ceil(WORKGROUP * params.thread_tests)
            .max(1);
        batch.step(device, &kernels.find_in_cells, params, &found, shares)
    }

    /// Stores the pairs in order, and counts those that the last list has too.
    fn order_rows(
        &mut self,
        batch: &mut Batch,
        memory: &mut SearchMemory,
        params: Params,
        (stored, last): (&Buffer, Option<&Buffer>),
    ) -> Result<()> {
        let gpu = self.gpu.clone();
        let (device, kernels) = (gpu.device(), gpu.cells()?);
        let (n, bits) = (u64::from(params.entries), params.blocks.row_bits);
        let row_blocks = blocks(n, bits);
        let [.., sums] = &mut self.sums;
        let sums = sums.reserve(device, 4 * u64::from(row_blocks))?;
        let rows = memory.rows.reserve(device, 0)?;
        let tallies = self.tallies.reserve(device, 0)?;
        let pairs = memory.pairs.reserve(device, 0)?;
        let placed = memory.ordered.reserve(device, 8 * params.capacity())?;
        let scanned = [(2, rows), (6, sums), (10, tallies)];
        let scan = params.scanning(n, bits);
        batch.step(device, &kernels.scan_counts, scan, &scanned, row_blocks)?;
        let params = params.entering(row_blocks);
        let groups = (params.capacity() as u32).div_ceil(WORKGROUP);
        let brought = [
            (2, rows),
            (7, sums),
            (10, tallies),
            (11, pairs),
            (13, placed),
        ];
        batch.step(device, &kernels.place_pairs, params, &brought, groups)?;
        let ordered = [
            (2, rows),
            (7, sums),
            (10, tallies),
            (13, placed),
            // Without a last list nothing is read of it.
            (14, last.unwrap_or(placed)),
            (15, stored),
        ];
        batch.step(device, &kernels.store_rows, params, &ordered, groups)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_few() {
        for elements in [0, 1, 255, 257, 1 << 18, (1 << 18) + 1, 1 << 23] {
            let bits = block_bits(elements);
            assert!(bits >= 10 && blocks(elements, bits) <= Cells::MAX_BLOCKS);
        }
    }
}
