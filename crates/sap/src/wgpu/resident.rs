//! What stays on the device between updates whose boxes are there.

use super::cells::CellSearch;
use super::counts::Counts;
use super::gpu::Gpu;
use super::input::{Given, Input, Source};
use super::launch::Batch;
use super::memory::Grow;
use super::pairs::PairLists;
use super::reader::Reader;
use super::scene::DeviceScene;
use super::steps::Steps;
use super::tuning::{MAX_CELL_TESTS, MAX_TEST_GROWTH, PLAN_FRAMES, PLAN_SIZE_SHARE};
use crate::cpu::shared::{Cuts, plan_by_sample};
use crate::{Aabb, Config, OverlapRule, Pair, Result, Strategy};

/// The last frame with its lists, and memory for the next.
pub(super) struct Resident {
    pub(super) reader: Reader,
    pub(super) cells: CellSearch,
    pub(super) scene: DeviceScene,
    pub(super) spare: DeviceScene,
    /// The pairs of the last update, and of the one before.
    pub(super) pairs: PairLists,
    pub(super) before: PairLists,
    pub(super) next: PairLists,
    /// Whether `before` is the list before `pairs`, and events are wanted.
    pub(super) has_events: bool,
    /// Whether the last update found everything as it was.
    pub(super) was_same: bool,
    pub(super) plan: Option<KeptPlan>,
    pub(super) counters: Grow,
}

impl Resident {
    pub(super) fn new(gpu: Gpu) -> Self {
        Self {
            cells: CellSearch::new(gpu.clone()),
            reader: Reader::new(gpu),
            scene: DeviceScene::default(),
            spare: DeviceScene::default(),
            pairs: PairLists::default(),
            before: PairLists::default(),
            next: PairLists::default(),
            has_events: false,
            was_same: false,
            plan: None,
            counters: Grow::new("counters of events"),
        }
    }

    /// Forgets the last frame.
    pub(super) fn clear(&mut self) {
        self.scene.clear();
        self.pairs.clear();
        (self.has_events, self.was_same, self.plan) = (false, false, None);
    }

    /// Counts the next pairs that the last list lacks, and those of the last that the next lacks.
    pub(super) fn count_events(
        &mut self,
        gpu: &Gpu,
        batch: &mut Batch,
        config: &Config,
    ) -> Result<[u64; 2]> {
        if !config.events {
            return Ok([0; 2]);
        }
        let common = self
            .next
            .common(gpu, batch, &self.pairs, &mut self.counters)?;
        Ok([&self.next, &self.pairs].map(|list| list.view().len() - common))
    }

    /// Makes the next list that of the last update.
    pub(super) const fn publish(&mut self) {
        std::mem::swap(&mut self.pairs, &mut self.next);
        std::mem::swap(&mut self.before, &mut self.next);
    }

    /// Takes the pairs of the last update from the host.
    pub(super) fn upload(&mut self, gpu: &Gpu, pairs: &[Pair], max_list: u64) -> Result<()> {
        self.pairs.upload(gpu.device(), pairs, max_list)
    }
}

/// A plan that some frames follow, because a new one needs a wait for a sample of the boxes.
pub(super) struct KeptPlan {
    pub(super) axis: usize,
    pub(super) cuts: [Vec<f32>; 2],
    n: usize,
    has_worlds: bool,
    /// The number of tests of the first frame.
    tests: u64,
    frames: u32,
    /// The steps of the cells, if the pairs are found by them.
    pub(super) steps: Option<Steps>,
    /// The tests of a frame that was too much for the cells.
    pub(super) cell_tests: Option<u64>,
    /// What the last frame had, unless the host must wait for that of the next.
    pub(super) counts: Option<Counts>,
    /// The numbers that the last frame was given memory for.
    pub(super) given: Option<Counts>,
}

impl KeptPlan {
    /// Plans by a sample of a scene.
    pub(super) fn new(drawn: &[(Aabb, u32)], scene: &DeviceScene, by: Strategy) -> Self {
        let plan = plan_by_sample(drawn, scene.n, by);
        // Boxes of different worlds are apart already.
        let cuts = if scene.has_worlds {
            Default::default()
        } else {
            plan.columns.cuts.each_ref().map(Cuts::to_vec)
        };
        Self {
            axis: plan.axis,
            steps: Steps::new(drawn, plan.axis).filter(|_| !scene.has_worlds),
            cell_tests: None,
            cuts,
            n: scene.n,
            has_worlds: scene.has_worlds,
            tests: 0,
            frames: 0,
            counts: None,
            given: None,
        }
    }

    /// Returns the numbers that the next frame is given memory for; None if the host must wait for
    /// them. They change seldom, so that bind groups can be kept.
    pub(super) fn capacity(&self, max: &Counts) -> Option<Counts> {
        let (counts, is_first) = (self.counts?, self.frames == 0);
        let grown = counts.grown(max, is_first)?;
        let kept = self
            .given
            .filter(|given| !is_first && given.suits(&counts, &grown));
        Some(kept.unwrap_or(grown))
    }

    /// Tells whether the next frame is the last that may follow the plan.
    pub(super) const fn is_last(&self) -> bool {
        self.frames + 1 == PLAN_FRAMES
    }

    /// Takes the numbers of a frame whose boxes were sorted. Cells are given up if they had far
    /// more tests in the same frame.
    pub(super) fn take_sorted(&mut self, counts: Counts) {
        let tests = match self.cell_tests.take() {
            Some(tests) if tests > MAX_CELL_TESTS * counts.tests.max(self.n as u64) => {
                self.steps = None;
                0
            }
            tests => tests.unwrap_or(0),
        };
        self.counts = Some(Counts {
            tests: counts.tests.max(tests),
            ..counts
        });
    }

    /// Returns the input of a search by the plan.
    pub(super) fn input<'a>(
        &self,
        given: Given,
        excluded: &'a [Pair],
        rule: OverlapRule,
    ) -> Input<'a> {
        Input {
            source: Source::Device(given),
            excluded,
            first_set: 0,
            rule,
            axis: self.axis,
            cuts: self.cuts.clone(),
        }
    }

    /// Tells whether a scene may follow the plan.
    pub(super) fn suits(&self, scene: &DeviceScene) -> bool {
        self.frames < PLAN_FRAMES
            && self.has_worlds == scene.has_worlds
            && self.n.abs_diff(scene.n) <= self.n / PLAN_SIZE_SHARE
    }

    /// Counts a frame that followed the plan. Returns whether its tests are about as many as those
    /// of the first.
    pub(super) fn record_frame(&mut self, tests: u64) -> bool {
        if self.frames == 0 {
            self.tests = tests;
        }
        self.frames += 1;
        tests <= MAX_TEST_GROWTH * self.tests.max(self.n as u64)
    }
}
