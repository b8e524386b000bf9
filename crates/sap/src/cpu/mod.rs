//! The CPU engine: all strategies, on the threads of the current rayon pool.
//!
//! An update reads the frame into a [`scene::Scene`] (checked, `f32`, loosened). Where few boxes
//! have changed, it looks for their pairs alone ([`incremental`]); else it plans a sweep and finds
//! all pairs ([`full`]). Pairs are put in order and compared with those of the update before
//! ([`output`]). Nothing that can be seen changes before all of that is done.

mod accept;
mod available;
mod chunks;
mod clock;
mod full;
mod incremental;
mod key;
mod lanes;
mod memory;
mod output;
mod scatter;
mod scene;
mod small_sort;
mod tuning;

use crate::threads::{on_threads, with_threads};
use crate::{
    Aabb, Backend, ChunkReport, Config, Error, Frame, Invalid, Pair, Report, Result, Sorts,
    Subdivision,
};
use chunks::Delivery;
use clock::Clock;
use full::arrange::MAX_COLUMNS;
use full::columns::{Columns, Cuts};
use full::plan::{Trust, plan};
use full::two_sets::TwoSets;
use full::{Finder, Scratch, records};
use incremental::Incremental;
use incremental::policy::resting_threshold;
use incremental::splice::{splice, unchanged_pairs};
use memory::{Memory, max_pairs};
use output::events::difference;
use output::lists::Lists;
use output::order::order;
use scene::Scene;
use std::time::Instant;
use tuning::{MEET_TASK, ROUND_PAIRS, ROUND_PAIRS_PER_BOX, SMALL_FRAME};

/// The last frame and its lists, what the next update can use of them, and memory to use again.
pub(crate) struct Engine {
    scene: Scene,
    lists: Lists,
    /// None before the first update.
    last: Option<Report>,
    incremental: Incremental,
    /// The columns of the last full update.
    columns: Columns,
    trust: Trust,
    /// How many pairs the last two sets had.
    last_between: Option<u64>,
    spare_scene: Scene,
    scratch: Scratch,
}

impl Engine {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            scene: Scene::default(),
            lists: Lists::with_capacity(config.initial_pair_capacity.unwrap_or(0)),
            last: None,
            incremental: Incremental::default(),
            columns: Columns::default(),
            trust: Trust::default(),
            last_between: None,
            spare_scene: Scene::default(),
            scratch: Scratch::default(),
        }
    }

    /// An engine that goes on with the last result of another one, which has failed: events of the
    /// next update are against it, and margins go on from its stored boxes.
    #[cfg(cuda)]
    pub(crate) fn following(config: &Config, last: crate::last::Last) -> Self {
        let (boxes, tight) = if last.stored.is_empty() {
            (last.given, Vec::new())
        } else {
            (last.stored, last.given)
        };
        Self {
            lists: Lists {
                pairs: last.pairs,
                started: last.started,
                ended: last.ended,
                ..Lists::with_capacity(config.initial_pair_capacity.unwrap_or(0))
            },
            scene: Scene {
                boxes,
                tight,
                ..Scene::default()
            },
            ..Self::new(&Config::default())
        }
    }

    pub(crate) fn update(&mut self, config: &Config, frame: &Frame) -> Result<Report> {
        check_count(frame)?;
        // A list of changed boxes spares reading the others.
        let listed = frame.changed.filter(|_| {
            let may_rest = resting_threshold(config) < frame.len() as u64;
            may_rest && self.last.is_some() && self.scene.is_like(frame, config)
        });
        let by_list = match listed {
            Some(listed) => with_threads(|| self.update_listed(config, frame, listed))?,
            None => None,
        };
        let report = match by_list {
            Some(report) => report,
            None => {
                let mut scene = std::mem::take(&mut self.spare_scene);
                // A small frame on this thread, others on one of the pool: every parallel step that
                // begins outside would cost two changes of threads.
                let result = if frame.len() <= SMALL_FRAME {
                    self.update_compared(config, frame, &mut scene)
                } else {
                    on_threads(|| self.update_compared(config, frame, &mut scene))
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

    /// Updates by the changed boxes that the caller lists; no others are read. Returns None where
    /// that is not possible, or too many have changed.
    fn update_listed(
        &mut self,
        config: &Config,
        frame: &Frame,
        listed: &[u32],
    ) -> Result<Option<Report>> {
        let mut clock = Clock::start();
        let (n, n_before) = (frame.len(), self.scene.boxes.len());
        if !self.incremental.take_list(listed, n, n_before, config) {
            return Ok(None);
        }
        let changed = self.incremental.changed().list();
        if changed.is_empty() {
            return Ok(Some(self.keep_all(None, &mut clock)));
        }
        let before = self.scene.some(changed)?;
        let Some(now) = before.read_some(frame, changed, config)? else {
            return Ok(None);
        };
        let is_small = changed.len() <= MEET_TASK;
        self.scene.reserve(n)?;
        let mut scene = std::mem::take(&mut self.scene);
        scene.put(changed, &now, n);
        let result = if is_small {
            self.update_changed(config, &scene, &mut clock)
        } else {
            rayon::scope(|_| self.update_changed(config, &scene, &mut clock))
        };
        if !matches!(result, Ok(Some(_))) {
            scene.put(self.incremental.changed().list(), &before, n_before);
        }
        self.scene = scene;
        result
    }

    /// Updates by all boxes of the frame. On success the lists are in place, and the scene has yet
    /// to be put there.
    fn update_compared(
        &mut self,
        config: &Config,
        frame: &Frame,
        scene: &mut Scene,
    ) -> Result<Report> {
        let mut clock = Clock::start();
        scene.read(frame, config.on_invalid, config.margin, &self.scene)?;
        let has_last = self.last.is_some();
        if has_last && scene.same_pairs(&self.scene) {
            return Ok(self.keep_all(scene.invalid, &mut clock));
        }
        let few_changed = has_last && self.incremental.compare(scene, &self.scene, config);
        if few_changed
            && let Some(report) = on_threads(|| self.update_changed(config, scene, &mut clock))?
        {
            return Ok(report);
        }
        let report = self.update_full(config, scene, &mut clock)?;
        if !few_changed {
            self.incremental.drop_tree();
        }
        self.incremental.note_full(&report);
        Ok(report)
    }

    /// Ends an update in which nothing has changed.
    fn keep_all(&mut self, invalid: Option<Invalid>, clock: &mut Clock) -> Report {
        self.lists.started.clear();
        self.lists.ended.clear();
        clock.lap(|timings| &mut timings.bounds);
        Report {
            started: 0,
            ended: 0,
            invalid,
            tests: 0,
            sorts: Sorts::default(),
            timings: clock.finish(),
            ..self.last_report()
        }
    }

    /// Finds the pairs of the changed set, and keeps those of all other boxes. Returns None where
    /// there is no tree to look in.
    fn update_changed(
        &mut self,
        config: &Config,
        scene: &Scene,
        clock: &mut Clock,
    ) -> Result<Option<Report>> {
        if !self.incremental.refresh(scene, config) {
            return Ok(None);
        }
        let n = scene.boxes.len();
        let changed = self.incremental.changed();
        let resting = n - changed.list().partition_point(|&i| (i as usize) < n);
        clock.lap(|timings| &mut timings.bounds);

        let max_new = changed.list().len() as u64 * n as u64;
        let max = (self.lists.pairs.len() as u64).saturating_add(max_new);
        let memory = self.memory(config, n, max.min(max_pairs(n)));
        let find = |limit| {
            self.incremental
                .find(scene, limit, config, &self.lists.blocks)
        };
        let (found, limit) = memory.collect(find)?;
        let report = Report {
            n,
            invalid: scene.invalid,
            resting: resting as u64,
            tests: found.tests,
            sorts: Sorts {
                keys: found.count,
                ..Sorts::default()
            },
            ..self.last_report()
        };
        clock.lap(|timings| &mut timings.sweep);

        let lists = &mut self.lists;
        if found.count > limit {
            let count = found.count + unchanged_pairs(&lists.pairs, changed);
            return Err(Error::TooManyPairs { count, limit });
        }
        let mut new = Vec::new();
        order(found.blocks, n, &mut new, &lists.blocks)?;
        let dropped = splice(&lists.pairs, changed, &new, limit, &mut lists.next)?;
        clock.lap(|timings| &mut timings.compact);
        if config.events {
            (lists.started, lists.ended) = difference(&dropped, &new)?;
            clock.lap(|timings| &mut timings.events);
        }
        self.incremental.succeed(report.tests);
        Ok(Some(self.publish(report, clock)))
    }

    /// Finds all pairs.
    fn update_full(&mut self, config: &Config, scene: &Scene, clock: &mut Clock) -> Result<Report> {
        let n = scene.boxes.len();
        let mut plan = plan(&scene.boxes, scene.worlds.as_deref(), config.strategy);
        let is_trusted = !plan.is_bounded || self.trust.in_plans();
        if !is_trusted {
            plan.exceed();
        }
        let planned_tree = plan.by_tree;
        clock.lap(|timings| &mut timings.bounds);

        let memory = self.memory(config, n, max_pairs(n));
        let (found, limit) = memory.collect(|limit| {
            let finder = Finder {
                config,
                scene,
                plan: &plan,
                blocks: &self.lists.blocks,
            };
            let found = finder.run(limit, &mut self.scratch, clock)?;
            if found.by_tree && !plan.by_tree {
                plan.exceed();
            }
            Ok(found)
        })?;
        if is_trusted {
            let was_exceeded = plan.by_tree != planned_tree;
            self.trust.learn(was_exceeded);
        }
        let mut report = Report {
            n,
            invalid: scene.invalid,
            tests: found.tests,
            axis: plan.axis,
            choice: plan.choice,
            sorts: found.sorts,
            ..Report::none(Backend::Cpu, plan.strategy)
        };
        report.sorts.keys += found.count;

        self.lists.order(found.within(limit)?, n)?;
        clock.lap(|timings| &mut timings.compact);
        if config.events {
            self.lists.compare()?;
            clock.lap(|timings| &mut timings.events);
        }
        self.columns = plan.columns;
        Ok(self.publish(report, clock))
    }

    /// Puts the pairs found in the place of the last.
    fn publish(&mut self, report: Report, clock: &mut Clock) -> Report {
        self.lists.publish();
        let [pairs, started, ended] = [self.pairs(), self.started(), self.ended()].map(<[_]>::len);
        Report {
            pairs: pairs as u64,
            started: started as u64,
            ended: ended as u64,
            timings: clock.finish(),
            ..report
        }
    }

    /// What decides how many pairs an update of so many boxes may keep.
    fn memory<'a>(&self, config: &'a Config, boxes: usize, max: u64) -> Memory<'a> {
        Memory {
            last: self.last.as_ref().map(|_| self.lists.pairs.len() as u64),
            owned: self.lists.bytes(),
            events: config.events,
            ..Memory::new(config, boxes, max)
        }
    }

    fn last_report(&self) -> Report {
        let none = || Report::none(Backend::Cpu, crate::Strategy::Auto);
        self.last.clone().unwrap_or_else(none)
    }

    pub(crate) fn pairs(&self) -> &[Pair] {
        &self.lists.pairs
    }

    pub(crate) fn started(&self) -> &[Pair] {
        &self.lists.started
    }

    pub(crate) fn ended(&self) -> &[Pair] {
        &self.lists.ended
    }

    /// How the columns cut the space, if they are more than one. Worlds have columns each of their
    /// own.
    pub(crate) fn subdivision(&self) -> Option<Subdivision> {
        let [_, u, v] = records::axes(self.last.as_ref()?.axis);
        let used = self.columns.count() > 1 && self.scene.worlds.is_none();
        used.then(|| Subdivision::Columns {
            axes: [u, v],
            cuts: self.columns.cuts.each_ref().map(Cuts::to_vec),
        })
    }

    /// The boxes of the last update as they were given: swept ones merged, `f64` ones rounded, bad
    /// ones empty.
    pub(crate) fn boxes(&self) -> &[Aabb] {
        self.scene.given()
    }

    pub(crate) fn clear(&mut self) {
        self.lists.clear();
        *self = Self {
            lists: std::mem::take(&mut self.lists),
            spare_scene: std::mem::take(&mut self.spare_scene),
            scratch: std::mem::take(&mut self.scratch),
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
        let (mut first, mut second) = (read_alone(config, a)?, read_alone(config, b)?);
        if first.exact.is_some() || second.exact.is_some() {
            first.make_exact()?;
            second.make_exact()?;
        }
        let sets = TwoSets::new(config, &first, &second)?;
        let memory = Memory {
            last: self.last_between,
            ..Memory::new(config, a.len() + b.len(), a.len() as u64 * b.len() as u64)
        };
        let blocks = &self.lists.blocks;
        let (found, limit) = memory.collect(|limit| sets.find(limit, blocks))?;
        let mut pairs = Vec::new();
        order(found.within(limit)?.blocks, a.len(), &mut pairs, blocks)?;
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
        let scene = read_alone(config, frame)?;
        let (n, pairs) = (frame.len(), max_pairs(frame.len()));
        let round = ROUND_PAIRS.max(ROUND_PAIRS_PER_BOX * n as u64);
        let limit = Memory::new(config, n, pairs).round(round);
        let finder = Finder {
            config,
            scene: &scene,
            plan: &plan(&scene.boxes, scene.worlds.as_deref(), config.strategy),
            blocks: &self.lists.blocks,
        };
        let scratch = &mut self.scratch;
        let found = on_threads(|| finder.run(limit, scratch, &mut Clock::start()))?;
        let mut delivery = Delivery::new(chunk, f);
        let blocks = &self.lists.blocks;
        let tests = delivery.all(&scene, config.rule, found.stored()?, limit, blocks)?;
        Ok(ChunkReport {
            pairs: delivery.pairs,
            chunks: delivery.chunks,
            invalid: scene.invalid,
            tests,
            ms: start.elapsed().as_secs_f64() * 1e3,
        })
    }
}

/// Reads a frame without margin, and apart from the last update.
fn read_alone(config: &Config, frame: &Frame) -> Result<Scene> {
    check_count(frame)?;
    let mut scene = Scene::default();
    scene.read(frame, config.on_invalid, 0.0, &Scene::default())?;
    Ok(scene)
}

/// Indices have 31 bits beside the bit of an endpoint, and each of two sets may have a world for
/// each of its boxes.
fn check_count(frame: &Frame) -> Result<()> {
    let boxes = frame.len() as u64;
    let limit = if frame.worlds.is_some() {
        MAX_COLUMNS / 4
    } else {
        i32::MAX as u64
    };
    if boxes > limit {
        Err(Error::TooManyBoxes { boxes, limit })
    } else {
        Ok(())
    }
}
