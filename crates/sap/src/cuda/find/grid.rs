//! The grid: boxes by a hash of their cells, of several sizes (`kernels/sap/grid.cuh`), and the pairs from there.

use crate::cuda::abi::{Accept, Keys, State};
use crate::cuda::find::cut::{Cut, Sampled, candidates};
use crate::cuda::input::scene::{Scene, address};
use crate::cuda::kernels::{WARP, blocks, linear, module};
use crate::cuda::memory::{Grow, HostBuffer};
use crate::cuda::offsets::Offsets;
use crate::{Aabb, Choice, Reason, Result, Subdivision};
use bytemuck::{Pod, Zeroable};
use gpu::{ByValue, Device, Kernel, Launch, Slice, SliceMut, Stream, args};

/// Boxes that a plan is made from.
const SAMPLE: usize = 2048;
/// A warp takes 2 boxes where each takes this many tests and pairs, else 32 where there are this many, else 8.
const CROWDED: f64 = 48.0;
const MANY: usize = 1 << 18;
/// A warp takes 2 boxes that are to be tested against those held apart where there are fewer than this, else 8.
const FEW_APART: usize = 1 << 15;
/// A plan is made anew when the boxes are this much more or fewer, or when a box takes this much more to find its pairs.
const OTHER_NUMBER: f64 = 1.25;
const MORE_WORK: f64 = 1.5;

struct Kernels {
    count: Kernel,
    place: Kernel,
    sample: Kernel,
    /// With 32 boxes a warp, with 8, and with 2.
    sweep: [Kernel; 3],
    count_pairs: Kernel,
    /// Of boxes that are not in the grid: with 8 a warp, with 2, and for large ones.
    apart: [Kernel; 3],
}

/// Whose pairs are asked for, and where they are counted: addresses, `worlds` by the number of a box in the frame.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) accept: Accept,
    pub(crate) worlds: u64,
    pub(crate) state: u64,
    /// Tests that may be taken, beside those for pairs.
    pub(crate) limit: u64,
}

/// A box in its place, as the kernels have it.
type Record = [[f32; 4]; 2];

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Input {
    cut: Cut,
    records: u64,
    starts: u64,
    worlds: u64,
    table: u64,
    state: u64,
    accept: Accept,
    limit: u64,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct ApartInput {
    grid: Input,
    boxes: u64,
    ids: u64,
    n: u32,
    pad: u32,
    large: u64,
}

/// A cut, and what it was made for.
struct Plan {
    cut: Cut,
    n: usize,
    worlds: bool,
    choice: Choice,
    /// Tests and pairs a box in the first frame with it; 0 before.
    work: f64,
}

/// Boxes in their places, and what makes them; used again by every update.
pub(crate) struct Grid {
    kernels: Kernels,
    plan: Option<Plan>,
    cut: Cut,
    buckets: Offsets,
    slots: Grow<[u32; 2]>,
    records: Grow<Record>,
    sample: Grow<Sampled>,
    sample_read: HostBuffer<Sampled>,
}

/// Milliseconds of an H200 that a frame takes whatever is in it, those for each box, and those for each test: `uniform` of
/// 10,000 and 1,000,000 boxes.
const SWEEP: [f64; 3] = [0.08, 1.3e-7, 3.4e-10];
const CELLS: [f64; 3] = [0.03, 6.5e-8, 5.4e-9];

/// What the two strategies are expected to take for `n` boxes.
fn choice(candidates: f64, tests: f64, n: f64) -> Choice {
    let ms = |[frame, each, test]: [f64; 3], tests: f64| frame + each * n + test * tests;
    Choice {
        reason: Reason::LeastCost,
        sweep_ms: ms(SWEEP, candidates),
        subdivided_ms: Some(ms(CELLS, tests)),
    }
}

/// For kernels that take this many boxes a warp, two warps a block.
fn pairs_of_warps(boxes: usize, each: u32) -> Launch {
    Launch::linear(blocks(boxes, 2 * each), 2 * WARP)
}

impl Grid {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        let module = module(device)?;
        Ok(Self {
            kernels: Kernels {
                count: module.kernel("sap_grid_count")?,
                place: module.kernel("sap_grid_place")?,
                sample: module.kernel("sap_sample")?,
                sweep: [
                    module.kernel("sap_grid_sweep_32")?,
                    module.kernel("sap_grid_sweep_8")?,
                    module.kernel("sap_grid_sweep_2")?,
                ],
                count_pairs: module.kernel("sap_grid_count_pairs")?,
                apart: [
                    module.kernel("sap_grid_apart_8")?,
                    module.kernel("sap_grid_apart_2")?,
                    module.kernel("sap_grid_apart_large")?,
                ],
            },
            plan: None,
            cut: Cut::zeroed(),
            buckets: Offsets::new(device)?,
            slots: Grow::default(),
            records: Grow::default(),
            sample: Grow::default(),
            sample_read: HostBuffer::new(device, SAMPLE)?,
        })
    }

    /// Makes sure of a cut that suits the scene: that of the last frames, or a new one, for which it waits.
    pub(crate) fn plan(&mut self, stream: &Stream, scene: &Scene) -> Result<()> {
        let n = scene.n;
        let worlds = scene.worlds.is_some();
        if n > 0 && !self.is_planned(n, worlds) {
            let count = n.min(SAMPLE);
            let sample = self.sample.reserve(stream, count)?;
            // SAFETY: there are `n` boxes and room for `count`, which is no more.
            unsafe {
                stream.launch(
                    &self.kernels.sample,
                    &linear(count),
                    &args![
                        scene.boxes()?,
                        address(&scene.worlds),
                        n as u32,
                        count as u32,
                        sample
                    ],
                )?;
            }
            // SAFETY: read after waiting for the stream only, which `Engine::drop` does too.
            unsafe {
                stream.download_pinned(self.sample.part(count)?, &mut self.sample_read[..count])?;
            }
            stream.synchronize()?;
            let sample = &self.sample_read[..count];
            let (cut, cost) = Cut::new(sample, n, worlds);
            self.plan = Some(Plan {
                cut,
                choice: choice(candidates(sample, n), cost, n as f64),
                worlds,
                n,
                work: 0.0,
            });
        }
        if let Some(plan) = &self.plan {
            self.cut = plan.cut;
        }
        Ok(())
    }

    /// Drops the plan: the next frame has other boxes.
    pub(crate) fn forget(&mut self) {
        self.plan = None;
    }

    /// Whether the plan that there is will do for `n` boxes.
    fn is_planned(&self, n: usize, worlds: bool) -> bool {
        self.plan.as_ref().is_some_and(|plan| {
            let ratio = n as f64 / plan.n.max(1) as f64;
            plan.worlds == worlds && (1.0 / OTHER_NUMBER..OTHER_NUMBER).contains(&ratio)
        })
    }

    /// How the frames planned for last are cut.
    pub(crate) fn subdivision(&self) -> Option<Subdivision> {
        self.plan.as_ref().map(|plan| plan.cut.cells())
    }

    /// What to expect of the last frame planned for.
    pub(crate) fn choice(&self) -> Option<Choice> {
        self.plan.as_ref().map(|plan| plan.choice)
    }

    /// What the frame took: drops a plan that has become bad.
    pub(crate) fn note(&mut self, n: usize, state: &State) {
        let work = (state.tests + state.pairs) as f64 / n.max(1) as f64;
        match &mut self.plan {
            Some(plan) if plan.work == 0.0 => plan.work = work,
            Some(plan) if work > plan.work * MORE_WORK + 1.0 => self.plan = None,
            _ => {}
        }
    }

    /// Puts the boxes into their places. `ids` is the address of their numbers in the frame, 0 where they are all of it.
    pub(crate) fn arrange(
        &mut self,
        stream: &Stream,
        scene: &Scene,
        ids: u64,
        state: u64,
    ) -> Result<()> {
        let n = scene.n;
        if n == 0 {
            return Ok(());
        }
        self.buckets.begin(stream, self.cut.buckets())?;
        self.slots.reserve(stream, n)?;
        self.records.reserve(stream, n)?;
        let (boxes, buckets, slots) = (scene.boxes()?, self.buckets.ptr(), self.slots.ptr());
        let placed = state + std::mem::offset_of!(State, placed) as u64;
        // SAFETY: a count for each bucket, a slot and a place for each box.
        unsafe {
            stream.launch(
                &self.kernels.count,
                &linear(n),
                &args![
                    boxes,
                    address(&scene.worlds),
                    n as u32,
                    ByValue(self.cut),
                    buckets,
                    slots,
                    state
                ],
            )?;
            self.buckets.make(stream, 0, placed)?;
            stream.launch(
                &self.kernels.place,
                &linear(n),
                &args![
                    boxes,
                    ids,
                    n as u32,
                    ByValue(self.cut),
                    slots,
                    buckets,
                    self.records.ptr()
                ],
            )?;
        }
        Ok(())
    }

    fn input(&self, asked: Asked, table: u64) -> Input {
        Input {
            cut: self.cut,
            records: self.records.ptr(),
            starts: self.buckets.ptr(),
            worlds: asked.worlds,
            table,
            state: asked.state,
            accept: asked.accept,
            limit: asked.limit,
        }
    }

    /// Finds the pairs of the `n` boxes arranged.
    ///
    /// # Safety
    ///
    /// `keys` and `asked` hold addresses of memory for as much as they say; the counters are zero for tests.
    pub(crate) unsafe fn find(
        &self,
        stream: &Stream,
        n: usize,
        asked: Asked,
        keys: Keys,
    ) -> Result<()> {
        if n == 0 {
            return Ok(());
        }
        let input = self.input(asked, asked.state);
        let work = self.plan.as_ref().map_or(0.0, |plan| plan.work);
        let [many, few, crowded] = &self.kernels.sweep;
        let (kernel, launch) = if work >= CROWDED {
            (crowded, pairs_of_warps(n, 2))
        } else if n < MANY {
            (few, pairs_of_warps(n, 8))
        } else {
            (many, linear(n))
        };
        // SAFETY: the caller's promise; `arrange` has filled the arrays for this scene.
        unsafe {
            stream.launch(kernel, &launch, &args![ByValue(input), ByValue(keys)])?;
        }
        Ok(())
    }

    /// Counts the pairs by `a`.
    ///
    /// # Safety
    ///
    /// As for `find`; `by_a` has a count for each box.
    pub(crate) unsafe fn count_by_a(
        &self,
        stream: &Stream,
        n: usize,
        asked: Asked,
        by_a: SliceMut<u32>,
    ) -> Result<()> {
        if n == 0 {
            return Ok(());
        }
        let input = self.input(asked, asked.state);
        // SAFETY: the caller's promise.
        unsafe {
            stream.launch(
                &self.kernels.count_pairs,
                &pairs_of_warps(n, 2),
                &args![ByValue(input), by_a],
            )?;
        }
        Ok(())
    }

    /// Finds the pairs of boxes that are not in this grid with the `held` boxes that are.
    ///
    /// # Safety
    ///
    /// As for `find`; `table` is the address of the counters that `arrange` left, `apart` of a list of numbers for each of the
    /// boxes and of another as long, which is written.
    pub(crate) unsafe fn find_apart(
        &self,
        stream: &Stream,
        (table, held): (u64, usize),
        (boxes, ids, large): (Slice<Aabb>, u64, u64),
        asked: Asked,
        keys: Keys,
    ) -> Result<()> {
        let n = boxes.len();
        if n == 0 || held == 0 {
            return Ok(());
        }
        let input = ApartInput {
            grid: self.input(asked, table),
            boxes: boxes.ptr(),
            ids,
            n: n as u32,
            pad: 0,
            large,
        };
        let [many, few, of_large] = &self.kernels.apart;
        let (kernel, launch) = if n < FEW_APART {
            (few, pairs_of_warps(n, 2))
        } else {
            (many, pairs_of_warps(n, 8))
        };
        // SAFETY: the caller's promise.
        unsafe {
            stream.launch(kernel, &launch, &args![ByValue(input), ByValue(keys)])?;
            stream.launch(
                of_large,
                &linear(held),
                &args![ByValue(input), ByValue(keys)],
            )?;
        }
        Ok(())
    }
}
