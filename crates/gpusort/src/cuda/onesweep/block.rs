//! The fewest keys: one block of `kernels/sort/onesweep_block.cu`.

use crate::Result;
use crate::cuda::context::Context;
use crate::cuda::family::{Shape, Task};
use crate::cuda::order::KeyOrder;
use crate::cuda::outcome::SortOutcome;
use bytemuck::{Pod, Zeroable};
use gpu::{ByValue, Device, DevicePtr, Kernel, Launch, Stream, assert_layout};
use radsweep_kernels as images;
use std::sync::Arc;

/// Keys of a thread, where others are measured: `ITEMS` in onesweep_block.cu.
const ITEMS: u32 = 8;
/// Max threads of a block.
const MAX_THREADS: u32 = 512;
/// Bytes of shared memory before the bins.
const HEADER_BYTES: u32 = 80;
/// Max keys of a block. More take a grid.
///
/// Measured on an H200, 2026-11-29: microseconds between two events for 4096 evenly spread keys,
/// this block, then what ran before it: a block that merged, which still sorts uneven keys, or the
/// shapes of `small_tuning.rs` (*).
///
/// | u32 | u32 + u32 | index of u32 | f32 | index of f32 | u64 | u64 + u32 |
/// | --- | --- | --- | --- | --- | --- | --- |
/// | 10.8, 14.0 | 12.4, 18.8* | 11.3, 18.0* | 11.7, 18.1 | 11.8, 18.8 | 11.6, 19.8 | 13.4, 24.3* |
///
/// Not measured: values of 8 bytes, and `f32` with values other than an index.
const LIMIT: u64 = MAX_THREADS as u64 * ITEMS as u64;

/// The arguments of the kernels: `Args` in onesweep_block.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Args {
    keys_in: DevicePtr<u8>,
    keys_out: DevicePtr<u8>,
    values_in: DevicePtr<u8>,
    values_out: DevicePtr<u8>,
    outcome: DevicePtr<SortOutcome>,
    device_count: DevicePtr<u64>,
    order: KeyOrder,
    n: u32,
    flags: u32,
}

assert_layout!(
    Args, 96:
    keys_in 0, keys_out 8, values_in 16, values_out 24, outcome 32, device_count 40, order 48,
    n 88, flags 92,
);

/// The kernels of one key width.
struct Kernels {
    /// For integers alone, all of whose bits count.
    whole: Kernel,
    /// For integers and for floats, by values of 0, 4 and 8 bytes.
    indexed: [[Kernel; 3]; 2],
}

impl Kernels {
    fn load(device: &Device, key_bytes: usize) -> Result<Self> {
        let image = match key_bytes {
            4 => &images::ONESWEEP_BLOCK_32,
            _ => &images::ONESWEEP_BLOCK_64,
        };
        let module = device.load(image.name, image.ptx())?;
        let kernel = |name: &str| {
            let kernel = module.kernel(&format!("onesweep_block_{name}"))?;
            kernel.set_max_dynamic_shared(device.info().shared_per_block_optin)?;
            Ok::<_, crate::Error>(kernel)
        };
        let of_kind = |kind| {
            let of_values = |bytes| kernel(&format!("{kind}_{bytes}"));
            Ok::<_, crate::Error>([of_values(0)?, of_values(4)?, of_values(8)?])
        };
        Ok(Self {
            whole: kernel("whole_0")?,
            indexed: [of_kind("integer")?, of_kind("float")?],
        })
    }
}

/// A sort by one block.
pub(super) struct Block {
    kernels: Arc<Kernels>,
    threads: u32,
    shared_bytes: u32,
}

/// Returns the launch for a sort of that shape, or `None` if there are too many keys for a block of
/// the device.
pub(super) fn plan(context: &Context, shape: &Shape) -> Result<Option<Block>> {
    let (key_bytes, device) = (shape.key_bytes(), &context.device);
    if shape.large || !context.may_take_one_launch() || shape.n > LIMIT {
        return Ok(None);
    }
    // As many bins as places: a power of two.
    let threads = (shape.n as u32).div_ceil(ITEMS).next_power_of_two().max(32);
    let shared_bytes = shared_bytes(threads, key_bytes as u32, shape.value_bytes as u32);
    if shared_bytes > device.info().shared_per_block_optin {
        return Ok(None);
    }
    Ok(Some(Block {
        kernels: context.loaded(key_bytes, || Kernels::load(device, key_bytes))?,
        threads,
        shared_bytes,
    }))
}

/// Returns the bytes of shared memory, as `Block` in onesweep_block.cu divides it: for bins of two
/// bytes, words of 8 bytes, values, and indices of two bytes unless they are in the words.
fn shared_bytes(threads: u32, key_bytes: u32, value_bytes: u32) -> u32 {
    let keys = threads * ITEMS;
    let places = keys + keys / ITEMS + ITEMS;
    let bins = 2 * (keys + ITEMS);
    HEADER_BYTES + bins + places * if key_bytes == 4 { 8 } else { 10 } + keys * value_bytes
}

impl Block {
    /// Launches the sort. `outcome` is the start of its scratch memory.
    pub fn launch(
        &self,
        context: &Context,
        stream: &Stream,
        task: &Task,
        outcome: DevicePtr<u8>,
    ) -> Result<()> {
        let (shape, order) = (&task.shape, task.order);
        let float = shape.key.is_float();
        let all_bits = order.end - order.begin == shape.key.bits();
        let kernel = match shape.value_bytes {
            0 if all_bits && !float => &self.kernels.whole,
            bytes => &self.kernels.indexed[usize::from(float)][bytes / 4],
        };
        let args = Args {
            keys_in: task.keys_in,
            keys_out: task.keys_out,
            values_in: task.values_in,
            values_out: task.values_out,
            outcome: outcome.cast(),
            device_count: task.device_count,
            order,
            n: shape.n as u32,
            flags: task.flags(),
        };
        let launch = Launch::linear(1, self.threads).dynamic_shared(self.shared_bytes);
        context.mark(stream, "one block")?;
        // SAFETY: `Args` is the kernels' struct; its buffers have `n` elements each, as a `Task`
        // promises, and the scratch memory begins with an outcome.
        unsafe { stream.launch(kernel, &launch, &gpu::args![ByValue(args)])? };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_fits_the_devices() {
        // What every device gives to a block, Turing, and Ampere. Half as many fit all of them.
        for (key, value, optin) in [(4, 0, 48), (4, 4, 64), (8, 0, 64), (4, 8, 99), (8, 8, 99)] {
            let bytes = shared_bytes(MAX_THREADS, key, value);
            assert!(bytes <= optin * 1024, "{key} {value}: {bytes}");
            assert!(shared_bytes(MAX_THREADS / 2, key, value) <= 48 * 1024);
        }
    }
}
