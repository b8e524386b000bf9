//! The radix sort of Satish, Harris and Garland 2009, §III: the launches of
//! `kernels/sort/satish_radix.cu` in their fixed order.
//!
//! A pass has the four steps of the paper, in three kernels:
//!
//! - `tile`: steps 1 and 2, sort each tile by the digit on chip, and write its counts to the table;
//! - `scan`: step 3, prefix sum over each digit's row of the table. For few tiles `scatter` adds
//!   up the rows itself;
//! - `scatter`: the sum over the digits, and step 4: write each run of equal digits to its offset
//!   in the output.
//!
//! Few keys take one kernel, `small`, which sorts them by all digits in one block. The head of the
//! `.cu` file lists the departures from the paper.

mod layout;
mod tuning;

use super::context::Context;
use super::family::{Family, Shape, Task, measured};
use super::tile::Tile;
use crate::{KeyType, Result};
use gpu::{ByValue, Kernel, Launch, Layout, SliceMut, Stream};
use layout::{Args, Sizes, carve};
use radsweep_kernels as images;
use tuning::{SCAN_THREADS, tile_for};

/// The family of Satish, Harris and Garland 2009, §III.
#[derive(Debug)]
pub(super) struct SatishRadix;

impl Family for SatishRadix {
    /// Offsets have 32 bits.
    fn limit(&self, _shape: &Shape) -> u64 {
        u32::MAX.into()
    }

    fn scratch_bytes(&self, shape: &Shape) -> Result<u64> {
        measured(|layout| carve(layout, &Sizes::new(shape)))
    }

    fn tile_keys(&self, shape: &Shape) -> usize {
        tile_for(shape.key_bytes(), shape.value_bytes).keys() as usize
    }

    fn prepare(&self, context: &Context, shape: &Shape) -> Result<()> {
        Kernels::load(context, shape, &Sizes::new(shape)).map(drop)
    }

    fn sort(
        &self,
        context: &Context,
        stream: &Stream,
        task: &Task,
        scratch: SliceMut<'_, u8>,
    ) -> Result<()> {
        let sizes = Sizes::new(&task.shape);
        let regions = carve(&mut Layout::over(scratch)?, &sizes)?;
        let args = Args::new(task, &sizes, &regions);
        let launch = |stage, kernel: &Kernel, blocks, threads, shared, pass: u32| {
            context.mark(stream, stage)?;
            let launch = Launch::linear(blocks, threads).dynamic_shared(shared);
            // SAFETY: `Args` is the kernels' struct; its buffers have `n` elements each, as a
            // `Task` promises, and the scratch regions the sizes that the kernels count on.
            unsafe { stream.launch(kernel, &launch, &gpu::args![ByValue(args), pass])? };
            Ok(())
        };
        let (key_bytes, value_bytes, shape) = (sizes.key_bytes, sizes.value_bytes, sizes.tile);
        match Kernels::load(context, &task.shape, &sizes)? {
            Kernels::Small(small, shape) => {
                let shared = shape.small_shared_bytes(key_bytes, value_bytes);
                launch("one block", &small, 1, shape.threads, shared, 0)
            }
            Kernels::Passes {
                tile,
                scan,
                scatter,
            } => {
                let blocks = sizes.tiles() as u32; // `limit` admits no more
                let shared = shape.tile_shared_bytes(key_bytes, value_bytes);
                let passes = task.order.digits(4);
                for pass in 0..passes {
                    // Satish et al. §III, steps 1 and 2: sort tiles by the digit, write counts.
                    launch("tiles", &tile, blocks, shape.threads, shared, pass)?;
                    if sizes.scanned() {
                        // Satish et al. §III, step 3: prefix sum over the rows of the table.
                        // One block for each digit, and in the first pass one more, which plans
                        // the passes.
                        let blocks = 16 + u32::from(pass == 0);
                        launch("scan", &scan, blocks, SCAN_THREADS, 0, pass)?;
                    }
                    // Satish et al. §III, step 4: scatter.
                    launch("scatter", &scatter, blocks, shape.threads, 0, pass)?;
                }
                // Without digits one launch remains, which copies the keys to the output.
                if passes == 0 {
                    launch("scatter", &scatter, blocks, shape.threads, 0, 0)?;
                }
                Ok(())
            }
        }
    }
}

/// The kernels of a sort: one for few keys, else three for each pass.
enum Kernels {
    Small(Kernel, Tile),
    Passes {
        tile: Kernel,
        scan: Kernel,
        scatter: Kernel,
    },
}

impl Kernels {
    fn load(context: &Context, shape: &Shape, sizes: &Sizes) -> Result<Self> {
        let image = match sizes.key_bytes {
            4 => &images::SATISH_RADIX_32,
            _ => &images::SATISH_RADIX_64,
        };
        let (kb, vb) = (sizes.key_bytes, sizes.value_bytes);
        let kind = match shape.key {
            KeyType::F32 | KeyType::F64 => "float_",
            _ => "integer_",
        };
        let load = |step: &str, kind: &str, tile: Tile, shared_bytes| {
            let (threads, items) = (tile.threads, tile.items);
            let name = format!("satish_radix_{step}_{kind}{vb}_{threads}x{items}");
            context.kernel(image, &name, shared_bytes)
        };
        if let Some(small) = sizes.small {
            let bytes = small.small_shared_bytes(kb, vb);
            return Ok(Self::Small(load("small", kind, small, bytes)?, small));
        }
        Ok(Self::Passes {
            tile: load(
                "tile",
                kind,
                sizes.tile,
                sizes.tile.tile_shared_bytes(kb, vb),
            )?,
            scan: load("scan", "", sizes.tile, 0)?,
            scatter: load("scatter", kind, sizes.tile, 0)?,
        })
    }
}
