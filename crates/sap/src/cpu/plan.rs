//! How a frame is best swept: axis and columns, from a sample of its boxes and a model of the cost.
//!
//! The sample's own candidates are counted exactly and scaled by the square of the sampling ratio; a grid of columns is
//! rated by the copies it makes of the sample and by how many columns the sampled candidates share. The same frame gives
//! the same plan, whatever the thread count.

use super::columns::{Columns, Cuts, Span, area};
use super::records::axes;
use crate::{Aabb, Strategy};

/// Cost of a candidate, the unit: 0.2 ns of one thread (uniform, 10^6 boxes: 7 * 10^9 tests in 0.74 s of two threads).
pub(super) const TEST: f64 = 1.0;
/// Cost of a record: sorted by its key, gathered and started, about 35 ns.
pub(super) const RECORD: f64 = 150.0;
/// Cost of a copy of a box in a column: sorted by column, gathered and started, about 70 ns.
pub(super) const COPY: f64 = 350.0;
/// Candidates up to which `Auto` sweeps along one axis at once: 2 ms of one thread, as much as rating grids takes.
const FEW_TESTS: f64 = 1e7;
/// Sampled candidates that rate a grid.
const RATED: usize = 8192;
/// Most parts of an axis. 512 x 512 columns serve 10^7 boxes.
pub(super) const MOST_PARTS: f64 = 512.0;
/// Copies of one box that a grid is charged for: a box of more may be swept on its own.
const CHARGED_COPIES: u64 = 64;
/// How to sweep a frame.
pub(super) struct Plan {
    pub(super) strategy: Strategy,
    pub(super) axis: usize,
    /// The columns of `Subdivided`.
    pub(super) columns: Columns,
    /// `min` and `max` on the sweep axis over the sample, each sorted, to estimate a box's candidates.
    ends: [Vec<f32>; 2],
    /// Boxes of the frame for each of the sample.
    ratio: f64,
}

impl Plan {
    /// How many boxes share the interval of this one on the sweep axis, by the sample.
    pub(super) fn candidates(&self, b: &Aabb) -> f64 {
        let [mins, maxs] = &self.ends;
        let begun = mins.partition_point(|&min| min <= b.max[self.axis]);
        let over = maxs.partition_point(|&max| max < b.min[self.axis]);
        begun.saturating_sub(over) as f64 * self.ratio
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
        let size = (boxes.len() / 16).clamp(512, 2048).min(boxes.len());
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

    /// Counts the candidates on an axis and keeps some of them, evenly.
    fn candidates(&self, axis: usize) -> (f64, Vec<[usize; 2]>) {
        let mut order: Vec<usize> = (0..self.boxes.len()).collect();
        order.sort_by(|&i, &j| self.boxes[i].min[axis].total_cmp(&self.boxes[j].min[axis]));
        let mins: Vec<f32> = order.iter().map(|&i| self.boxes[i].min[axis]).collect();
        // A run is all boxes that begin before this one ends.
        let runs: Vec<usize> = (0..order.len())
            .map(|i| {
                mins[i..]
                    .partition_point(|&min| min <= self.boxes[order[i]].max[axis])
                    .max(1)
                    - 1
            })
            .collect();
        let count: usize = runs.iter().sum();
        let step = count.div_ceil(RATED).max(1);
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
        kept.retain(|&[i, j]| self.worlds[i] == self.worlds[j]);
        (count as f64 * kept.len() as f64 / drawn, kept)
    }

    fn sorted(&self, of: impl Fn(&Aabb) -> f32) -> Vec<f32> {
        let mut values: Vec<f32> = self.boxes.iter().map(of).collect();
        values.sort_by(f32::total_cmp);
        values
    }
}

/// Chooses axis and columns; with `Strategy::Auto` also between `Sweep` and `Subdivided` (`Endpoints` meets the
/// candidates of `Sweep` on a fixed axis and is never cheaper).
pub(super) fn plan(boxes: &[Aabb], worlds: Option<&[u32]>, strategy: Strategy) -> Plan {
    let fixed = |axis| Plan {
        strategy,
        axis,
        columns: Columns::default(),
        ends: Default::default(),
        ratio: 1.0,
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
    let sweep_cost = tests(sweep_axis) * TEST + boxes.len() as f64 * RECORD;
    let sweep = Plan {
        strategy: Strategy::Sweep,
        ..fixed(sweep_axis)
    };
    let few = strategy == Strategy::Auto && tests(sweep_axis) < FEW_TESTS;
    if strategy == Strategy::Sweep || few {
        return sweep;
    }
    let mins: [_; 3] = std::array::from_fn(|axis| sample.sorted(|b| b.min[axis]));
    let sides: [_; 3] = std::array::from_fn(|axis| side(&sample, axis, &mins[axis]));
    let mut best: Option<(f64, usize, Columns)> = None;
    for (axis, (count, kept)) in candidates.iter().enumerate() {
        let [_, y, z] = axes(axis);
        let mut least = f64::INFINITY;
        // Rates columns of this many typical boxes' width; false once that is no use.
        let mut rate = |width: f64| {
            let parts = [y, z].map(|k| (sides[k] / width).round().clamp(1.0, MOST_PARTS) as usize);
            if parts == [1, 1] {
                return false;
            }
            let columns = Columns {
                cuts: [(y, parts[0]), (z, parts[1])].map(|(k, parts)| Cuts::new(&mins[k], parts)),
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
                .map(|&[i, j]| shared(&spans[i], &spans[j]))
                .sum();
            let tests = met * count / kept.len().max(1) as f64 * scale;
            let cost = tests * TEST + copies * sample.ratio * COPY + boxes.len() as f64 * RECORD;
            if best.as_ref().is_none_or(|&(best, ..)| cost < best) {
                best = Some((cost, axis, columns));
            }
            least = least.min(cost);
            cost < 1.3 * least && parts.iter().any(|&parts| (parts as f64) < MOST_PARTS)
        };
        // From the usual best to both sides, in steps of a factor of root two.
        for direction in [-1, 1] {
            (0..20)
                .map(|step| 3.0 * f64::from(direction * step).exp2().sqrt())
                .all(&mut rate);
        }
    }
    match best {
        Some((cost, axis, columns)) if strategy == Strategy::Subdivided || cost < sweep_cost => {
            let ends = [mins[axis].clone(), sample.sorted(|b| b.max[axis])];
            Plan {
                strategy: Strategy::Subdivided,
                axis,
                columns,
                ends,
                ratio: sample.ratio,
            }
        }
        _ if strategy == Strategy::Subdivided => Plan { strategy, ..sweep },
        _ => sweep,
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
