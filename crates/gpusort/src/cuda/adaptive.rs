//! Nearly sorted input: the launch of `kernels/sort/adaptive.cu`. If its kernel has sorted, the
//! kernels of Onesweep that follow end at once.

use super::context::Context;
use super::family::{Shape, Task};
use super::order::KeyOrder;
use super::outcome::SortOutcome;
use super::tuning::{MAX_REMOVED, MIN_ADAPTIVE_BYTES};
use crate::{KeyType, Result};
use bytemuck::{Pod, Zeroable};
use gpu::{
    Buffer, ByValue, Device, DevicePtr, Kernel, Launch, Slice, SliceMut, Stream, assert_layout,
};
use radsweep_kernels as images;
use std::sync::Arc;

/// The arguments of the kernels: `Args` in adaptive_window.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Args {
    buffers: Buffers,
    header: DevicePtr<SortOutcome>,
    records: DevicePtr<u8>,
    n: u64,
    order: KeyOrder,
    flags: u32,
    windows: u32,
}

assert_layout!(Args, 104: buffers 0, header 32, records 40, n 48, order 56, flags 96, windows 100);

/// The buffers of an array: `Buffers` in adaptive_window.cuh.
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
struct Window {
    threads: u32,
    items: u32,
    halo_runs: u32,
}

impl Window {
    /// Returns the shape that the kernels are compiled for, by the bytes of a key.
    const fn of(key_bytes: usize) -> Self {
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
    fn count(self, n: u64) -> u64 {
        n.div_ceil(self.core())
    }

    /// Returns the bytes of the kernel's `Window::Shared`.
    fn shared_bytes(self, key_bytes: u32) -> u32 {
        let width = self.threads * self.items;
        let bytes = 2 * key_bytes * MAX_REMOVED + (key_bytes + 2) * width;
        bytes + 4 * self.threads + 2 * 128 + 4 * key_bytes + 16
    }
}

/// What sorts with the hint tell those after them, in device memory: words of `Memory` in
/// adaptive.cuh, each for the inputs at some addresses.
#[derive(Debug)]
pub(super) struct Memory(Buffer<u32>);

impl Memory {
    const WORDS_LOG2: u32 = 6;
    /// The memories of a sorter. Streams that use one may wait for each other once they are more
    /// than some, as streams that share any buffer.
    const MEMORIES_LOG2: u32 = 4;

    fn new(device: &Device) -> Result<Self> {
        let stream = Stream::new(device)?;
        let words = stream.alloc_zeroed(1 << Self::WORDS_LOG2)?;
        stream.synchronize()?;
        Ok(Self(words))
    }
}

/// Returns an index of `bits` bits for an address; other addresses have other ones, mostly.
fn spread(address: u64, bits: u32) -> usize {
    /// 2^64 divided by the golden ratio: the highest bits of multiples are spread evenly.
    const RATIO: u64 = 0x9e37_79b9_7f4a_7c15;
    (address.wrapping_mul(RATIO) >> (64 - bits)) as usize
}

/// Returns a memory of the sorter for a task with the hint. The first call allocates it; without
/// memory for it, each sort tries.
pub(super) fn memory_for(context: &Context, stream: &Stream, task: &Task) -> Option<Arc<Memory>> {
    if !hinted(context, task) || context.config.knobs.no_memory {
        return None;
    }
    let which = spread(stream.handle() as u64, Memory::MEMORIES_LOG2);
    let memory = context.loaded(which, || Memory::new(&context.device));
    memory.ok()
}

/// Returns the word of the task's input, if there is memory.
pub(super) fn word<'a>(memory: Option<&'a Memory>, task: &Task) -> Result<Option<Slice<'a, u32>>> {
    let Some(Memory(words)) = memory else {
        return Ok(None);
    };
    let at = spread(task.keys_in.address(), Memory::WORDS_LOG2);
    Ok(Some(words.range(at..=at)?))
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
    let shape = &task.shape;
    let bytes = shape.n * (shape.key_bytes() + shape.value_bytes) as u64;
    let enough = match context.config.knobs.adaptive_from {
        Some(min_keys) => shape.n >= min_keys,
        None => bytes >= MIN_ADAPTIVE_BYTES,
    };
    task.nearly_sorted && task.device_count.is_null() && enough
}

/// Returns the bytes of scratch memory: a `WindowRecord` of adaptive_window.cuh for each window.
pub(super) fn scratch_bytes(n: u64, key_bytes: usize) -> usize {
    let windows = usize::try_from(Window::of(key_bytes).count(n)).unwrap_or(usize::MAX);
    windows.saturating_mul(6 * key_bytes + 8)
}

/// The kernel of a type of keys and values.
#[derive(Debug)]
struct Windows {
    kernel: Kernel,
    /// The blocks that run at once.
    max_blocks: u32,
}

impl Windows {
    fn load(context: &Context, shape: &Shape, window: Window, shared: u32) -> Result<Self> {
        let (key_bytes, value_bytes) = (shape.key_bytes(), shape.value_bytes);
        let image = match key_bytes {
            4 => &images::ADAPTIVE_32,
            _ => &images::ADAPTIVE_64,
        };
        let kind = if shape.key.is_float() {
            "float"
        } else {
            "integer"
        };
        let Window {
            threads,
            items,
            halo_runs,
        } = window;
        let name = format!("adaptive_{kind}_{value_bytes}_{threads}x{items}_{halo_runs}");
        let kernel = context.kernel(image, &name, shared)?;
        let blocks = kernel.blocks_per_multiprocessor(threads, shared)?;
        Ok(Self {
            kernel,
            max_blocks: blocks * context.device.info().multiprocessors,
        })
    }
}

/// What a launch uses besides the input and the output.
pub(super) struct Workspace<'a> {
    /// Memory for keys and values.
    pub temporary: [DevicePtr<u8>; 2],
    /// It begins with the outcome; the kernel sets its State.
    pub header: DevicePtr<SortOutcome>,
    /// It has [`scratch_bytes`].
    pub records: SliceMut<'a, u8>,
    /// Of [`Memory`].
    pub word: Option<Slice<'a, u32>>,
}

/// Launches the kernel if the hint is set and the device supports it. Returns whether it was
/// launched.
pub(super) fn launch(
    context: &Context,
    stream: &Stream,
    task: &Task,
    workspace: Workspace<'_>,
) -> Result<bool> {
    let shape = &task.shape;
    let (key_bytes, device) = (shape.key_bytes(), context.device.info());
    let window = Window::of(key_bytes);
    let shared = window.shared_bytes(key_bytes as u32);
    let fits = shared <= device.shared_per_block_optin && device.cooperative_launch;
    let Ok(windows) = u32::try_from(window.count(shape.n)) else {
        return Ok(false);
    };
    if !hinted(context, task) || !fits {
        return Ok(false);
    }
    let [keys, values] = workspace.temporary;
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
        header: workspace.header,
        records: workspace.records.device_ptr(),
        n: shape.n,
        order: task.order,
        flags: task.flags(),
        windows,
    };
    let which = 2 * key_bytes + shape.value_bytes / 4 * 2 + usize::from(shape.key.is_float());
    let loaded = context.loaded(which, || Windows::load(context, shape, window, shared))?;
    let max_blocks = context.config.knobs.adaptive_blocks.unwrap_or(u32::MAX);
    let blocks = windows.min(loaded.max_blocks).min(max_blocks);
    let launch = Launch::linear(blocks, window.threads)
        .dynamic_shared(shared)
        .cooperative();
    context.mark(stream, "nearly sorted")?;
    // SAFETY: `Args` is the kernel's struct; its buffers have `n` elements each, as a `Task`
    // promises, and the scratch memory the sizes that the kernel counts on. The word is null, or
    // only such kernels and `onesweep::launch_histogram`'s use it: they may run at the same time,
    // and load and store it as a whole.
    unsafe {
        stream.launch(
            &loaded.kernel,
            &launch,
            &gpu::args![ByValue(args), workspace.word],
        )?
    };
    Ok(true)
}
