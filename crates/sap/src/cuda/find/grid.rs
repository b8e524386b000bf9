//! The grid: boxes by a hash of their cells, of several sizes (`kernels/sap/grid.cuh`), and the
//! search of these cells.

use crate::choice::Choice;
use crate::cuda::abi::{Accept, Clear, Keys, State, counter};
use crate::cuda::find::bound::Finder;
use crate::cuda::find::cut::{Cut, Record};
use crate::cuda::find::forecast::Forecast;
use crate::cuda::find::high::{self, HighList};
use crate::cuda::find::regions::{Division, Memory, Regions};
use crate::cuda::find::sample::{Sampled, candidates};
use crate::cuda::find::search::{Active, Search};
use crate::cuda::find::width::{self, WIDTHS};
use crate::cuda::input::scene::{Scene, address};
use crate::cuda::launch::{WARP, linear, module};
use crate::cuda::memory::HostBuffer;
use crate::cuda::offsets::Offsets;
use crate::cuda::tuning::{CUT_SAMPLE, MIN_DIVIDED, MIN_FOR_8, NEAR_SHARE, OTHER_COUNT, SEARCH_MS};
use crate::subdivision::Subdivision;
use crate::{Aabb, Result};
use bytemuck::{Pod, Zeroable};
use gpu::{
    ByValue, Device, DevicePtr, Event, Grow, Kernel, Launch, SliceMut, Stream, args, assert_layout,
    blocks,
};
use std::mem;
use std::thread::{Builder, JoinHandle};

struct Kernels {
    count: Kernel,
    place: Kernel,
    sample: Kernel,
    /// The search, for each number of boxes that a warp takes ([`WIDTHS`]).
    sweep: [Kernel; 3],
    count_pairs: Kernel,
    /// The search for boxes outside the grid: with 8 a warp, with 2, and for large ones.
    others: [Kernel; 3],
}

/// `GridInput` of the kernels.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Input {
    cut: Cut,
    records: DevicePtr<Record>,
    starts: DevicePtr<u32>,
    worlds: DevicePtr<u32>,
    high: DevicePtr<u32>,
    table: DevicePtr<State>,
    state: DevicePtr<State>,
    accept: Accept,
    limit: u64,
}

assert_layout!(
    Input, 184:
    cut 0, records 64, starts 72, worlds 80, high 88, table 96, state 104, accept 112, limit 176,
);

/// `RestingInput` of the kernels.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct RestingInput {
    grid: Input,
    boxes: DevicePtr<Aabb>,
    ids: DevicePtr<u32>,
    n: u32,
    pad: u32,
    large: DevicePtr<u32>,
}

assert_layout!(RestingInput, 216: grid 0, boxes 184, ids 192, n 200, pad 204, large 208);

/// Boxes outside a grid, to be tested against those in it.
pub(crate) struct Others<'a> {
    pub(crate) active: Active<'a>,
    /// A list as long as there are such boxes, which is written.
    pub(crate) large: DevicePtr<u32>,
    /// The counters that were given to [`Grid::arrange`], and the boxes arranged.
    pub(crate) table: DevicePtr<State>,
    pub(crate) arranged: usize,
}

/// A cut, and the frames that it was made for.
struct CutPlan {
    cut: Cut,
    n: usize,
    worlds: bool,
    forecast: Forecast,
    /// The regions that the boxes go to first, if there are enough of them.
    division: Division,
    /// Whether boxes are spread over these.
    is_spread: bool,
    /// Whether few boxes are likely to be above the level with a block.
    are_few_high: bool,
}

impl CutPlan {
    /// Plans the cut of frames of `n` boxes by a sample of them.
    fn new(sample: &[Sampled], n: usize, worlds: bool) -> Self {
        let (cut, cost) = Cut::new(sample, n, worlds);
        let division = Division::new(cut.buckets(), n);
        Self {
            cut,
            n,
            worlds,
            forecast: Forecast::new(n, candidates(sample, n), cost),
            division,
            is_spread: division.is_spread(&cut, sample),
            are_few_high: high::are_few(&cut, sample, n),
        }
    }
}

/// A plan that a thread makes, while frames go on by the last one.
struct Planning {
    thread: JoinHandle<CutPlan>,
    /// Until it is taken, milliseconds of searches.
    left: f64,
}

/// A sample that is being downloaded, and when it is complete.
struct Sampling {
    n: usize,
    worlds: bool,
    is_done: Event,
}

/// A grid. Its memory is kept from update to update.
pub(crate) struct Grid {
    kernels: Kernels,
    /// Warps of a sweep that the device holds at once.
    warps: u32,
    plan: Option<CutPlan>,
    /// Whether the plan has become bad.
    is_bad: bool,
    /// The sample of this frame that a bad plan makes necessary, and the plan by such a sample.
    sampling: Option<Sampling>,
    planning: Option<Planning>,
    /// The tests a box in the frame that ended the last plan. A new plan ends beyond these only.
    floor: f64,
    cut: Cut,
    buckets: Offsets,
    regions: Regions,
    /// Min boxes that go to regions first.
    min_divided: usize,
    /// Whether boxes of the last frame lie far from those before them.
    are_apart: bool,
    records: Grow<Record>,
    high: HighList,
    /// The slots of boxes, [`SLOTS`] in each, or the records of regions.
    scratch: Grow<Record>,
    /// Whether boxes have gone to regions.
    has_divided: bool,
    sample: Grow<Sampled>,
    sample_read: HostBuffer<Sampled>,
}

/// The bucket of a box, and its rank there.
type Slot = [u32; 2];
/// Slots in the memory of a record.
const SLOTS: usize = size_of::<Record>() / size_of::<Slot>();
/// Threads of a block whose warps take 32 boxes: `SWEEP_THREADS` of the kernels.
const SWEEP_THREADS: u32 = 4 * WARP;
/// Of as many warps one counts how many of its boxes are near the one before: `NEAR_SAMPLE` of the
/// kernels.
const NEAR_SAMPLE: usize = 64;
/// Threads of a block whose warps take fewer.
const FEW_THREADS: u32 = 2 * WARP;

/// Returns the launch of such blocks for `boxes`, of which a warp takes `each`.
fn of_few(boxes: usize, each: u32) -> Launch {
    Launch::linear(blocks(boxes, FEW_THREADS / WARP * each), FEW_THREADS)
}

impl Grid {
    /// In frames of `min_divided` boxes or more, and of many in any case, boxes go to regions first
    /// where they are spread over these and, in the last frame, lay in no order.
    pub(crate) fn new(device: &Device, min_divided: Option<usize>) -> Result<Self> {
        let module = module(device)?;
        let with_8 = module.kernel("sap_grid_sweep_8")?;
        let resident = with_8.blocks_per_multiprocessor(FEW_THREADS, 0)?.max(1);
        Ok(Self {
            warps: device.info().multiprocessors * resident * (FEW_THREADS / WARP),
            kernels: Kernels {
                count: module.kernel("sap_grid_count")?,
                place: module.kernel("sap_grid_place")?,
                sample: module.kernel("sap_sample")?,
                sweep: [
                    module.kernel("sap_grid_sweep_32")?,
                    with_8,
                    module.kernel("sap_grid_sweep_4")?,
                ],
                count_pairs: module.kernel("sap_grid_count_pairs")?,
                others: [
                    module.kernel("sap_grid_resting_8")?,
                    module.kernel("sap_grid_resting_2")?,
                    module.kernel("sap_grid_resting_large")?,
                ],
            },
            plan: None,
            is_bad: false,
            sampling: None,
            planning: None,
            floor: 0.0,
            cut: Cut::zeroed(),
            buckets: Offsets::new(device)?,
            regions: Regions::new(device)?,
            min_divided: min_divided.map_or(MIN_DIVIDED, |n| n.min(MIN_DIVIDED)),
            are_apart: false,
            records: Grow::default(),
            high: HighList::default(),
            scratch: Grow::default(),
            has_divided: false,
            sample: Grow::default(),
            sample_read: HostBuffer::new(device, CUT_SAMPLE)?,
        })
    }

    /// Takes the cut of the last frames, if it suits a frame. Returns whether it does.
    pub(crate) fn keep_plan(&mut self, scene: &Scene) -> bool {
        let expected = self.choice().and_then(|(choice, _)| choice.subdivided_ms);
        let is_due = |planning: &mut Planning| {
            planning.left -= expected.unwrap_or(0.0).max(SEARCH_MS);
            planning.left <= 0.0
        };
        if let Some(planning) = self.planning.take_if(is_due) {
            self.plan = planning.thread.join().ok();
        }
        if let Some(plan) = &self.plan {
            self.cut = plan.cut;
        }
        scene.n == 0 || self.is_planned(scene)
    }

    /// Plans the cut of a frame: that of the last frames, or a new one, for which it waits only
    /// where the frame is unlike these.
    pub(crate) fn plan(&mut self, stream: &Stream, scene: &Scene) -> Result<()> {
        if self.keep_plan(scene) {
            return Ok(());
        }
        self.plan_anew(stream, scene)
    }

    /// Cuts a frame that is unlike the last ones. Waits for a sample of it.
    pub(crate) fn plan_anew(&mut self, stream: &Stream, scene: &Scene) -> Result<()> {
        self.drop_plan();
        self.sample(stream, scene)?;
        stream.synchronize()?;
        let sample = &self.sample_read[..scene.n.min(CUT_SAMPLE)];
        let plan = CutPlan::new(sample, scene.n, scene.worlds.is_some());
        self.cut = plan.cut;
        self.plan = Some(plan);
        Ok(())
    }

    /// Has a sample of the frame downloaded where the last frames' plan has become bad.
    pub(crate) fn watch(&mut self, stream: &Stream, scene: &Scene) -> Result<()> {
        if scene.n > 0 && mem::take(&mut self.is_bad) {
            self.sample(stream, scene)?;
            self.sampling = Some(Sampling {
                n: scene.n,
                worlds: scene.worlds.is_some(),
                is_done: stream.record()?,
            });
        }
        Ok(())
    }

    /// Has a thread plan the cut of a later frame by the sample of this one, if there is one. It is
    /// taken when more searches have taken `left` milliseconds.
    pub(crate) fn plan_ahead(&mut self, left: f64) -> Result<()> {
        if let Some(Sampling { n, worlds, is_done }) = self.sampling.take() {
            is_done.synchronize()?;
            let sample = self.sample_read[..n.min(CUT_SAMPLE)].to_vec();
            let plan = move || CutPlan::new(&sample, n, worlds);
            let thread = Builder::new().name("radsweep-plan".into()).spawn(plan);
            // Without a thread the plan stays bad, and the next frame tries again.
            self.is_bad = thread.is_err();
            self.planning = thread.ok().map(|thread| Planning { thread, left });
        }
        Ok(())
    }

    /// Downloads a sample of the boxes, without waiting for it.
    fn sample(&mut self, stream: &Stream, scene: &Scene) -> Result<()> {
        let n = scene.n;
        let count = n.min(CUT_SAMPLE);
        let sample = self.sample.reserve(stream, count)?;
        let (boxes, worlds) = (scene.boxes()?, address(&scene.worlds));
        // SAFETY: there are `n` boxes, and memory for `count`, which is no more.
        unsafe {
            stream.launch(
                &self.kernels.sample,
                &linear(count),
                &args![boxes, worlds, n as u32, count as u32, sample],
            )?;
        }
        // SAFETY: the copy is read after waiting for it only, and `Engine::drop` waits for the
        // stream.
        unsafe {
            stream.download_pinned(self.sample.part(count)?, &mut self.sample_read[..count])?;
        }
        Ok(())
    }

    /// Returns what is to be zero before boxes are arranged, of at most `max` units.
    pub(crate) fn clear_ahead(&mut self, max: u64) -> Clear {
        self.buckets.clear_ahead(max)
    }

    /// Drops the plan, so that the next frame makes another cut.
    pub(crate) fn drop_plan(&mut self) {
        (self.plan, self.planning, self.sampling) = (None, None, None);
        (self.is_bad, self.floor) = (false, 0.0);
    }

    /// Has boxes go to no regions, whatever frames there are: in a recorded frame nothing would
    /// notice that they crowd in one.
    pub(crate) fn do_without_regions(&mut self) {
        self.min_divided = usize::MAX;
    }

    /// Tells whether the last plan suits a frame.
    fn is_planned(&self, scene: &Scene) -> bool {
        self.plan.as_ref().is_some_and(|plan| {
            let ratio = scene.n as f64 / plan.n.max(1) as f64;
            plan.worlds == scene.worlds.is_some()
                && (1.0 / OTHER_COUNT..OTHER_COUNT).contains(&ratio)
        })
    }

    /// Returns the cells of the last plan.
    pub(crate) fn subdivision(&self) -> Option<Subdivision> {
        self.plan.as_ref().map(|plan| plan.cut.cells())
    }

    /// Returns what the last plan expects, and whether a sweep along an axis is better.
    pub(crate) fn choice(&self) -> Option<(Choice, bool)> {
        let of = |plan: &CutPlan| (plan.forecast.choice(), plan.forecast.takes_sweep());
        self.plan.as_ref().map(of)
    }

    /// Records the work of a frame. Where its plan has become bad, the next one is sampled.
    pub(crate) fn record_work(&mut self, finder: Finder, n: usize, state: &State) {
        let Some(plan) = &mut self.plan else { return };
        if finder == Finder::Cells {
            let sampled = n.div_ceil(WARP as usize * NEAR_SAMPLE) * WARP as usize;
            self.are_apart = (state.near as f64) < NEAR_SHARE * sampled.min(n) as f64;
        }
        plan.is_spread &= !plan.division.is_crowded(state.crowded, n);
        let work = plan.forecast.record(finder, n, state, self.floor);
        // Unless another plan is under way.
        if let Some(work) = work.filter(|_| self.planning.is_none()) {
            (self.floor, self.is_bad) = (work, true);
        }
    }

    /// Stores the boxes by their cells. The counters at `state` get their number and levels.
    ///
    /// # Safety
    ///
    /// The boxes' indices are null, or one for each box; `state` is the address of counters, which
    /// have been reset since boxes were arranged with them.
    pub(crate) unsafe fn arrange(
        &mut self,
        stream: &Stream,
        active: Active,
        state: DevicePtr<State>,
    ) -> Result<()> {
        let Active { scene, ids } = active;
        let n = scene.n;
        if n == 0 {
            return Ok(());
        }
        self.records.reserve(stream, n)?;
        let are_few_high = self.plan.as_ref().is_some_and(|plan| plan.are_few_high);
        let high = self.high.begin(stream, &self.cut, are_few_high, state)?;
        if let Some(division) = self.reserve_scratch(stream, n)? {
            self.buckets.reserve(stream, self.cut.buckets())?;
            let memory = Memory {
                partitioned: self.scratch.device_ptr(),
                starts: self.buckets.ptr(),
                records: self.records.device_ptr(),
                high,
                state,
            };
            let regions = &mut self.regions;
            // SAFETY: the caller's promise; there is memory for a record of each box, twice, and
            // for an offset of each bucket and one more.
            return unsafe { regions.arrange(stream, active, &self.cut, division, &memory) };
        }
        self.buckets.begin(stream, self.cut.buckets())?;
        let (boxes, worlds) = (scene.boxes()?, address(&scene.worlds));
        let (cut, high) = (ByValue(self.cut), ByValue(high));
        let (buckets, slots) = (self.buckets.ptr(), self.scratch.device_ptr().cast::<Slot>());
        let (records, placed) = (self.records.device_ptr(), counter!(state, placed));
        // SAFETY: the caller's promise; there are a count for each bucket, a slot and a record for
        // each box.
        unsafe {
            stream.launch(
                &self.kernels.count,
                &linear(n),
                &args![boxes, worlds, n as u32, cut, buckets, slots, state],
            )?;
            self.buckets.make(stream, DevicePtr::NULL, placed)?;
            stream.launch(
                &self.kernels.place,
                &linear(n),
                &args![boxes, ids, n as u32, cut, slots, buckets, records, high],
            )?;
        }
        Ok(())
    }

    /// Makes memory for what is between boxes and their buckets. Returns the regions that boxes go
    /// to first, if any.
    fn reserve_scratch(&mut self, stream: &Stream, n: usize) -> Result<Option<Division>> {
        let division = self.plan.as_ref().and_then(|plan| {
            let is_divided = n >= self.min_divided && plan.is_spread && self.are_apart;
            is_divided.then_some(plan.division)
        });
        // Once records have gone to regions, memory for them grows with all frames, so that it
        // does not grow late. If it is refused, boxes do without regions until the next plan.
        self.has_divided |= division.is_some();
        if self.has_divided && self.scratch.reserve(stream, n).is_ok() {
            return Ok(division);
        }
        if let Some(plan) = self.plan.as_mut().filter(|_| self.has_divided) {
            plan.is_spread = false;
        }
        self.has_divided = false;
        self.scratch.reserve(stream, n.div_ceil(SLOTS))?;
        Ok(None)
    }

    fn input(&self, search: Search, table: DevicePtr<State>) -> Input {
        Input {
            cut: self.cut,
            records: self.records.device_ptr(),
            starts: self.buckets.ptr(),
            worlds: search.worlds,
            high: self.high.ptr(),
            table,
            state: search.state,
            accept: search.accept,
            limit: search.limit,
        }
    }

    /// Finds the pairs of the `n` boxes arranged.
    ///
    /// # Safety
    ///
    /// `keys` and `search` have addresses of memory for as much as they say. The counters that a
    /// search starts from are zero, but for pairs that are in the list already.
    pub(crate) unsafe fn find(
        &self,
        stream: &Stream,
        n: usize,
        search: Search,
        keys: Keys,
    ) -> Result<()> {
        if n == 0 {
            return Ok(());
        }
        let (input, keys) = (ByValue(self.input(search, search.state)), ByValue(keys));
        let plan = self.plan.as_ref();
        let tests = plan.map_or(0.0, |plan| plan.forecast.tests_a_box());
        let width = width::choose(n, tests, self.warps);
        let launch = match WIDTHS[width] {
            WARP => Launch::linear(blocks(n, SWEEP_THREADS), SWEEP_THREADS),
            boxes => of_few(n, boxes),
        };
        // SAFETY: the caller's promise; `arrange` has filled the arrays for this scene.
        unsafe { stream.launch(&self.kernels.sweep[width], &launch, &args![input, keys])? };
        Ok(())
    }

    /// Counts the pairs by `a`.
    ///
    /// # Safety
    ///
    /// As for `find`; `by_a` has a count for each box, zero.
    pub(crate) unsafe fn count_by_a(
        &self,
        stream: &Stream,
        n: usize,
        search: Search,
        by_a: SliceMut<u32>,
    ) -> Result<()> {
        if n == 0 {
            return Ok(());
        }
        let input = ByValue(self.input(search, search.state));
        // SAFETY: the caller's promise.
        unsafe {
            stream.launch(
                &self.kernels.count_pairs,
                &of_few(n, WIDTHS[2]),
                &args![input, by_a],
            )?
        };
        Ok(())
    }

    /// Finds the pairs of boxes outside this grid with those in it.
    ///
    /// # Safety
    ///
    /// As for `find`, and for the addresses of `others`.
    pub(crate) unsafe fn find_others(
        &self,
        stream: &Stream,
        others: Others,
        search: Search,
        keys: Keys,
    ) -> Result<()> {
        let Active { scene, ids } = others.active;
        let n = scene.n;
        if n == 0 || others.arranged == 0 {
            return Ok(());
        }
        let input = ByValue(RestingInput {
            grid: self.input(search, others.table),
            boxes: scene.boxes()?.device_ptr(),
            ids,
            n: n as u32,
            pad: 0,
            large: others.large,
        });
        let [with_8, with_2, of_large] = &self.kernels.others;
        let (kernel, boxes) = if n < MIN_FOR_8 {
            (with_2, 2)
        } else {
            (with_8, 8)
        };
        let (launch, large_launch) = (of_few(n, boxes), linear(others.arranged));
        let keys = ByValue(keys);
        // SAFETY: the caller's promise.
        unsafe {
            stream.launch(kernel, &launch, &args![input, keys])?;
            stream.launch(of_large, &large_launch, &args![input, keys])?;
        }
        Ok(())
    }
}
