//! An update of the CPU engine takes the first of these ways that applies: no box changed, the
//! neighbour list in use, an incremental update, a new neighbour list, all against all, a full
//! search. The caller's list of changed boxes, if there is one, saves reading the others.

use super::Engine;
use super::accept::{Accept, WorldTest};
use super::clock::Clock;
use super::full::FullSearch;
use super::full::columns::Columns;
use super::full::plan::plan;
use super::incremental::splice::{splice, unchanged_pairs};
use super::memory::{Memory, max_pairs};
use super::neighbours::test::ignores_denormals;
use super::neighbours::{Last, Step};
use super::output::events::difference;
use super::output::lists::Lists;
use super::output::order::order;
use super::scene::Scene;
use super::tuning::{
    BRUTE_BOX_COST, FULL_BOX_COST, FULL_PAIR_COST, MAX_BRUTE_FRAME, MAX_CANDIDATES, SEARCH_TASK,
    SMALL_FRAME,
};
use crate::threads::on_threads;
use crate::{
    Backend, Config, Error, Frame, Invalid, Pair, Report, Result, Sorts, Stats, Strategy, try_alloc,
};

impl Engine {
    /// Updates by the caller's list of changed boxes, and reads no others. Returns None if that is
    /// not possible or too many boxes changed.
    pub(super) fn update_listed(
        &mut self,
        frame: &Frame,
        listed: &[u32],
    ) -> Result<Option<Report>> {
        let mut clock = Clock::start();
        let (n, n_before) = (frame.len(), self.scene.boxes.len());
        if listed.is_empty() && n == n_before {
            return Ok(Some(self.keep_all(None, &mut clock)));
        }
        if self.neighbours.in_use() {
            return self.update_listed_neighbours(frame, listed, &mut clock);
        }
        if !self
            .incremental
            .take_list(listed, n, n_before, &self.config)
        {
            return Ok(None);
        }
        let changed = self.incremental.changed().list();
        if changed.is_empty() {
            return Ok(Some(self.keep_all(None, &mut clock)));
        }
        let before = self.scene.subset(changed)?;
        let Some(now) = before.read_subset(frame, changed, &self.config)? else {
            return Ok(None);
        };
        let is_small = changed.len() <= SEARCH_TASK;
        self.scene.reserve(n)?;
        let mut scene = std::mem::take(&mut self.scene);
        scene.put(changed, &now, n);
        let result = if is_small {
            self.update_changed(&scene, &mut clock)
        } else {
            rayon::scope(|_| self.update_changed(&scene, &mut clock))
        };
        if !matches!(result, Ok(Some(_))) {
            scene.put(self.incremental.changed().list(), &before, n_before);
        }
        self.scene = scene;
        result
    }

    /// Updates by all boxes of the frame, which it reads into `scene`. On success the caller stores
    /// that scene.
    pub(super) fn update_compared(&mut self, frame: &Frame, scene: &mut Scene) -> Result<Report> {
        let mut clock = Clock::start();
        scene.read(
            frame,
            self.config.on_invalid,
            self.config.margin,
            &self.scene,
        )?;
        clock.lap(|timings| &mut timings.bounds);
        let has_last = self.last.is_some();
        if has_last && scene.same_pairs(&self.scene) {
            return Ok(self.keep_all(scene.invalid, &mut clock));
        }
        if self.neighbours.in_use()
            && let Some(report) = self.update_neighbours(scene, &mut clock)?
        {
            return Ok(report);
        }
        if scene.boxes.len() <= SMALL_FRAME {
            self.update_without_list(scene, &mut clock)
        } else {
            on_threads(|| self.update_without_list(scene, &mut clock))
        }
    }

    /// Updates by all boxes of a scene, where the neighbour list is not in use.
    fn update_without_list(&mut self, scene: &Scene, clock: &mut Clock) -> Result<Report> {
        let has_last = self.last.is_some();
        let few_changed = has_last && self.incremental.compare(scene, &self.scene, &self.config);
        if few_changed && let Some(report) = on_threads(|| self.update_changed(scene, clock))? {
            return Ok(report);
        }
        if !few_changed {
            self.incremental.drop_tree();
            if has_last && let Some(report) = self.update_neighbours(scene, clock)? {
                return Ok(report);
            }
        }
        let is_small =
            self.config.strategy == Strategy::Auto && scene.boxes.len() <= MAX_BRUTE_FRAME;
        let report = if is_small {
            self.update_brute(scene, clock)?
        } else {
            self.update_full(scene, clock)?
        };
        self.incremental.end_full(&report);
        let (n, tests) = (report.n as u64, report.stats.tests);
        let (box_cost, pair_cost) = if is_small {
            (BRUTE_BOX_COST, 0)
        } else {
            (FULL_BOX_COST, FULL_PAIR_COST)
        };
        self.neighbours
            .record_full(tests + box_cost * n + pair_cost * report.pairs);
        Ok(report)
    }

    /// Updates by the caller's list of changed boxes and the neighbour list.
    fn update_listed_neighbours(
        &mut self,
        frame: &Frame,
        listed: &[u32],
        clock: &mut Clock,
    ) -> Result<Option<Report>> {
        let n = frame.len();
        if n != self.scene.boxes.len() {
            return Ok(None);
        }
        let mut changed = std::mem::take(&mut self.listed);
        try_alloc::refill(&mut changed, listed.iter().copied())?;
        changed.sort_unstable();
        changed.dedup();
        let before = self.scene.subset(&changed)?;
        let Some(now) = before.read_subset(frame, &changed, &self.config)? else {
            return Ok(None);
        };
        let mut scene = std::mem::take(&mut self.scene);
        scene.put(&changed, &now, n);
        let last = Last::Changed(&changed, &before.boxes);
        let result = self.test_neighbours(&scene, last, clock);
        if !matches!(result, Ok(Some(_))) {
            scene.put(&changed, &before, n);
        }
        self.scene = scene;
        self.listed = changed;
        result
    }

    /// Updates by the neighbour list, or builds it when it is due.
    fn update_neighbours(&mut self, scene: &Scene, clock: &mut Clock) -> Result<Option<Report>> {
        let last = std::mem::take(&mut self.scene);
        let result = self.test_neighbours(scene, Last::All(&last.boxes), clock);
        self.scene = last;
        result
    }

    /// Finds all pairs by the neighbour list, or builds it when it is due. Returns None if the
    /// update is better done otherwise.
    fn test_neighbours(
        &mut self,
        scene: &Scene,
        last: Last,
        clock: &mut Clock,
    ) -> Result<Option<Report>> {
        let n = scene.boxes.len();
        if !may_have_neighbours(&self.config, n) {
            self.neighbours.drop_list();
            return Ok(None);
        }
        let rule = self.config.rule;
        let step = Step { scene, last, rule };
        let (lists, neighbours) = (&mut self.lists, &mut self.neighbours);
        let is_new = !neighbours.in_use();
        let updated = match last {
            _ if !is_new => neighbours.update(&step, &lists.blocks),
            Last::All(before) if neighbours.is_due(&scene.boxes, before, lists.pairs.len()) => {
                let max = MAX_CANDIDATES * (lists.pairs.len() + n) as u64;
                neighbours.build(&step, max, &mut self.scratch, &lists.blocks)
            }
            _ => return Ok(None),
        };
        // Without the memory for a list, frames are swept in full.
        let Some(updated) = updated.ok().flatten() else {
            neighbours.drop_list();
            return Ok(None);
        };
        clock.lap(|timings| &mut timings.sweep);

        let (count, limit) = (updated.pairs as u64, self.max_listed());
        let (lists, neighbours) = (&mut self.lists, &mut self.neighbours);
        let pairs = if is_new {
            &mut lists.next
        } else {
            &mut lists.pairs
        };
        let reserved = try_alloc::reserve(pairs, updated.pairs);
        if count > limit || reserved.is_err() {
            neighbours.drop_list();
            return reserved.and(Err(Error::TooManyPairs { count, limit }));
        }
        if is_new {
            pairs.clear();
        }
        // Without a new list these are the pairs of the last update: nothing fails from here on.
        pairs.resize(updated.pairs, Pair::default());
        neighbours.write(pairs);
        clock.lap(|timings| &mut timings.order);
        if self.config.events && is_new {
            if let Err(error) = lists.compare() {
                neighbours.drop_list();
                return Err(error);
            }
            clock.lap(|timings| &mut timings.events);
        } else if self.config.events {
            let [started, ended] = neighbours.changes();
            std::mem::swap(&mut lists.started, started);
            std::mem::swap(&mut lists.ended, ended);
        }
        if is_new {
            std::mem::swap(&mut lists.pairs, &mut lists.next);
        }
        let [started, ended] = [&lists.started, &lists.ended].map(|list| list.len() as u64);
        let last = self.last_report();
        Ok(Some(Report {
            n,
            invalid: scene.invalid,
            pairs: count,
            started,
            ended,
            stats: Stats {
                tests: updated.tests,
                resting: 0,
                sorts: Sorts::default(),
                timings: clock.finish(),
                ..last.stats
            },
            ..last
        }))
    }

    /// Completes an update in which nothing changed.
    fn keep_all(&mut self, invalid: Option<Invalid>, clock: &mut Clock) -> Report {
        self.lists.started.clear();
        self.lists.ended.clear();
        clock.lap(|timings| &mut timings.bounds);
        let last = self.last_report();
        Report {
            started: 0,
            ended: 0,
            invalid,
            stats: Stats {
                tests: 0,
                sorts: Sorts::default(),
                timings: clock.finish(),
                ..last.stats
            },
            ..last
        }
    }

    /// Finds the pairs of the changed set and keeps those of the unchanged boxes. Returns None if
    /// there is no tree to search.
    fn update_changed(&mut self, scene: &Scene, clock: &mut Clock) -> Result<Option<Report>> {
        if !self.incremental.refresh(scene, &self.config) {
            return Ok(None);
        }
        let n = scene.boxes.len();
        let changed = self.incremental.changed();
        let resting = n - changed.list().partition_point(|&i| (i as usize) < n);
        clock.lap(|timings| &mut timings.bounds);

        let max_new = changed.list().len() as u64 * n as u64;
        let max = (self.lists.pairs.len() as u64).saturating_add(max_new);
        let memory = self.memory(&self.config, n, max.min(max_pairs(n)));
        let find = |limit| {
            self.incremental
                .find(scene, limit, &self.config, &self.lists.blocks)
        };
        let (found, limit) = memory.collect(find)?;
        let last = self.last_report();
        let report = Report {
            n,
            invalid: scene.invalid,
            stats: Stats {
                resting: resting as u64,
                tests: found.tests,
                sorts: Sorts {
                    keys: found.count,
                    ..Sorts::default()
                },
                ..last.stats
            },
            ..last
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
        clock.lap(|timings| &mut timings.order);
        if self.config.events {
            (lists.started, lists.ended) = difference(&dropped, &new)?;
            clock.lap(|timings| &mut timings.events);
        }
        self.incremental.end_incremental(report.stats.tests);
        Ok(Some(self.publish(report, clock)))
    }

    /// Finds all pairs.
    fn update_full(&mut self, scene: &Scene, clock: &mut Clock) -> Result<Report> {
        let n = scene.boxes.len();
        let mut plan = plan(&scene.boxes, scene.worlds.as_deref(), self.config.strategy);
        let follows_plan = !plan.is_bounded || self.trust.begin_frame();
        if !follows_plan {
            plan.take_tree();
        }
        let planned_tree = plan.by_tree;
        clock.lap(|timings| &mut timings.bounds);

        let memory = self.memory(&self.config, n, max_pairs(n));
        let (found, limit) = memory.collect(|limit| {
            let search = FullSearch {
                config: &self.config,
                scene,
                plan: &plan,
                blocks: &self.lists.blocks,
            };
            let found = search.run(limit, &mut self.scratch, clock)?;
            if found.by_tree && !plan.by_tree {
                plan.take_tree();
            }
            Ok(found)
        })?;
        if follows_plan {
            let was_exceeded = plan.by_tree != planned_tree;
            self.trust.record(was_exceeded);
        }
        let none = Report::none(Backend::Cpu, plan.strategy);
        let mut report = Report {
            n,
            invalid: scene.invalid,
            stats: Stats {
                tests: found.tests,
                axis: plan.axis,
                choice: plan.choice,
                sorts: found.sorts,
                ..none.stats
            },
            ..none
        };
        report.stats.sorts.keys += found.count;

        self.lists.order(found.within(limit)?, n)?;
        clock.lap(|timings| &mut timings.order);
        self.compare_lists(clock)?;
        self.columns = plan.columns;
        Ok(self.publish(report, clock))
    }

    /// Finds all pairs of a small frame: every box is tested against all after it.
    fn update_brute(&mut self, scene: &Scene, clock: &mut Clock) -> Result<Report> {
        let n = scene.boxes.len();
        self.sides.fill(&scene.boxes, self.config.rule)?;
        let pairs = &mut self.lists.next;
        self.sides.all(pairs)?;
        let accept = Accept::new(scene, scene, self.config.rule, WorldTest::PerPair);
        if accept.tests_anything() {
            pairs.retain(|pair| accept.keeps(pair.a, pair.b));
        }
        let (count, limit) = (pairs.len() as u64, self.max_listed());
        if count > limit {
            return Err(Error::TooManyPairs { count, limit });
        }
        clock.lap(|timings| &mut timings.sweep);
        self.compare_lists(clock)?;
        self.columns = Columns::default();
        let none = Report::none(Backend::Cpu, Strategy::Sweep);
        let report = Report {
            n,
            invalid: scene.invalid,
            stats: Stats {
                tests: max_pairs(n),
                ..none.stats
            },
            ..none
        };
        Ok(self.publish(report, clock))
    }

    /// Finds which pairs of the next list started and which of the last ended, if events are
    /// wanted.
    fn compare_lists(&mut self, clock: &mut Clock) -> Result<()> {
        if self.config.events {
            self.lists.compare()?;
            clock.lap(|timings| &mut timings.events);
        }
        Ok(())
    }

    /// Returns how many pairs the caller's limit on memory allows.
    fn max_listed(&self) -> u64 {
        let pairs = |bytes: u64| bytes / size_of::<Pair>() as u64;
        self.config.pair_memory.map_or(u64::MAX, pairs)
    }

    /// Replaces the lists of the last update by the new ones, and completes the report.
    fn publish(&mut self, mut report: Report, clock: &mut Clock) -> Report {
        self.lists.publish();
        let Lists {
            pairs,
            started,
            ended,
            ..
        } = &self.lists;
        let [pairs, started, ended] = [pairs, started, ended].map(Vec::len);
        report.stats.timings = clock.finish();
        Report {
            pairs: pairs as u64,
            started: started as u64,
            ended: ended as u64,
            ..report
        }
    }

    /// Returns what limits the pairs of an update.
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
}

/// Tells whether an update of `n` boxes may keep a neighbour list.
fn may_have_neighbours(config: &Config, n: usize) -> bool {
    config.strategy == Strategy::Auto
        && config.min_resting.is_none_or(|min| min < n)
        && !ignores_denormals()
}
