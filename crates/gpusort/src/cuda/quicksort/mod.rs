//! GPU-Quicksort (Cederman and Tsigas 2009): the launches of `kernels/sort/quicksort.cu` in their
//! fixed order.
//!
//! Phase one launches its three kernels once for each level:
//!
//! - `pivots` chooses the pivots of each sequence (Algorithm 1);
//! - `count` counts the keys of each class and allocates their output (Algorithm 2, first pass);
//! - `moved` moves the keys (Algorithm 2, second pass).
//!
//! Phase two has two kernels:
//!
//! - `alone` partitions what phase one left too long, one block for each sequence (Algorithm 3);
//! - `leaves` sorts short sequences on chip.
//!
//! # Departures from the paper
//!
//! Those that the host decides; the head of the `.cu` file lists the others.
//!
//! - Phase one runs a fixed number of levels, which `tuning.rs` computes from the number of keys.
//!   The paper repeats it until there are *maxseq* sequences, which its host counts after each
//!   level. Here the lists stay on the device; a level without sequences ends at once, and a
//!   sequence that is still too long after the last level is left to phase two.
//! - A level has up to 31 pivots, taken from a sample of 1024 keys, in place of one pivot. This
//!   makes phase one a sample sort by family, and *maxseq* sets only the length above which it
//!   partitions.

mod layout;
mod tuning;

use super::context::Context;
use super::family::{Family, Shape, Task, measured};
use crate::{KeyType, Result};
use gpu::{ByValue, Kernel, Launch, Layout, SliceMut, Stream};
use layout::{Args, Sizes, carve};
use radsweep_kernels as images;
use tuning::{PIVOTS_THREADS, THREADS};

/// The family of Cederman and Tsigas 2009.
#[derive(Debug)]
pub(super) struct Quicksort;

impl Family for Quicksort {
    /// Indices have 32 bits, and loops may step one tile beyond the last key.
    fn limit(&self, _shape: &Shape) -> u64 {
        (1 << 32) - (1 << 16)
    }

    fn scratch_bytes(&self, shape: &Shape) -> Result<u64> {
        measured(|layout| carve(layout, &Sizes::new(shape)))
    }

    /// Returns the keys of a leaf, the sequence that is sorted on chip.
    fn tile_keys(&self, shape: &Shape) -> usize {
        Sizes::new(shape).shape.leaf() as usize
    }

    fn prepare(&self, context: &Context, shape: &Shape) -> Result<()> {
        Kernels::load(context, &Sizes::new(shape), shape.key).map(drop)
    }

    fn sort(
        &self,
        context: &Context,
        stream: &Stream,
        task: &Task,
        scratch: SliceMut<'_, u8>,
    ) -> Result<()> {
        let sizes = Sizes::new(&task.shape);
        let kernels = Kernels::load(context, &sizes, task.shape.key)?;
        let regions = carve(&mut Layout::over(scratch)?, &sizes)?;
        let args = Args {
            keys: [task.keys_in, task.keys_out, regions.keys.device_ptr()],
            values: [task.values_in, task.values_out, regions.values.device_ptr()],
            header: regions.header.device_ptr(),
            sequences: [
                regions.sequences[0].device_ptr(),
                regions.sequences[1].device_ptr(),
            ],
            bounds: regions.bounds.device_ptr(),
            section_sequence: regions.section_sequence.device_ptr(),
            offsets: regions.offsets.device_ptr(),
            shorts: regions.shorts.device_ptr(),
            done: regions.done.device_ptr(),
            device_count: task.device_count,
            n: sizes.n,
            order: task.order,
            levels: sizes.levels,
            min_length: sizes.min_length,
            section: sizes.section,
            flags: task.flags(),
        };
        let multiprocessors = context.device.info().multiprocessors;
        let args = ByValue(args);
        let launch = |kernel: &Kernel, launch: Launch, args: &[gpu::Arg<'_>]| -> Result<()> {
            // SAFETY: `Args` is the kernels' struct; its buffers have `n` elements each, as a
            // `Task` promises, and the scratch regions the sizes that the kernels count on.
            unsafe { stream.launch(kernel, &launch, args)? };
            Ok(())
        };

        // Phase one, Algorithms 1 and 2: a level at a time.
        let (mut sequences, blocks) = (1_u64, u64::from(multiprocessors) * 4);
        let section_blocks = sizes.sections().min(2 * blocks) as u32;
        let sections = |shared| Launch::linear(section_blocks, THREADS).dynamic_shared(shared);
        for level in 0..sizes.levels.max(1) {
            let level_args = gpu::args![args, level];
            let [pivots, count, moved] = STAGES[level as usize];
            context.mark(stream, pivots)?;
            let at_once = Launch::linear(sequences.min(blocks) as u32, PIVOTS_THREADS);
            launch(&kernels.pivots, at_once, &level_args)?;
            if sizes.levels == 0 {
                break; // `pivots` has started the lists, which is all phase one is needed for
            }
            context.mark(stream, count)?;
            launch(
                &kernels.count,
                sections(sizes.partition_shared(0)),
                &level_args,
            )?;
            context.mark(stream, moved)?;
            launch(
                &kernels.moved,
                sections(sizes.partition_shared(sizes.value_bytes)),
                &level_args,
            )?;
            sequences = (sequences * 32).min(sizes.sequences());
        }
        // Phase two, Algorithm 3: first the sequences that are too long for a leaf.
        let leaves = sizes.leaves();
        let blocks =
            |a_multiprocessor| leaves.min(u64::from(multiprocessors * a_multiprocessor)) as u32;
        if leaves > 1 {
            context.mark(stream, "alone")?;
            let alone = Launch::linear(blocks(2), THREADS).dynamic_shared(sizes.alone_shared());
            launch(&kernels.alone, alone, &gpu::args![args])?;
        }
        context.mark(stream, "leaves")?;
        let all = Launch::linear(blocks(16), THREADS).dynamic_shared(sizes.leaf_shared());
        launch(&kernels.leaves, all, &gpu::args![args])
    }
}

/// The names of the stages of phase one, by level.
const STAGES: [[&str; 3]; 8] = [
    ["pivots 1", "count 1", "move 1"],
    ["pivots 2", "count 2", "move 2"],
    ["pivots 3", "count 3", "move 3"],
    ["pivots 4", "count 4", "move 4"],
    ["pivots 5", "count 5", "move 5"],
    ["pivots 6", "count 6", "move 6"],
    ["pivots 7", "count 7", "move 7"],
    ["pivots 8", "count 8", "move 8"],
];

/// The kernels of one key type and one value size.
struct Kernels {
    pivots: Kernel,
    count: Kernel,
    moved: Kernel,
    alone: Kernel,
    leaves: Kernel,
}

impl Kernels {
    fn load(context: &Context, sizes: &Sizes, key: KeyType) -> Result<Self> {
        let image = match sizes.key_bytes {
            4 => &images::QUICKSORT_32,
            _ => &images::QUICKSORT_64,
        };
        let kind = match key {
            KeyType::F32 | KeyType::F64 => "float",
            _ => "integer",
        };
        let (value, shape) = (sizes.value_bytes, sizes.shape);
        let shape = format!("{THREADS}x{}x{}", shape.tile_items, shape.leaf_items);
        let load = |name: String, shared| context.kernel(image, &format!("{name}_{shape}"), shared);
        Ok(Self {
            pivots: load(format!("quicksort_pivots_{kind}"), 0)?,
            count: load(format!("quicksort_count_{kind}"), sizes.partition_shared(0))?,
            moved: load(
                format!("quicksort_move_{kind}_{value}"),
                sizes.partition_shared(value),
            )?,
            alone: load(
                format!("quicksort_alone_{kind}_{value}"),
                sizes.alone_shared(),
            )?,
            leaves: load(
                format!("quicksort_leaves_{kind}_{value}"),
                sizes.leaf_shared(),
            )?,
        })
    }
}
