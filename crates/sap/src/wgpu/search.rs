//! A search for pairs on the device: what is uploaded, the launches, and what is read back.

use super::gpu::{Gpu, Kernels};
use super::input::{Input, Source, Tags};
use super::launch::{Step, launch, uniform};
use super::memory::{Grow, GrowScratch};
use super::params::Params;
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
use wgpu_device::Kernel;
use wgpu_device::wgpu::Buffer;

/// Boxes in sweep order on the device, ready for their tests.
pub(super) struct Arranged {
    boxes: u32,
    /// Whether they were copied into columns.
    pub(super) in_columns: bool,
    kernels: Arc<Kernels>,
    params: Params,
    tags: Buffer,
    pub(super) tests: u64,
    /// The report of the sort of boxes.
    pub(super) sort: ReportDownload,
}

impl Arranged {
    /// Returns the range of all rows: of all smaller indices.
    pub(super) fn rows(&self) -> Range<u32> {
        0..self.boxes
    }
}

/// Pairs that were counted, and stored on the device as far as there was room.
pub(super) struct Found {
    pub(super) count: u64,
    pub(super) capacity: u64,
}

/// The bytes of a pair on the device, and of its two copies during the sort.
const PAIR_BYTES: u64 = size_of::<u64>() as u64;

/// Searches one after the other, in memory that is kept.
pub(super) struct Search {
    gpu: Gpu,
    /// The max number of pairs of a list, which is sorted on the device.
    pub(super) max_list: u64,
    /// The max number of tests of a launch.
    pub(super) piece_tests: u64,
    boxes: Grow,
    tags: Grow,
    keys: Grow,
    order: Grow,
    entries: Grow,
    names: Grow,
    runs: Grow,
    sums: Grow,
    starts: Grow,
    counters: Grow,
    pairs: Grow,
    rows: Grow,
    box_scratch: GrowScratch,
    pair_scratch: GrowScratch,
}

impl Search {
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
            keys: Grow::new("keys of boxes"),
            order: Grow::new("order of boxes"),
            entries: Grow::new("boxes in sweep order"),
            names: Grow::new("indices in sweep order"),
            runs: Grow::new("tests of each box"),
            sums: Grow::new("sums of tests"),
            starts: Grow::new("first test of each box"),
            counters: Grow::new("counters"),
            pairs: Grow::new("pairs"),
            rows: Grow::new("pairs of each box"),
            box_scratch: GrowScratch::default(),
            pair_scratch: GrowScratch::default(),
            gpu,
        }
    }

    pub(super) fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Returns the number of pairs that there is room for.
    pub(super) fn room(&self) -> u64 {
        self.pairs.room() / PAIR_BYTES
    }

    /// Uploads boxes that are on the host, sorts them along the axis, in columns if there are cuts,
    /// and counts their tests. There is at least one box.
    pub(super) fn arrange(&mut self, input: &Input, clock: &mut Clock) -> Result<Arranged> {
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
        clock.lap(|timings| &mut timings.upload);
        let all = Params::new(input, &tags);
        let copied = if input.is_cut() {
            self.copy_boxes(&all, &lists, max_copies(input.len()))?
        } else {
            None
        };
        let is_wide = copied.is_some() || input.has_worlds();
        let kernels = gpu.kernels(if is_wide { Bits64 } else { Bits32 })?;
        let (params, sort) = match copied {
            Some(params) => {
                let sort = self.sort::<u64>(&kernels, &params, &lists, Payload::U32)?;
                (params, sort)
            }
            None if is_wide => (
                all,
                self.sort::<u64>(&kernels, &all, &lists, Payload::Index)?,
            ),
            None => (
                all,
                self.sort::<u32>(&kernels, &all, &lists, Payload::Index)?,
            ),
        };
        let tests = self.read_tests()?;
        clock.lap(|timings| &mut timings.sort);
        let [_, tags] = lists;
        Ok(Arranged {
            boxes: all.entries,
            in_columns: copied.is_some(),
            kernels,
            params,
            tags,
            tests,
            sort,
        })
    }

    /// Returns what `scan_sums` has counted.
    fn read_tests(&mut self) -> Result<u64> {
        let counters: Vec<u64> = self.counters.read(self.gpu.device(), 2)?;
        Ok(counters.get(1).copied().unwrap_or(0))
    }

    /// Copies boxes into columns, and returns the parameters of the copies. Returns None if they
    /// would be more than `max`.
    fn copy_boxes(
        &mut self,
        all: &Params,
        [boxes, tags]: &[Buffer; 2],
        max: u64,
    ) -> Result<Option<Params>> {
        let gpu = self.gpu.clone();
        let device = gpu.device();
        let kernels = gpu.kernels(Bits64)?;
        let Some(columns) = &kernels.columns else {
            return Ok(None);
        };
        let n = u64::from(all.entries);
        let groups = all.entries.div_ceil(WORKGROUP);
        let uniform = uniform(device, *all)?;
        let step = |kernel, buffers: &[(u32, &Buffer)], groups| {
            Step::new(device, kernel, &uniform, buffers, groups)
        };
        let (counts, sums) = (
            self.runs.reserve(device, 4 * n)?,
            self.sums.reserve(device, 8 * u64::from(groups))?,
        );
        let (starts, counters) = (
            self.starts.reserve(device, 8 * n)?.clone(),
            self.counters.reserve(device, 16)?,
        );
        let mut encoder = device.encoder("columns")?;
        let counted = [(1, boxes), (6, counts), (7, sums), (9, tags)];
        let placed = [(6, counts), (7, sums), (8, &starts)];
        launch(
            &mut encoder,
            &[
                step(&columns.count_copies, &counted, groups)?,
                step(&kernels.scan_sums, &[(7, sums), (10, counters)], 1)?,
                step(&kernels.place_starts, &placed, groups)?,
            ],
        );
        device.submit(encoder)?;
        let copies = self.read_tests()?;
        // A copy takes as much of a binding as a pair.
        if copies > max.min(self.max_list) {
            return Ok(None);
        }
        let keys = self.keys.reserve(device, 8 * copies)?;
        let order = self.order.reserve(device, 4 * copies)?;
        let made = [(1, boxes), (2, keys), (3, order), (8, &starts), (9, tags)];
        let mut encoder = device.encoder("copies")?;
        launch(&mut encoder, &[step(&columns.make_copies, &made, groups)?]);
        device.submit(encoder)?;
        Ok(Some(all.of_copies(copies as u32)))
    }

    /// Sorts boxes by keys of a type, or their copies with a payload, and numbers the tests.
    fn sort<K: Key>(
        &mut self,
        kernels: &Kernels,
        params: &Params,
        [boxes, tags]: &[Buffer; 2],
        payload: Payload,
    ) -> Result<ReportDownload> {
        let gpu = self.gpu.clone();
        let (device, sorter) = (gpu.device(), gpu.sorter());
        let n = u64::from(params.entries);
        let groups = params.entries.div_ceil(WORKGROUP);
        let scratch = self.box_scratch.reserve::<K>(sorter, n, payload)?;
        let keys = self.keys.reserve(device, n * size_of::<K>() as u64)?;
        let order = self.order.reserve(device, 4 * n)?;
        let (entries, names) = (
            self.entries.reserve(device, 16 * n)?,
            self.names.reserve(device, 8 * n)?,
        );
        let (runs, sums) = (
            self.runs.reserve(device, 4 * n)?,
            self.sums.reserve(device, 8 * u64::from(groups))?,
        );
        let starts = self.starts.reserve(device, 8 * n)?;
        let counters = self.counters.reserve(device, 16)?;
        let uniform = uniform(device, *params)?;
        let mut encoder = device.encoder("arrange")?;
        let step = |kernel, buffers: &[(u32, &Buffer)], groups| {
            Step::new(device, kernel, &uniform, buffers, groups)
        };
        let request = if payload == Payload::Index {
            let mut read = vec![(1, boxes), (2, keys)];
            if K::BITS == u64::BITS {
                read.push((9, tags));
            }
            launch(&mut encoder, &[step(&kernels.make_keys, &read, groups)?]);
            Request::<K>::index(n, keys, order).keys_out(keys)
        } else {
            Request::<K>::keys(n, keys, keys).values(order, order)
        };
        sorter.encode(&mut encoder, request, scratch, &SortOptions::new())?;
        let arranged = [
            (1, boxes),
            (2, keys),
            (3, order),
            (4, entries),
            (5, names),
            (6, runs),
            (7, sums),
        ];
        let placed = [(6, runs), (7, sums), (8, starts)];
        launch(
            &mut encoder,
            &[
                step(&kernels.arrange, &arranged, groups)?,
                step(&kernels.scan_sums, &[(7, sums), (10, counters)], 1)?,
                step(&kernels.place_starts, &placed, groups)?,
            ],
        );
        device.submit(encoder)?;
        Ok(sorter.download_report(scratch)?)
    }

    /// Makes all tests, counts the pairs with their smaller index in `rows`, and stores them as far
    /// as there is room.
    pub(super) fn find(
        &mut self,
        arranged: &Arranged,
        rows: &Range<u32>,
        capacity: u64,
    ) -> Result<Found> {
        let gpu = self.gpu.clone();
        let device = gpu.device();
        let counters = self.counters.reserve(device, 16)?;
        let mut encoder = device.encoder("clear")?;
        encoder.clear_buffer(counters, 0, Some(PAIR_BYTES));
        device.submit(encoder)?;
        let counters = counters.clone();
        let pairs = self.pairs.reserve(device, capacity * PAIR_BYTES)?.clone();
        let outputs = [(10, &counters), (11, &pairs)];
        self.make_tests(arranged, &arranged.kernels.find, &outputs, |tests| {
            arranged.params.piece(tests, rows, capacity)
        })?;
        let counts: Vec<u64> = self.counters.read(device, 1)?;
        Ok(Found {
            count: counts.first().copied().unwrap_or(0),
            capacity,
        })
    }

    /// Makes all tests, and returns the number of pairs of each smaller index.
    pub(super) fn count_rows(&mut self, arranged: &Arranged) -> Result<Vec<u32>> {
        let gpu = self.gpu.clone();
        let device = gpu.device();
        let boxes = u64::from(arranged.boxes);
        let rows = self.rows.reserve(device, 4 * boxes)?.clone();
        let mut encoder = device.encoder("clear")?;
        encoder.clear_buffer(&rows, 0, None);
        device.submit(encoder)?;
        let kernel = &arranged.kernels.count_rows;
        self.make_tests(arranged, kernel, &[(12, &rows)], |tests| {
            arranged.params.piece(tests, &arranged.rows(), 0)
        })?;
        self.rows.read(device, boxes)
    }

    /// Launches a kernel for all tests, piece by piece.
    fn make_tests(
        &mut self,
        arranged: &Arranged,
        kernel: &Kernel,
        outputs: &[(u32, &Buffer)],
        params: impl Fn(Range<u64>) -> Params,
    ) -> Result<()> {
        let device = self.gpu.device();
        let mut buffers = vec![
            (2, self.keys.reserve(device, 0)?),
            (4, self.entries.reserve(device, 0)?),
            (5, self.names.reserve(device, 0)?),
            (8, self.starts.reserve(device, 0)?),
            (9, &arranged.tags),
        ];
        buffers.extend_from_slice(outputs);
        let mut first = 0;
        while first < arranged.tests {
            let end = arranged.tests.min(first + self.piece_tests);
            let shares = (end - first).div_ceil(u64::from(WORKGROUP * SWEEP_ITEMS));
            let uniform = uniform(device, params(first..end))?;
            let step = Step::new(device, kernel, &uniform, &buffers, shares as u32)?;
            let mut encoder = device.encoder("tests")?;
            launch(&mut encoder, &[step]);
            device.submit(encoder)?;
            first = end;
        }
        Ok(())
    }

    /// Puts the pairs that were found in order. All are stored, and there is at least one.
    pub(super) fn order(&mut self, count: u64) -> Result<ReportDownload> {
        let gpu = self.gpu.clone();
        let (device, sorter) = (gpu.device(), gpu.sorter());
        let pairs = self.pairs.reserve(device, count * PAIR_BYTES)?;
        let scratch = self
            .pair_scratch
            .reserve::<u64>(sorter, count, Payload::None)?;
        let mut encoder = device.encoder("order")?;
        let request = Request::<u64>::keys(count, pairs, pairs);
        sorter.encode(&mut encoder, request, scratch, &SortOptions::new())?;
        device.submit(encoder)?;
        Ok(sorter.download_report(scratch)?)
    }

    /// Returns the buffer of the pairs that were found, the larger index of each first.
    pub(super) const fn found(&self) -> Option<&Buffer> {
        self.pairs.buffer()
    }

    /// Reads the pairs that were put in order.
    pub(super) fn read_pairs(&mut self, count: u64, clock: &mut Clock) -> Result<Vec<Pair>> {
        let words: Vec<[u32; 2]> = self.pairs.read(self.gpu.device(), count)?;
        let pairs = try_alloc::gather(words.par_iter().map(|&[b, a]| Pair { a, b }))?;
        clock.lap(|timings| &mut timings.download);
        Ok(pairs)
    }
}
