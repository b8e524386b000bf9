//! A full update: by the tree that is kept while boxes move, all against all, or by a plan.

use super::Engine;
use super::accept::{Accept, WorldTest};
use super::clock::Clock;
use super::full::kept::expected_cost;
use super::full::plan::{Planned, keeps_places};
use super::full::{FullSearch, Scratch};
use super::limits::{PairLimit, max_pairs};
use super::output::collect::Collector;
use super::scene::Scene;
use super::tuning::{
    BRUTE_BOX_COST, BRUTE_PAIRS, FULL_BOX_COSTS, FULL_PAIR_COST, KEPT_FRAME_COST, MAX_BRUTE_FRAME,
    MIN_KEPT_FRAME,
};
use crate::{Backend, Report, Result, Stats, Strategy};

/// Returns what a frame by a kept tree would be expected to cost, or `u64::MAX` for a scene that
/// cannot have one: it has few boxes, or worlds.
pub(super) fn rival_cost(scene: &Scene, pairs: usize) -> u64 {
    let n = scene.boxes.len();
    if n < MIN_KEPT_FRAME || scene.worlds.is_some() {
        return u64::MAX;
    }
    KEPT_FRAME_COST + expected_cost(n, pairs) + FULL_PAIR_COST * pairs as u64
}

impl Engine {
    /// Finds all pairs.
    pub(super) fn update_full(&mut self, scene: &Scene, clock: &mut Clock) -> Result<Report> {
        let n = scene.boxes.len();
        let is_auto = self.config.strategy == Strategy::Auto;
        let may_keep = is_auto && n >= MIN_KEPT_FRAME && scene.worlds.is_none();
        let may_keep = may_keep && self.last.is_some() && keeps_places(scene, &self.scene);
        if !may_keep {
            self.kept.drop_tree();
        }
        let takes_tree = may_keep && self.kept.begin_frame(n, self.lists.pairs.len());
        if takes_tree && let Some(report) = self.update_kept(scene, clock)? {
            return Ok(report);
        }
        if is_auto && n <= MAX_BRUTE_FRAME {
            let report = self.update_brute(scene, clock)?;
            let cost = report.stats.tests / BRUTE_PAIRS + BRUTE_BOX_COST * n as u64;
            self.neighbours.record_full(cost);
            let order = FULL_PAIR_COST * report.pairs; // it needs none
            self.kept.record_without(cost.saturating_sub(order));
            return Ok(report);
        }
        let report = self.update_planned(scene, clock)?;
        let in_columns = report.stats.strategy != Strategy::Sweep;
        let cost = report.stats.tests + FULL_BOX_COSTS[usize::from(in_columns)] * n as u64;
        self.kept.record_without(cost);
        self.neighbours
            .record_full(cost + FULL_PAIR_COST * report.pairs);
        Ok(report)
    }

    /// Finds all pairs by the kept tree. Returns None where another way is better.
    fn update_kept(&mut self, scene: &Scene, clock: &mut Clock) -> Result<Option<Report>> {
        let (n, rule) = (scene.boxes.len(), self.config.rule);
        if !self.kept.in_use() {
            // The tree replaces the memory of a sweep and the plan.
            (self.scratch, self.planned) = (Scratch::default(), None);
        }
        if self.kept.refit(scene, rule).is_err() {
            self.kept.reject();
            return Ok(None);
        }
        clock.lap(|timings| &mut timings.sort);
        let memory = self.memory(&self.config, n, max_pairs(n));
        let (accept, blocks) = (
            Accept::new(scene, scene, rule, WorldTest::PerPair)?,
            &self.lists.blocks,
        );
        let mut is_exceeded = false;
        let (found, limit) = memory.collect(|limit| {
            let collector = Collector::new(limit, blocks).bounded(n);
            let found = self.kept.pairs(&accept, &collector);
            is_exceeded |= collector.is_exceeded();
            found.stored()
        })?;
        clock.lap(|timings| &mut timings.sweep);
        if is_exceeded {
            found
                .blocks
                .into_iter()
                .for_each(|block| blocks.give(block));
            self.kept.reject();
            return Ok(None);
        }
        let (tests, count) = (found.tests, found.count);
        self.lists.order(found.within(limit)?, n)?;
        clock.lap(|timings| &mut timings.order);
        self.compare_lists(clock)?;
        let cost = self.kept.end_frame(n, tests, count);
        // Up to there a list costs less than its model says, so it is compared with all against
        // all. With 200 boxes that move by a tenth, a list takes 6 us and the tree 8.
        if n > MAX_BRUTE_FRAME {
            self.neighbours.record_full(cost + FULL_PAIR_COST * count);
        }
        self.lists.publish();
        Ok(Some(self.report_without_plan(scene, tests, count, clock)))
    }

    /// Finds all pairs by a plan.
    fn update_planned(&mut self, scene: &Scene, clock: &mut Clock) -> Result<Report> {
        let n = scene.boxes.len();
        let mut planned = match self.planned.take() {
            Some(last) if last.suits(scene, &self.scene) => last,
            _ => Planned::new(scene, self.config.strategy),
        };
        let plan = &mut planned.plan;
        let follows_plan = !plan.is_bounded || !self.plan_backoff.begin_frame();
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
                plan,
                blocks: &self.lists.blocks,
            };
            let found = search.run(limit, &mut self.scratch, clock)?;
            if found.by_tree && !plan.by_tree {
                plan.take_tree();
            }
            Ok(found)
        })?;
        if follows_plan {
            if plan.by_tree == planned_tree {
                self.plan_backoff.record_success();
            } else {
                self.plan_backoff.record_failure();
            }
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
        planned.end_frame(found.tests);

        self.lists.order(found.within(limit)?, n)?;
        clock.lap(|timings| &mut timings.order);
        self.compare_lists(clock)?;
        self.planned = Some(planned);
        Ok(self.publish(report, clock))
    }

    /// Finds all pairs of a small frame: every box is tested against all after it.
    fn update_brute(&mut self, scene: &Scene, clock: &mut Clock) -> Result<Report> {
        let n = scene.boxes.len();
        let pairs = &mut self.lists.next;
        self.sides.all(&scene.boxes, self.config.rule, pairs)?;
        let accept = Accept::new(scene, scene, self.config.rule, WorldTest::PerPair)?;
        if accept.tests_anything() {
            pairs.retain(|pair| accept.keeps(pair.a, pair.b));
        }
        let memory = PairLimit::of_update(&self.config, n, max_pairs(n));
        memory.check(pairs.len() as u64, pairs.capacity())?;
        clock.lap(|timings| &mut timings.sweep);
        self.compare_lists(clock)?;
        self.planned = None;
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
}
