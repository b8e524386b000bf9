//! Plans how to find the pairs of a frame: strategy, axis and columns, by a cost model and a sample
//! of the boxes.
//!
//! The candidates within the sample are counted exactly and scaled by the square of the sampling
//! ratio. Columns are rated by the number of copies of the sampled boxes, and by the number of
//! columns that the sampled candidates share. A plan depends on the frame only, not on threads.

use super::columns::{Columns, Cuts, Gap, Span, Steps, area};
use super::records::axes;
use super::sample::Sample;
use crate::choice::{Choice, Reason};
use crate::cpu::scene::Scene;
use crate::cpu::tuning::{
    BOX_BUDGET, COLUMN_BOX_COST, COLUMN_COST, COLUMN_WIDTH, COPY_COST, MAX_CHARGED_COPIES,
    MAX_PARTS, MIN_PER_COLUMN, MOTION_SAMPLE, OTHER_SHARE, PAIR_BUDGET, PLANNED_FRAMES,
    RATE_ALL_AXES, RATED_WIDTHS, RATING_TESTS, RATING_TESTS_PER_BOX, RECORD_COST, TEST_MS,
    WORSE_COLUMNS,
};
use crate::stratified::draw;
use crate::{Aabb, OverlapRule, Strategy};

/// How to find the pairs of a frame.
pub(crate) struct Plan {
    pub(crate) strategy: Strategy,
    /// Whether the tree finds the pairs; then the strategy is `Subdivided`.
    pub(in crate::cpu) by_tree: bool,
    pub(crate) axis: usize,
    /// Whether the tree takes over if the sweep exceeds its budget.
    pub(in crate::cpu) is_bounded: bool,
    /// The columns of `Subdivided`; else a single one.
    pub(crate) columns: Columns,
    /// `min` and `max` of the sample on the sweep axis, each sorted, to estimate a box's
    /// candidates.
    ends: [Vec<f32>; 2],
    /// The number of boxes of the frame for each sampled one.
    ratio: f64,
    /// What `Auto` expected of the strategies, if it chose.
    pub(in crate::cpu) choice: Option<Choice>,
}

impl Plan {
    /// Plans one sweep along an axis.
    fn along(axis: usize, strategy: Strategy) -> Self {
        Self {
            strategy,
            by_tree: false,
            axis,
            is_bounded: false,
            columns: Columns::default(),
            ends: Default::default(),
            ratio: 1.0,
            choice: None,
        }
    }

    /// Changes the plan to the tree, after a sweep exceeded its budget.
    pub(in crate::cpu) fn take_tree(&mut self) {
        self.strategy = Strategy::Subdivided;
        self.by_tree = true;
        self.columns = Columns::default();
        if let Some(choice) = &mut self.choice {
            choice.reason = Reason::TooManyTests;
        }
    }

    /// Estimates how many boxes overlap a box on the sweep axis.
    pub(in crate::cpu) fn candidates(&self, b: &Aabb) -> f64 {
        let [mins, maxs] = &self.ends;
        let begin_before = mins.partition_point(|&min| min <= b.max[self.axis]);
        let end_before = maxs.partition_point(|&max| max < b.min[self.axis]);
        begin_before.saturating_sub(end_before) as f64 * self.ratio
    }
}

/// A plan that later frames may follow too while their boxes move little: to plan takes as long as
/// a tenth of a frame.
pub(in crate::cpu) struct Planned {
    pub(in crate::cpu) plan: Plan,
    /// The boxes of the frame that it was made for, and the tests that it took there.
    n: usize,
    tests: u64,
    /// The number of frames that followed it.
    frames: u32,
    /// Whether the last frame took many more tests than the first.
    is_worse: bool,
}

impl Planned {
    pub(in crate::cpu) fn new(scene: &Scene, strategy: Strategy) -> Self {
        Self {
            plan: plan(&scene.boxes, scene.worlds.as_deref(), strategy),
            n: scene.boxes.len(),
            tests: 0,
            frames: 0,
            is_worse: false,
        }
    }

    /// Returns the columns of the plan.
    pub(in crate::cpu) const fn columns(&self) -> &Columns {
        &self.plan.columns
    }

    /// Tells whether a frame, which follows `last`, is to follow this plan too.
    pub(in crate::cpu) fn suits(&self, scene: &Scene, last: &Scene) -> bool {
        let is_like = self.n == scene.boxes.len()
            && scene.worlds == last.worlds
            && !self.plan.by_tree
            && !self.is_worse;
        is_like && self.frames < PLANNED_FRAMES && keeps_places(scene, last)
    }

    /// Ends a frame that followed the plan, with the tests that it took.
    pub(in crate::cpu) fn end_frame(&mut self, tests: u64) {
        if self.frames == 0 {
            self.tests = tests;
        }
        self.frames += 1;
        self.is_worse = tests > self.tests + self.tests / 4 + self.n as u64;
    }
}

/// Tells whether a scene has as many boxes as the last, and nearly all of a sample overlap those
/// that they were.
pub(in crate::cpu) fn keeps_places(scene: &Scene, last: &Scene) -> bool {
    let (boxes, last) = (&scene.boxes, &last.boxes);
    if boxes.len() != last.len() {
        return false;
    }
    let samples = boxes.len().min(MOTION_SAMPLE);
    let keeps_place = |&i: &usize| {
        let (b, before) = (&boxes[i], &last[i]);
        (b.is_empty() && before.is_empty()) || b.overlaps(before, OverlapRule::Closed)
    };
    let near = draw(boxes.len(), samples, 0).filter(keeps_place).count();
    near >= samples - samples / OTHER_SHARE
}

/// Chooses the axis and the columns, and with `Strategy::Auto` between `Sweep` and `Subdivided`.
/// `Endpoints` tests the candidates of `Sweep` on a fixed axis, so it is never cheaper.
pub(in crate::cpu) fn plan(boxes: &[Aabb], worlds: Option<&[u32]>, strategy: Strategy) -> Plan {
    if strategy == Strategy::Endpoints {
        return Plan::along(0, strategy);
    }
    planner(boxes, worlds, strategy).plan()
}

/// Chooses as [`plan`] does, for an engine without a tree.
#[cfg(feature = "wgpu")]
pub(crate) fn plan_without_tree(
    boxes: &[Aabb],
    worlds: Option<&[u32]>,
    strategy: Strategy,
) -> Plan {
    Planner {
        has_tree: false,
        costs: &ON_WGPU,
        ..planner(boxes, worlds, strategy)
    }
    .plan()
}

/// Chooses as [`plan_without_tree`] does, by boxes that were drawn from `n`, with their worlds.
#[cfg(feature = "wgpu")]
pub(crate) fn plan_by_sample(drawn: &[(Aabb, u32)], n: usize, strategy: Strategy) -> Plan {
    let sample = Sample::of_drawn(drawn, n);
    let candidates = std::array::from_fn(|axis| sample.candidates(axis));
    Planner {
        sample,
        candidates,
        strategy,
        n,
        has_tree: false,
        costs: &ON_WGPU,
    }
    .plan()
}

fn planner(boxes: &[Aabb], worlds: Option<&[u32]>, strategy: Strategy) -> Planner {
    let sample = Sample::new(boxes, worlds);
    let candidates = std::array::from_fn(|axis| sample.candidates(axis));
    Planner {
        sample,
        candidates,
        strategy,
        n: boxes.len(),
        has_tree: true,
        costs: &ON_CPU,
    }
}

/// What the steps of a sweep cost an engine, in tests.
struct Costs {
    /// A box of one sweep.
    record: f64,
    /// A box in columns, and a copy of it in one.
    column_box: f64,
    copy: f64,
    column: f64,
}

const ON_CPU: Costs = Costs {
    record: RECORD_COST,
    column_box: COLUMN_BOX_COST,
    copy: COPY_COST,
    column: COLUMN_COST,
};

#[cfg(feature = "wgpu")]
const ON_WGPU: Costs = {
    let [record, column_box, copy, column] = crate::cpu::tuning::WGPU_COSTS;
    Costs {
        record,
        column_box,
        copy,
        column,
    }
};

/// Chooses a plan by a sample.
struct Planner {
    sample: Sample,
    /// The candidates of the sample on each axis: their number, and some of them.
    candidates: [(f64, Vec<[u16; 2]>); 3],
    strategy: Strategy,
    /// The number of boxes in the frame.
    n: usize,
    /// Whether a tree can find the pairs.
    has_tree: bool,
    costs: &'static Costs,
}

/// Columns and the cost of a sweep inside them.
struct Rated {
    cost: f64,
    axis: usize,
    columns: Columns,
}

impl Planner {
    fn plan(self) -> Plan {
        let tests: [_; 3] = std::array::from_fn(|axis| self.candidates[axis].0 * self.scale());
        let axis = (0..3)
            .min_by(|&i, &j| tests[i].total_cmp(&tests[j]))
            .unwrap_or(0);
        let n = self.n as f64;
        let (is_auto, by_columns) = (
            self.strategy == Strategy::Auto,
            self.strategy == Strategy::Subdivided,
        );
        let sweep_cost = tests[axis] + n * self.costs.record;
        let choice = |reason, subdivided: Option<f64>| {
            is_auto.then_some(Choice {
                reason,
                sweep_ms: sweep_cost * TEST_MS,
                subdivided_ms: subdivided.map(|cost| cost * TEST_MS),
            })
        };
        let along = |axis, strategy, choice| Plan {
            is_bounded: is_auto || by_columns,
            choice,
            ..Plan::along(axis, strategy)
        };
        let expects_few = tests[axis] < RATING_TESTS_PER_BOX * n + RATING_TESTS;
        if self.strategy == Strategy::Sweep || (expects_few && is_auto) {
            return along(axis, Strategy::Sweep, choice(Reason::FewCandidates, None));
        }
        let mins = std::array::from_fn(|axis| self.sample.sorted(|b| b.min[axis]));
        let best = self.best_columns(axis, &mins);
        let cost = best.as_ref().map(|best| best.cost);
        let min_cost = cost.map_or(sweep_cost, |cost| cost.min(sweep_cost));
        let (count, chosen) = &self.candidates[axis];
        let pairs = self.sample.pairs(*count, chosen) * self.scale();
        let budget = BOX_BUDGET as f64 * n + PAIR_BUDGET as f64 * pairs;
        if self.has_tree && budget < min_cost {
            let choice = choice(Reason::LeastCost, Some(budget));
            return Plan {
                by_tree: true,
                ..along(axis, Strategy::Subdivided, choice)
            };
        }
        let choice = choice(Reason::LeastCost, cost);
        match best {
            Some(best) if by_columns || best.cost < sweep_cost => Plan {
                ends: [
                    mins[best.axis].clone(),
                    self.sample.sorted(|b| b.max[best.axis]),
                ],
                ratio: self.sample.ratio,
                columns: best.columns,
                ..along(best.axis, Strategy::Subdivided, choice)
            },
            _ if by_columns => along(axis, Strategy::Subdivided, choice),
            _ => along(axis, Strategy::Sweep, choice),
        }
    }

    /// Returns the number of pairs of boxes in the frame for each one in the sample.
    fn scale(&self) -> f64 {
        self.sample.ratio * self.sample.ratio
    }

    /// Rates columns along the sweep axis, in large frames along all axes, and returns the best.
    /// `mins` are sorted.
    fn best_columns(&self, sweep_axis: usize, mins: &[Vec<f32>; 3]) -> Option<Rated> {
        let sides = std::array::from_fn(|axis| self.sample.side_by_side(axis, &mins[axis]));
        let gaps = std::array::from_fn(|axis| self.sample.gaps(axis, &mins[axis]));
        let mut best = None;
        for axis in 0..3 {
            if self.n >= RATE_ALL_AXES || axis == sweep_axis {
                self.rate_along(axis, &gaps, &sides, &mut best);
            }
        }
        best
    }

    /// Rates columns along an axis, from the typical width both to wider and to narrower ones,
    /// until they get worse.
    fn rate_along(
        &self,
        axis: usize,
        gaps: &[Vec<Gap>; 3],
        sides: &[f64; 3],
        best: &mut Option<Rated>,
    ) {
        let [_, y, z] = axes(axis);
        // Any number of points fit side by side, so the number of boxes limits that of columns.
        let max_columns = (self.n as f64 / MIN_PER_COLUMN).clamp(1.0, MAX_PARTS * MAX_PARTS);
        let typical = COLUMN_WIDTH.max((sides[y] * sides[z] / max_columns).sqrt());
        let mut min_cost = f64::INFINITY;
        // Rates columns as wide as this many typical boxes. Returns whether to go on.
        let mut rate = |width: f64| {
            let parts = [y, z].map(|k| (sides[k] / width).round().clamp(1.0, MAX_PARTS) as usize);
            if parts == [1, 1] || (parts[0] * parts[1]) as f64 > 2.0 * max_columns {
                return false;
            }
            let columns = Columns {
                cuts: [(y, parts[0]), (z, parts[1])].map(|(k, parts)| Cuts::new(&gaps[k], parts)),
                steps: middle_steps(&gaps[axis]),
            };
            let cost = self.cost(axis, &columns);
            if best.as_ref().is_none_or(|best| cost < best.cost) {
                *best = Some(Rated {
                    cost,
                    axis,
                    columns,
                });
            }
            min_cost = min_cost.min(cost);
            cost < WORSE_COLUMNS * min_cost && parts.iter().any(|&parts| (parts as f64) < MAX_PARTS)
        };
        // Widths grow or shrink by a factor of root two.
        for direction in [-1, 1] {
            (i32::from(direction > 0)..RATED_WIDTHS)
                .map(|step| typical * f64::from(direction * step).exp2().sqrt())
                .all(&mut rate);
        }
    }

    /// Estimates the cost of a sweep inside columns: the copies of the boxes, and the candidates in
    /// each column.
    fn cost(&self, axis: usize, columns: &Columns) -> f64 {
        let [_, y, z] = axes(axis);
        let (count, chosen) = &self.candidates[axis];
        let boxes = self.sample.boxes.iter();
        let spans: Vec<_> = boxes.map(|b| columns.span(b, [y, z])).collect();
        let copies: f64 = spans
            .iter()
            .map(|span| area(span).min(MAX_CHARGED_COPIES) as f64)
            .sum();
        let shared_columns: f64 = chosen
            .iter()
            .map(|pair| pair.map(|i| &spans[usize::from(i)]))
            .map(|[p, q]| shared(p, q))
            .sum();
        let tests = shared_columns * count / chosen.len().max(1) as f64 * self.scale();
        let costs = self.costs;
        let boxes = copies * self.sample.ratio * costs.copy + self.n as f64 * costs.column_box;
        tests + boxes + columns.count() as f64 * costs.column
    }
}

/// Returns even steps over a sorted sample, without a few far values: over its middle 31 of 32
/// parts and a little more.
fn middle_steps(sorted: &[Gap]) -> Steps {
    let outliers = sorted.len() / 64;
    match (
        sorted.get(outliers),
        sorted.get(sorted.len().wrapping_sub(1 + outliers)),
    ) {
        (Some(&Gap { min: low, .. }), Some(&Gap { min: high, .. })) => {
            let margin = (high - low) / 32.0;
            Steps::new(low - margin, high + margin)
        }
        _ => Steps::default(),
    }
}

/// Returns the number of columns that two spans share.
fn shared(p: &Span, q: &Span) -> f64 {
    let common = |k: usize| {
        let (first, last) = (p[k][0].max(q[k][0]), p[k][1].min(q[k][1]));
        f64::from((i32::from(last) - i32::from(first) + 1).max(0))
    };
    common(0) * common(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a row of boxes that begins there.
    fn row(n: usize, from: f32) -> Scene {
        let at = |i: usize| {
            Aabb::new(
                [from + 2.0 * i as f32, 0.0, 0.0],
                [from + 2.0 * i as f32 + 1.0, 1.0, 1.0],
            )
        };
        Scene {
            boxes: (0..n).map(at).collect(),
            ..Scene::default()
        }
    }

    #[test]
    fn frames_like_the_one_before_follow_its_plan() {
        let (first, next) = (row(2000, 0.0), row(2000, 0.5));
        let planned = |tests: &[u64]| {
            let mut planned = Planned::new(&first, Strategy::Auto);
            tests.iter().for_each(|&tests| planned.end_frame(tests));
            planned
        };
        assert!(planned(&[4000]).suits(&next, &first));
        assert!(
            !planned(&[4000]).suits(&row(2000, 1.5), &first),
            "boxes jumped"
        );
        assert!(
            !planned(&[4000]).suits(&row(1999, 0.5), &first),
            "boxes went"
        );
        let worlds = Some(vec![1; 2000]);
        let other_worlds = Scene {
            worlds,
            ..row(2000, 0.5)
        };
        assert!(!planned(&[4000]).suits(&other_worlds, &first));
        assert!(planned(&[4000, 7000]).suits(&next, &first));
        assert!(!planned(&[4000, 7001]).suits(&next, &first), "more tests");
        let many = [4000; PLANNED_FRAMES as usize];
        assert!(planned(&many[1..]).suits(&next, &first));
        assert!(!planned(&many).suits(&next, &first));
        let mut by_tree = planned(&[4000]);
        by_tree.plan.take_tree();
        assert!(!by_tree.suits(&next, &first));
    }
}
