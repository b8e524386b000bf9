//! How a frame is best swept: axis and columns, from a sample of its boxes and a model of the cost.
//!
//! The sample's own candidates are counted exactly and scaled by the square of the sampling ratio; a grid of columns is
//! rated by the copies it makes of the sample and by how many columns the sampled candidates share. The same frame gives
//! the same plan, whatever the thread count.

use super::columns::{Columns, Cuts, Span, Steps, area};
use super::records::axes;
use crate::cpu::key::{biased, ordered};
use crate::cpu::tuning::{BOX_BUDGET, PAIR_BUDGET};
use crate::{Aabb, Choice, OverlapRule, Reason, Strategy};

/// Cost of a candidate, the unit: 0.3 ns of one thread.
pub(in crate::cpu) const TEST: f64 = 1.0;
/// Cost of a record of `Sweep`: sorted by its key, gathered and started, about 33 ns.
pub(in crate::cpu) const RECORD: f64 = 110.0;
/// Cost of a box of `Subdivided`: its columns found and counted, about 15 ns.
const BOX: f64 = 50.0;
/// Cost of a copy of a box in a column: written, sorted and started, about 40 ns.
pub(in crate::cpu) const COPY: f64 = 130.0;
/// Candidates of a box up to which `Auto` sweeps along one axis at once, and of a frame beside: what rating grids takes.
const FEW_TESTS: [f64; 2] = [30.0, 2e5];
/// Boxes from which columns along all axes are rated, not only along that of the fewest candidates.
const RATE_ALL: usize = 80_000;
/// Sampled candidates that rate a grid, for each box of the sample.
const RATED: usize = 8;
/// Most parts of an axis. 256 x 256 columns serve 10^7 boxes, and the write positions of all stay in cache.
pub(in crate::cpu) const MOST_PARTS: f64 = 256.0;
/// Boxes for each column at least: uniform boxes have a hundred in the best columns, and empty columns cost too.
const FEWEST_IN_COLUMN: f64 = 16.0;
/// Typical boxes side by side in the best columns of uniform boxes.
const USUAL_WIDTH: f64 = 4.0;
/// Copies of one box that a grid is charged for: a box of more may be swept on its own.
const CHARGED_COPIES: u64 = 64;
/// Frames after one whose plan was exceeded in which no plan is made, and the most of them.
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
    /// `min` and `max` on the sweep axis over the sample, each sorted, to estimate a box's candidates.
    ends: [Vec<f32>; 2],
    /// Boxes of the frame for each of the sample.
    ratio: f64,
    /// Why, where `Auto` chose.
    pub(in crate::cpu) choice: Option<Choice>,
}

impl Plan {
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
        let [least, most] = DISTRUST;
        self.wait = if was_exceeded {
            (2 * self.wait).clamp(least, most)
        } else {
            0
        };
        self.frames = self.wait;
    }
}

/// Boxes drawn from all parts of a frame, the empty ones left out.
struct Sample {
    boxes: Vec<Aabb>,
    worlds: Vec<u32>,
    /// Boxes of the frame for each of the sample.
    ratio: f64,
}

impl Sample {
    fn new(boxes: &[Aabb], worlds: Option<&[u32]>) -> Self {
        // Larger frames are worth a better estimate: 2048 boxes hold 2 million pairs.
        let size = (boxes.len() / 128).clamp(192, 2048).min(boxes.len());
        // One from each stretch, at no fixed place in it: scenes often repeat with some period.
        let start = |i: usize| i * boxes.len() / size;
        let somewhere = |i: usize| (i as u32).wrapping_mul(0x9e37_79b9) as usize >> 7;
        let drawn = (0..size)
            .map(|i| start(i) + somewhere(i) % (start(i + 1) - start(i)))
            .filter(|&i| !boxes[i].is_empty());
        let (drawn, worlds): (Vec<_>, Vec<_>) = drawn
            .map(|i| (boxes[i], worlds.map_or(0, |worlds| worlds[i])))
            .unzip();
        let ratio = boxes.len() as f64 / size.max(1) as f64;
        Self {
            boxes: drawn,
            worlds,
            ratio,
        }
    }

    /// Counts the candidates on an axis and keeps some of them, evenly, by their places in the sample.
    fn candidates(&self, axis: usize) -> (f64, Vec<[u16; 2]>) {
        let key = |(b, i): (&Aabb, u64)| u64::from(biased(ordered(b.min[axis]))) << 32 | i;
        let mut order: Vec<u64> = self.boxes.iter().zip(0..).map(key).collect();
        order.sort_unstable();
        let order: Vec<u16> = order.iter().map(|&key| key as u16).collect();
        let mins: Vec<f32> = order
            .iter()
            .map(|&i| self.boxes[usize::from(i)].min[axis])
            .collect();
        // A run is all boxes that begin before this one ends.
        let run = |(first, &i): (usize, &u16)| {
            let most = self.boxes[usize::from(i)].max[axis];
            mins[first..].partition_point(|&min| min <= most).max(1) - 1
        };
        let runs: Vec<usize> = order.iter().enumerate().map(run).collect();
        let count: usize = runs.iter().sum();
        let step = count.div_ceil(RATED * self.boxes.len().max(1)).max(1);
        let mut kept = Vec::new();
        let mut next = step / 2;
        let mut before = 0;
        for (i, run) in runs.into_iter().enumerate() {
            while next < before + run {
                kept.push([order[i], order[i + 1 + next - before]]);
                next += step;
            }
            before += run;
        }
        let drawn = kept.len().max(1) as f64;
        let world = |i: u16| self.worlds[usize::from(i)];
        kept.retain(|&[i, j]| world(i) == world(j));
        (count as f64 * kept.len() as f64 / drawn, kept)
    }

    /// How many of `count` candidates overlap, by those kept.
    fn pairs(&self, count: f64, kept: &[[u16; 2]]) -> f64 {
        let b = |i: u16| &self.boxes[usize::from(i)];
        let overlaps = |&&[i, j]: &&[u16; 2]| b(i).overlaps(b(j), OverlapRule::Closed);
        let overlapping = kept.iter().filter(overlaps).count();
        count * overlapping as f64 / kept.len().max(1) as f64
    }

    fn sorted(&self, of: impl Fn(&Aabb) -> f32) -> Vec<f32> {
        let mut values: Vec<f32> = self.boxes.iter().map(of).collect();
        values.sort_unstable_by(f32::total_cmp);
        values
    }
}

/// Chooses axis and columns; with `Strategy::Auto` also between `Sweep` and `Subdivided` (`Endpoints` meets the
/// candidates of `Sweep` on a fixed axis and is never cheaper).
pub(in crate::cpu) fn plan(boxes: &[Aabb], worlds: Option<&[u32]>, strategy: Strategy) -> Plan {
    let fixed = |axis| Plan {
        strategy,
        by_tree: false,
        axis,
        is_bounded: matches!(strategy, Strategy::Auto | Strategy::Subdivided),
        columns: Columns::default(),
        ends: Default::default(),
        ratio: 1.0,
        choice: None,
    };
    if strategy == Strategy::Endpoints {
        return fixed(0);
    }
    let sample = Sample::new(boxes, worlds);
    let scale = sample.ratio * sample.ratio;
    let candidates: [_; 3] = std::array::from_fn(|axis| sample.candidates(axis));
    let tests = |axis: usize| candidates[axis].0 * scale;
    let sweep_axis = (0..3)
        .min_by(|&i, &j| tests(i).total_cmp(&tests(j)))
        .unwrap_or(0);
    let n = boxes.len() as f64;
    let sweep_cost = tests(sweep_axis) * TEST + n * RECORD;
    let choice = |reason, subdivided: Option<f64>| {
        let auto = strategy == Strategy::Auto;
        auto.then_some(Choice {
            reason,
            sweep_ms: sweep_cost * UNIT_MS,
            subdivided_ms: subdivided.map(|cost| cost * UNIT_MS),
        })
    };
    let sweep = Plan {
        strategy: Strategy::Sweep,
        choice: choice(Reason::FewCandidates, None),
        ..fixed(sweep_axis)
    };
    let few = tests(sweep_axis) < FEW_TESTS[0] * n + FEW_TESTS[1];
    if strategy == Strategy::Sweep || (few && strategy == Strategy::Auto) {
        return sweep;
    }
    let mins: [_; 3] = std::array::from_fn(|axis| sample.sorted(|b| b.min[axis]));
    let sides: [_; 3] = std::array::from_fn(|axis| side(&sample, axis, &mins[axis]));
    let mut best: Option<(f64, usize, Columns)> = None;
    for (axis, (count, kept)) in candidates.iter().enumerate() {
        if boxes.len() < RATE_ALL && axis != sweep_axis {
            continue;
        }
        let [_, y, z] = axes(axis);
        let mut least = f64::INFINITY;
        // Points fit side by side without end: columns are narrow enough when few boxes are in each.
        let most = (n / FEWEST_IN_COLUMN).clamp(1.0, MOST_PARTS * MOST_PARTS);
        let usual = USUAL_WIDTH.max((sides[y] * sides[z] / most).sqrt());
        // Rates columns of this many typical boxes' width; false once that is no use.
        let mut rate = |width: f64| {
            let parts = [y, z].map(|k| (sides[k] / width).round().clamp(1.0, MOST_PARTS) as usize);
            if parts == [1, 1] || (parts[0] * parts[1]) as f64 > 2.0 * most {
                return false;
            }
            let columns = Columns {
                cuts: [(y, parts[0]), (z, parts[1])].map(|(k, parts)| Cuts::new(&mins[k], parts)),
                steps: middle(&mins[axis]),
            };
            let spans: Vec<_> = sample
                .boxes
                .iter()
                .map(|b| columns.span(b, [y, z]))
                .collect();
            let copies: f64 = spans
                .iter()
                .map(|span| area(span).min(CHARGED_COPIES) as f64)
                .sum();
            let met: f64 = kept
                .iter()
                .map(|pair| pair.map(|i| &spans[usize::from(i)]))
                .map(|[p, q]| shared(p, q))
                .sum();
            let tests = met * count / kept.len().max(1) as f64 * scale;
            let cost = tests * TEST + copies * sample.ratio * COPY + n * BOX;
            if best.as_ref().is_none_or(|&(best, ..)| cost < best) {
                best = Some((cost, axis, columns));
            }
            least = least.min(cost);
            cost < 1.1 * least && parts.iter().any(|&parts| (parts as f64) < MOST_PARTS)
        };
        // From the usual best to both sides, in steps of a factor of root two.
        for direction in [-1, 1] {
            (i32::from(direction > 0)..20)
                .map(|step| usual * f64::from(direction * step).exp2().sqrt())
                .all(&mut rate);
        }
    }
    let least = best
        .as_ref()
        .map_or(sweep_cost, |(cost, ..)| cost.min(sweep_cost));
    let (count, kept) = &candidates[sweep_axis];
    let tree_cost = BOX_BUDGET as f64 * n + PAIR_BUDGET as f64 * sample.pairs(*count, kept) * scale;
    if tree_cost < least {
        return Plan {
            strategy: Strategy::Subdivided,
            by_tree: true,
            choice: choice(Reason::LeastCost, Some(tree_cost)),
            ..fixed(sweep_axis)
        };
    }
    let cost = best.as_ref().map(|&(cost, ..)| cost);
    match best {
        Some((cost, axis, columns)) if strategy == Strategy::Subdivided || cost < sweep_cost => {
            let ends = [mins[axis].clone(), sample.sorted(|b| b.max[axis])];
            Plan {
                strategy: Strategy::Subdivided,
                columns,
                ends,
                ratio: sample.ratio,
                choice: choice(Reason::LeastCost, Some(cost)),
                ..fixed(axis)
            }
        }
        _ if strategy == Strategy::Subdivided => Plan { strategy, ..sweep },
        _ => Plan {
            choice: choice(Reason::LeastCost, cost),
            ..sweep
        },
    }
}

/// Even steps over a sorted sample, a few far values apart: the middle 31 of 32 parts and a little more.
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

/// How many typical boxes fit side by side on an axis: the extent of the middle nine tenths over the mean side of the
/// smaller nine tenths.
fn side(sample: &Sample, axis: usize, mins: &[f32]) -> f64 {
    let sides = sample.sorted(|b| b.max[axis] - b.min[axis]);
    let n = mins.len();
    if n == 0 {
        return 1.0;
    }
    let extent = f64::from(mins[n - 1 - n / 20]) - f64::from(mins[n / 20]);
    let small = &sides[..(n * 9).div_ceil(10)];
    let mean = small.iter().map(|&side| f64::from(side)).sum::<f64>() / small.len() as f64;
    let many = extent / 0.9 / mean;
    // Points fit side by side without end; boxes all in one place do not.
    if many.is_nan() {
        1.0
    } else {
        many.clamp(1.0, 1e6)
    }
}
