//! Columns along the sweep axis: cuts of the two other axes at quantiles of the boxes' bounds.
//!
//! Cuts divide an axis into parts. A box is in all columns that it touches. The part of a
//! coordinate is the number of cuts at or below it. That is monotone, so boxes that overlap share
//! the column of the greater of their two `min`s, the reference point. Their pair is reported in
//! that column only. Rounding has no effect: cuts are compared as numbers, and the table only says
//! at which cut to begin.

use crate::Aabb;
use crate::cpu::tuning::{CROSSING_GAIN, MIN_CROSSING, STEPS_PER_CUT};

/// Cuts of one axis, ascending, and a table to find them by.
#[derive(Default, Clone)]
pub(crate) struct Cuts {
    /// The cuts, then a NaN, which is at or below no value. Empty if there is no cut.
    cuts: Vec<f32>,
    low: f32,
    scale: f32,
    /// For each step of the table, the number of cuts in the steps below.
    table: Vec<u16>,
}

/// A value at which an axis can be cut.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Gap {
    /// The `min` of a sampled box.
    pub(in crate::cpu) min: f32,
    /// The middle between that and what begins or ends before it.
    pub(in crate::cpu) cut: f32,
    /// The number of sampled boxes that reach over the cut.
    pub(in crate::cpu) crossing: usize,
}

impl Cuts {
    /// Cuts a sorted sample into about `parts` parts of equal size, fewer where values repeat. A
    /// cut is moved by up to half a part to where far fewer boxes reach over it.
    pub(in crate::cpu) fn new(sample: &[Gap], parts: usize) -> Self {
        let reach = sample.len() / parts / 2;
        let cut = |part: usize| {
            let middle = part * sample.len() / parts;
            let even = sample.get(middle)?;
            if even.crossing < MIN_CROSSING {
                return Some(even.min);
            }
            let near = middle - reach..sample.len().min(middle + reach + 1);
            let least = near.min_by_key(|&i| (sample[i].crossing, i.abs_diff(middle)));
            let least = &sample[least?];
            let moves = CROSSING_GAIN * least.crossing < even.crossing;
            Some(if moves { least.cut } else { even.min })
        };
        let mut cuts: Vec<f32> = (1..parts).filter_map(cut).collect();
        cuts.retain(|cut| cut.is_finite());
        cuts.dedup();
        let (Some(&first), Some(&last)) = (cuts.first(), cuts.last()) else {
            return Self::default();
        };
        let steps = cuts.len() * STEPS_PER_CUT;
        let (low, extent) = (first, last - first);
        let scale = if extent > 0.0 {
            (steps as f32 / extent).min(f32::MAX)
        } else {
            0.0
        };
        let mut all = Self {
            cuts,
            low,
            scale,
            table: vec![0; steps + 1],
        };
        for i in 0..all.cuts.len() {
            let step = all.step(all.cuts[i]);
            all.table[step] += 1;
        }
        let mut below = 0;
        for entry in &mut all.table {
            below += std::mem::replace(entry, below);
        }
        all.cuts.push(f32::NAN);
        all
    }

    /// Cuts a sorted sample of boxes without a size.
    #[cfg(test)]
    pub(super) fn even(sample: &[f32], parts: usize) -> Self {
        let gap = |&min: &f32| Gap {
            min,
            cut: min,
            crossing: 0,
        };
        let gaps: Vec<Gap> = sample.iter().map(gap).collect();
        Self::new(&gaps, parts)
    }

    /// Returns the cuts.
    pub(crate) fn to_vec(&self) -> Vec<f32> {
        self.cuts[..self.parts() - 1].to_vec()
    }

    /// Returns the number of parts.
    pub(in crate::cpu) fn parts(&self) -> usize {
        self.cuts.len().max(1)
    }

    /// Returns the step of a value. It is monotone, because each operation is, rounding included;
    /// the cast saturates.
    #[inline(always)]
    fn step(&self, value: f32) -> usize {
        let step = ((value - self.low) * self.scale).max(0.0);
        (step as u32 as usize).min(self.table.len() - 1)
    }

    /// Returns the part of a value: the number of cuts at or below it. All cuts in lower steps of
    /// the table are below the value, so counting begins after those.
    #[inline(always)]
    pub(in crate::cpu) fn part(&self, value: f32) -> u16 {
        if self.cuts.is_empty() {
            return 0;
        }
        self.count_from(self.table[self.step(value)], value)
    }

    /// Counts the cuts at or below a value from cut `part` on. The outcome of the first comparison
    /// is unpredictable, so it is no branch; more comparisons are rare.
    #[inline(always)]
    fn count_from(&self, part: u16, value: f32) -> u16 {
        let mut part = part + u16::from(self.cuts[usize::from(part)] <= value);
        while self
            .cuts
            .get(usize::from(part))
            .is_some_and(|&cut| cut <= value)
        {
            part += 1;
        }
        part
    }

    /// Returns the first and the last part that an interval touches.
    #[inline(always)]
    pub(in crate::cpu) fn span(&self, min: f32, max: f32) -> [u16; 2] {
        if self.cuts.is_empty() {
            return [0, 0];
        }
        let first = self.part(min);
        // Most boxes touch one or two parts.
        let next = first + u16::from(self.cuts[usize::from(first)] <= max);
        let reaches = self
            .cuts
            .get(usize::from(next))
            .is_some_and(|&cut| cut <= max);
        [first, if reaches { self.part(max) } else { next }]
    }
}

/// The columns of a frame: parts of the two other axes, for each world.
#[derive(Default, Clone)]
pub(crate) struct Columns {
    pub(crate) cuts: [Cuts; 2],
    /// Even steps of the sweep axis, by which each column is sorted.
    pub(in crate::cpu) steps: Steps,
}

/// 2^16 even steps between two numbers.
#[derive(Default, Clone, Copy)]
pub(in crate::cpu) struct Steps {
    low: f64,
    scale: f64,
}

impl Steps {
    /// Creates the steps from `low` to `high`.
    pub(in crate::cpu) fn new(low: f32, high: f32) -> Self {
        let (low, high) = (f64::from(low.max(f32::MIN)), f64::from(high.min(f32::MAX)));
        let scale = if high > low {
            65536.0 / (high - low)
        } else {
            0.0
        };
        Self { low, scale }
    }

    /// Returns the step of a value. It is monotone; values outside are in the first or last step.
    #[inline(always)]
    pub(in crate::cpu) fn rank(self, value: f32) -> u16 {
        let step = ((f64::from(value) - self.low) * self.scale) as i32;
        step.clamp(0, 0xffff) as u16
    }
}

/// The columns that a box touches: the first and the last part on each of the two axes.
pub(in crate::cpu) type Span = [[u16; 2]; 2];

/// The span of a box that is in no column.
pub(in crate::cpu) const NOWHERE: Span = [[1, 0]; 2];

/// Returns the number of columns in a span.
pub(in crate::cpu) const fn area(span: &Span) -> u64 {
    let [[y0, y1], [z0, z1]] = *span;
    ((y1 + 1 - y0) as u64) * ((z1 + 1 - z0) as u64)
}

impl Columns {
    /// Returns the number of columns of one world.
    pub(in crate::cpu) fn count(&self) -> usize {
        self.cuts[0].parts() * self.cuts[1].parts()
    }

    /// Returns the columns that a box touches. `axes` are the two axes that are cut.
    pub(in crate::cpu) fn span(&self, b: &Aabb, axes: [usize; 2]) -> Span {
        std::array::from_fn(|k| self.cuts[k].span(b.min[axes[k]], b.max[axes[k]]))
    }

    /// Returns the column of two parts.
    pub(in crate::cpu) fn column(&self, y: u16, z: u16) -> u32 {
        (usize::from(y) * self.cuts[1].parts() + usize::from(z)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_move_to_where_no_box_reaches_over() {
        // Boxes of 0.8 at each whole number, a little apart: between two of them is a gap.
        let of_box = |i: u32| Gap {
            min: (i / 10) as f32 + 0.01 * (i % 10) as f32,
            cut: (i / 10) as f32 - 0.05,
            crossing: 10 * (i % 10) as usize,
        };
        let boxes: Vec<Gap> = (0..200).map(of_box).collect();
        for parts in [2, 7, 13, 20] {
            let cuts = Cuts::new(&boxes, parts);
            assert_eq!(cuts.parts(), parts);
            let is_gap = |cut: &f32| (cut + 0.05).fract() < 0.06;
            assert!(cuts.to_vec().iter().all(is_gap), "{:?}", cuts.to_vec());
            assert!(cuts.to_vec().is_sorted());
        }
        // Where boxes reach over every cut alike, parts are equal.
        let alike = |i: u32| Gap {
            cut: i as f32,
            min: i as f32,
            crossing: 9 + (i % 3) as usize,
        };
        let boxes: Vec<Gap> = (0..200).map(alike).collect();
        assert_eq!(Cuts::new(&boxes, 4).to_vec(), [50.0, 100.0, 150.0]);
    }

    #[test]
    fn parts_are_counts_of_cuts() {
        let mut samples = vec![
            vec![],
            vec![1.0; 50],
            (0..1000).map(|i| i as f32).collect::<Vec<_>>(),
            (0..300).map(|i| (i as f32 / 10.0).exp()).collect(),
            vec![f32::MIN, -1.0, -1e-45, -0.0, 0.0, 1e-45, 1.0, f32::MAX],
        ];
        samples.push(vec![
            f32::NEG_INFINITY,
            f32::NEG_INFINITY,
            -3.0,
            0.0,
            f32::INFINITY,
            f32::INFINITY,
        ]);
        for sample in samples {
            for parts in [1, 2, 7, 64, 512] {
                let cuts = Cuts::even(&sample, parts);
                assert!(cuts.parts() <= parts.max(1));
                let mut values = sample.clone();
                values.extend([
                    f32::NEG_INFINITY,
                    -1e30,
                    -0.0,
                    0.5,
                    3e-45,
                    77.7,
                    1e30,
                    f32::INFINITY,
                ]);
                for &value in &values {
                    let expected = cuts.cuts.iter().filter(|&&cut| cut <= value).count();
                    assert_eq!(
                        usize::from(cuts.part(value)),
                        expected,
                        "{value} in {sample:?}"
                    );
                    for &max in values.iter().filter(|&&max| max >= value) {
                        assert_eq!(cuts.span(value, max), [cuts.part(value), cuts.part(max)]);
                    }
                }
            }
        }
    }
}
