//! Boxes held apart (`kernels/sap/apart.cuh`): static and sleeping ones that have stayed as they are for some frames. They are put
//! into a grid of their own once, and the pairs among them, each of a static box with a sleeping one, are kept as a list. From
//! then on a frame sorts and tests the other boxes, tests those against the grid, and begins its list with the pairs kept.
//!
//! Whether they are still as they were is seen by the pass that reads all boxes, so the host learns it with the counters of the
//! frame: if not, the frame is done again as a whole, and it takes longer until boxes are held apart the next time.

use crate::cuda::abi::{Accept, GRID_WORDS, Keys, State};
use crate::cuda::find::bound::Finder;
use crate::cuda::find::grid::{Asked, Grid};
use crate::cuda::input::scene::{Scene, address};
use crate::cuda::kernels::{Kernels, blocks, linear, module};
use crate::cuda::memory::Grow;
use crate::policy::{Hysteresis, Limits};
use crate::{Error, Filter, Result};
use gpu::{Buffer, ByValue, Device, Kernel, Launch, Slice, Stream, args};

/// Threads of a block that splits, and the boxes it takes.
const SPLIT_THREADS: u32 = 256;
/// Frames that static and sleeping boxes must have stayed unchanged, and how long a split must last.
const LIMITS: Limits = Limits {
    min_quiet_frames: 2,
    max_quiet_frames: 64,
    worth: 4,
};
/// They are held apart where they are this many or more, and at least one in so many boxes: the launches that it takes are
/// some 10 us, what 30,000 boxes take to sort and sweep.
pub(crate) const FEWEST: usize = 1 << 15;
const SHARE: usize = 4;
/// Room for pairs among them at first.
const FIRST_PAIRS: usize = 1024;

/// The static and sleeping boxes that are left out of what is sorted, and the pairs among them.
pub(crate) struct RestingSet {
    split_count: Kernel,
    split: Kernel,
    gather: Kernel,
    number: Kernel,
    seed: Kernel,
    grid: Grid,
    /// The counters of the grid: boxes placed, levels.
    table: Buffer<State>,
    /// The boxes held, as they were put into the grid, and the others of the frame at hand; their numbers in the frame.
    held: Scene,
    moving: Scene,
    held_ids: Grow<u32>,
    moving_ids: Grow<u32>,
    large: Grow<u32>,
    counts: Grow<u32>,
    places: Grow<u64>,
    /// Pairs among those held, packed.
    pairs: Grow<u64>,
    pair_count: usize,
    fewest: usize,
    /// Whether boxes are held apart, and when they are next.
    policy: Hysteresis,
}

impl RestingSet {
    pub(crate) fn new(stream: &Stream, fewest: usize) -> Result<Self> {
        let device: &Device = stream.device();
        let module = module(device)?;
        Ok(Self {
            split_count: module.kernel("sap_split_count")?,
            split: module.kernel("sap_split")?,
            gather: module.kernel("sap_gather_boxes")?,
            number: module.kernel("sap_number")?,
            seed: module.kernel("sap_seed")?,
            grid: Grid::new(device)?,
            table: stream.alloc_zeroed(1)?,
            held: Scene::default(),
            moving: Scene::default(),
            held_ids: Grow::default(),
            moving_ids: Grow::default(),
            large: Grow::default(),
            counts: Grow::default(),
            places: Grow::default(),
            pairs: Grow::default(),
            pair_count: 0,
            fewest: fewest.max(1),
            policy: Hysteresis::new(LIMITS),
        })
    }

    /// Whether boxes are held apart.
    pub(crate) const fn is_on(&self) -> bool {
        self.policy.in_use()
    }

    /// How many.
    pub(crate) const fn len(&self) -> usize {
        if self.is_on() { self.held.n } else { 0 }
    }

    /// The other boxes of the frame at hand.
    pub(crate) const fn moving(&self) -> &Scene {
        &self.moving
    }

    /// The address of their numbers in the frame.
    pub(crate) fn moving_ids(&self) -> u64 {
        self.moving_ids.ptr()
    }

    /// Holds none apart: those that were are not as they were.
    pub(crate) fn release(&mut self) {
        self.policy.end();
    }

    /// Takes note of a frame that is done: whether static and sleeping boxes stayed as they were.
    pub(crate) fn note(&mut self, stayed: bool) {
        if stayed {
            self.policy.count_quiet();
        } else {
            self.policy.end();
        }
    }

    /// Whether they have stayed so for long enough to hold them apart.
    pub(crate) const fn is_due(&self) -> bool {
        self.policy.is_due()
    }

    /// Holds the static and sleeping boxes of a frame that is done apart, if they are enough.
    ///
    /// # Safety
    ///
    /// `accept` has addresses of the scene's lists, or 0.
    pub(crate) unsafe fn take(
        &mut self,
        stream: &Stream,
        kernels: &Kernels,
        scene: &Scene,
        accept: Accept,
        bits: u32,
        limit: u64,
    ) -> Result<()> {
        // Not again soon, unless it is of use.
        let policy = self.policy.clone();
        self.policy.postpone();
        let Some(filters) = &scene.filters else {
            return Ok(());
        };
        let n = scene.n;
        let moving = self.split(stream, kernels, filters.part(n)?)?;
        let held = n - moving;
        if held < self.fewest || held < n / SHARE {
            return Ok(());
        }
        self.moving.n = moving;
        self.large.reserve(stream, moving)?;
        let ids = self.held_ids.part(held)?;
        Self::gather(&self.gather, stream, &mut self.held, scene, ids)?;
        stream.fill_bytes(self.table.slice_mut(), 0)?;
        let table = self.table.ptr();
        self.grid.forget();
        self.grid.plan(stream, &self.held)?;
        self.grid.arrange(stream, &self.held, ids.ptr(), table)?;
        let asked = Asked {
            accept,
            worlds: address(&scene.worlds),
            state: table,
            limit: Finder::Cells.limit(n),
        };
        // SAFETY: the caller's promise.
        if unsafe { self.find_pairs(stream, asked, bits, limit)? } {
            self.policy = policy;
            self.policy.begin();
        }
        Ok(())
    }

    /// Writes the numbers of both kinds of boxes, and answers how many are not static or asleep. Waits.
    fn split(
        &mut self,
        stream: &Stream,
        kernels: &Kernels,
        filters: Slice<Filter>,
    ) -> Result<usize> {
        let n = filters.len();
        let launch = Launch::linear(blocks(n, SPLIT_THREADS), SPLIT_THREADS);
        let number = launch.grid.0 as usize;
        let counts = self.counts.reserve(stream, number)?;
        let places = self.places.reserve(stream, number + 1)?;
        let moving = self.moving_ids.reserve(stream, n)?;
        let held = self.held_ids.reserve(stream, n)?;
        // SAFETY: a filter for each box, a count for each block, and both lists have room for all boxes.
        unsafe {
            stream.launch(
                &self.split_count,
                &launch,
                &args![filters, n as u32, counts],
            )?;
            kernels.scan(stream, self.counts.part(number)?, places, 0)?;
            stream.launch(
                &self.split,
                &launch,
                &args![
                    filters,
                    n as u32,
                    self.places.part(number + 1)?,
                    moving,
                    held
                ],
            )?;
        }
        let total = stream.to_vec(self.places.part(number + 1)?.range(number..)?)?;
        Ok(total.first().map_or(0, |&count| count as usize))
    }

    /// Finds the pairs among the boxes held, which `grid` has in their places. Waits. Answers whether they could be found: cells do
    /// not suit all scenes.
    ///
    /// # Safety
    ///
    /// As for [`Grid::find`].
    unsafe fn find_pairs(
        &mut self,
        stream: &Stream,
        asked: Asked,
        bits: u32,
        limit: u64,
    ) -> Result<bool> {
        self.pairs.reserve_exact(stream, FIRST_PAIRS)?;
        loop {
            let zero = self.table.slice_mut().cast::<u64>()?.range(..GRID_WORDS)?;
            stream.fill_bytes(zero, 0)?;
            let keys = Keys {
                keys: self.pairs.ptr(),
                capacity: self.pairs.capacity() as u64,
                rows: 0,
                ranks: 0,
                bits,
                pad: 0,
            };
            // SAFETY: the caller's promise; the keys have room for the capacity.
            unsafe { self.grid.find(stream, self.held.n, asked, keys)? };
            let state = stream.to_vec(self.table.slice())?;
            let (count, stopped) = state
                .first()
                .map_or((0, 0), |state| (state.pairs, state.stopped));
            if stopped != 0 {
                return Ok(false);
            }
            if count > limit {
                return Err(Error::TooManyPairs { count, limit });
            }
            if count <= keys.capacity {
                self.pair_count = count as usize;
                return Ok(true);
            }
            self.pairs.reserve_exact(stream, count as usize)?;
        }
    }

    /// Copies the boxes of `whole` with these numbers into a scene.
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
        // SAFETY: the numbers are those of boxes of `whole`, and there is room for as many.
        unsafe {
            stream.launch(
                kernel,
                &linear(n),
                &args![
                    whole.boxes()?,
                    address(&whole.worlds),
                    ids,
                    n as u32,
                    boxes,
                    worlds
                ],
            )?;
        }
        Ok(())
    }

    /// Takes the boxes that are not held out of a frame.
    pub(crate) fn gather_moving(&mut self, stream: &Stream, frame: &Scene) -> Result<()> {
        let ids = self.moving_ids.part(self.moving.n)?;
        Self::gather(&self.gather, stream, &mut self.moving, frame, ids)
    }

    /// Turns places among those boxes, at the address `index`, into their numbers in the frame.
    ///
    /// # Safety
    ///
    /// `index` has one for each.
    pub(crate) unsafe fn number(&self, stream: &Stream, index: u64) -> Result<()> {
        let n = self.moving.n;
        if n > 0 {
            // SAFETY: the caller's promise.
            unsafe {
                stream.launch(
                    &self.number,
                    &linear(n),
                    &args![self.moving_ids(), n as u32, index],
                )?;
            }
        }
        Ok(())
    }

    /// Begins the frame's list with the pairs among the boxes held.
    ///
    /// # Safety
    ///
    /// `keys` is the list, of which the counters at `state` count none yet.
    pub(crate) unsafe fn seed(&self, stream: &Stream, keys: Keys, state: u64) -> Result<()> {
        let count = self.pair_count;
        if count > 0 {
            // SAFETY: the caller's promise; nothing is written beyond the capacity.
            unsafe {
                stream.launch(
                    &self.seed,
                    &linear(count),
                    &args![self.pairs.ptr(), count as u64, ByValue(keys), state],
                )?;
            }
        }
        Ok(())
    }

    /// Finds the pairs of the other boxes with those held.
    ///
    /// # Safety
    ///
    /// As for [`Grid::find`].
    pub(crate) unsafe fn find(&self, stream: &Stream, asked: Asked, keys: Keys) -> Result<()> {
        let others = (self.moving.boxes()?, self.moving_ids(), self.large.ptr());
        // SAFETY: the caller's promise; the lists are as long as the boxes gathered.
        unsafe {
            self.grid
                .find_apart(stream, (self.table.ptr(), self.held.n), others, asked, keys)
        }
    }
}
