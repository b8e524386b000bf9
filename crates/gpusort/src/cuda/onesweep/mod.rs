//! Onesweep (Adinets and Merrill 2022): the launches of `kernels/sort/onesweep.cu` in their fixed
//! order, or, for small inputs, the one launch of `kernels/sort/onesweep_small.cu` or of
//! `kernels/sort/onesweep_block.cu`.

mod block;
mod kernels;
mod layout;
mod small;
mod small_tuning;
mod tuning;

use super::adaptive::{self, Workspace};
use super::context::Context;
use super::family::{Family, Shape, Task, measured};
use super::order::KeyOrder;
use crate::Result;
use gpu::{ByValue, DevicePtr, Launch, Layout, Slice, SliceMut, Stream};
use kernels::{End, Kernels};
pub(super) use layout::HEADER_BYTES;
use layout::{Args, CLEARED, Header, NEARLY_SORTED, Regions, Sizes, carve};
use std::sync::Arc;
use tuning::{
    DIGITS, HISTOGRAM_CHUNK_BYTES, HISTOGRAM_THREADS, SEGMENT_THREADS, SEGMENTS_FROM, Shapes,
};

/// The family of Adinets and Merrill 2022.
#[derive(Debug)]
pub(super) struct Onesweep;

impl Family for Onesweep {
    /// The limit is one tile for each of the max blocks of a launch.
    fn limit(&self, shape: &Shape) -> u64 {
        i32::MAX as u64 * Sizes::new(shape).tile().keys()
    }

    fn scratch_bytes(&self, shape: &Shape) -> Result<u64> {
        measured(|layout| carve(layout, &Sizes::new(shape)))
    }

    fn tile_keys(&self, shape: &Shape) -> usize {
        let shapes = Shapes::new(shape.key_bytes(), shape.value_bytes, u32::MAX, shape.large);
        shapes.at(shape.n).1.keys() as usize
    }

    fn prepare(&self, context: &Context, shape: &Shape) -> Result<()> {
        // The kernels for fewer keys too, and for what one launch sorts in any case.
        let at_most = |n| Shape {
            n: shape.n.min(n),
            ..*shape
        };
        // One key fits every device; the kernels are those of more.
        block::plan(context, &at_most(1))?;
        small::plan(context, &at_most(small::limit(shape)))?;
        if block::plan(context, shape)?.is_none() && small::plan(context, shape)?.is_none() {
            kernels(context, &Sizes::new(shape))?;
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
        let shape = &task.shape;
        if let Some(block) = block::plan(context, shape)? {
            return block.launch(context, stream, task, scratch.as_slice().device_ptr());
        }
        let sizes = Sizes::on(shape, context.device.info());
        let regions = carve(&mut Layout::over(scratch)?, &sizes)?;
        match small::plan(context, shape)? {
            Some(small) => small.launch(context, stream, task, regions),
            None => sort_large(context, stream, task, &sizes, regions),
        }
    }
}

/// Launches a sort that is too large for one launch: a histogram, then one launch for each pass.
/// Where blocks may sort what has the same highest digits, those of these digits come first, and
/// the launch of these blocks last (the head of `kernels/sort/onesweep.cu`).
fn sort_large(
    context: &Context,
    stream: &Stream,
    task: &Task,
    sizes: &Sizes,
    regions: Regions<'_>,
) -> Result<()> {
    let (shape, in_place) = (&task.shape, task.in_place());
    let kernels = kernels(context, sizes)?;
    let finish = Finish::of(context, &kernels, task, sizes);
    let segment_bits = finish.as_ref().map_or(0, |finish| finish.segment_bits);
    let mut args = arguments(context, task, sizes, &regions);
    args.finish_keys = finish.as_ref().map_or(0, |finish| finish.max_keys);
    args.segment_bits = segment_bits;
    args.sample = sizes.sample();
    if segment_bits > 0 {
        context.mark(stream, "clear sample")?;
        stream.fill_bytes(regions.segments, 0)?;
    }

    if !context.device.info().cooperative_launch {
        context.mark(stream, "clear")?;
        let used = regions.control_bytes as usize;
        stream.fill_bytes(regions.control.range(..used)?, 0)?;
        args.flags |= CLEARED;
    }
    let memory = adaptive::memory_for(context, stream, task);
    let word = adaptive::word(memory.as_deref(), task)?;
    let workspace = Workspace {
        temporary: [args.keys[2], args.values[2]],
        header: args.header.cast(),
        records: regions.windows,
        word,
    };
    if adaptive::launch(context, stream, task, workspace)? {
        args.flags |= NEARLY_SORTED;
    }
    context.mark(stream, "histogram")?;
    launch_histogram(context, stream, shape, &args, word)?;
    let tiles = u32::try_from(sizes.tiles()).unwrap_or(u32::MAX); // `limit` admits no more
    let launch = Launch::linear(tiles, sizes.tile().threads).dynamic_shared(sizes.shared_bytes());
    let digits = task.order.digits(8);
    let pass = |name, args: Args, digit: u32| {
        context.mark(stream, name)?;
        let kernel = kernels.pass(shape.key, sizes.value_bytes, sizes.n);
        // SAFETY: `Args` is the kernels' struct; its buffers have `n` elements each, as a `Task`
        // promises, and the scratch regions the sizes that the kernels count on.
        unsafe { stream.launch(kernel, &launch, &gpu::args![ByValue(args), digit])? };
        Ok::<_, crate::Error>(())
    };
    if segment_bits > 0 {
        let mut two = args;
        two.header = args.header.byte_add(HEADER_BYTES as u64);
        pass("highest digit but one", two, digits - 2)?;
        pass("highest digit", two, digits - 1)?;
        context.mark(stream, "segments")?;
        let blocks = (1_u32 << segment_bits).div_ceil(SEGMENT_THREADS - 1);
        let launch = Launch::linear(blocks, SEGMENT_THREADS);
        let kernel = kernels.segments(shape.key);
        // SAFETY: `Args` is the kernel's struct, with the same buffers as for the passes.
        unsafe { stream.launch(kernel, &launch, &gpu::args![ByValue(args)])? };
    }
    // Without digits one launch remains, which copies the keys to the output.
    for digit in 0..digits.max(1) {
        pass(PASS_NAMES[digit as usize], args, digit)?;
    }
    if let Some(finish) = finish {
        context.mark(stream, "finish")?;
        let blocks = 1 << segment_bits.max(DIGITS.ilog2());
        let end = finish.end;
        let launch = Launch::linear(blocks, end.tile.threads).dynamic_shared(end.shared);
        // SAFETY: `Args` is the kernel's struct, with the same buffers as for the passes.
        unsafe { stream.launch(&end.kernel, &launch, &gpu::args![ByValue(args)])? };
    }
    if in_place {
        context.mark(stream, "copy back")?;
        let launch = context.streaming_launch(sizes.n);
        let kernel = kernels.copy_back(sizes.value_bytes);
        // SAFETY: `Args` is the kernel's struct, with the same buffers as for the passes.
        unsafe { stream.launch(kernel, &launch, &gpu::args![ByValue(args)])? };
    }
    Ok(())
}

/// Returns the arguments of the kernels, but for those of the end on chip.
fn arguments(context: &Context, task: &Task, sizes: &Sizes, regions: &Regions<'_>) -> Args {
    let mut args = Args::new(task.order, sizes.n);
    let temporary = [regions.keys.device_ptr(), regions.values.device_ptr()];
    args.keys = [task.keys_in, task.keys_out, temporary[0]];
    args.values = [task.values_in, task.values_out, temporary[1]];
    args.control_bytes = regions.control_bytes;
    let control = regions.control.device_ptr();
    args.header = control.cast();
    args.bins = control.byte_add(regions.bins);
    args.own = control.byte_add(regions.own);
    args.groups = control.byte_add(regions.groups);
    args.segments = regions.segments.device_ptr();
    args.device_count = task.device_count;
    args.flags = task.flags();
    if let Some((tile, cycles)) = context.config.knobs.stall {
        (args.stall_tile, args.stall_cycles) = (tile, cycles);
    }
    args
}

/// The end of a sort on chip, by onesweep_finish.cuh.
struct Finish<'a> {
    end: &'a End,
    /// Most keys that a block sorts.
    max_keys: u32,
    /// The bits of segments; 0: a block sorts the keys of a highest digit.
    segment_bits: u32,
}

impl<'a> Finish<'a> {
    /// Returns the end on chip where blocks may hold the keys of each highest digit or segment.
    fn of(context: &Context, kernels: &'a Kernels, task: &Task, sizes: &Sizes) -> Option<Self> {
        let [of_digit, of_segment] = kernels.ends(task.shape.key, sizes.value_bytes);
        let wanted = context.config.knobs.segments;
        if let Some(end) = of_digit
            && sizes.n <= end.tile.keys() * DIGITS / 32 * 31
            && !wanted
        {
            return Some(Self {
                end,
                max_keys: end.tile.keys() as u32,
                segment_bits: 0,
            });
        }
        let (segment_bits, window) = (sizes.segment_bits(), task.order.digits(1));
        let digits = task.order.digits(8);
        // The passes before are by two digits, and more must be left. In place, blocks would read
        // values that others have replaced.
        let mut possible = segment_bits > 0
            && digits > 2
            && segment_bits <= window - (digits - 2) * 8
            && !(task.in_place() && sizes.value_bytes > 0);
        if sizes.key_bytes == 4 {
            // A block makes keys again of the bits that it sorts.
            possible &= window == 32 && (sizes.n >= SEGMENTS_FROM || wanted);
        }
        of_segment.as_ref().filter(|_| possible).map(|end| Self {
            end,
            max_keys: sizes.max_segment() as u32,
            segment_bits,
        })
    }
}

const PASS_NAMES: [&str; 8] = [
    "pass 1", "pass 2", "pass 3", "pass 4", "pass 5", "pass 6", "pass 7", "pass 8",
];

/// Returns whether the `shape.n` keys at `keys` are in order, and waits for the answer.
pub(super) fn is_sorted(
    context: &Context,
    stream: &Stream,
    shape: &Shape,
    order: KeyOrder,
    keys: DevicePtr<u8>,
    scratch: SliceMut<'_, u8>,
) -> Result<bool> {
    let mut header = scratch.range(..size_of::<Header>())?.cast::<Header>()?;
    let mut args = Args::new(order.without_digits(), shape.n);
    args.keys[0] = keys;
    args.header = header.device_ptr();
    args.flags = CLEARED;
    stream.fill_bytes(header.reborrow(), 0)?;
    launch_histogram(context, stream, shape, &args, None)?;
    let mut answer = [Header::default()];
    stream.download(header.as_slice(), &mut answer)?;
    Ok(answer[0].unsorted == 0)
}

fn kernels(context: &Context, sizes: &Sizes) -> Result<Arc<Kernels>> {
    let which = usize::from(sizes.key_bytes == 8) * 2 + usize::from(sizes.large);
    context.loaded(which, || {
        Kernels::load(&context.device, sizes.key_bytes, sizes.large)
    })
}

/// Launches the first kernel. `word` is where sorts with the hint say what they tell the next ones.
fn launch_histogram(
    context: &Context,
    stream: &Stream,
    shape: &Shape,
    args: &Args,
    word: Option<Slice<'_, u32>>,
) -> Result<()> {
    let sizes = Sizes::new(shape);
    let kernels = kernels(context, &sizes)?;
    let histogram = kernels.histogram(shape.key, sizes.n);
    let chunks = (sizes.n * sizes.key_bytes as u64).div_ceil(HISTOGRAM_CHUNK_BYTES);
    let max_blocks = u64::from(histogram.max_blocks).max(1);
    let mut launch = Launch::linear(chunks.clamp(1, max_blocks) as u32, HISTOGRAM_THREADS)
        .dynamic_shared(histogram.shared);
    launch.cooperative = args.flags & CLEARED == 0;
    // SAFETY: `Args` is the kernel's struct; its buffers have the sizes that the kernel counts on;
    // without digits the kernel uses the keys and the header only. The word is null, or is used
    // as `adaptive::launch` says.
    unsafe {
        stream.launch(
            &histogram.kernel,
            &launch,
            &gpu::args![ByValue(*args), word],
        )?
    };
    Ok(())
}
