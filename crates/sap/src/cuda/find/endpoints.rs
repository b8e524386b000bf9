//! [`crate::Strategy::Endpoints`]: Ha, Krüger and Silva 2009, §6.1 (`kernels/sap/endpoints.cuh`). Two records for each box
//! are sorted on x, and a scan over them gives the order of the boxes and where each one's run of candidates ends: what
//! the sweep finds by its own keys and by searching. From there on the work is the same.

use crate::cuda::abi::Sorted;
use crate::cuda::input::scene::{Scene, address};
use crate::cuda::kernels::{Kernels, ORDER_THREADS, TILE, WARP, blocks, linear, module};
use crate::cuda::memory::Grow;
use crate::{Error, Result};
use gpu::{ByValue, Device, Kernel, Launch, Slice, SliceMut, Stream, args};
use gpusort::SortOptions;
use gpusort::cuda::{Payload, Request, Sorter};

/// Records that a block of the scan takes, and its threads.
const RECORD_TILE: usize = 2048;
const RECORD_THREADS: u32 = 256;

/// The most boxes whose records can be numbered.
const MOST_BOXES: usize = (u32::MAX / 2) as usize;

/// The records of a scene, and what is found by them.
pub(crate) struct Endpoints {
    make_keys: Kernel,
    make_keys_worlds: Kernel,
    count: Kernel,
    rank: Kernel,
    order: Kernel,
    keys: Grow<u32>,
    world_keys: Grow<u64>,
    /// Places among the keys, sorted.
    records: Grow<u32>,
    counts: Grow<u32>,
    before: Grow<u64>,
    /// By box: how many boxes begin before it ends.
    until: Grow<u32>,
}

/// What sorting the records needs of the engine.
pub(crate) struct Tools<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) kernels: &'a Kernels,
    pub(crate) sorter: &'a Sorter,
    pub(crate) options: &'a SortOptions,
    pub(crate) scratch: &'a mut gpu::Scratch,
    pub(crate) open: bool,
}

impl Endpoints {
    pub(crate) fn load(device: &Device) -> Result<Self> {
        let module = module(device)?;
        Ok(Self {
            make_keys: module.kernel("sap_endpoint_keys")?,
            make_keys_worlds: module.kernel("sap_endpoint_keys_worlds")?,
            count: module.kernel("sap_endpoint_count")?,
            rank: module.kernel("sap_endpoint_rank")?,
            order: module.kernel("sap_endpoint_order")?,
            keys: Grow::default(),
            world_keys: Grow::default(),
            records: Grow::default(),
            counts: Grow::default(),
            before: Grow::default(),
            until: Grow::default(),
        })
    }

    /// Makes the sort keys, two for each of the boxes.
    pub(crate) fn make_keys(&mut self, stream: &Stream, scene: &Scene, open: bool) -> Result<()> {
        let (n, open) = (scene.n, u32::from(open));
        if n > MOST_BOXES {
            return Err(Error::TooManyBoxes {
                boxes: n as u64,
                limit: MOST_BOXES as u64,
            });
        }
        let boxes = scene.boxes()?;
        if scene.worlds.is_some() {
            let keys = self.world_keys.reserve(stream, 2 * n)?;
            let (worlds, last) = (address(&scene.worlds), scene.last_world);
            // SAFETY: a world for each box, none above `last`, and two keys.
            unsafe {
                stream.launch(
                    &self.make_keys_worlds,
                    &linear(n),
                    &args![boxes, n as u32, open, worlds, last, keys],
                )?
            };
        } else {
            let keys = self.keys.reserve(stream, 2 * n)?;
            // SAFETY: two keys for each box.
            unsafe {
                stream.launch(
                    &self.make_keys,
                    &linear(n),
                    &args![boxes, n as u32, open, keys],
                )?
            };
        }
        Ok(())
    }

    /// Sorts the records of the `scene` whose keys were made last, and ranks its boxes: `index` gets them in order of their
    /// least ends, the empty ones last.
    pub(crate) fn sort(
        &mut self,
        tools: &mut Tools,
        scene: &Scene,
        index: SliceMut<u32>,
    ) -> Result<()> {
        let (stream, algorithm) = (tools.stream, tools.options.algorithm);
        let (n, ends) = (scene.n, 2 * scene.n);
        let records = self.records.reserve(stream, ends)?;
        if scene.worlds.is_some() {
            let bits = 64 - scene.last_world.leading_zeros();
            let bytes = Sorter::scratch_bytes_for::<u64>(algorithm, ends as u64, Payload::Index)?;
            tools.sorter.sort(
                stream,
                Request::index(self.world_keys.part(ends)?, records),
                tools.scratch.reserve(stream, bytes as usize)?,
                &tools.options.clone().bits(0..bits),
            )?;
        } else {
            let bytes = Sorter::scratch_bytes_for::<u32>(algorithm, ends as u64, Payload::Index)?;
            tools.sorter.sort(
                stream,
                Request::index(self.keys.part(ends)?, records),
                tools.scratch.reserve(stream, bytes as usize)?,
                tools.options,
            )?;
        }

        let tiles = ends.div_ceil(RECORD_TILE);
        let launch = Launch::linear(blocks(tiles, 1), RECORD_THREADS);
        let (records, open) = (self.records.part(ends)?, u32::from(tools.open));
        let counts = self.counts.reserve(stream, tiles)?;
        // SAFETY: a count for each block, and as many records as the kernel takes from the number of boxes.
        unsafe {
            stream.launch(
                &self.count,
                &launch,
                &args![records, n as u32, open, counts],
            )?
        };
        let before = self.before.reserve(stream, tiles + 1)?;
        // SAFETY: no total is asked for.
        unsafe {
            tools
                .kernels
                .scan(stream, self.counts.part(tiles)?, before, 0)?;
        }
        let (before, until) = (self.before.part(tiles + 1)?, self.until.reserve(stream, n)?);
        // SAFETY: the records hold each box twice, once as a least end, so that all ranks are below the number of boxes, for
        // which `index` and `until` have room.
        unsafe {
            stream.launch(
                &self.rank,
                &launch,
                &args![records, n as u32, open, before, index, until],
            )?
        };
        Ok(())
    }

    /// As [`Kernels::order`], for the boxes that were ranked last.
    ///
    /// # Safety
    ///
    /// `sorted` has addresses of memory for all boxes, in whole tiles; `state` is that of the counters.
    pub(crate) unsafe fn order(
        &self,
        stream: &Stream,
        index: Slice<u32>,
        scene: &Scene,
        may_rest: bool,
        state: u64,
        sorted: Sorted,
    ) -> Result<()> {
        let (n, tiles) = (scene.n, scene.n.div_ceil(TILE));
        let launch = Launch::linear(blocks(tiles, ORDER_THREADS / WARP), ORDER_THREADS);
        let (until, boxes) = (self.until.part(n)?, scene.boxes()?);
        // SAFETY: the caller's promise.
        unsafe {
            stream.launch(
                &self.order,
                &launch,
                &args![
                    until,
                    index,
                    boxes,
                    n as u32,
                    tiles as u32,
                    u32::from(may_rest),
                    state,
                    ByValue(sorted)
                ],
            )?
        };
        Ok(())
    }
}
