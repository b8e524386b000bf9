//! Four-way and eight-way radix sort (Ha, Krüger and Silva 2009): the launches of
//! `kernels/sort/ha_radix.cu`.
//!
//! A sort launches three kernels:
//!
//! - `start`: order check on the leading √n keys (§4.2, Algorithm 3);
//! - `sort`: all passes (Algorithm 1). Its even phases count (§4.3, §4.4), its odd phases shuffle
//!   and map (§4.5, §4.6, Algorithms 2 and 4 to 6);
//! - `copy`: copies the keys to the output if the passes ended elsewhere.
//!
//! # Departures from the paper
//!
//! Those that show in the launches; the head of the `.cu` file lists the others.
//!
//! - §4.1, blocking: the paper gives each block of 128 threads one chunk of 256 elements. Here the
//!   tiles are divided among as many parts as blocks run at once, and a block works through its
//!   part.
//! - §4.7, index and record sorting: an index sort generates its indices in the first pass. A
//!   record sort is an index sort and then one gather: `gather.rs` and `kernels/sort/gather.cu`.

mod layout;
mod tuning;

use super::context::Context;
use super::family::{Family, Shape, Task, measured};
use super::outcome::algorithm_id;
use crate::{Algorithm, KeyType, Result};
use gpu::{ByValue, Kernel, Launch, Layout, SliceMut, Stream};
use layout::{Args, Sizes, carve};
use radsweep_kernels as images;
use tuning::tile_for;

/// The family of Ha, Krüger and Silva 2009, for digits of `bits` bits.
#[derive(Debug)]
pub(super) struct HaRadix {
    bits: u32,
    algorithm: Algorithm,
}

pub(super) static FOUR_WAY: HaRadix = HaRadix {
    bits: 2,
    algorithm: Algorithm::FourWayRadix,
};
pub(super) static EIGHT_WAY: HaRadix = HaRadix {
    bits: 3,
    algorithm: Algorithm::EightWayRadix,
};
/// Radix sort by one bit at a time, for keys of 32 bits: a baseline of the papers
/// (`super::baseline`). Its report names no algorithm.
pub(super) static SPLIT: HaRadix = HaRadix {
    bits: 1,
    algorithm: Algorithm::Auto,
};

impl Family for HaRadix {
    fn limit(&self, _shape: &Shape) -> u64 {
        u32::MAX.into()
    }

    fn scratch_bytes(&self, shape: &Shape) -> Result<u64> {
        measured(|layout| carve(layout, &Sizes::new(self.bits, shape)))
    }

    fn tile_keys(&self, shape: &Shape) -> usize {
        tile_for(self.bits, shape.key_bytes(), shape.value_bytes).keys() as usize
    }

    fn prepare(&self, context: &Context, shape: &Shape) -> Result<()> {
        self.kernels(context, shape).map(drop)
    }

    fn sort(
        &self,
        context: &Context,
        stream: &Stream,
        task: &Task,
        scratch: SliceMut<'_, u8>,
    ) -> Result<()> {
        let sizes = Sizes::new(self.bits, &task.shape);
        let regions = carve(&mut Layout::over(scratch)?, &sizes)?;
        let kernels = self.kernels(context, &task.shape)?;
        let blocks = context.device.info().multiprocessors * sizes.tile.blocks;
        let passes = task.order.digits(self.bits);
        let parts = sizes.parts(blocks);
        let args = ByValue(Args {
            keys: [task.keys_in, task.keys_out, regions.keys.device_ptr()],
            values: [task.values_in, task.values_out, regions.values.device_ptr()],
            header: regions.header.device_ptr(),
            sums: regions.sums.device_ptr(),
            device_count: task.device_count,
            n: sizes.n,
            order: task.order,
            flags: task.flags(),
            parts,
            passes,
            algorithm: algorithm_id(self.algorithm),
        });

        // Order check on the leading keys: §4.2, Algorithm 3.
        context.mark(stream, "start")?;
        // SAFETY: `Args` is the kernels' struct; its buffers have `n` elements each, as a `Task`
        // promises, and the scratch regions the sizes that the kernels count on.
        unsafe { stream.launch(&kernels.start, &Launch::linear(1, 256), &gpu::args![args])? };
        // The passes: Algorithm 1. One launch runs all phases, or one phase if they are timed.
        let launch = Launch::linear(parts, sizes.tile.threads).dynamic_shared(sizes.shared_bytes());
        let (end, step) = (
            2 * passes,
            if context.config.timings {
                1
            } else {
                2 * passes
            },
        );
        let mut phase = 0;
        while phase < end {
            let stages = if step == 1 {
                ["count", "map"]
            } else {
                ["passes"; 2]
            };
            context.mark(stream, stages[phase as usize % 2])?;
            let next = phase + step;
            // SAFETY: `Args` is the kernels' struct, with the same buffers as for `start`.
            unsafe { stream.launch(&kernels.sort, &launch, &gpu::args![args, phase, next])? };
            phase = next;
        }
        context.mark(stream, "copy")?;
        let launch = context.streaming_launch(sizes.n);
        // SAFETY: `Args` is the kernels' struct, with the same buffers as for `start`.
        unsafe { stream.launch(&kernels.copy, &launch, &gpu::args![args])? };
        Ok(())
    }
}

/// The kernels of one digit width, key type and value size.
struct Kernels {
    start: Kernel,
    sort: Kernel,
    copy: Kernel,
}

impl HaRadix {
    fn kernels(&self, context: &Context, shape: &Shape) -> Result<Kernels> {
        let sizes = Sizes::new(self.bits, shape);
        let image = match (self.bits, sizes.key_bytes) {
            (1, _) => &images::BASELINES,
            (_, 4) => &images::HA_RADIX_32,
            _ => &images::HA_RADIX_64,
        };
        let kind = match shape.key {
            KeyType::F32 | KeyType::F64 => "float",
            _ => "integer",
        };
        let (value_bytes, tile) = (sizes.value_bytes, sizes.tile);
        let sort = format!(
            "ha_sort_{}_{kind}_{value_bytes}_{}x{}",
            self.bits, tile.threads, tile.items
        );
        Ok(Kernels {
            start: context.kernel(image, &format!("ha_start_{kind}"), 0)?,
            sort: context.kernel(image, &sort, sizes.shared_bytes())?,
            copy: context.kernel(image, &format!("ha_copy_{value_bytes}"), 0)?,
        })
    }
}
