//! Small inputs: one launch of `kernels/sort/onesweep_small.cu`, a grid whose blocks run at once.

use super::layout::{MAX_SMALL_BLOCKS, Regions};
use super::small_tuning::{LIMIT, SHAPES, SmallShape, WIDE_LIMIT};
use crate::Result;
use crate::cuda::context::Context;
use crate::cuda::family::{Shape, Task};
use crate::cuda::order::KeyOrder;
use bytemuck::{Pod, Zeroable};
use gpu::{ByValue, Device, DevicePtr, Kernel, Launch, Stream, assert_layout};
use radsweep_kernels as images;

/// The arguments of the kernels: `Args` in onesweep_small_types.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Args {
    buffers: Buffers,
    scratch: DevicePtr<u8>,
    device_count: DevicePtr<u64>,
    order: KeyOrder,
    n: u32,
    rows: u32,
    capacity: u32,
    minus_one: u32,
    flags: u32,
    unused: u32,
}

assert_layout!(
    Args, 128:
    buffers 0, scratch 48, device_count 56, order 64, n 104, rows 108,
    capacity 112, minus_one 116, flags 120, unused 124,
);

/// Input, output and temporary keys, then values: `Buffers` in onesweep_small_types.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Buffers {
    keys: [DevicePtr<u8>; 3],
    values: [DevicePtr<u8>; 3],
}

assert_layout!(Buffers, 48: keys 0, values 24);

/// The kernels of one key width, and how each shape fits the device.
#[derive(Debug)]
struct SmallKernels {
    /// The kernels for values of 0, 4 and 8 bytes.
    values: Vec<ValueKernels>,
}

#[derive(Debug)]
struct ValueKernels {
    /// The kernels for integers and for floats.
    kernels: [Kernel; 2],
    /// One for each of [`SHAPES`].
    fits: Vec<Fit>,
}

/// How a shape fits the device.
#[derive(Debug, Clone, Copy)]
struct Fit {
    /// Keys of a thread that fit into a block's shared memory; 0 if not even a tile fits.
    capacity: u32,
    shared_bytes: u32,
    /// Max blocks that run at once.
    resident: u64,
}

impl SmallKernels {
    fn load(device: &Device, key_bytes: u32) -> Result<Self> {
        let image = match key_bytes {
            4 => &images::ONESWEEP_SMALL_32,
            _ => &images::ONESWEEP_SMALL_64,
        };
        let (module, info) = (device.load(image.name, image.ptx())?, device.info());
        let load = |value_bytes: u32| {
            let kernel = |kind| module.kernel(&format!("onesweep_small_{kind}_{value_bytes}"));
            let kernels = [kernel("integer")?, kernel("float")?];
            for kernel in &kernels {
                kernel.set_max_dynamic_shared(info.shared_per_block_optin)?;
            }
            let fit = |shape: &SmallShape| {
                let bytes = key_bytes + value_bytes;
                let capacity = shape.capacity(bytes, info.shared_per_block_optin);
                let shared_bytes = shape.shared_bytes(bytes, capacity);
                let mut blocks = u32::MAX;
                for kernel in &kernels {
                    let each = kernel.blocks_per_multiprocessor(shape.threads, shared_bytes)?;
                    blocks = blocks.min(each);
                }
                Ok(Fit {
                    capacity,
                    shared_bytes,
                    resident: u64::from(blocks) * u64::from(info.multiprocessors),
                })
            };
            let fits = SHAPES.iter().map(fit).collect::<Result<_>>()?;
            Ok(ValueKernels { kernels, fits })
        };
        Ok(Self {
            values: [0, 4, 8].into_iter().map(load).collect::<Result<_>>()?,
        })
    }
}

/// A sort that takes one launch.
pub(super) struct Small {
    kernel: Kernel,
    shape: &'static SmallShape,
    fit: Fit,
    blocks: u32,
}

/// Returns the max number of keys for one launch.
pub(super) fn limit(shape: &Shape) -> u64 {
    if shape.key_bytes() + shape.value_bytes > 4 {
        WIDE_LIMIT
    } else {
        LIMIT
    }
}

/// Returns the launch for a sort of that shape, or `None` if the sort is too large for one launch
/// on the device.
pub(super) fn plan(context: &Context, shape: &Shape) -> Result<Option<Small>> {
    let key_bytes = shape.key_bytes();
    // The blocks wait for each other.
    let together = context.device.info().cooperative_launch;
    if shape.large || !context.may_take_one_launch() || !together || shape.n > limit(shape) {
        return Ok(None);
    }
    let kernels = context.loaded(key_bytes, || {
        SmallKernels::load(&context.device, key_bytes as u32)
    })?;
    let ValueKernels { kernels, fits } = &kernels.values[shape.value_bytes / 4];
    let float = usize::from(shape.key.is_float());
    let found = SHAPES.iter().zip(fits).find_map(|(small, &fit)| {
        let blocks = small.blocks(shape.n).filter(|_| fit.capacity > 0)?;
        (blocks <= MAX_SMALL_BLOCKS.min(fit.resident)).then_some(Small {
            kernel: kernels[float].clone(),
            shape: small,
            fit,
            blocks: blocks as u32,
        })
    });
    Ok(found)
}

impl Small {
    /// Launches the sort.
    pub fn launch(
        &self,
        context: &Context,
        stream: &Stream,
        task: &Task,
        regions: Regions<'_>,
    ) -> Result<()> {
        let header = regions.control.device_ptr();
        let n = task.shape.n as u32;
        let threads = self.shape.threads;
        let args = Args {
            buffers: Buffers {
                keys: [task.keys_in, task.keys_out, regions.keys.device_ptr()],
                values: [task.values_in, task.values_out, regions.values.device_ptr()],
            },
            scratch: header,
            device_count: task.device_count,
            order: task.order,
            n,
            rows: self.shape.rows,
            capacity: threads * self.fit.capacity,
            flags: task.flags(),
            minus_one: u32::MAX,
            unused: 0,
        };
        let launch = Launch::linear(self.blocks, threads)
            .dynamic_shared(self.fit.shared_bytes)
            .cooperative();
        context.mark(stream, "one grid")?;
        // SAFETY: `Args` is the kernels' struct; its buffers have `n` elements each, as a `Task`
        // promises, and the scratch regions the sizes that the kernels count on.
        unsafe { stream.launch(&self.kernel, &launch, &gpu::args![ByValue(args)])? };
        Ok(())
    }
}
