//! The kernels of `kernels/sap/sap.cu`, each as a call with the types it takes.
//!
//! The calls are `unsafe` where addresses are passed by value: whoever fills such a struct vouches for them.

use crate::cuda::abi::{Keys, PassedDifferences, Prepare, Sorted, SweepInput};
use crate::cuda::input::patch::Patch;
use crate::{Aabb, Aabb64};
use gpu::{ByValue, Device, Kernel, Launch, Module, Result, Slice, SliceMut, Stream, args};

/// Positions of a tile, and threads of the blocks that work on one tile a warp.
pub(crate) const TILE: usize = 128;
/// Boxes that a tile is tested against at a time.
pub(crate) const CHUNK: usize = 32;
pub(crate) const ORDER_THREADS: u32 = 128;
/// Pairs of one list that a block compares.
pub(crate) const EVENT_ITEMS: usize = 1024;
const THREADS: u32 = 256;
pub(crate) const WARP: u32 = 32;

/// The address of sorted keys: of 32 bits, or of 64 with worlds.
#[derive(Clone, Copy)]
pub(crate) enum SortedKeys {
    Plain(u64),
    WithWorlds(u64),
}

/// Boxes, and the order that their keys put them in.
pub(crate) struct SortedBoxes<'a> {
    pub(crate) keys: SortedKeys,
    pub(crate) index: Slice<'a, u32>,
    pub(crate) stored: Slice<'a, Aabb>,
}

/// How the boxes in order are to be swept.
#[derive(Clone, Copy)]
pub(crate) struct SweepRule {
    /// By [`crate::OverlapRule::Open`].
    pub(crate) open: bool,
    /// Not at all where nothing has changed.
    pub(crate) may_rest: bool,
}

pub(crate) struct Kernels {
    prepare_plain: Kernel,
    prepare_swept: Kernel,
    prepare_exact: Kernel,
    axis: Kernel,
    keys: Kernel,
    keys_worlds: Kernel,
    order: Kernel,
    order_worlds: Kernel,
    scan: Kernel,
    sweep: Kernel,
    sweep_count: Kernel,
    unpack: Kernel,
    differences: Kernel,
    widen: Kernel,
    patch: Kernel,
    /// Blocks of the sweep that fill the device.
    sweep_blocks: u32,
}

/// The kernels' image on a device; loaded once, however many parts of the engine have kernels of it.
pub(crate) fn module(device: &Device) -> Result<Module> {
    let image = &radsweep_kernels::SAP;
    device.load(image.name, image.ptx())
}

/// Blocks of `threads` for `items`. Items are at most 2^32 times 1,024, so the blocks can be numbered.
pub(crate) fn blocks(items: usize, threads: u32) -> u32 {
    u32::try_from(items.div_ceil(threads as usize)).unwrap_or(u32::MAX)
}

pub(crate) fn linear(items: usize) -> Launch {
    Launch::linear(blocks(items, THREADS), THREADS)
}

impl Kernels {
    pub(crate) fn load(device: &Device) -> Result<Self> {
        let module = module(device)?;
        let sweep = module.kernel("sap_sweep")?;
        let sweep_blocks =
            device.info().multiprocessors * sweep.blocks_per_multiprocessor(THREADS, 0)?.max(1);
        Ok(Self {
            prepare_plain: module.kernel("sap_prepare_plain")?,
            prepare_swept: module.kernel("sap_prepare_swept")?,
            prepare_exact: module.kernel("sap_prepare_exact")?,
            axis: module.kernel("sap_axis")?,
            keys: module.kernel("sap_keys")?,
            keys_worlds: module.kernel("sap_keys_worlds")?,
            order: module.kernel("sap_order")?,
            order_worlds: module.kernel("sap_order_worlds")?,
            scan: module.kernel("sap_scan")?,
            sweep,
            sweep_count: module.kernel("sap_sweep_count")?,
            unpack: module.kernel("sap_unpack")?,
            differences: module.kernel("sap_differences")?,
            widen: module.kernel("sap_widen")?,
            patch: module.kernel("sap_patch")?,
            sweep_blocks,
        })
    }

    /// # Safety
    ///
    /// At `boxes` are `p.n` boxes, at an address that is a multiple of 8; the addresses in `p` are of memory for as many
    /// elements as it says.
    pub(crate) unsafe fn prepare_plain(
        &self,
        stream: &Stream,
        boxes: u64,
        p: Prepare,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe {
            stream.launch(
                &self.prepare_plain,
                &linear(p.n as usize),
                &args![boxes, ByValue(p)],
            )
        }
    }

    /// # Safety
    ///
    /// As for `prepare_plain`, with as many boxes at `end`.
    pub(crate) unsafe fn prepare_swept(
        &self,
        stream: &Stream,
        start: u64,
        end: u64,
        p: Prepare,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe {
            stream.launch(
                &self.prepare_swept,
                &linear(p.n as usize),
                &args![start, end, ByValue(p)],
            )
        }
    }

    /// # Safety
    ///
    /// As for `prepare_plain`; the boxes are `f64` ones at a multiple of 16.
    pub(crate) unsafe fn prepare_exact(
        &self,
        stream: &Stream,
        boxes: u64,
        p: Prepare,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe {
            stream.launch(
                &self.prepare_exact,
                &linear(p.n as usize),
                &args![boxes, ByValue(p)],
            )
        }
    }

    /// Chooses the axis from every `n / m`-th box, with `m` as the CPU engine has it.
    ///
    /// # Safety
    ///
    /// `state` is the address of the counters, `worlds` that of a world for each box, or 0.
    pub(crate) unsafe fn axis(
        &self,
        stream: &Stream,
        stored: Slice<Aabb>,
        worlds: u64,
        state: u64,
    ) -> Result<()> {
        let n = stored.len();
        let sampled = (n / 128).clamp(192, 2048).min(n) as u32;
        let launch = Launch {
            grid: (sampled.div_ceil(WARP), 3, 1),
            ..Launch::linear(1, THREADS)
        };
        // SAFETY: the caller's promise; `sampled` is at most `n` and what the kernel has room for.
        unsafe {
            stream.launch(
                &self.axis,
                &launch,
                &args![stored, worlds, n as u32, sampled, state],
            )
        }
    }

    /// # Safety
    ///
    /// `state` is the address of the counters.
    pub(crate) unsafe fn keys(
        &self,
        stream: &Stream,
        stored: Slice<Aabb>,
        state: u64,
        keys: SliceMut<u32>,
    ) -> Result<()> {
        let n = stored.len() as u32;
        // SAFETY: the caller's promise; there are as many keys as boxes.
        unsafe {
            stream.launch(
                &self.keys,
                &linear(stored.len()),
                &args![stored, n, state, keys],
            )
        }
    }

    /// # Safety
    ///
    /// As for `keys`; no world is above `last_world`.
    pub(crate) unsafe fn keys_worlds(
        &self,
        stream: &Stream,
        stored: Slice<Aabb>,
        state: u64,
        worlds: Slice<u32>,
        last_world: u32,
        keys: SliceMut<u64>,
    ) -> Result<()> {
        let n = stored.len() as u32;
        // SAFETY: the caller's promise; there are as many worlds and keys as boxes.
        unsafe {
            stream.launch(
                &self.keys_worlds,
                &linear(stored.len()),
                &args![stored, n, state, worlds, last_world, keys],
            )
        }
    }

    /// Stores the boxes in the order of their keys, and makes the work list of the sweep.
    ///
    /// # Safety
    ///
    /// `boxes` and `sorted` have addresses of memory for all boxes, in whole tiles; `state` is that of the counters.
    pub(crate) unsafe fn order(
        &self,
        stream: &Stream,
        boxes: SortedBoxes,
        rule: SweepRule,
        state: u64,
        sorted: Sorted,
    ) -> Result<()> {
        let SortedBoxes {
            keys,
            index,
            stored,
        } = boxes;
        let n = stored.len();
        let tiles = n.div_ceil(TILE);
        let launch = Launch::linear(blocks(tiles, ORDER_THREADS / WARP), ORDER_THREADS);
        let kernel = match keys {
            SortedKeys::Plain(_) => &self.order,
            SortedKeys::WithWorlds(_) => &self.order_worlds,
        };
        let (SortedKeys::Plain(keys) | SortedKeys::WithWorlds(keys)) = keys;
        // SAFETY: the caller's promise.
        unsafe {
            stream.launch(
                kernel,
                &launch,
                &args![
                    keys,
                    index,
                    stored,
                    n as u32,
                    tiles as u32,
                    u32::from(rule.open),
                    u32::from(rule.may_rest),
                    state,
                    ByValue(sorted)
                ],
            )
        }
    }

    /// Sums before each count, and the sum of all at the end and at the address `total`, if that is not 0.
    ///
    /// # Safety
    ///
    /// At `total` is room for a number.
    pub(crate) unsafe fn scan(
        &self,
        stream: &Stream,
        counts: Slice<u32>,
        sums: SliceMut<u64>,
        total: u64,
    ) -> Result<()> {
        let sums = sums.range(..=counts.len())?;
        // SAFETY: there is one sum more than counts; `total` by the caller's promise.
        unsafe {
            stream.launch(
                &self.scan,
                &Launch::linear(1, 1024),
                &args![counts, counts.len() as u64, sums, total],
            )
        }
    }

    /// # Safety
    ///
    /// The addresses in `input` and `keys` are of memory for as many elements as they say; counters for the sweep are zero.
    pub(crate) unsafe fn sweep(
        &self,
        stream: &Stream,
        input: SweepInput,
        keys: Keys,
    ) -> Result<()> {
        let launch = Launch::linear(self.sweep_blocks, THREADS);
        // SAFETY: the caller's promise; the kernel writes no more keys than the capacity.
        unsafe { stream.launch(&self.sweep, &launch, &args![ByValue(input), ByValue(keys)]) }
    }

    /// # Safety
    ///
    /// As for `sweep`; `by_a` has a count, zero at first, for each `a`.
    pub(crate) unsafe fn sweep_count(
        &self,
        stream: &Stream,
        input: SweepInput,
        by_a: SliceMut<u32>,
    ) -> Result<()> {
        let launch = Launch::linear(self.sweep_blocks, THREADS);
        // SAFETY: the caller's promise.
        unsafe { stream.launch(&self.sweep_count, &launch, &args![ByValue(input), by_a]) }
    }

    /// Makes pairs of packed keys where they lie, as many as `count` says.
    pub(crate) fn unpack(
        &self,
        stream: &Stream,
        count: Slice<u64>,
        keys: SliceMut<u64>,
        bits: u32,
    ) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        // SAFETY: each thread reads its key before it writes its pair, of the same size, in its place.
        unsafe {
            stream.launch(
                &self.unpack,
                &linear(keys.len()),
                &args![keys, keys.len() as u64, count, bits, keys.ptr()],
            )
        }
    }

    /// Writes the pairs of each list that the other lacks, as far as there is room, and counts them.
    ///
    /// # Safety
    ///
    /// The addresses in `passed` are of what [`PassedDifferences`] says.
    pub(crate) unsafe fn differences(
        &self,
        stream: &Stream,
        passed: PassedDifferences,
    ) -> Result<()> {
        let most = passed.lists.iter().map(|list| list.n).max().unwrap_or(0);
        let launch = Launch {
            grid: (blocks(most as usize, EVENT_ITEMS as u32).max(1), 2, 1),
            ..Launch::linear(1, THREADS)
        };
        // SAFETY: the caller's promise; nothing is written beyond the room.
        unsafe { stream.launch(&self.differences, &launch, &args![ByValue(passed)]) }
    }

    /// `f32` boxes as `f64` boxes.
    pub(crate) fn widen(
        &self,
        stream: &Stream,
        boxes: Slice<Aabb>,
        wide: SliceMut<Aabb64>,
    ) -> Result<()> {
        let numbers = 6 * boxes.len();
        // SAFETY: there are as many wide boxes.
        unsafe {
            stream.launch(
                &self.widen,
                &linear(numbers),
                &args![boxes, numbers as u64, wide],
            )
        }
    }

    /// Puts boxes that have changed where they belong, with their filters and worlds.
    ///
    /// # Safety
    ///
    /// At `filters` and `worlds` is one for each box, or they are 0; the patches are of those boxes.
    pub(crate) unsafe fn patch(
        &self,
        stream: &Stream,
        patches: Slice<Patch>,
        boxes: SliceMut<Aabb>,
        filters: u64,
        worlds: u64,
    ) -> Result<()> {
        let n = patches.len();
        if n == 0 {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe {
            stream.launch(
                &self.patch,
                &linear(n),
                &args![patches, n as u64, boxes, filters, worlds],
            )
        }
    }
}
