//! A search for pairs on the device: what is uploaded, the launches, and what is read back.

use super::gpu::{Gpu, Kernels};
use super::input::{Input, Source, Tags};
use super::launch::{Batch, KeptSort};
use super::memory::{Grow, GrowScratch, SearchMemory};
use super::params::{Params, bits_of};
use super::tuning::PIECE_TESTS;
use crate::cpu::shared::{Clock, max_copies};
use crate::{Pair, Result, try_alloc};
use gpusort::wgpu::{Payload, ReportDownload, Request};
use gpusort::{Key, SortOptions};
use radsweep_kernels::wgsl::Key::{Bits32, Bits64};
use radsweep_kernels::wgsl::{SWEEP_ITEMS, WORKGROUP};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use wgpu_device::wgpu::Buffer;
use wgpu_device::{Device, Kernel};

/// What the launches of a search share.
pub(super) struct Prepared {
    boxes: u32,
    /// Whether the boxes are copied into columns.
    pub(super) in_columns: bool,
    kernels: Arc<Kernels>,
    /// The boxes, and the lists of `tags`.
    pub(super) lists: [Buffer; 2],
    /// The parameters of the launches: for all boxes at first, then for all entries.
    pub(super) params: Params,
    /// The bits of the keys that may differ.
    key_bits: u32,
}

impl Prepared {
    /// Returns the range of all rows: of all smaller indices.
    pub(super) fn rows(&self) -> Range<u32> {
        0..self.boxes
    }

    pub(super) const fn index_bits(&self) -> u32 {
        self.params.index_bits
    }

    /// Makes the copies the entries, of which there is memory for `copies`.
    fn enter_copies(&mut self, copies: u32) {
        self.params = self.params.of_copies(copies);
    }
}

/// Boxes in sweep order on the device, ready for their tests.
pub(super) struct Arranged {
    pub(super) prepared: Prepared,
    /// The number of entries.
    pub(super) copies: u64,
    pub(super) tests: u64,
    /// The report of the sort of boxes.
    pub(super) sort: Option<ReportDownload>,
}

/// Pairs that were counted, and stored on the device as far as the capacity went.
pub(super) struct StoredPairs {
    pub(super) count: u64,
    pub(super) capacity: u64,
}

/// A list of packed pairs that was put in order.
#[derive(Clone, Copy)]
pub(super) struct PackedList {
    pub(super) pairs: u64,
    /// The bits of an index in a packed pair.
    pub(super) index_bits: u32,
}

/// The bytes of a pair on the device, and of each of its two copies during the sort.
const PAIR_BYTES: u64 = size_of::<u64>() as u64;

/// Searches one after the other, in memory that is kept.
pub(super) struct Searcher {
    gpu: Gpu,
    /// The max number of pairs of a list, which is sorted on the device.
    pub(super) max_list: u64,
    /// The max number of tests of a launch.
    pub(super) piece_tests: u64,
    boxes: Grow,
    tags: Grow,
    /// The keys and copies before they are sorted, and after.
    keys_made: Grow,
    copies_made: Grow,
    keys: Grow,
    order: Grow,
    runs: Grow,
    sums: Grow,
    /// Two numbers, of which the second is that of the copies.
    copied: Grow,
    /// The numbers of pairs and of tests.
    counters: Grow,
    pub(super) box_scratch: GrowScratch,
    pub(super) pair_scratch: GrowScratch,
    pub(super) memory: SearchMemory,
    box_sort: KeptSort,
    pair_sort: KeptSort,
    pub(super) batch: Batch,
}

impl Searcher {
    pub(super) fn new(gpu: Gpu) -> Self {
        let limits = gpu.device().limits();
        let bytes = limits
            .max_storage_buffer_binding_size
            .min(limits.max_buffer_size);
        Self {
            // The sort binds two copies at once, and numbers what they have with 32 bits.
            max_list: (bytes / (2 * PAIR_BYTES)).min(1 << 30),
            piece_tests: PIECE_TESTS,
            boxes: Grow::new("boxes"),
            tags: Grow::new("filters, worlds, f64 boxes and excluded pairs"),
            keys_made: Grow::new("keys of boxes"),
            copies_made: Grow::new("copies of boxes"),
            keys: Grow::new("keys of boxes in order"),
            order: Grow::new("order of boxes"),
            runs: Grow::new("tests of each box"),
            sums: Grow::new("sums of tests"),
            copied: Grow::new("number of copies"),
            counters: Grow::new("counters"),
            box_scratch: GrowScratch::default(),
            pair_scratch: GrowScratch::default(),
            memory: SearchMemory::default(),
            box_sort: KeptSort::default(),
            pair_sort: KeptSort::default(),
            batch: Batch::default(),
            gpu,
        }
    }

    pub(super) fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Returns the capacity for pairs.
    pub(super) fn pair_capacity(&self) -> u64 {
        self.memory.pairs.capacity() / PAIR_BYTES
    }

    /// Uploads boxes that are on the host, sorts them along the axis, in columns if there are cuts,
    /// and counts their tests. There is at least one box.
    pub(super) fn arrange(&mut self, input: &Input, clock: &mut Clock) -> Result<Arranged> {
        let gpu = self.gpu.clone();
        let device = gpu.device();
        let mut prepared = self.prepare(input)?;
        clock.lap(|timings| &mut timings.upload);
        let mut batch = std::mem::take(&mut self.batch);
        if prepared.in_columns {
            self.count_copies(&mut batch, &prepared)?;
            batch.submit(device)?;
            let copies: Vec<u64> = self.copied.read(device, 2)?;
            let copies = copies.get(1).copied().unwrap_or(0);
            // A copy takes as much of a binding as a pair.
            if copies > max_copies(input.len()).min(self.max_list) {
                prepared = self.prepare_uncut(input)?;
            } else {
                self.make_copies(&mut batch, &mut prepared, copies as u32)?;
            }
        }
        self.sort_boxes(&mut batch, &prepared)?;
        batch.submit(device)?;
        self.batch = batch;
        let sort = self.box_scratch.report(gpu.sorter())?;
        let counters: Vec<u64> = self.counters.read(device, 2)?;
        clock.lap(|timings| &mut timings.sort);
        Ok(Arranged {
            copies: prepared.params.entries.into(),
            prepared,
            tests: counters.get(1).copied().unwrap_or(0),
            sort,
        })
    }

    /// Prepares a search, and uploads what is on the host.
    pub(super) fn prepare(&mut self, input: &Input) -> Result<Prepared> {
        let gpu = self.gpu.clone();
        let device = gpu.device();
        let tags = Tags::new(input);
        let lists = match &input.source {
            Source::Host(scene) => [
                self.boxes.write(device, &scene.boxes)?.clone(),
                self.tags.reserve(device, tags.total())?.clone(),
            ],
            Source::Device(given) => [given.boxes.clone(), given.tags.clone()],
        };
        tags.write(device, &lists[1])?;
        let columns: usize = input.cuts.iter().map(|cuts| cuts.len() + 1).product();
        let is_wide = input.is_cut() || input.has_worlds();
        let params = Params::new(input, &tags);
        Ok(Prepared {
            boxes: params.entries,
            in_columns: input.is_cut(),
            kernels: gpu.kernels(if is_wide { Bits64 } else { Bits32 })?,
            lists,
            params,
            key_bits: match (input.is_cut(), is_wide) {
                // One more than there are is the column of unused copies.
                (true, _) => u32::BITS + bits_of(columns as u32),
                (false, true) => u64::BITS,
                (false, false) => u32::BITS,
            },
        })
    }

    /// Prepares a search without columns.
    fn prepare_uncut(&mut self, input: &Input) -> Result<Prepared> {
        let cut = self.prepare(input)?;
        Ok(Prepared {
            in_columns: false,
            kernels: self.gpu.kernels(Bits32)?,
            key_bits: u32::BITS,
            ..cut
        })
    }

    /// Counts the copies of boxes in columns.
    pub(super) fn count_copies(&mut self, batch: &mut Batch, prepared: &Prepared) -> Result<()> {
        let gpu = self.gpu.clone();
        let device = gpu.device();
        let Some(columns) = &prepared.kernels.columns else {
            return Ok(());
        };
        let n = u64::from(prepared.boxes);
        let groups = prepared.boxes.div_ceil(WORKGROUP);
        let (counts, sums) = (
            self.runs.reserve(device, 4 * n)?,
            self.sums.reserve(device, 8 * u64::from(groups))?,
        );
        let (starts, copied) = (
            self.memory.starts.reserve(device, 8 * n)?,
            self.copied.reserve(device, 16)?,
        );
        let [boxes, tags] = &prepared.lists;
        let counted = [(1, boxes), (6, counts), (7, sums), (9, tags)];
        let kernel = &columns.count_copies;
        batch.step(device, kernel, prepared.params, &counted, groups)?;
        number(device, batch, prepared, [counts, sums, starts, copied])
    }

    /// Makes the copies that were counted, as far as there is memory for this many.
    pub(super) fn make_copies(
        &mut self,
        batch: &mut Batch,
        prepared: &mut Prepared,
        capacity: u32,
    ) -> Result<()> {
        let gpu = self.gpu.clone();
        let device = gpu.device();
        prepared.params.copy_capacity = capacity;
        let (keys, copies) = (
            self.keys_made.reserve(device, 8 * u64::from(capacity))?,
            self.copies_made.reserve(device, 4 * u64::from(capacity))?,
        );
        let (counts, starts) = (
            self.runs.reserve(device, 0)?,
            self.memory.starts.reserve(device, 0)?,
        );
        let [boxes, tags] = &prepared.lists;
        let made = [
            (1, boxes),
            (2, keys),
            (3, copies),
            (6, counts),
            (8, starts),
            (9, tags),
        ];
        let groups = prepared.boxes.div_ceil(WORKGROUP);
        if let Some(columns) = &prepared.kernels.columns {
            batch.step(device, &columns.make_copies, prepared.params, &made, groups)?;
        }
        prepared.enter_copies(capacity);
        Ok(())
    }

    /// Sorts the boxes, or their copies, and numbers the tests.
    pub(super) fn sort_boxes(&mut self, batch: &mut Batch, prepared: &Prepared) -> Result<()> {
        if prepared.in_columns {
            self.sort::<u64>(batch, prepared, Payload::U32)
        } else if prepared.key_bits == u64::BITS {
            self.sort::<u64>(batch, prepared, Payload::Index)
        } else {
            self.sort::<u32>(batch, prepared, Payload::Index)
        }
    }

    /// Sorts by keys of a type, with the copies or with the indices of boxes.
    fn sort<K: Key>(
        &mut self,
        batch: &mut Batch,
        prepared: &Prepared,
        payload: Payload,
    ) -> Result<()> {
        let gpu = self.gpu.clone();
        let (device, sorter) = (gpu.device(), gpu.sorter());
        let n = u64::from(prepared.params.entries);
        let groups = prepared.params.entries.div_ceil(WORKGROUP);
        let key_bytes = n * size_of::<K>() as u64;
        let (made, keys) = (
            self.keys_made.reserve(device, key_bytes)?,
            self.keys.reserve(device, key_bytes)?,
        );
        let order = self.order.reserve(device, 4 * n)?;
        let request = if payload == Payload::Index {
            let [boxes, tags] = &prepared.lists;
            let mut read = vec![(1, boxes), (2, made)];
            if K::BITS == u64::BITS {
                read.push((9, tags));
            }
            batch.step(
                device,
                &prepared.kernels.make_keys,
                prepared.params,
                &read,
                groups,
            )?;
            Request::<K>::index(n, made, order).keys_out(keys)
        } else {
            let copies = self.copies_made.reserve(device, 4 * n)?;
            Request::<K>::keys(n, made, keys).values(copies, order)
        };
        let scratch = self.box_scratch.reserve::<K>(sorter, n, payload)?;
        let (state, _) = scratch.outcome();
        let bits = prepared.key_bits;
        let sort = self
            .box_sort
            .get(n, bits, &[made, keys, order, state], || {
                let options = SortOptions::new().bits(0..bits);
                Ok(sorter.prepare(&request, scratch, &options)?)
            })?;
        batch.sort(sort);
        self.number_tests(batch, prepared)
    }

    /// Puts the boxes in the order of the sort, and numbers the tests.
    fn number_tests(&mut self, batch: &mut Batch, prepared: &Prepared) -> Result<()> {
        let gpu = self.gpu.clone();
        let device = gpu.device();
        let n = u64::from(prepared.params.entries);
        let groups = prepared.params.entries.div_ceil(WORKGROUP);
        let (keys, order) = (
            self.keys.reserve(device, 0)?,
            self.order.reserve(device, 0)?,
        );
        let (entries, names) = (
            self.memory.entries.reserve(device, 16 * n)?,
            self.memory.names.reserve(device, 8 * n)?,
        );
        let (runs, sums) = (
            self.runs.reserve(device, 4 * n)?,
            self.sums.reserve(device, 8 * u64::from(groups))?,
        );
        let starts = self.memory.starts.reserve(device, 8 * n)?;
        let counters = self.counters.reserve(device, 16)?;
        let arranged = [
            (1, &prepared.lists[0]),
            (2, keys),
            (3, order),
            (4, entries),
            (5, names),
            (6, runs),
            (7, sums),
        ];
        let kernel = &prepared.kernels.arrange;
        batch.step(device, kernel, prepared.params, &arranged, groups)?;
        number(device, batch, prepared, [runs, sums, starts, counters])
    }

    /// Makes all tests, counts the pairs with their smaller index in `rows`, and stores them as far
    /// as the capacity goes.
    pub(super) fn find(
        &mut self,
        arranged: &Arranged,
        rows: &Range<u32>,
        capacity: u64,
    ) -> Result<StoredPairs> {
        let gpu = self.gpu.clone();
        let device = gpu.device();
        let mut batch = std::mem::take(&mut self.batch);
        self.clear_pairs(&mut batch)?;
        for tests in self.pieces(arranged.tests) {
            self.find_piece(&mut batch, &arranged.prepared, tests, rows, capacity)?;
            batch.submit(device)?;
        }
        batch.submit(device)?;
        self.batch = batch;
        let counts: Vec<u64> = self.counters.read(device, 1)?;
        Ok(StoredPairs {
            count: counts.first().copied().unwrap_or(0),
            capacity,
        })
    }

    /// Forgets the number of pairs.
    pub(super) fn clear_pairs(&mut self, batch: &mut Batch) -> Result<()> {
        let counters = self.counters.reserve(self.gpu.device(), 16)?;
        batch.clear(counters, PAIR_BYTES);
        Ok(())
    }

    /// Makes a piece of the tests, those of them that there are.
    pub(super) fn find_piece(
        &mut self,
        batch: &mut Batch,
        prepared: &Prepared,
        tests: Range<u64>,
        rows: &Range<u32>,
        capacity: u64,
    ) -> Result<()> {
        let device = self.gpu.device();
        let pairs = self
            .memory
            .pairs
            .reserve(device, capacity * PAIR_BYTES)?
            .clone();
        let params = prepared.params.piece(tests, rows, capacity);
        self.make_tests(
            batch,
            prepared,
            params,
            &prepared.kernels.find,
            &[(11, &pairs)],
        )
    }

    /// Makes all tests, and returns the number of pairs of each smaller index.
    pub(super) fn count_rows(&mut self, arranged: &Arranged) -> Result<Vec<u32>> {
        let gpu = self.gpu.clone();
        let device = gpu.device();
        let prepared = &arranged.prepared;
        let boxes = u64::from(prepared.boxes);
        let rows = self.memory.rows.reserve(device, 4 * boxes)?.clone();
        let mut batch = std::mem::take(&mut self.batch);
        batch.clear(&rows, 4 * boxes);
        for tests in self.pieces(arranged.tests) {
            let params = prepared.params.piece(tests, &prepared.rows(), 0);
            let kernel = &prepared.kernels.count_rows;
            self.make_tests(&mut batch, prepared, params, kernel, &[(12, &rows)])?;
            batch.submit(device)?;
        }
        batch.submit(device)?;
        self.batch = batch;
        self.memory.rows.read(device, boxes)
    }

    /// Returns the ranges of tests of launches.
    fn pieces(&self, tests: u64) -> impl Iterator<Item = Range<u64>> + use<> {
        let piece = self.piece_tests;
        (0..tests.div_ceil(piece)).map(move |i| i * piece..tests.min((i + 1) * piece))
    }

    /// Launches a kernel that makes tests.
    fn make_tests(
        &mut self,
        batch: &mut Batch,
        prepared: &Prepared,
        params: Params,
        kernel: &Kernel,
        output: &[(u32, &Buffer)],
    ) -> Result<()> {
        let device = self.gpu.device();
        let mut buffers = vec![
            (2, self.keys.reserve(device, 0)?),
            (4, self.memory.entries.reserve(device, 0)?),
            (5, self.memory.names.reserve(device, 0)?),
            (8, self.memory.starts.reserve(device, 0)?),
            (9, &prepared.lists[1]),
            (10, self.counters.reserve(device, 0)?),
        ];
        buffers.extend_from_slice(output);
        let shares = params.tests.div_ceil(WORKGROUP * SWEEP_ITEMS);
        batch.step(device, kernel, params, &buffers, shares)
    }

    /// Puts the pairs that were found in order. All are stored, and there is at least one.
    pub(super) fn order(&mut self, count: u64, index_bits: u32) -> Result<Option<ReportDownload>> {
        let gpu = self.gpu.clone();
        let mut batch = std::mem::take(&mut self.batch);
        self.order_pairs(&mut batch, count, index_bits)?;
        batch.submit(gpu.device())?;
        self.batch = batch;
        self.pair_scratch.report(gpu.sorter())
    }

    /// Puts the pairs in order that are found, at most this many.
    pub(super) fn order_pairs(
        &mut self,
        batch: &mut Batch,
        max: u64,
        index_bits: u32,
    ) -> Result<()> {
        let gpu = self.gpu.clone();
        let (device, sorter) = (gpu.device(), gpu.sorter());
        let (found, ordered) = (
            self.memory.pairs.reserve(device, max * PAIR_BYTES)?,
            self.memory.ordered.reserve(device, max * PAIR_BYTES)?,
        );
        let counters = self.counters.reserve(device, 16)?;
        let scratch = self
            .pair_scratch
            .reserve::<u64>(sorter, max, Payload::None)?;
        let (state, _) = scratch.outcome();
        let (bits, lists) = (2 * index_bits, [found, ordered, counters, state]);
        let sort = self.pair_sort.get(max, bits, &lists, || {
            let request = Request::<u64>::keys(max, found, ordered).counted(counters, 0);
            let options = SortOptions::new().bits(0..bits);
            Ok(sorter.prepare(&request, scratch, &options)?)
        })?;
        batch.sort(sort);
        Ok(())
    }

    /// Returns the buffer of the pairs in order, packed.
    pub(super) const fn ordered(&self) -> Option<&Buffer> {
        self.memory.ordered.buffer()
    }

    /// Returns the numbers of pairs and tests, and that of copies in the second half of a buffer.
    pub(super) const fn counts(&self) -> [Option<&Buffer>; 2] {
        [self.counters.buffer(), self.copied.buffer()]
    }

    /// Reads the pairs that were put in order.
    pub(super) fn read_pairs(
        &mut self,
        PackedList { pairs, index_bits }: PackedList,
        clock: &mut Clock,
    ) -> Result<Vec<Pair>> {
        let packed: Vec<u64> = self.memory.ordered.read(self.gpu.device(), pairs)?;
        let mask = (1 << index_bits) - 1;
        let unpack = |&key: &u64| Pair {
            a: (key >> index_bits) as u32,
            b: (key & mask) as u32,
        };
        let pairs = try_alloc::gather(packed.par_iter().map(unpack))?;
        clock.lap(|timings| &mut timings.download);
        Ok(pairs)
    }
}

/// Numbers what the entries have: `starts` are the sums of the `counts` before, and `total` has the
/// sum of all. Each workgroup has left its sum in `sums`.
fn number(
    device: &Device,
    batch: &mut Batch,
    prepared: &Prepared,
    [counts, sums, starts, total]: [&Buffer; 4],
) -> Result<()> {
    let (params, kernels) = (prepared.params, &prepared.kernels);
    let (scanned, placed) = (
        [(7, sums), (10, total)],
        [(6, counts), (7, sums), (8, starts)],
    );
    let groups = params.entries.div_ceil(WORKGROUP);
    batch.step(device, &kernels.scan_sums, params, &scanned, 1)?;
    batch.step(device, &kernels.place_starts, params, &placed, groups)
}
