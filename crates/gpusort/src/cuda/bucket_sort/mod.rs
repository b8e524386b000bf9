//! GPU Bucket Sort (Dehne and Zaboli 2010): the launches of `kernels/sort/bucket_sort.cu` in their
//! fixed order. Comments and stage names use the step numbers of the paper's Algorithm 1.
//!
//! # Departures from the paper
//!
//! Those that show in the launches; the head of the `.cu` file lists the others.
//!
//! - Step 4 sorts the samples in tiles and merges runs of tiles in pairs, one launch for each level
//!   of merges. The paper sorts them by a bitonic sort in global memory.
//! - Step 9 divides a bucket of several tiles by steps 4 to 7 once more, on chip, and merges the
//!   parts on chip. Only buckets of more than 32 tiles are merged in pairs as the samples are. The
//!   paper sorts every bucket by a bitonic sort in global memory.

mod plan;
mod tuning;

use super::context::Context;
use super::family::{Family, Shape, Task, measured, no_device_count};
use crate::{Algorithm, Result};
use gpu::{ByValue, DevicePtr, Kernel, Launch, Layout, SliceMut, Stream};
use plan::{Array, BucketArgs, EXACT, Plan, Regions, SortArgs, Tile, carve};
use radsweep_kernels::{self as images, Image};
use tuning::TILE_THREADS;

/// The family of Dehne and Zaboli 2010.
#[derive(Debug)]
pub(super) struct BucketSort;

/// For tests: returns the number of buckets among which `BucketSort` divides `n` keys; one if a
/// single tile holds them.
#[doc(hidden)]
#[must_use]
pub fn bucket_count<K: crate::Key>(n: u64, payload: super::Payload) -> u64 {
    let shape = Shape::new::<K>(n, payload);
    Plan::new(n, Tile::new(&shape, exact(&shape, Window::Full)), None).buckets
}

/// The bits of the keys that a sort compares.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Window {
    Full,
    Part,
}

/// Returns whether the ordered bits in the window determine the key. They do not for floats,
/// because -0.0 and +0.0 have the same ordered bits.
fn exact(shape: &Shape, window: Window) -> bool {
    window == Window::Full && !shape.key.is_float()
}

impl Family for BucketSort {
    fn limit(&self, _shape: &Shape) -> u64 {
        u32::MAX.into()
    }

    fn scratch_bytes(&self, shape: &Shape) -> Result<u64> {
        let bytes = |window| -> Result<u64> {
            let plan = plan(shape, exact(shape, window));
            measured(|layout| carve(layout, &plan, shape.value_bytes))
        };
        // The window is not known here.
        Ok(bytes(Window::Full)?.max(bytes(Window::Part)?))
    }

    fn tile_keys(&self, shape: &Shape) -> usize {
        Tile::new(shape, exact(shape, Window::Full)).keys() as usize
    }

    fn prepare(&self, context: &Context, shape: &Shape) -> Result<()> {
        for window in [Window::Full, Window::Part] {
            let tile = Tile::new(shape, exact(shape, window));
            Kernels::load(context, tile, shape.value_bytes)?;
        }
        Ok(())
    }

    fn sort(
        &self,
        context: &Context,
        stream: &Stream,
        task: &Task,
        scratch: SliceMut<'_, u8>,
    ) -> Result<()> {
        no_device_count(Algorithm::BucketSort, task)?;
        let (shape, order) = (&task.shape, task.order);
        let window = match (order.begin, order.end == shape.key.bits()) {
            (0, true) => Window::Full,
            _ => Window::Part,
        };
        let exact = exact(shape, window);
        let plan = plan(shape, exact);
        let regions = carve(&mut Layout::over(scratch)?, &plan, shape.value_bytes)?;
        let kernels = Kernels::load(context, plan.tile, shape.value_bytes)?;
        let sort = Sort {
            context,
            stream,
            task,
            plan,
            regions,
            kernels,
            exact,
        };
        sort.launch()
    }
}

fn plan(shape: &Shape, exact: bool) -> Plan {
    let buckets = if shape.large {
        Some(2)
    } else {
        shape.parameter
    };
    Plan::new(shape.n, Tile::new(shape, exact), buckets)
}

/// The kernels for one tile shape and one payload.
struct Kernels {
    /// `tile_sort` and `merge` for the keys.
    of_keys: [Kernel; 2],
    /// `tile_sort` and `merge` for the samples.
    of_samples: [Kernel; 2],
    split: Kernel,
    merge_part: Kernel,
    splitters: Kernel,
    index: Kernel,
    column_sums: Kernel,
    scan: Kernel,
    targets: Kernel,
    relocate: Kernel,
}

impl Kernels {
    fn load(context: &Context, tile: Tile, value_bytes: usize) -> Result<Self> {
        let image: &'static Image = if tile.key_bytes == 4 {
            &images::BUCKET_SORT_32
        } else {
            &images::BUCKET_SORT_64
        };
        let in_shared = |name, tile: Tile, shared_bytes| {
            let kind = if tile.indexed { "indexed" } else { "plain" };
            let name = format!("bucket_{name}_{kind}_{TILE_THREADS}x{}", tile.items());
            context.kernel(image, &name, shared_bytes)
        };
        let of_tile = |name, tile: Tile| in_shared(name, tile, tile.shared_bytes());
        let of_tiles =
            |tile| -> Result<_> { Ok([of_tile("tile_sort", tile)?, of_tile("merge", tile)?]) };
        let named = |name| context.kernel(image, name, 0);
        // Plain and indexed tiles share this kernel, so its shared memory is set for the larger of
        // the two.
        let plain = Tile {
            indexed: false,
            ..tile
        };
        let index = context.kernel(image, "bucket_index", sublist_bytes(plain))?;
        Ok(Self {
            of_keys: of_tiles(tile)?,
            of_samples: of_tiles(tile.of_samples())?,
            split: in_shared("split", tile, tile.of_samples().shared_bytes())?,
            merge_part: of_tile("merge_part", tile)?,
            splitters: named("bucket_splitters")?,
            index,
            column_sums: named("bucket_column_sums")?,
            scan: named("bucket_scan")?,
            targets: named("bucket_targets")?,
            relocate: named(&format!("bucket_relocate_{value_bytes}"))?,
        })
    }
}

/// Returns the bytes of a sublist's keys.
fn sublist_bytes(tile: Tile) -> u32 {
    tile.keys() as u32 * tile.key_bytes as u32
}

// Threads of a block, as in bucket_sort.cu.
const SPLITTER_THREADS: u32 = 256;
const COLUMN_THREADS: u32 = 256;
const SCAN_THREADS: u32 = 1024;

/// The state of one sort.
struct Sort<'a> {
    context: &'a Context,
    stream: &'a Stream,
    task: &'a Task,
    plan: Plan,
    regions: Regions,
    kernels: Kernels,
    exact: bool,
}

impl Sort<'_> {
    fn launch(&self) -> Result<()> {
        let (task, regions) = (self.task, &self.regions);
        let input = Array {
            keys: task.keys_in,
            values: task.values_in,
        };
        let output = Array {
            keys: task.keys_out,
            values: task.values_out,
        };
        // Steps 1 to 3: split into sublists of a tile, local sort, local sampling.
        let args = self.sort_args(self.plan.n, input, [output; 2]);
        self.mark("steps 1 to 3: local sort")?;
        if self.plan.buckets == 1 {
            let args = SortArgs {
                outcome: regions.outcome,
                flags: args.flags | task.flags(),
                ..args
            };
            return self.sort_tiles(&args, 1, self.plan.tile);
        }
        let args = SortArgs {
            to: [regions.temp; 2],
            samples: regions.samples[0].keys,
            ..args
        };
        self.sort_tiles(&args, self.plan.sublists, self.plan.tile)?;
        self.sort_samples()?;
        self.divide(output)?;

        self.sort_buckets(output)
    }

    /// Step 9: sorts each bucket.
    fn sort_buckets(&self, output: Array) -> Result<()> {
        self.mark("step 9: bucket sort")?;
        let (plan, regions) = (&self.plan, &self.regions);
        let (tile, tiles) = (plan.tile, plan.bucket_tiles());
        let args = self.sort_args(plan.n, output, [output, regions.temp]);
        let args = SortArgs {
            begins: regions.begins,
            first_tiles: regions.first_tiles,
            piece_of_tile: regions.piece_of_tile,
            bucket_count: plan.buckets as u32,
            flags: args.flags | self.task.flags(),
            ..args
        };
        let Some(spacing) = plan.part_spacing() else {
            self.sort_tiles(&args, tiles, tile)?;
            return self.merge(&args, tiles, plan.bucket_levels(), tile);
        };
        if spacing == 1 {
            return self.sort_tiles(&args, tiles, tile);
        }
        let args = SortArgs {
            samples: regions.part_samples,
            bucket_of_part: regions.bucket_of_part,
            part_starts: regions.part_starts,
            spacing: spacing as u32,
            ..args
        };
        self.sort_tiles(&args, tiles, tile)?;
        let split = tile_launch(plan.buckets, tile.of_samples());
        let merge = tile_launch(plan.parts(), tile);
        // SAFETY: `SortArgs` is the kernels' struct, with the buffers of `sort_tiles`; the regions
        // of the parts have the sizes of `carve`, which the plan's tests show to suffice.
        unsafe {
            let args = ByValue(args);
            self.stream
                .launch(&self.kernels.split, &split, &gpu::args![args])?;
            self.stream
                .launch(&self.kernels.merge_part, &merge, &gpu::args![args])?;
        }
        Ok(())
    }

    /// Step 4: sorts all samples, in tiles and then by pairwise merges.
    fn sort_samples(&self) -> Result<()> {
        self.mark("step 4: sort of the samples")?;
        let (samples, tile) = (self.plan.samples(), self.plan.tile.of_samples());
        let arrays = self.regions.samples;
        let unnumbered = Array {
            values: DevicePtr::NULL,
            ..arrays[0]
        };
        let args = SortArgs {
            value_bytes: 4,
            levels: self.plan.sample_levels(),
            ..self.sort_args(samples, unnumbered, arrays)
        };
        let tiles = samples.div_ceil(tile.keys());
        self.sort_tiles(&args, tiles, tile)?;
        self.merge(&args, tiles, args.levels, tile)
    }

    /// Steps 5 to 8: divides the sorted sublists among the buckets.
    fn divide(&self, output: Array) -> Result<()> {
        let (plan, regions, kernels) = (&self.plan, &self.regions, &self.kernels);
        let (group_rows, groups) = plan.groups();
        let (sublists, buckets) = (plan.sublists as u32, plan.buckets as u32);
        let args = ByValue(BucketArgs {
            sorted: regions.temp,
            buckets: output,
            samples: regions.samples[0].keys,
            sample_numbers: regions.samples[0].values,
            splitters: regions.splitters,
            splitter_places: regions.splitter_places,
            locations: regions.locations,
            targets: regions.targets,
            group_sums: regions.group_sums,
            begins: regions.begins,
            first_tiles: regions.first_tiles,
            piece_of_tile: regions.piece_of_tile,
            outcome: regions.outcome,
            n: plan.n,
            sample_count: plan.samples(),
            order: self.task.order,
            sublists,
            bucket_count: buckets,
            tile: plan.tile.keys() as u32,
            spacing: plan.spacing as u32,
            group_rows: group_rows as u32,
            groups: groups as u32,
        });
        let launch = |kernel: &Kernel, launch: Launch, args: &[gpu::Arg<'_>]| -> Result<()> {
            // SAFETY: `BucketArgs` is the kernels' struct; its arrays have `n` elements each, as a
            // `Task` promises, and the scratch regions the sizes of `carve`.
            unsafe { Ok(self.stream.launch(kernel, &launch, args)?) }
        };
        self.mark("step 5: global samples")?;
        let blocks = buckets.div_ceil(SPLITTER_THREADS);
        let shape = Launch::linear(blocks, SPLITTER_THREADS);
        launch(&kernels.splitters, shape, &gpu::args![args])?;

        self.mark("step 6: sample indexing")?;
        let by_sublist = Launch::linear(sublists, TILE_THREADS);
        let shape = by_sublist.dynamic_shared(sublist_bytes(plan.tile));
        launch(&kernels.index, shape, &gpu::args![args])?;

        self.mark("step 7: prefix sum")?;
        let blocks = (buckets.div_ceil(COLUMN_THREADS), groups as u32, 1);
        let columns = Launch::new(blocks, (COLUMN_THREADS, 1, 1));
        launch(&kernels.column_sums, columns, &gpu::args![args])?;
        let (tile, max_tiles) = (plan.tile.keys() as u32, plan.bucket_tiles() as u32);
        let one = Launch::linear(1, SCAN_THREADS);
        launch(&kernels.scan, one, &gpu::args![args, tile, max_tiles])?;
        launch(&kernels.targets, columns, &gpu::args![args])?;

        self.mark("step 8: relocation")?;
        launch(&kernels.relocate, by_sublist, &gpu::args![args])
    }

    fn sort_args(&self, n: u64, from: Array, to: [Array; 2]) -> SortArgs {
        SortArgs {
            from,
            to,
            begins: DevicePtr::NULL,
            first_tiles: DevicePtr::NULL,
            piece_of_tile: DevicePtr::NULL,
            samples: DevicePtr::NULL,
            outcome: DevicePtr::NULL,
            bucket_of_part: DevicePtr::NULL,
            part_starts: DevicePtr::NULL,
            n,
            order: self.task.order,
            spacing: self.plan.spacing as u32,
            levels: 0,
            value_bytes: self.task.shape.value_bytes as u32,
            flags: if self.exact { EXACT } else { 0 },
            bucket_count: 0,
            unused: 0,
        }
    }

    fn sort_tiles(&self, args: &SortArgs, tiles: u64, tile: Tile) -> Result<()> {
        let [kernel, _] = self.kernels_of(tile);
        let launch = tile_launch(tiles, tile);
        // SAFETY: `SortArgs` is the kernels' struct; its arrays have `n` elements each; earlier
        // steps wrote the pieces.
        unsafe {
            Ok(self
                .stream
                .launch(kernel, &launch, &gpu::args![ByValue(*args)])?)
        }
    }

    /// Merges the runs that `sort_tiles` left in pairs, level by level, until each piece is one
    /// run.
    fn merge(&self, args: &SortArgs, tiles: u64, levels: u32, tile: Tile) -> Result<()> {
        let [_, kernel] = self.kernels_of(tile);
        let launch = tile_launch(tiles, tile);
        for level in 0..levels {
            // SAFETY: `SortArgs` is the kernels' struct, with the buffers that `sort_tiles` wrote.
            unsafe {
                self.stream
                    .launch(kernel, &launch, &gpu::args![ByValue(*args), level])?;
            }
        }
        Ok(())
    }

    fn kernels_of(&self, tile: Tile) -> &[Kernel; 2] {
        if tile == self.plan.tile {
            &self.kernels.of_keys
        } else {
            &self.kernels.of_samples
        }
    }

    fn mark(&self, stage: &'static str) -> Result<()> {
        self.context.mark(self.stream, stage)
    }
}

/// Returns a launch of one block for each tile. Within `limit` there are fewer tiles than a launch
/// may have blocks.
fn tile_launch(tiles: u64, tile: Tile) -> Launch {
    Launch::linear(tiles as u32, TILE_THREADS).dynamic_shared(tile.shared_bytes())
}
