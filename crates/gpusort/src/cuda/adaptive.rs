//! Nearly sorted input: the launch of `kernels/sort/adaptive.cu`, after whose kernel those of Onesweep end at once where it sorted; and
//! what Onesweep for small inputs, which sorts windows itself, asks about them.

use super::abi::assert_layout;
use super::context::Context;
use super::family::Task;
use super::order::KeyOrder;
use super::outcome::SortOutcome;
use crate::{KeyType, Result};
use bytemuck::{Pod, Zeroable};
use gpu::{ByValue, DevicePtr, Launch, SliceMut, Stream};
use radsweep_kernels as images;

/// The most arrays of one launch: `ARRAYS` in adaptive.cu.
const MAX_ARRAYS: usize = 3;
/// Keys taken out of a window, at most: `REMOVED` in adaptive_window.cuh.
const REMOVED: u32 = 1024;
/// Flag of [`Args`]: the sorted keys are not wanted.
const DROP_KEYS: u32 = 2;

/// `Args` in adaptive.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Args {
    arrays: [Buffers; MAX_ARRAYS],
    header: DevicePtr<SortOutcome>,
    stride: u64,
    records: DevicePtr<u8>,
    n: u64,
    order: KeyOrder,
    flags: u32,
    unused: u32,
}

assert_layout!(
    Args, 176:
    arrays 0, header 96, stride 104, records 112, n 120, order 128, flags 168, unused 172,
);

/// `Buffers` in adaptive.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Buffers {
    keys_in: DevicePtr<u8>,
    keys_out: DevicePtr<u8>,
    values_in: DevicePtr<u8>,
    values_out: DevicePtr<u8>,
}

assert_layout!(
    Buffers, 32:
    keys_in 0, keys_out 8, values_in 16, values_out 24,
);

/// How a window is shaped: `threads` runs of `items` elements, of which `halo_runs` at either end are the halo.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub threads: u32,
    items: u32,
    halo_runs: u32,
}

impl Window {
    /// For keys of that many bytes: the shapes that the kernels are compiled for.
    pub const fn of(key_bytes: usize) -> Self {
        let items = if key_bytes == 4 { 21 } else { 17 };
        Self {
            threads: 512,
            items,
            halo_runs: 64,
        }
    }

    fn core(self) -> u64 {
        u64::from((self.threads - 2 * self.halo_runs) * self.items)
    }

    /// Windows of an array.
    pub fn count(self, n: u64) -> u64 {
        n.div_ceil(self.core())
    }

    /// Bytes of the kernel's `Window::Shared`.
    pub fn shared_bytes(self, key_bytes: u32) -> u32 {
        let width = self.threads * self.items;
        let bytes = 2 * key_bytes * REMOVED + (key_bytes + 2) * width;
        bytes + 4 * self.threads + 2 * 128 + 4 * key_bytes + 16
    }
}

/// For tests: elements of a window's core and of each halo.
pub(super) fn window_elements(key: KeyType) -> [usize; 2] {
    let window = Window::of(key.bits() as usize / 8);
    [
        window.core() as usize,
        (window.halo_runs * window.items) as usize,
    ]
}

/// From that number of keys on the hint is taken. H200, 2^19 pairs of u32 with 1 % and 0.1 % moved: 33.9 and 28.5 µs, and 31.4 and 32.0
/// without the hint; 2^20: 36.3 and 32.1, and 59.5 and 61.0.
pub(super) const LEAST: u64 = (1 << 19) + 1;

/// Whether the sort is to be tried as one of nearly sorted input.
pub(super) fn hinted(context: &Context, task: &Task) -> bool {
    let least = context.config.adaptive_from.unwrap_or(LEAST);
    task.nearly_sorted && task.device_count.is_null() && task.shape.n >= least
}

/// Bytes of scratch memory: `WindowRecord` in adaptive_window.cuh for each window.
pub(super) fn scratch_bytes(n: u64, key_bytes: usize) -> usize {
    let windows = usize::try_from(Window::of(key_bytes).count(n)).unwrap_or(usize::MAX);
    windows.saturating_mul(6 * key_bytes + 8)
}

/// Sorts with that `temporary` memory for keys and values, where the hint is set and the device can; returns whether it was
/// launched. `header` begins with `Outcome` and is 0; `records` has [`scratch_bytes`].
pub(super) fn launch(
    context: &Context,
    stream: &Stream,
    task: &Task,
    temporary: [DevicePtr<u8>; 2],
    header: DevicePtr<SortOutcome>,
    records: SliceMut<'_, u8>,
) -> Result<bool> {
    let shape = &task.shape;
    let (key_bytes, value_bytes) = (shape.key_bytes(), shape.value_bytes);
    let window = Window::of(key_bytes);
    let shared = window.shared_bytes(key_bytes as u32);
    let windows = i32::try_from(window.count(shape.n));
    let fits = windows.is_ok() && shared <= context.device.info().shared_per_block_optin;
    if !hinted(context, task) || !fits {
        return Ok(false);
    }
    let mut args = Args {
        header,
        records: records.device_ptr(),
        n: shape.n,
        order: task.order,
        flags: if task.drop_keys { DROP_KEYS } else { 0 },
        ..Args::zeroed()
    };
    let [keys, values] = temporary;
    args.arrays[0] = if task.in_place() {
        Buffers {
            keys_in: task.keys_in,
            keys_out: keys,
            values_in: task.values_in,
            values_out: values,
        }
    } else {
        Buffers {
            keys_in: task.keys_in,
            keys_out: task.keys_out,
            values_in: task.values_in,
            values_out: task.values_out,
        }
    };
    let image = match key_bytes {
        4 => &images::ADAPTIVE_32,
        _ => &images::ADAPTIVE_64,
    };
    let kind = match shape.key {
        KeyType::F32 | KeyType::F64 => "float",
        _ => "integer",
    };
    let Window {
        threads,
        items,
        halo_runs,
    } = window;
    let name = format!("adaptive_{kind}_{value_bytes}_{threads}x{items}_{halo_runs}");
    let kernel = context.kernel(image, &name, shared)?;
    let launch = Launch::linear(windows.unwrap_or(0) as u32, threads).dynamic_shared(shared);
    context.mark(stream, "nearly sorted")?;
    // SAFETY: `Args` is the kernel's struct; its buffers have `n` elements each, as a `Task` promises, and the scratch memory the
    // sizes that the kernel counts on.
    unsafe { stream.launch(&kernel, &launch, &gpu::args![ByValue(args)])? };
    Ok(true)
}
