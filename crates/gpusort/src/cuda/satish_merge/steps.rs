//! The launches of a merge sort in their fixed order, whatever is sorted.

use super::plan::{Level, Plan, RANK_THREADS, Tile};
use crate::Result;
use crate::cuda::context::Context;
use bytemuck::Pod;
use gpu::{ByValue, Kernel, Launch, Stream};

/// The kernels of one kind of sort.
#[derive(Debug, Clone)]
pub(super) struct Kernels {
    pub tile: Kernel,
    pub rank: Kernel,
    pub pieces: Kernel,
    /// Bytes of shared memory of the tiles' kernel and of the pieces'.
    pub shared: [u32; 2],
}

/// What the arguments of a launch depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// The tiles: they read the input.
    pub first: bool,
    pub last: bool,
    /// Which buffers are read, but by the first, and written: 0 is the output, which the last step writes, 1 the spare ones.
    pub from: usize,
    pub to: usize,
    pub level: Level,
}

/// Sorts tiles, then merges pass by pass.
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
            let launch = Launch::linear(blocks as u32, threads).dynamic_shared(shared); // fewer blocks than elements
            // SAFETY: `A` is the kernels' struct; its buffers have `n` elements each, and the scratch regions the sizes that the kernels
            // count on.
            unsafe { stream.launch(kernel, &launch, &gpu::args![ByValue(args)]) }
        };
        if step.first {
            context.mark(stream, "tiles")?;
            launch(&kernels.tile, plan.tiles, tile.threads, kernels.shared[0])?;
        } else {
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
