//! [`crate::Strategy::Endpoints`]: Ha, Krüger and Silva 2009, §6.1 (`kernels/sap/endpoints.cuh`).
//!
//! Two records for each box are sorted on x. A scan over them gives the order of the boxes, and
//! where the run of candidates of each one ends: what the sweep finds by its own keys and by
//! searching. From there on the work is the same.

use crate::cuda::abi::{Sorted, State};
use crate::cuda::input::scene::{Scene, address};
use crate::cuda::launch::{THREADS, TILE, linear, module, tile_warps};
use crate::cuda::scan::Scan;
use crate::cuda::sorting::Sorting;
use crate::{Error, Result};
use gpu::{
    ByValue, Device, DevicePtr, Grow, Kernel, Launch, Slice, SliceMut, Stream, args, blocks,
};
use gpusort::cuda::Request;

/// Records that a block of the scan takes.
const RECORD_TILE: usize = 2048;

/// The max boxes whose records have indices of 32 bits.
const MAX_BOXES: usize = (u32::MAX / 2) as usize;

/// The records of a scene, and what is found by them.
pub(crate) struct Endpoints {
    make_keys: Kernel,
    make_keys_worlds: Kernel,
    count: Kernel,
    rank: Kernel,
    order: Kernel,
    scan: Scan,
    keys: Grow<u32>,
    world_keys: Grow<u64>,
    /// Indices of the keys, sorted.
    records: Grow<u32>,
    counts: Grow<u32>,
    before: Grow<u64>,
    /// For each box, how many boxes begin before it ends.
    until: Grow<u32>,
}

impl Endpoints {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        let module = module(device)?;
        Ok(Self {
            make_keys: module.kernel("sap_endpoint_keys")?,
            make_keys_worlds: module.kernel("sap_endpoint_keys_worlds")?,
            count: module.kernel("sap_endpoint_count")?,
            rank: module.kernel("sap_endpoint_rank")?,
            order: module.kernel("sap_endpoint_order")?,
            scan: Scan::new(device)?,
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
        if n > MAX_BOXES {
            return Err(Error::TooManyBoxes {
                boxes: n as u64,
                limit: MAX_BOXES as u64,
            });
        }
        let boxes = scene.boxes()?;
        if scene.worlds.is_some() {
            let keys = self.world_keys.reserve(stream, 2 * n)?;
            let (worlds, last) = (address(&scene.worlds), scene.last_world);
            // SAFETY: there are a world for each box, none above `last`, and two keys.
            unsafe {
                stream.launch(
                    &self.make_keys_worlds,
                    &linear(n),
                    &args![boxes, n as u32, open, worlds, last, keys],
                )?;
            }
        } else {
            let keys = self.keys.reserve(stream, 2 * n)?;
            // SAFETY: there are two keys for each box.
            unsafe {
                stream.launch(
                    &self.make_keys,
                    &linear(n),
                    &args![boxes, n as u32, open, keys],
                )?;
            }
        }
        Ok(())
    }

    /// Sorts the records of the `scene` whose keys were made last, and ranks its boxes: `index`
    /// gets them in the order of their min ends, the empty ones last.
    pub(crate) fn sort(
        &mut self,
        stream: &Stream,
        sorting: &mut Sorting,
        scene: &Scene,
        open: bool,
        index: SliceMut<u32>,
    ) -> Result<()> {
        let (n, ends) = (scene.n, 2 * scene.n);
        let records = self.records.reserve(stream, ends)?;
        if scene.worlds.is_some() {
            let request = Request::index(self.world_keys.part(ends)?, records);
            let bits = u64::BITS - scene.last_world.leading_zeros();
            sorting.sort(stream, request, 0..bits)?;
        } else {
            let request = Request::index(self.keys.part(ends)?, records);
            sorting.sort(stream, request, 0..u32::BITS)?;
        }

        let tiles = ends.div_ceil(RECORD_TILE);
        let launch = Launch::linear(blocks(tiles, 1), THREADS);
        let (records, open) = (self.records.part(ends)?, u32::from(open));
        let counts = self.counts.reserve(stream, tiles)?;
        // SAFETY: there are a count for each block, and as many records as the kernel takes from
        // the number of boxes.
        unsafe {
            stream.launch(
                &self.count,
                &launch,
                &args![records, n as u32, open, counts],
            )?;
        }
        let before = self.before.reserve(stream, tiles + 1)?;
        self.scan.sums(stream, self.counts.part(tiles)?, before)?;
        let (before, until) = (self.before.part(tiles + 1)?, self.until.reserve(stream, n)?);
        // SAFETY: the records contain each box twice, once as a min end, so that all ranks are
        // below the number of boxes, for which `index` and `until` have memory.
        unsafe {
            stream.launch(
                &self.rank,
                &launch,
                &args![records, n as u32, open, before, index, until],
            )?;
        }
        Ok(())
    }

    /// Stores the boxes that were ranked last in their order, and counts the units of each tile.
    ///
    /// # Safety
    ///
    /// `sorted` has addresses of memory for all boxes, in whole tiles; `state` is that of the
    /// counters.
    pub(crate) unsafe fn order(
        &self,
        stream: &Stream,
        index: Slice<u32>,
        scene: &Scene,
        state: DevicePtr<State>,
        may_skip: u32,
        sorted: ByValue<Sorted>,
    ) -> Result<()> {
        let (n, tiles) = (scene.n, scene.n.div_ceil(TILE));
        let (until, boxes) = (self.until.part(n)?, scene.boxes()?);
        // SAFETY: the caller's promise.
        unsafe {
            stream.launch(
                &self.order,
                &tile_warps(tiles),
                &args![
                    until,
                    index,
                    boxes,
                    n as u32,
                    tiles as u32,
                    may_skip,
                    state,
                    sorted
                ],
            )?;
        }
        Ok(())
    }
}
