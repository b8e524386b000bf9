//! How a frame is best swept: axis and columns, from a sample of its boxes and a model of the cost.
//!
//! The sample's own candidates are counted exactly and scaled by the square of the sampling ratio;
//! a cut into columns is rated by the copies it makes of the sample and by how many columns the
//! sampled candidates share. The same frame gives the same plan, whatever the thread count.

use super::columns::{Columns, Cuts, Span, Steps, area};
use super::records::axes;
use super::sample::Sample;
use crate::cpu::tuning::{BOX_BUDGET, PAIR_BUDGET};
use crate::{Aabb, Choice, Reason, Strategy};

/// Cost of a candidate, the unit: 0.3 ns of one thread.
pub(in crate::cpu) const TEST: f64 = 1.0;
/// Cost of a record of `Sweep`: sorted by its key, gathered and started, about 33 ns.
pub(in crate::cpu) const RECORD: f64 = 110.0;
/// Cost of a box of `Subdivided`: its columns found and counted, about 15 ns.
const BOX: f64 = 50.0;
/// Cost of a copy of a box in a column: written, sorted and started, about 40 ns.
pub(in crate::cpu) const COPY: f64 = 130.0;
/// `Auto` skips rating columns below this many candidates for each box plus this many for the
/// frame: what rating takes.
const FEW_TESTS: [f64; 2] = [30.0, 2e5];
/// Boxes from which columns along all axes are rated, not only along that of the fewest candidates.
const RATE_ALL: usize = 80_000;
/// Max parts of an axis. 256 x 256 columns serve 10^7 boxes, and the write positions of all stay in
/// cache.
pub(in crate::cpu) const MAX_PARTS: f64 = 256.0;
/// Min boxes for each column: uniform boxes have a hundred in the best columns, and empty columns
/// cost too.
const MIN_IN_COLUMN: f64 = 16.0;
/// Typical boxes side by side in the best columns of uniform boxes.
const USUAL_WIDTH: f64 = 4.0;
/// Copies of one box that columns are charged for: a box of more may be swept on its own.
const CHARGED_COPIES: u64 = 64;
/// Frames after one whose plan was exceeded in which no plan is made: at first, and the max.
const DISTRUST: [u32; 2] = [4, 256];
/// Milliseconds of one thread for a unit of cost.
const UNIT_MS: f64 = 3e-7;

/// How to find the pairs of a frame.
pub(in crate::cpu) struct Plan {
    pub(in crate::cpu) strategy: Strategy,
    /// Whether `Subdivided` is the tree, else the columns.
    pub(in crate::cpu) by_tree: bool,
    pub(in crate::cpu) axis: usize,
    /// Whether the tree takes over should this cost more than the tree does.
    pub(in crate::cpu) is_bounded: bool,
    /// The columns of `Subdivided`.
    pub(in crate::cpu) columns: Columns,
    /// `min` and `max` on the sweep axis over the sample, each sorted, to estimate a box's
    /// candidates.
    ends: [Vec<f32>; 2],
    /// Boxes of the frame for each of the sample.
    ratio: f64,
    /// Why, where `Auto` chose.
    pub(in crate::cpu) choice: Option<Choice>,
}

impl Plan {
    /// One sweep along an axis.
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

    /// Takes the tree instead, after work by this plan or one before it exceeded its bound.
    pub(in crate::cpu) fn exceed(&mut self) {
        self.strategy = Strategy::Subdivided;
        self.by_tree = true;
        self.columns = Columns::default();
        if let Some(choice) = &mut self.choice {
            choice.reason = Reason::TooManyTests;
        }
    }

    /// How many boxes share the interval of this one on the sweep axis, by the sample.
    pub(in crate::cpu) fn candidates(&self, b: &Aabb) -> f64 {
        let [mins, maxs] = &self.ends;
        let begun = mins.partition_point(|&min| min <= b.max[self.axis]);
        let over = maxs.partition_point(|&max| max < b.min[self.axis]);
        begun.saturating_sub(over) as f64 * self.ratio
    }
}

/// Whether plans can be trusted: one that was exceeded costs as much again as the tree.
#[derive(Default)]
pub(in crate::cpu) struct Trust {
    /// Frames for which the tree is taken without a plan.
    frames: u32,
    /// How many they were the last time.
    wait: u32,
}

impl Trust {
    /// Whether a plan is to be made for the next frame.
    pub(in crate::cpu) fn in_plans(&mut self) -> bool {
        let trusted = self.frames == 0;
        self.frames = self.frames.saturating_sub(1);
        trusted
    }

    /// Takes note of what became of a plan.
    pub(in crate::cpu) fn learn(&mut self, was_exceeded: bool) {
        let [min, max] = DISTRUST;
        self.wait = if was_exceeded {
            (2 * self.wait).clamp(min, max)
        } else {
            0
        };
        self.frames = self.wait;
    }
}

/// Chooses axis and columns; with `Strategy::Auto` also between `Sweep` and `Subdivided`
/// (`Endpoints` meets the candidates of `Sweep` on a fixed axis and is never cheaper).
pub(in crate::cpu) fn plan(boxes: &[Aabb], worlds: Option<&[u32]>, strategy: Strategy) -> Plan {
    if strategy == Strategy::Endpoints {
        return Plan::along(0, strategy);
    }
    let sample = Sample::new(boxes, worlds);
    let candidates = std::array::from_fn(|axis| sample.candidates(axis));
    Planner {
        sample,
        candidates,
        strategy,
        n: boxes.len(),
    }
    .plan()
}

/// Chooses a plan by a sample.
struct Planner {
    sample: Sample,
    /// Of the sample on each axis: how many, and some of them.
    candidates: [(f64, Vec<[u16; 2]>); 3],
    strategy: Strategy,
    /// Boxes of the frame.
    n: usize,
}

/// Columns and what sweeping them costs.
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
        let sweep_cost = tests[axis] * TEST + n * RECORD;
        let choice = |reason, subdivided: Option<f64>| {
            is_auto.then_some(Choice {
                reason,
                sweep_ms: sweep_cost * UNIT_MS,
                subdivided_ms: subdivided.map(|cost| cost * UNIT_MS),
            })
        };
        let along = |axis, strategy, choice| Plan {
            is_bounded: is_auto || by_columns,
            choice,
            ..Plan::along(axis, strategy)
        };
        let few = tests[axis] < FEW_TESTS[0] * n + FEW_TESTS[1];
        if self.strategy == Strategy::Sweep || (few && is_auto) {
            return along(axis, Strategy::Sweep, choice(Reason::FewCandidates, None));
        }
        let mins = std::array::from_fn(|axis| self.sample.sorted(|b| b.min[axis]));
        let best = self.best_columns(axis, &mins);
        let cost = best.as_ref().map(|best| best.cost);
        let least = cost.map_or(sweep_cost, |cost| cost.min(sweep_cost));
        let (count, chosen) = &self.candidates[axis];
        let pairs = self.sample.pairs(*count, chosen) * self.scale();
        let tree_cost = BOX_BUDGET as f64 * n + PAIR_BUDGET as f64 * pairs;
        if tree_cost < least {
            let choice = choice(Reason::LeastCost, Some(tree_cost));
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

    /// Pairs of boxes in the frame for each of the sample.
    fn scale(&self) -> f64 {
        self.sample.ratio * self.sample.ratio
    }

    /// Rates columns along the sweep axis, in large frames along all axes. `mins` are sorted.
    fn best_columns(&self, sweep_axis: usize, mins: &[Vec<f32>; 3]) -> Option<Rated> {
        let sides = std::array::from_fn(|axis| self.sample.side_by_side(axis, &mins[axis]));
        let mut best = None;
        for axis in 0..3 {
            if self.n >= RATE_ALL || axis == sweep_axis {
                self.rate_along(axis, mins, &sides, &mut best);
            }
        }
        best
    }

    /// Rates columns along an axis, of more and of less width than is usually best, until they get
    /// worse.
    fn rate_along(
        &self,
        axis: usize,
        mins: &[Vec<f32>; 3],
        sides: &[f64; 3],
        best: &mut Option<Rated>,
    ) {
        let [_, y, z] = axes(axis);
        // Points fit side by side without end: columns are narrow enough when few boxes are in
        // each.
        let max_columns = (self.n as f64 / MIN_IN_COLUMN).clamp(1.0, MAX_PARTS * MAX_PARTS);
        let usual = USUAL_WIDTH.max((sides[y] * sides[z] / max_columns).sqrt());
        let mut least = f64::INFINITY;
        // Rates columns of this many typical boxes' width; false once that is no use.
        let mut rate = |width: f64| {
            let parts = [y, z].map(|k| (sides[k] / width).round().clamp(1.0, MAX_PARTS) as usize);
            if parts == [1, 1] || (parts[0] * parts[1]) as f64 > 2.0 * max_columns {
                return false;
            }
            let columns = Columns {
                cuts: [(y, parts[0]), (z, parts[1])].map(|(k, parts)| Cuts::new(&mins[k], parts)),
                steps: middle(&mins[axis]),
            };
            let cost = self.cost(axis, &columns);
            if best.as_ref().is_none_or(|best| cost < best.cost) {
                *best = Some(Rated {
                    cost,
                    axis,
                    columns,
                });
            }
            least = least.min(cost);
            cost < 1.1 * least && parts.iter().any(|&parts| (parts as f64) < MAX_PARTS)
        };
        // From the usual best to both sides, in steps of a factor of root two.
        for direction in [-1, 1] {
            (i32::from(direction > 0)..20)
                .map(|step| usual * f64::from(direction * step).exp2().sqrt())
                .all(&mut rate);
        }
    }

    /// What a sweep inside columns costs: the copies of the boxes, and the candidates of each
    /// column.
    fn cost(&self, axis: usize, columns: &Columns) -> f64 {
        let [_, y, z] = axes(axis);
        let (count, chosen) = &self.candidates[axis];
        let boxes = self.sample.boxes.iter();
        let spans: Vec<_> = boxes.map(|b| columns.span(b, [y, z])).collect();
        let copies: f64 = spans
            .iter()
            .map(|span| area(span).min(CHARGED_COPIES) as f64)
            .sum();
        let met: f64 = chosen
            .iter()
            .map(|pair| pair.map(|i| &spans[usize::from(i)]))
            .map(|[p, q]| shared(p, q))
            .sum();
        let tests = met * count / chosen.len().max(1) as f64 * self.scale();
        tests * TEST + copies * self.sample.ratio * COPY + self.n as f64 * BOX
    }
}

/// Even steps over a sorted sample, a few far values apart: the middle 31 of 32 parts and a little
/// more.
fn middle(sorted: &[f32]) -> Steps {
    let few = sorted.len() / 64;
    match (
        sorted.get(few),
        sorted.get(sorted.len().wrapping_sub(1 + few)),
    ) {
        (Some(&low), Some(&high)) => {
            let more = (high - low) / 32.0;
            Steps::new(low - more, high + more)
        }
        _ => Steps::default(),
    }
}

/// How many columns two spans share.
fn shared(p: &Span, q: &Span) -> f64 {
    let common = |k: usize| {
        let (first, last) = (p[k][0].max(q[k][0]), p[k][1].min(q[k][1]));
        f64::from((i32::from(last) - i32::from(first) + 1).max(0))
    };
    common(0) * common(1)
}
