//! An update of the CPU engine by what changed since the last one, in the order of ways that the
//! head of the engine lists, or by a full update. The caller's list of changed boxes, if there is
//! one, saves reading the others.

use super::Engine;
use super::clock::Clock;
use super::incremental::splice::{pairs_of, splice};
use super::lanes::MARK;
use super::limits::{PairLimit, max_pairs};
use super::neighbours::test::ignores_denormals;
use super::neighbours::{Last, Neighbours, Step};
use super::output::collect::Found;
use super::output::events::difference;
use super::output::lists::Lists;
use super::output::order::order;
use super::scene::Scene;
use super::tuning::{
    MAX_CANDIDATES, MAX_JUMP_TESTS, SEARCH_TASK, SERIAL_PAIRS, SPLICE_PART, SPLICED_SHARE,
    UNCHECKED_PAIRS,
};
use super::update_full::rival_cost;
use crate::threads::{in_pool, on_threads};
use crate::{
    Aabb, Backend, Config, Error, Frame, Invalid, OverlapRule, Pair, Report, Result, Sorts, Stats,
    Strategy, try_alloc,
};
use rayon::prelude::*;

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
        let bounds = bounds_before(n, changed, &before, &now);
        self.scene.reserve(n)?;
        let mut scene = std::mem::take(&mut self.scene);
        scene.put(changed, &now, n);
        let result = if is_small {
            self.update_changed(&scene, bounds, &mut clock)
        } else {
            rayon::scope(|_| self.update_changed(&scene, bounds, &mut clock))
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
        self.on_best_thread(scene.boxes.len(), |engine| {
            engine.update_without_list(scene, &mut clock)
        })
    }

    /// Updates by all boxes of a scene, where the neighbour list is not in use.
    fn update_without_list(&mut self, scene: &Scene, clock: &mut Clock) -> Result<Report> {
        let has_last = self.last.is_some();
        let few_changed = has_last && self.incremental.compare(scene, &self.scene, &self.config);
        if few_changed {
            let changed = self.incremental.changed().list();
            let [before, now] = [self.scene.subset(changed)?, scene.subset(changed)?];
            let bounds = bounds_before(scene.boxes.len(), changed, &before, &now);
            if let Some(report) = on_threads(|| self.update_changed(scene, bounds, clock))? {
                return Ok(report);
            }
        }
        if !few_changed {
            self.incremental.drop_tree();
            if has_last && let Some(report) = self.update_neighbours(scene, clock)? {
                self.kept.drop_tree();
                return Ok(report);
            }
        }
        let report = self.update_full(scene, clock)?;
        self.incremental.end_full(&report);
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
        let result = self.update_by_neighbours(&scene, last, clock);
        if !matches!(result, Ok(Some(_))) {
            scene.put(&changed, &before, n);
        }
        self.scene = scene;
        self.listed = changed;
        result
    }

    /// Updates by all boxes of a scene and the neighbour list.
    fn update_neighbours(&mut self, scene: &Scene, clock: &mut Clock) -> Result<Option<Report>> {
        let last = std::mem::take(&mut self.scene);
        let result = self.update_by_neighbours(scene, Last::All(&last.boxes), clock);
        self.scene = last;
        result
    }

    /// Finds all pairs by the neighbour list, which it builds when it is due, puts them in order
    /// and publishes them. Returns None if the update is better done otherwise.
    fn update_by_neighbours(
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
        let step = Step {
            scene,
            last,
            rule: self.config.rule,
            rival: rival_cost(scene, self.lists.pairs.len()),
        };
        let (lists, neighbours) = (&mut self.lists, &mut self.neighbours);
        let is_new = !neighbours.in_use();
        let updated = match last {
            _ if !is_new => neighbours.update(&step, &lists.blocks),
            Last::All(before)
                if neighbours.begin_frame(&scene.boxes, before, lists.pairs.len()) =>
            {
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

        let (count, memory) = (
            updated.pairs as u64,
            self.memory(&self.config, n, max_pairs(n)),
        );
        let (lists, neighbours) = (&mut self.lists, &mut self.neighbours);
        let pairs = if is_new {
            &mut lists.next
        } else {
            &mut lists.pairs
        };
        let fits = memory.check(count, pairs.capacity());
        if let Err(error) = fits.and_then(|()| try_alloc::reserve_ahead(pairs, updated.pairs)) {
            neighbours.drop_list();
            return Err(error);
        }
        if is_new {
            pairs.clear();
        }
        // Without a new list these are the pairs of the last update: nothing fails from here on.
        write(neighbours, pairs, updated.pairs);
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
        Ok(Some(self.report_without_plan(
            scene,
            updated.tests,
            0,
            clock,
        )))
    }

    /// Returns the report of an update that found all pairs without a plan, and whose lists are in
    /// place. The strategy stays that of the last plan.
    pub(super) fn report_without_plan(
        &self,
        scene: &Scene,
        tests: u64,
        sorted: u64,
        clock: &mut Clock,
    ) -> Report {
        let last = self.last_report();
        let report = Report {
            n: scene.boxes.len(),
            invalid: scene.invalid,
            stats: Stats {
                tests,
                resting: 0,
                sorts: Sorts {
                    keys: sorted,
                    ..Sorts::default()
                },
                ..last.stats
            },
            ..last
        };
        self.complete(report, clock)
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

    /// Finds which pairs of the changed set started and which ended, and keeps the others. `before`
    /// is as in [`Incremental::refresh`]. Returns None if there is no tree to search.
    fn update_changed(
        &mut self,
        scene: &Scene,
        before: &[Aabb],
        clock: &mut Clock,
    ) -> Result<Option<Report>> {
        if !self.incremental.refresh(scene, before, &self.config) {
            return Ok(None);
        }
        let n = scene.boxes.len();
        let changed = self.incremental.changed();
        let resting = n - changed.list().partition_point(|&i| (i as usize) < n);
        clock.lap(|timings| &mut timings.bounds);

        let max_new = changed.list().len() as u64 * n as u64;
        let max = (self.lists.pairs.len() as u64).saturating_add(max_new);
        let memory = self.memory(&self.config, n, max.min(max_pairs(n)));
        let differing = self.find_differing(scene, before)?;
        let mut differences = match differing {
            Some(found) => {
                clock.lap(|timings| &mut timings.sweep);
                self.differences(found)?
            }
            None => self.compare_changed(scene, &memory, clock)?,
        };
        let Differences { started, ended, .. } = &differences;
        let count = (self.lists.pairs.len() + started.len() - ended.len()) as u64;
        memory.check(count, self.lists.pairs.capacity())?;
        splice(&mut self.lists.pairs, started, ended)?;
        self.lists.drop_blocks();
        clock.lap(|timings| &mut timings.order);
        if self.config.events {
            std::mem::swap(&mut self.lists.started, &mut differences.started);
            std::mem::swap(&mut self.lists.ended, &mut differences.ended);
        }
        self.incremental.end_incremental(differences.tests);
        self.kept.drop_tree();
        self.neighbours.forget_motion();
        let last = self.last_report();
        let report = Report {
            n,
            invalid: scene.invalid,
            stats: Stats {
                resting: resting as u64,
                tests: differences.tests,
                sorts: Sorts {
                    keys: differences.sorted,
                    ..Sorts::default()
                },
                ..last.stats
            },
            ..last
        };
        Ok(Some(self.complete(report, clock)))
    }

    /// Finds the pairs of the changed set that started or ended, where `before` is known. Returns
    /// None where they are too many.
    fn find_differing(&self, scene: &Scene, before: &[Aabb]) -> Result<Option<Found>> {
        if before.is_empty() {
            return Ok(None);
        }
        let limit = UNCHECKED_PAIRS.max(self.lists.pairs.len() as u64);
        let limit = limit.min(self.config.pair_limit().unwrap_or(u64::MAX));
        let (config, blocks) = (&self.config, &self.lists.blocks);
        let found = self
            .incremental
            .find(scene, before, config, limit, blocks)?;
        Ok((found.count <= limit).then_some(found))
    }

    /// Puts the pairs that started or ended in order.
    fn differences(&self, found: Found) -> Result<Differences> {
        let (tests, sorted, blocks) = (found.tests, found.count, &self.lists.blocks);
        let (mut started, mut ended) = (Vec::new(), Vec::new());
        for block in found.blocks {
            for &pair in &block {
                let list = if pair.b & MARK == 0 {
                    &mut started
                } else {
                    &mut ended
                };
                let b = pair.b & !MARK;
                try_alloc::push(list, Pair { b, ..pair })?;
            }
            blocks.give(block);
        }
        // Not by `order`: it keeps the lists as blocks, and there would be more in each frame.
        for list in [&mut started, &mut ended] {
            if list.len() > SERIAL_PAIRS && in_pool() {
                list.par_sort_unstable_by_key(|pair| pair.code());
            } else {
                list.sort_unstable_by_key(|pair| pair.code());
            }
        }
        Ok(Differences {
            started,
            ended,
            tests,
            sorted,
        })
    }

    /// Finds all pairs of the changed set, and compares them with those in the last list.
    fn compare_changed(
        &self,
        scene: &Scene,
        memory: &PairLimit,
        clock: &mut Clock,
    ) -> Result<Differences> {
        let (lists, changed) = (&self.lists, self.incremental.changed());
        let find = |limit| {
            self.incremental
                .find(scene, &[], &self.config, limit, &lists.blocks)
        };
        let (found, limit) = memory.collect(find)?;
        clock.lap(|timings| &mut timings.sweep);
        let (tests, sorted) = (found.tests, found.count);
        let old = pairs_of(changed, &lists.pairs)?;
        if sorted > limit {
            let count = sorted + (lists.pairs.len() - old.len()) as u64;
            return Err(Error::TooManyPairs { count, limit });
        }
        let mut new = Vec::new();
        order(found.blocks, scene.boxes.len(), &mut new, &lists.blocks)?;
        let (started, ended) = difference(&old, &new)?;
        Ok(Differences {
            started,
            ended,
            tests,
            sorted,
        })
    }

    /// Finds which pairs of the next list started and which of the last ended, if events are
    /// wanted.
    pub(super) fn compare_lists(&mut self, clock: &mut Clock) -> Result<()> {
        if self.config.events {
            self.lists.compare()?;
            clock.lap(|timings| &mut timings.events);
        }
        Ok(())
    }

    /// Replaces the lists of the last update by the new ones, and completes the report.
    pub(super) fn publish(&mut self, report: Report, clock: &mut Clock) -> Report {
        self.lists.publish();
        self.complete(report, clock)
    }

    /// Completes the report of an update, whose lists are in place.
    fn complete(&self, mut report: Report, clock: &mut Clock) -> Report {
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

    /// Returns what limits the pairs of an update. It borrows the configuration only, so that the
    /// search may change the rest of the engine.
    pub(super) fn memory<'a>(&self, config: &'a Config, boxes: usize, max: u64) -> PairLimit<'a> {
        PairLimit {
            last: self.last.as_ref().map(|_| self.lists.pairs.len() as u64),
            reusable: self.lists.reusable_bytes(),
            ..PairLimit::of_update(config, boxes, max)
        }
    }

    fn last_report(&self) -> Report {
        let none = || Report::none(Backend::Cpu, crate::Strategy::Auto);
        self.last.clone().unwrap_or_else(none)
    }
}

/// What the changed set makes different in the list of pairs.
struct Differences {
    started: Vec<Pair>,
    ended: Vec<Pair>,
    tests: u64,
    /// The number of pairs that were put in order.
    sorted: u64,
}

/// Returns the bounds of the changed boxes of `n` before, or nothing if more than bounds may decide
/// which pairs differ, boxes came or went, or too many jumped. `before` and `now` have the changed
/// boxes.
fn bounds_before<'a>(n: usize, changed: &[u32], before: &'a Scene, now: &Scene) -> &'a [Aabb] {
    let has_all =
        |boxes: &[Aabb]| boxes.len() == changed.len() && !boxes.iter().any(Aabb::is_empty);
    let same_boxes = has_all(&before.boxes) && has_all(&now.boxes);
    let only_bounds =
        before.exact.is_none() && before.filters == now.filters && before.worlds == now.worlds;
    let boxes = before.boxes.iter().zip(&now.boxes);
    let jumped = boxes.filter(|(before, now)| !before.overlaps(now, OverlapRule::Closed));
    if same_boxes && only_bounds && jumped.count() * n <= MAX_JUMP_TESTS * changed.len() {
        &before.boxes
    } else {
        &[]
    }
}

/// Makes `pairs`, which are those of the last update or none, the `count` ones of the neighbour
/// list. The memory is reserved.
fn write(neighbours: &mut Neighbours, pairs: &mut Vec<Pair>, count: usize) {
    let [started, ended] = neighbours.changes();
    let few_differ = started.len() + ended.len() < pairs.len() / SPLICED_SHARE;
    // Without memory to edit the list it is written.
    let is_spliced =
        few_differ && pairs.len() > SPLICE_PART && splice(pairs, started, ended).is_ok();
    if !is_spliced {
        pairs.resize(count, Pair::default());
        neighbours.write(pairs);
    }
}

/// Tells whether an update of `n` boxes may keep a neighbour list.
fn may_have_neighbours(config: &Config, n: usize) -> bool {
    config.strategy == Strategy::Auto
        && config.min_resting.is_none_or(|min| min < n)
        && !ignores_denormals()
}
