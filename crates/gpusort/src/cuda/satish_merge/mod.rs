//! The merge sort of Satish, Harris and Garland 2009, §IV. This file sorts the built-in keys
//! (`kernels/sort/satish_merge.cu`), `words.rs` keys of many words, and `records.rs` records by an
//! order given as source. `steps.rs` launches the paper's three steps for all of them. The head of
//! the `.cu` file lists the departures from the paper.

mod layout;
mod nvrtc;
mod plan;
mod records;
mod steps;
mod tuning;
mod words;

use super::context::Context;
use super::family::{Family, Shape, Task, measured};
use crate::Result;
use gpu::{Layout, SliceMut, Stream};
use layout::{Args, LAST, carve, plain, shared_bytes};
use plan::{Plan, tile_for};
use radsweep_kernels as images;
pub use records::Comparator;
use steps::{Kernels, Step};
pub use words::{MergeSorter, Words};

/// The family of Satish, Harris and Garland 2009, §IV, for the built-in keys.
#[derive(Debug)]
pub(super) struct SatishMerge;

/// Returns the tiles and passes of a sort.
fn plan(shape: &Shape) -> Plan {
    Plan::new(shape.n, tile_for(shape.key_bytes()))
}

fn kernels(context: &Context, shape: &Shape, plain: bool) -> Result<Kernels> {
    let (key_bytes, value_bytes) = (shape.key_bytes(), shape.value_bytes);
    let image = if key_bytes == 4 {
        &images::SATISH_MERGE_32
    } else {
        &images::SATISH_MERGE_64
    };
    let kind = if plain { "plain" } else { "any" };
    let shared = shared_bytes(tile_for(key_bytes), key_bytes, value_bytes);
    let kernel = |step: &str, payload: &str, shared| {
        context.kernel(
            image,
            &format!("satish_merge_{step}_{kind}{payload}"),
            shared,
        )
    };
    let payload = format!("_{value_bytes}");
    Ok(Kernels {
        tile: kernel("tile", &payload, shared[0])?,
        rank: kernel("rank", "", 0)?,
        pieces: kernel("pieces", &payload, shared[1])?,
        shared,
    })
}

impl Family for SatishMerge {
    /// Indices have 32 bits.
    fn limit(&self, _shape: &Shape) -> u64 {
        u32::MAX.into()
    }

    fn scratch_bytes(&self, shape: &Shape) -> Result<u64> {
        measured(|layout| carve(layout, &plan(shape), shape.key_bytes(), shape.value_bytes))
    }

    fn tile_keys(&self, shape: &Shape) -> usize {
        tile_for(shape.key_bytes()).items() as usize
    }

    fn prepare(&self, context: &Context, shape: &Shape) -> Result<()> {
        for plain in [true, false] {
            kernels(context, shape, plain)?;
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
        let (shape, order) = (&task.shape, &task.order);
        let key_bytes = shape.key_bytes();
        let plan = plan(shape);
        let regions = carve(
            &mut Layout::over(scratch)?,
            &plan,
            key_bytes,
            shape.value_bytes,
        )?;
        let kernels = kernels(context, shape, plain(order, key_bytes))?;
        let keys = [task.keys_out, regions.keys.device_ptr()];
        let values = [task.values_out, regions.values.device_ptr()];
        let args = |step: &Step| Args {
            keys_in: if step.first {
                task.keys_in
            } else {
                keys[step.from]
            },
            keys_out: keys[step.to],
            values_in: if step.first {
                task.values_in
            } else {
                values[step.from]
            },
            values_out: values[step.to],
            samples: regions.samples.device_ptr(),
            splits: regions.splits.device_ptr(),
            outcome: regions.outcome.device_ptr(),
            device_count: task.device_count,
            n: shape.n,
            level: step.level,
            passes: plan.levels.len() as u32,
            flags: task.flags() | if step.last { LAST } else { 0 },
            ..Args::new(order)
        };
        steps::run(
            context,
            stream,
            &kernels,
            (&plan, tile_for(key_bytes)),
            args,
        )
    }
}
