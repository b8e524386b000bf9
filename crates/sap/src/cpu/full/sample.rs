//! A sample of a frame's boxes, which estimates the cost of a sweep.

use super::columns::Gap;
use crate::cpu::key::{biased, ordered};
use crate::cpu::tuning::{BOXES_PER_SAMPLED, MAX_PLAN_SAMPLE, MIN_PLAN_SAMPLE, RATED_PER_SAMPLED};
use crate::stratified::draw;
use crate::{Aabb, OverlapRule};

/// Returns the number of boxes to draw from `n`.
pub(crate) fn sample_size(n: usize) -> usize {
    (n / BOXES_PER_SAMPLED)
        .clamp(MIN_PLAN_SAMPLE, MAX_PLAN_SAMPLE)
        .min(n)
}

/// Boxes drawn from all parts of a frame, without the empty ones.
pub(super) struct Sample {
    pub(super) boxes: Vec<Aabb>,
    worlds: Vec<u32>,
    /// The number of boxes of the frame for each drawn one.
    pub(super) ratio: f64,
}

impl Sample {
    pub(super) fn new(boxes: &[Aabb], worlds: Option<&[u32]>) -> Self {
        let size = sample_size(boxes.len());
        let drawn = draw(boxes.len(), size, 0).filter(|&i| !boxes[i].is_empty());
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

    /// Takes boxes that were drawn from `n` elsewhere, with their worlds.
    #[cfg(feature = "wgpu")]
    pub(super) fn of_drawn(drawn: &[(Aabb, u32)], n: usize) -> Self {
        let ratio = n as f64 / drawn.len().max(1) as f64;
        let drawn = drawn
            .iter()
            .copied()
            .filter(|(bounds, _)| !bounds.is_empty());
        let (boxes, worlds) = drawn.unzip();
        Self {
            boxes,
            worlds,
            ratio,
        }
    }

    /// Counts the candidates on an axis, and chooses some of them at even intervals. Returns the
    /// count and the chosen ones, by their indices in the sample.
    pub(super) fn candidates(&self, axis: usize) -> (f64, Vec<[u16; 2]>) {
        let key = |(b, i): (&Aabb, u64)| u64::from(biased(ordered(b.min[axis]))) << 32 | i;
        let mut order: Vec<u64> = self.boxes.iter().zip(0..).map(key).collect();
        order.sort_unstable();
        let order: Vec<u16> = order.iter().map(|&key| key as u16).collect();
        let mins: Vec<f32> = order
            .iter()
            .map(|&i| self.boxes[usize::from(i)].min[axis])
            .collect();
        // The run of a box is the boxes after it that begin before it ends.
        let run = |(first, &i): (usize, &u16)| {
            let max = self.boxes[usize::from(i)].max[axis];
            mins[first..].partition_point(|&min| min <= max).max(1) - 1
        };
        let runs: Vec<usize> = order.iter().enumerate().map(run).collect();
        let count: usize = runs.iter().sum();
        let step = count
            .div_ceil(RATED_PER_SAMPLED * self.boxes.len().max(1))
            .max(1);
        let mut chosen = Vec::new();
        let mut next = step / 2;
        let mut before = 0;
        for (i, run) in runs.into_iter().enumerate() {
            while next < before + run {
                chosen.push([order[i], order[i + 1 + next - before]]);
                next += step;
            }
            before += run;
        }
        let drawn = chosen.len().max(1) as f64;
        let world = |i: u16| self.worlds[usize::from(i)];
        chosen.retain(|&[i, j]| world(i) == world(j));
        (count as f64 * chosen.len() as f64 / drawn, chosen)
    }

    /// Estimates how many of `count` candidates overlap, by the chosen ones.
    pub(super) fn pairs(&self, count: f64, chosen: &[[u16; 2]]) -> f64 {
        let b = |i: u16| &self.boxes[usize::from(i)];
        let overlaps = |&&[i, j]: &&[u16; 2]| b(i).overlaps(b(j), OverlapRule::Closed);
        let overlapping = chosen.iter().filter(overlaps).count();
        count * overlapping as f64 / chosen.len().max(1) as f64
    }

    /// Returns a value of each box, sorted.
    pub(super) fn sorted(&self, of: impl Fn(&Aabb) -> f32) -> Vec<f32> {
        let mut values: Vec<f32> = self.boxes.iter().map(of).collect();
        values.sort_unstable_by(f32::total_cmp);
        values
    }

    /// Finds where an axis can be cut. `mins` are sorted.
    pub(super) fn gaps(&self, axis: usize, mins: &[f32]) -> Vec<Gap> {
        let maxs = self.sorted(|b| b.max[axis]);
        let (mut begun, mut ended) = (0, 0);
        let gap = |&min: &f32| {
            while mins[begun] < min {
                begun += 1;
            }
            while ended < begun && maxs[ended] < min {
                ended += 1;
            }
            // No box begins or ends between the cut and `min`.
            let begins = mins[..begun].last().unwrap_or(&min);
            let below = maxs[..ended].last().map_or(*begins, |end| begins.max(*end));
            Gap {
                min,
                cut: (below / 2.0 + min / 2.0).clamp(below, min),
                crossing: begun - ended,
            }
        };
        mins.iter().map(gap).collect()
    }

    /// Estimates how many typical boxes fit side by side on an axis: the extent of the middle nine
    /// tenths over the mean side of the smaller nine tenths. `mins` are sorted.
    pub(super) fn side_by_side(&self, axis: usize, mins: &[f32]) -> f64 {
        let sides = self.sorted(|b| b.max[axis] - b.min[axis]);
        let n = mins.len();
        if n == 0 {
            return 1.0;
        }
        let extent = f64::from(mins[n - 1 - n / 20]) - f64::from(mins[n / 20]);
        let small = &sides[..(n * 9).div_ceil(10)];
        let mean = small.iter().map(|&side| f64::from(side)).sum::<f64>() / small.len() as f64;
        let count = extent / 0.9 / mean;
        // Any number of points fit side by side. NaN means boxes that are all at one point.
        if count.is_nan() {
            1.0
        } else {
            count.clamp(1.0, 1e6)
        }
    }
}
