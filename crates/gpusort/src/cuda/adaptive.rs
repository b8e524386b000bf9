//! Nearly sorted input: the launch of `kernels/sort/adaptive.cu`. If its kernel has sorted, the
//! kernels of Onesweep that follow end at once. Onesweep for small inputs sorts windows itself and
//! takes their shape from here.

use super::context::Context;
use super::family::Task;
use super::order::KeyOrder;
use super::outcome::SortOutcome;
use super::tuning::{MAX_REMOVED, MIN_ADAPTIVE_KEYS};
use crate::{KeyType, Result};
use bytemuck::{Pod, Zeroable};
use gpu::{ByValue, DevicePtr, Launch, SliceMut, Stream, assert_layout};
use radsweep_kernels as images;

/// The arguments of the kernels: `Args` in adaptive.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Args {
    buffers: Buffers,
    header: DevicePtr<SortOutcome>,
    records: DevicePtr<u8>,
    n: u64,
    order: KeyOrder,
    flags: u32,
    unused: u32,
}

assert_layout!(Args, 104: buffers 0, header 32, records 40, n 48, order 56, flags 96, unused 100);

/// The buffers of an array: `Buffers` in adaptive.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Buffers {
    keys_in: DevicePtr<u8>,
    keys_out: DevicePtr<u8>,
    values_in: DevicePtr<u8>,
    values_out: DevicePtr<u8>,
}

assert_layout!(Buffers, 32: keys_in 0, keys_out 8, values_in 16, values_out 24);

/// The shape of a window: `threads` runs of `items` elements, of which `halo_runs` at either end
/// are the halo.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub threads: u32,
    items: u32,
    halo_runs: u32,
}

impl Window {
    /// Returns the shape that the kernels are compiled for, by the bytes of a key.
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

    /// Returns the number of windows of an array.
    pub fn count(self, n: u64) -> u64 {
        n.div_ceil(self.core())
    }

    /// Returns the bytes of the kernel's `Window::Shared`.
    pub fn shared_bytes(self, key_bytes: u32) -> u32 {
        let width = self.threads * self.items;
        let bytes = 2 * key_bytes * MAX_REMOVED + (key_bytes + 2) * width;
        bytes + 4 * self.threads + 2 * 128 + 4 * key_bytes + 16
    }
}

/// For tests: returns the elements of a window's core and of each halo.
pub(super) fn window_elements(key: KeyType) -> [usize; 2] {
    let window = Window::of(key.bits() as usize / 8);
    [
        window.core() as usize,
        (window.halo_runs * window.items) as usize,
    ]
}

/// Returns whether the sort for nearly sorted input is tried.
pub(super) fn hinted(context: &Context, task: &Task) -> bool {
    let min_keys = context
        .config
        .knobs
        .adaptive_from
        .unwrap_or(MIN_ADAPTIVE_KEYS);
    task.nearly_sorted && task.device_count.is_null() && task.shape.n >= min_keys
}

/// Returns the bytes of scratch memory: a `WindowRecord` of adaptive_window.cuh for each window.
pub(super) fn scratch_bytes(n: u64, key_bytes: usize) -> usize {
    let windows = usize::try_from(Window::of(key_bytes).count(n)).unwrap_or(usize::MAX);
    windows.saturating_mul(6 * key_bytes + 8)
}

/// Launches the kernel if the hint is set and the device supports it. Returns whether it was
/// launched. `temporary` is memory for keys and values. `header` begins with the outcome and is 0.
/// `records` has [`scratch_bytes`].
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
    let [keys, values] = temporary;
    let (keys_out, values_out) = if task.in_place() {
        (keys, values)
    } else {
        (task.keys_out, task.values_out)
    };
    let args = Args {
        buffers: Buffers {
            keys_in: task.keys_in,
            keys_out,
            values_in: task.values_in,
            values_out,
        },
        header,
        records: records.device_ptr(),
        n: shape.n,
        order: task.order,
        flags: task.flags(),
        unused: 0,
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
    // SAFETY: `Args` is the kernel's struct; its buffers have `n` elements each, as a `Task`
    // promises, and the scratch memory the sizes that the kernel counts on.
    unsafe { stream.launch(&kernel, &launch, &gpu::args![ByValue(args)])? };
    Ok(true)
}
