//! Four-way and eight-way radix sort: the launches of `kernels/sort/ha_radix.cu`.

mod layout;
mod tuning;

use super::context::Context;
use super::family::{Family, Shape, Task, measured};
use super::outcome::algorithm_id;
use crate::{Algorithm, KeyType, Result};
use gpu::{ByValue, Kernel, Launch, Layout, SliceMut, Stream};
use layout::{Args, DROP_KEYS, IN_PLACE, Sizes, carve};
use radsweep_kernels as images;
use tuning::tile_for;

/// Ha, Krüger and Silva 2009, for digits of `bits` bits.
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
/// One bit at a time, for keys of 32 bits: the papers' baseline (`super::baseline`). Its report names no algorithm.
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
        let in_place = if task.in_place() { IN_PLACE } else { 0 };
        let drop_keys = if task.drop_keys { DROP_KEYS } else { 0 };
        let args = ByValue(Args {
            keys: [task.keys_in, task.keys_out, regions.keys.device_ptr()],
            values: [task.values_in, task.values_out, regions.values.device_ptr()],
            header: regions.header.device_ptr(),
            sums: regions.sums.device_ptr(),
            device_count: task.device_count,
            n: sizes.n,
            order: task.order,
            flags: in_place | drop_keys,
            parts,
            passes,
            algorithm: algorithm_id(self.algorithm),
        });

        context.mark(stream, "start")?;
        // SAFETY: `Args` is the kernels' struct; its buffers have `n` elements each, as a `Task` promises, and the scratch
        // regions the sizes that the kernels count on.
        unsafe { stream.launch(&kernels.start, &Launch::linear(1, 256), &gpu::args![args])? };
        // One launch runs all phases, or, where they are timed, one of them.
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
            // SAFETY: as above.
            unsafe { stream.launch(&kernels.sort, &launch, &gpu::args![args, phase, next])? };
            phase = next;
        }
        context.mark(stream, "copy")?;
        let launch = context.streaming_launch(sizes.n);
        // SAFETY: as above.
        unsafe { stream.launch(&kernels.copy, &launch, &gpu::args![args])? };
        Ok(())
    }
}

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
