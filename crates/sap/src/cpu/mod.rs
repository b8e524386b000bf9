//! The CPU engine: all strategies, on the threads of the current rayon pool.
//!
//! An update reads the frame into a [`scene::Scene`] (checked, `f32`, loosened), makes a [`plan::Plan`], puts the boxes
//! in sweep order ([`arrange`]), sweeps ([`sweep`], or [`endpoints`]), sorts the pairs found ([`order`]) and compares them
//! with those of the update before ([`events`]). Where few boxes have changed, the pairs of the others stay ([`kept`]). Nothing that
//! can be seen changes before all of that is done.

mod accept;
mod available;
mod chunks;
mod clock;
#[cfg(cuda)]
mod follow;
mod full;
mod incremental;
mod key;
mod lanes;
mod memory;
mod output;
mod scene;
mod small_sort;
mod tuning;

use crate::room;
use crate::threads::{in_pool, on_threads, with_threads};
use crate::{
    Aabb, Backend, ChunkReport, Config, Error, Frame, Invalid, Pair, Report, Result, Sorts,
    Strategy, Subdivision, Timings,
};
use accept::Accept;
use chunks::{Delivery, Rows, by_rounds, is_dense};
use clock::Clock;
use full::arrange::MOST_COLUMNS;
use full::columns::{Columns, Cuts};
use full::plan::{Plan, Trust, plan};
use full::records;
use full::sweep::{Pass, Role, run};
use full::{arranged, between, found, swept};
use incremental::Kept;
use incremental::splice::{kept_pairs, splice};
use memory::{Memory, most_pairs};
use output::collect::{Collector, Spare};
use output::{events, order};
use scene::Scene;
use std::time::Instant;
use tuning::{FEWEST_KEPT, MEET_TASK, PAIR_BLOCK, ROUND_PAIRS, ROUND_PAIRS_PER_BOX, SMALL_FRAME};

/// See the module.
pub(crate) struct Engine {
    scene: Scene,
    pairs: Vec<Pair>,
    started: Vec<Pair>,
    ended: Vec<Pair>,
    last: Option<Report>,
    kept: Kept,
    /// Those of the last update that looked at all boxes.
    columns: Columns,
    /// Pairs between the last two sets.
    last_between: Option<u64>,
    trust: Trust,
    /// Memory to use again.
    spare_scene: Scene,
    spare_pairs: Vec<Pair>,
    spare_blocks: Spare,
}

impl Engine {
    pub(crate) fn new(config: &Config) -> Self {
        let mut pairs = Vec::new();
        // A wish only: without the memory, room is made when it is needed.
        let _ = pairs.try_reserve(config.initial_pair_capacity.unwrap_or(0));
        Self {
            scene: Scene::default(),
            pairs: Vec::new(),
            started: Vec::new(),
            ended: Vec::new(),
            last: None,
            kept: Kept::default(),
            columns: Columns::default(),
            last_between: None,
            trust: Trust::default(),
            spare_scene: Scene::default(),
            spare_pairs: pairs,
            spare_blocks: Spare::default(),
        }
    }

    pub(crate) fn update(&mut self, config: &Config, frame: &Frame) -> Result<Report> {
        let told = frame.changed.is_some() && kept_from(config) < frame.len() as u64;
        let in_place = if told {
            with_threads(|| self.update_in_place(config, frame))?
        } else {
            None
        };
        let report = match in_place {
            Some(report) => report,
            None => {
                let mut scene = std::mem::take(&mut self.spare_scene);
                // A small frame on this thread, others on one of the pool: every parallel step that begins outside would cost two
                // changes of threads.
                let result = if frame.len() <= SMALL_FRAME {
                    self.find(config, frame, &mut scene)
                } else {
                    on_threads(|| self.find(config, frame, &mut scene))
                };
                if result.is_ok() {
                    std::mem::swap(&mut self.scene, &mut scene);
                }
                self.spare_scene = scene;
                result?
            }
        };
        self.last = Some(report.clone());
        Ok(report)
    }

    /// Where the caller tells what has changed, and it is little: nothing else of the frame is looked at.
    fn update_in_place(&mut self, config: &Config, frame: &Frame) -> Result<Option<Report>> {
        let mut clock = Clock::start();
        let n = frame.len();
        let Some(changed) = frame.changed.filter(|_| {
            self.last.is_some() && check_number(frame).is_ok() && self.scene.is_like(frame, config)
        }) else {
            return Ok(None);
        };
        if !self.kept.told(changed, n, self.scene.boxes.len(), config) {
            return Ok(None);
        }
        let changed = self.kept.changed().list();
        if changed.is_empty()
            && let Some(last) = self.last.take()
        {
            return Ok(Some(self.rest(last, None, &mut clock)));
        }
        let before = self.scene.some(changed)?;
        let Some(now) = before.read_some(frame, changed, config)? else {
            return Ok(None);
        };
        let here = changed.len() <= MEET_TASK;
        self.scene.reserve(n)?;
        let mut scene = std::mem::take(&mut self.scene);
        let n_before = scene.boxes.len();
        scene.put(changed, &now, n);
        let result = if !self.kept.renew(&scene, config) {
            Ok(None)
        } else if here {
            self.find_changed(config, &scene, &mut clock).map(Some)
        } else {
            rayon::scope(|_| self.find_changed(config, &scene, &mut clock)).map(Some)
        };
        if !matches!(result, Ok(Some(_))) {
            scene.put(self.kept.changed().list(), &before, n_before);
        }
        self.scene = scene;
        result
    }

    /// Fills the scene and finds its pairs; on success they are in place, and only the scene is left to be.
    fn find(&mut self, config: &Config, frame: &Frame, scene: &mut Scene) -> Result<Report> {
        let mut clock = Clock::start();
        check_number(frame)?;
        scene.read(frame, config.on_invalid, config.margin, &self.scene)?;
        if let Some(last) = self.last.take_if(|_| scene.same_pairs(&self.scene)) {
            return Ok(self.rest(last, scene.invalid, &mut clock));
        }
        let few = self.last.is_some() && self.kept.compared(scene, &self.scene, config);
        if few {
            let changed = || match self.kept.renew(scene, config) {
                true => self.find_changed(config, scene, &mut clock).map(Some),
                false => Ok(None),
            };
            if let Some(report) = on_threads(changed)? {
                return Ok(report);
            }
        }
        let mut report = Report {
            n: frame.len(),
            invalid: scene.invalid,
            ..Report::none(Backend::Cpu, config.strategy)
        };
        let mut plan = plan(&scene.boxes, scene.worlds.as_deref(), config.strategy);
        let trusted = !plan.is_bounded || self.trust.in_plans();
        if !trusted {
            plan.exceed();
        }
        let by_tree = plan.by_tree;
        report.timings.bounds = clock.lap();
        let (spare, timings) = (&self.spare_blocks, &mut report.timings);
        let memory = self.memory(config, frame.len(), most_pairs(frame.len()));
        let (found, limit) = memory.collect(|limit| {
            let mut laps = Timings::default();
            let mut find = || found(config, scene, &plan, limit, spare, &mut laps, &mut clock);
            let found = if is_one_sweep(&plan, scene) {
                find()
            } else {
                on_threads(find)
            }?;
            timings.keys += laps.keys;
            timings.sort += laps.sort;
            timings.sweep += laps.sweep;
            if found.by_tree && !plan.by_tree {
                plan.exceed();
            }
            Ok(found)
        })?;
        if trusted {
            self.trust.learn(plan.by_tree != by_tree);
        }
        (report.tests, report.strategy, report.axis) = (found.tests, plan.strategy, plan.axis);
        report.choice = plan.choice;
        report.sorts = found.sorts;
        report.sorts.keys += found.count;
        order::order(
            found.within(limit)?.blocks,
            frame.len(),
            &mut self.spare_pairs,
            &self.spare_blocks,
        )?;
        report.timings.compact = clock.lap();
        if config.events {
            (self.started, self.ended) = events::difference(&self.pairs, &self.spare_pairs)?;
            report.timings.events = clock.lap();
        }
        self.kept.pass(few, &report);
        self.columns = plan.columns;
        Ok(self.complete(report))
    }

    /// Ends an update that found all as it was.
    fn rest(&mut self, last: Report, invalid: Option<Invalid>, clock: &mut Clock) -> Report {
        self.started.clear();
        self.ended.clear();
        let bounds = clock.lap();
        Report {
            started: 0,
            ended: 0,
            invalid,
            tests: 0,
            sorts: Sorts::default(),
            timings: Timings {
                bounds,
                total: bounds,
                ..Timings::default()
            },
            ..last
        }
    }

    /// Finds the pairs of a scene of which only what is noted has changed since the last update.
    fn find_changed(
        &mut self,
        config: &Config,
        scene: &Scene,
        clock: &mut Clock,
    ) -> Result<Report> {
        let n = scene.boxes.len();
        let changed = self.kept.changed();
        let few = changed.list().len();
        let resting = n - changed.list().partition_point(|&i| (i as usize) < n);
        let mut report = Report {
            n,
            invalid: scene.invalid,
            resting: resting as u64,
            timings: Timings::default(),
            ..self
                .last
                .clone()
                .unwrap_or(Report::none(Backend::Cpu, config.strategy))
        };
        report.timings.bounds = clock.lap();
        let most = (self.pairs.len() as u64).saturating_add(few as u64 * n as u64);
        let memory = self.memory(config, n, most.min(most_pairs(n)));
        let meet = |limit| self.kept.meet(scene, limit, config, &self.spare_blocks);
        let (found, limit) = memory.collect(meet)?;
        report.tests = found.tests;
        report.sorts = Sorts {
            keys: found.count,
            ..Sorts::default()
        };
        report.timings.sweep = clock.lap();
        if found.count > limit {
            let count = found.count + kept_pairs(&self.pairs, changed);
            return Err(Error::TooManyPairs { count, limit });
        }
        let mut new = Vec::new();
        order::order(found.blocks, n, &mut new, &self.spare_blocks)?;
        let gone = splice(&self.pairs, changed, &new, limit, &mut self.spare_pairs)?;
        report.timings.compact = clock.lap();
        if config.events {
            (self.started, self.ended) = events::difference(&gone, &new)?;
            report.timings.events = clock.lap();
        }
        self.kept.settle(report.tests);
        Ok(self.complete(report))
    }

    /// What decides how many pairs an update of so many boxes may keep.
    fn memory<'a>(&self, config: &'a Config, boxes: usize, max: u64) -> Memory<'a> {
        let lists = [
            self.pairs.capacity(),
            self.spare_pairs.capacity(),
            self.started.capacity(),
            self.ended.capacity(),
            self.spare_blocks.capacity(),
        ];
        Memory {
            last: self.last.as_ref().map(|_| self.pairs.len() as u64),
            held: (lists.iter().sum::<usize>() * size_of::<Pair>()) as u64,
            events: config.events,
            ..Memory::new(config, boxes, max)
        }
    }

    /// Puts the pairs found in the place of the last.
    fn complete(&mut self, mut report: Report) -> Report {
        // Blocks for twice as many pairs and some for each task may be needed next time; no more are kept.
        let threads = if in_pool() {
            rayon::current_num_threads()
        } else {
            1
        };
        let blocks = 2 * self.spare_pairs.len() / PAIR_BLOCK + 8 * threads;
        self.spare_blocks.keep(blocks);
        std::mem::swap(&mut self.pairs, &mut self.spare_pairs);
        report.pairs = self.pairs.len() as u64;
        (report.started, report.ended) = (self.started.len() as u64, self.ended.len() as u64);
        report.timings.total = report.timings.stages().map(|(_, ms)| ms).sum();
        report
    }

    pub(crate) fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    pub(crate) fn started(&self) -> &[Pair] {
        &self.started
    }

    pub(crate) fn ended(&self) -> &[Pair] {
        &self.ended
    }

    /// How those columns cut the space, if they are more than one. Worlds have columns each of their own.
    pub(crate) fn subdivision(&self) -> Option<Subdivision> {
        let [_, u, v] = records::axes(self.last.as_ref()?.axis);
        let used = self.columns.count() > 1 && self.scene.worlds.is_none();
        used.then(|| Subdivision::Columns {
            axes: [u, v],
            cuts: self.columns.cuts.each_ref().map(Cuts::to_vec),
        })
    }

    /// The boxes of the last update as they were given: swept ones merged, `f64` ones rounded, bad ones empty.
    pub(crate) fn boxes(&self) -> &[Aabb] {
        self.scene.given()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self {
            spare_scene: std::mem::take(&mut self.spare_scene),
            spare_pairs: std::mem::take(&mut self.pairs),
            spare_blocks: std::mem::take(&mut self.spare_blocks),
            ..Self::new(&Config::default())
        };
    }

    pub(crate) fn overlaps_between(
        &mut self,
        config: &Config,
        a: &Frame,
        b: &Frame,
    ) -> Result<Vec<Pair>> {
        let pairs = on_threads(|| self.between(config, a, b))?;
        self.last_between = Some(pairs.len() as u64);
        Ok(pairs)
    }

    fn between(&self, config: &Config, a: &Frame, b: &Frame) -> Result<Vec<Pair>> {
        let [mut first, mut second] = [a, b].map(|frame| (frame, Scene::default()));
        for (frame, scene) in [&mut first, &mut second] {
            check_number(frame)?;
            scene.read(frame, config.on_invalid, 0.0, &Scene::default())?;
        }
        let (mut first, mut second) = (first.1, second.1);
        if first.exact.is_some() || second.exact.is_some() {
            first.make_exact()?;
            second.make_exact()?;
        }
        let both = room::concat(&[&first.boxes, &second.boxes])?;
        let mut ids = Vec::new();
        room::reserve(&mut ids, both.len())?;
        for scene in [&first, &second] {
            match &scene.worlds {
                Some(worlds) => ids.extend_from_slice(worlds),
                None => ids.resize(ids.len() + scene.boxes.len(), 0),
            }
        }
        let plan = plan(&both, Some(&ids), swept(config.strategy));
        let arranged = arranged(config, &[&first, &second], &plan)?;
        let accept = Accept::new(&first, &second, config.rule, false);
        let [of_first, of_second] = &arranged[..] else {
            return Ok(Vec::new());
        };
        let passes = [
            (of_first, of_second, Role::Forth),
            (of_second, of_first, Role::Back),
        ];
        let passes = passes.map(|(from, into, role)| Pass {
            from,
            into,
            role,
            accept: &accept,
        });
        let memory = Memory {
            last: self.last_between,
            ..Memory::new(config, both.len(), a.len() as u64 * b.len() as u64)
        };
        let spare = &self.spare_blocks;
        let (found, limit) = memory.collect(|limit| {
            let collector = Collector::new(limit, spare).bounded(both.len());
            let found = run(&passes, &collector);
            if collector.is_exceeded() {
                return between(&first, &second, config.rule, limit, spare);
            }
            Ok(found)
        })?;
        let mut pairs = Vec::new();
        order::order(
            found.within(limit)?.blocks,
            first.boxes.len(),
            &mut pairs,
            spare,
        )?;
        Ok(pairs)
    }

    pub(crate) fn for_each_pair_chunk(
        &mut self,
        config: &Config,
        frame: &Frame,
        chunk: usize,
        f: &mut dyn FnMut(&[Pair]),
    ) -> Result<ChunkReport> {
        let start = Instant::now();
        check_number(frame)?;
        let mut scene = Scene::default();
        scene.read(frame, config.on_invalid, 0.0, &Scene::default())?;
        let n = frame.len() as u64;
        let memory = Memory::new(config, frame.len(), most_pairs(frame.len()));
        let limit = memory.round(ROUND_PAIRS.max(ROUND_PAIRS_PER_BOX * n));
        let mut delivery = Delivery {
            chunk,
            f,
            pairs: 0,
            chunks: 0,
        };
        let plan = plan(&scene.boxes, scene.worlds.as_deref(), config.strategy);
        let found = on_threads(|| {
            found(
                config,
                &scene,
                &plan,
                limit,
                &self.spare_blocks,
                &mut Timings::default(),
                &mut Clock::start(),
            )
        })?;
        let found = found.stored()?;
        let mut tests = found.tests;
        if found.count <= limit {
            let mut pairs = Vec::new();
            order::order(found.blocks, frame.len(), &mut pairs, &self.spare_blocks)?;
            delivery.hand(&pairs);
        } else if is_dense(found.count, n) {
            let rows = Rows::new(&scene.boxes, config.rule)?;
            let accept = Accept::new(&scene, &scene, config.rule, true);
            tests += rows.deliver(limit, &accept, &mut delivery)?;
        } else {
            tests += by_rounds(&scene, config.rule, found.count, limit, &mut delivery)?;
        }
        let Delivery { pairs, chunks, .. } = delivery;
        let ms = start.elapsed().as_secs_f64() * 1e3;
        Ok(ChunkReport {
            pairs,
            chunks,
            invalid: scene.invalid,
            tests,
            ms,
        })
    }
}

/// Boxes beyond which pairs of unchanged ones may be kept.
fn kept_from(config: &Config) -> u64 {
    config.hold_from.map_or(FEWEST_KEPT, |boxes| boxes as u64)
}

/// Whether all boxes are swept along one axis at once.
fn is_one_sweep(plan: &Plan, scene: &Scene) -> bool {
    let sweeps = plan.strategy != Strategy::Endpoints && !plan.by_tree;
    sweeps && plan.columns.count() == 1 && scene.worlds.is_none()
}

/// Indices have 31 bits beside the bit of an endpoint, and each of two sets may have a world for each of its boxes.
fn check_number(frame: &Frame) -> Result<()> {
    let boxes = frame.len() as u64;
    let limit = if frame.worlds.is_some() {
        MOST_COLUMNS / 4
    } else {
        i32::MAX as u64
    };
    if boxes > limit {
        Err(Error::TooManyBoxes { boxes, limit })
    } else {
        Ok(())
    }
}
