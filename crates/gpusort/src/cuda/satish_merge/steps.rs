//! The launches of a merge sort in their fixed order, for every kind of element.
//!
//! The steps are those of Satish, Harris and Garland 2009, §IV:
//!
//! - `tile`: steps 1 and 2, divide the input into tiles and sort each on chip;
//! - `rank` and `pieces`: step 3, merge. Once for each pass, `rank` ranks the splitters in all
//!   runs, and `pieces` merges between splitters (§IV.A). A pass merges up to eight runs to one,
//!   where the paper merges two.

use super::plan::{Level, Plan, Tile};
use super::tuning::RANK_THREADS;
use crate::Result;
use crate::cuda::context::Context;
use bytemuck::Pod;
use gpu::{ByValue, Kernel, Launch, Stream};

/// The kernels for one kind of element.
#[derive(Debug, Clone)]
pub(super) struct Kernels {
    pub tile: Kernel,
    pub rank: Kernel,
    pub pieces: Kernel,
    /// Bytes of shared memory of `tile` and of `pieces`.
    pub shared: [u32; 2],
}

/// The properties of a launch that determine its arguments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// Whether this is the launch that sorts the tiles, which reads the input.
    pub first: bool,
    /// Whether this is the last launch.
    pub last: bool,
    /// The buffer that is read, unless `first`: 0 is the output, 1 the spare buffer.
    pub from: usize,
    /// The buffer that is written. The last launch writes the output.
    pub to: usize,
    pub level: Level,
}

/// Launches a sort: the tiles, then the merges pass by pass.
pub(super) fn run<A: Pod>(
    context: &Context,
    stream: &Stream,
    kernels: &Kernels,
    (plan, tile): (&Plan, Tile),
    args: impl Fn(&Step) -> A,
) -> Result<()> {
    let steps = plan.levels.len();
    for number in 0..=steps {
        let to = (steps - number) % 2;
        let step = Step {
            first: number == 0,
            last: number == steps,
            from: 1 - to,
            to,
            level: match number {
                0 => Level::default(),
                _ => plan.levels[number - 1],
            },
        };
        let args = args(&step);
        let launch = |kernel: &Kernel, blocks: u64, threads: u32, shared: u32| {
            // There are fewer blocks than elements, so the cast loses nothing.
            let launch = Launch::linear(blocks as u32, threads).dynamic_shared(shared);
            // SAFETY: `A` is the kernels' struct; its buffers have `n` elements each, and the
            // scratch regions have the sizes that the kernels count on.
            unsafe { stream.launch(kernel, &launch, &gpu::args![ByValue(args)]) }
        };
        if step.first {
            // Satish et al. §IV, steps 1 and 2: sort tiles.
            context.mark(stream, "tiles")?;
            launch(&kernels.tile, plan.tiles, tile.threads, kernels.shared[0])?;
        } else {
            // Satish et al. §IV, step 3: merge; §IV.A ranks splitters first.
            context.mark(stream, "splitters")?;
            launch(
                &kernels.rank,
                plan.rank_blocks(&step.level),
                RANK_THREADS,
                0,
            )?;
            context.mark(stream, "merge")?;
            let blocks = plan.blocks(&step.level);
            launch(&kernels.pieces, blocks, tile.threads, kernels.shared[1])?;
        }
    }
    Ok(())
}
