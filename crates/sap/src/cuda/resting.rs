//! The resting set (`kernels/sap/resting.cuh`): static and sleeping boxes that have been unchanged
//! for some frames. They are put into a grid of their own once, and the pairs among them, each of a
//! static box with a sleeping one, are kept as a list. From then on a frame sorts and searches the
//! other boxes, the active ones, tests those against the grid, and begins its list with the pairs
//! kept.
//!
//! The pass that reads all boxes sees whether the resting ones have changed, so the host learns it
//! with the counters of the frame. If they have, the frame is searched again as a whole, and the
//! wait for the next resting set is longer.

use crate::cuda::abi::{Accept, Keys, State};
use crate::cuda::counters::Counters;
use crate::cuda::find::bound::Finder;
use crate::cuda::find::grid::{Grid, Others};
use crate::cuda::find::search::{Active, Search};
use crate::cuda::input::scene::{Scene, address};
use crate::cuda::launch::{THREADS, linear, module};
use crate::cuda::scan::Scan;
use crate::cuda::tuning::{FIRST_RESTING_PAIRS, MIN_RESTING_SHARE, RESTING_LIMITS};
use crate::policy::Hysteresis;
use crate::{Error, Filter, Result};
use gpu::{ByValue, DevicePtr, Grow, Kernel, Launch, Slice, Stream, args, blocks};

/// The static and sleeping boxes that are left out of the search, and the pairs among them.
pub(crate) struct RestingSet {
    split_count: Kernel,
    split: Kernel,
    gather: Kernel,
    translate: Kernel,
    add_pairs: Kernel,
    scan: Scan,
    grid: Grid,
    /// The counters of the grid: boxes arranged, levels.
    counters: Counters,
    /// The resting boxes as they were arranged, and the active ones of the uploaded frame.
    resting: Scene,
    active: Scene,
    /// The indices of both in the frame.
    resting_ids: Grow<u32>,
    active_ids: Grow<u32>,
    large: Grow<u32>,
    /// Active boxes by block of the split, and before each block.
    counts: Grow<u32>,
    before: Grow<u64>,
    /// Pairs among the resting boxes, packed.
    pairs: Grow<u64>,
    pair_count: usize,
    min_boxes: usize,
    /// Decides when to build the set, and whether it is in use.
    policy: Hysteresis,
}

impl RestingSet {
    pub(crate) fn new(stream: &Stream, min_boxes: usize) -> Result<Self> {
        let device = stream.device();
        let module = module(device)?;
        Ok(Self {
            split_count: module.kernel("sap_split_count")?,
            split: module.kernel("sap_split")?,
            gather: module.kernel("sap_gather_boxes")?,
            translate: module.kernel("sap_translate")?,
            add_pairs: module.kernel("sap_add_pairs")?,
            scan: Scan::new(device)?,
            grid: Grid::new(device, None)?,
            counters: Counters::new(stream)?,
            resting: Scene::default(),
            active: Scene::default(),
            resting_ids: Grow::default(),
            active_ids: Grow::default(),
            large: Grow::default(),
            counts: Grow::default(),
            before: Grow::default(),
            pairs: Grow::default(),
            pair_count: 0,
            min_boxes: min_boxes.max(1),
            policy: Hysteresis::new(RESTING_LIMITS),
        })
    }

    /// Tells whether there is a resting set.
    pub(crate) const fn in_use(&self) -> bool {
        self.policy.in_use()
    }

    /// Returns the number of resting boxes.
    pub(crate) const fn len(&self) -> usize {
        if self.in_use() { self.resting.n } else { 0 }
    }

    /// Returns the active boxes of the uploaded frame.
    pub(crate) fn active(&self) -> Active<'_> {
        Active {
            scene: &self.active,
            ids: self.active_ids.device_ptr(),
        }
    }

    /// Drops the resting set: it has changed, or is of no use.
    pub(crate) fn release(&mut self) {
        self.policy.end();
    }

    /// Records whether static and sleeping boxes were unchanged in a frame.
    pub(crate) fn record_frame(&mut self, is_unchanged: bool) {
        if is_unchanged {
            self.policy.count_quiet();
        } else {
            self.policy.end();
        }
    }

    /// Tells whether they have been unchanged for long enough to build the set.
    pub(crate) const fn is_due(&self) -> bool {
        self.policy.is_due()
    }

    /// Builds the set from the static and sleeping boxes of a frame, if they are enough.
    ///
    /// # Safety
    ///
    /// `accept` has addresses of the scene's lists, or null.
    pub(crate) unsafe fn build(
        &mut self,
        stream: &Stream,
        scene: &Scene,
        accept: Accept,
        limit: u64,
    ) -> Result<()> {
        // An error or a set of no use leaves the longest wait. A set in use restores the policy.
        let policy = self.policy.clone();
        self.policy.postpone();
        let Some(filters) = &scene.filters else {
            return Ok(());
        };
        let n = scene.n;
        let active = self.split(stream, filters.part(n)?)?;
        let resting = n - active;
        if resting < self.min_boxes || resting < n / MIN_RESTING_SHARE {
            return Ok(());
        }
        self.active.n = active;
        self.large.reserve(stream, active)?;
        let ids = self.resting_ids.part(resting)?;
        gather(&self.gather, stream, &mut self.resting, scene, ids)?;
        self.counters.reset(stream)?;
        self.grid.drop_plan();
        self.grid.plan(stream, &self.resting)?;
        let active = Active {
            scene: &self.resting,
            ids: ids.device_ptr(),
        };
        let search = Search {
            accept,
            worlds: address(&scene.worlds),
            state: self.counters.ptr(),
            limit: Finder::Cells.limit(n),
        };
        // SAFETY: the indices were written by the split; `accept` by the caller's promise.
        let is_found = unsafe {
            self.grid.arrange(stream, active, search.state)?;
            self.find_pairs(stream, search, scene.index_bits(), limit)?
        };
        if is_found {
            self.policy = policy;
            self.policy.begin();
        }
        Ok(())
    }

    /// Writes the indices of both kinds of boxes, and returns how many are active. Waits.
    fn split(&mut self, stream: &Stream, filters: Slice<Filter>) -> Result<usize> {
        let n = filters.len();
        let launch = Launch::linear(blocks(n, THREADS), THREADS);
        let blocks = launch.grid.0 as usize;
        let counts = self.counts.reserve(stream, blocks)?;
        let sums = self.before.reserve(stream, blocks + 1)?;
        let active = self.active_ids.reserve(stream, n)?;
        let resting = self.resting_ids.reserve(stream, n)?;
        // SAFETY: there are a filter for each box, a count for each block, and memory for all boxes
        // in both lists.
        unsafe {
            let boxes = n as u32;
            let arguments = args![filters, boxes, counts];
            stream.launch(&self.split_count, &launch, &arguments)?;
            self.scan.sums(stream, self.counts.part(blocks)?, sums)?;
            let before = self.before.part(blocks + 1)?;
            let arguments = args![filters, boxes, before, active, resting];
            stream.launch(&self.split, &launch, &arguments)?;
        }
        let total = stream.to_vec(self.before.part(blocks + 1)?.range(blocks..)?)?;
        Ok(total.first().map_or(0, |&count| count as usize))
    }

    /// Finds the pairs among the resting boxes, which the grid has arranged. Waits. Returns false
    /// where cells do not suit them.
    ///
    /// # Safety
    ///
    /// As for [`Grid::find`].
    unsafe fn find_pairs(
        &mut self,
        stream: &Stream,
        search: Search,
        bits: u32,
        limit: u64,
    ) -> Result<bool> {
        self.pairs.reserve_exact(stream, FIRST_RESTING_PAIRS)?;
        loop {
            self.counters.restart_search(stream)?;
            let capacity = self.pairs.capacity();
            let keys = Keys::new(&self.pairs.part_mut(capacity)?, bits);
            // SAFETY: the caller's promise; the keys have memory for the capacity.
            unsafe { self.grid.find(stream, self.resting.n, search, keys)? };
            let State { pairs, stopped, .. } = self.counters.read(stream)?;
            if stopped != 0 {
                return Ok(false);
            }
            if pairs > limit {
                let count = pairs;
                return Err(Error::TooManyPairs { count, limit });
            }
            let count = pairs as usize;
            if count <= capacity {
                self.pair_count = count;
                return Ok(true);
            }
            self.pairs.reserve_exact(stream, count)?;
        }
    }

    /// Copies the active boxes of a frame next to each other.
    pub(crate) fn gather_active(&mut self, stream: &Stream, frame: &Scene) -> Result<()> {
        let ids = self.active_ids.part(self.active.n)?;
        gather(&self.gather, stream, &mut self.active, frame, ids)
    }

    /// Turns ranks among the active boxes, at the address `index`, into indices in the frame.
    ///
    /// # Safety
    ///
    /// `index` has one for each active box.
    pub(crate) unsafe fn translate(&self, stream: &Stream, index: DevicePtr<u32>) -> Result<()> {
        let n = self.active.n;
        if n > 0 {
            // SAFETY: the caller's promise.
            unsafe {
                stream.launch(
                    &self.translate,
                    &linear(n),
                    &args![self.active_ids.device_ptr(), n as u32, index],
                )?;
            }
        }
        Ok(())
    }

    /// Begins the frame's list with the pairs among the resting boxes.
    ///
    /// # Safety
    ///
    /// `keys` is the list, of which the counters at `state` count no pair yet.
    pub(crate) unsafe fn add_pairs(
        &self,
        stream: &Stream,
        keys: Keys,
        state: DevicePtr<State>,
    ) -> Result<()> {
        let count = self.pair_count;
        if count > 0 {
            // SAFETY: the caller's promise; nothing is written beyond the capacity.
            unsafe {
                stream.launch(
                    &self.add_pairs,
                    &linear(count),
                    &args![self.pairs.device_ptr(), count as u64, ByValue(keys), state],
                )?;
            }
        }
        Ok(())
    }

    /// Finds the pairs of the active boxes with the resting ones.
    ///
    /// # Safety
    ///
    /// As for [`Grid::find`].
    pub(crate) unsafe fn find(&self, stream: &Stream, search: Search, keys: Keys) -> Result<()> {
        let others = Others {
            active: self.active(),
            large: self.large.device_ptr(),
            table: self.counters.ptr(),
            arranged: self.resting.n,
        };
        // SAFETY: the caller's promise; the lists are as long as the boxes gathered.
        unsafe { self.grid.find_others(stream, others, search, keys) }
    }
}

/// Copies the boxes of `whole` at some indices into a scene.
fn gather(
    kernel: &Kernel,
    stream: &Stream,
    part: &mut Scene,
    whole: &Scene,
    ids: Slice<u32>,
) -> Result<()> {
    let n = ids.len();
    let (boxes, worlds) = part.begin_part(stream, whole, n)?;
    if n == 0 {
        return Ok(());
    }
    let (from, from_worlds) = (whole.boxes()?, address(&whole.worlds));
    // SAFETY: the indices are those of boxes of `whole`, and there is memory for as many.
    unsafe {
        stream.launch(
            kernel,
            &linear(n),
            &args![from, from_worlds, ids, n as u32, boxes, worlds],
        )?;
    }
    Ok(())
}
