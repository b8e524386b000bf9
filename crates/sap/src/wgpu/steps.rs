//! The steps of the sweep axis, and the cells that they make of columns.

use super::params::Grid;
use super::tuning::{CELLS_A_COPY, MAX_CELLS};
use crate::Aabb;

/// Even steps of the sweep axis, from the first of a sample of boxes to the last.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    exponent: i32,
    first: i32,
    last: i32,
}

impl Steps {
    /// Returns the steps for boxes like those of a sample; None if it has none.
    pub(super) fn new(drawn: &[(Aabb, u32)], axis: usize) -> Option<Self> {
        let mut lows: Vec<f32> = (drawn.iter().map(|(bounds, _)| bounds))
            .filter(|bounds| !bounds.is_empty())
            .map(|bounds| bounds.min[axis])
            .collect();
        lows.sort_by(f32::total_cmp);
        // A few boxes may be far from all others.
        let outside = lows.len() / 100;
        let (first, last) = (*lows.get(outside)?, *lows.get(lows.len() - 1 - outside)?);
        let exponent = (first.abs().max(last.abs()).to_bits() >> 23) as i32 - 6;
        Some(Self {
            exponent,
            first: fixed(first, exponent),
            last: fixed(last, exponent),
        })
    }

    /// Returns the cells of this many columns, for a number of copies; None for too many columns.
    pub(super) fn grid(self, columns: u64, copies: u64) -> Option<Grid> {
        let most = (CELLS_A_COPY * copies).clamp(1 << 10, MAX_CELLS) / columns;
        let span = i64::from(self.last) - i64::from(self.first);
        let shift = (0..u32::BITS - 1).find(|shift| (span as u64 >> shift) < most)?;
        Some(Grid {
            steps: (span >> shift) as u32 + 1,
            shift,
            first: self.first,
            last: self.last,
            exponent: self.exponent,
        })
    }
}

/// Returns a bound as a fixed-point integer, as the kernels do in `step_of`.
fn fixed(bound: f32, exponent: i32) -> i32 {
    let bits = bound.abs().to_bits();
    let digits = ((bits & 0x7f_ffff) | 0x80_0000) as i32;
    let shift = (bits >> 23) as i32 - exponent;
    let size = match shift {
        ..0 => digits >> (-shift).min(31),
        0..=6 => digits << shift,
        _ => 0x3fff_ffff,
    };
    if bound < 0.0 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_bounds_are_in_the_order_of_bounds() {
        let numbers = [
            f32::MIN,
            -1e9,
            -65.0,
            -64.0,
            -63.9,
            -1.0,
            -0.5,
            -1e-30,
            -1e-45,
            0.0,
            1e-45,
            1e-30,
            0.5,
            1.0,
            63.9,
            64.0,
            64.01,
            1e9,
            f32::MAX,
        ];
        for exponent in [-6, 60, 127, 249] {
            let values = numbers.map(|number| fixed(number, exponent));
            assert!(values.is_sorted(), "{exponent}: {values:?}");
        }
        let steps = |numbers: &[f32]| {
            let drawn = numbers.iter().map(|&x| (Aabb::new([x; 3], [x; 3]), 0));
            Steps::new(&drawn.collect::<Vec<_>>(), 0)
        };
        assert!(steps(&[]).is_none());
        for numbers in [&numbers[..], &numbers[2..6], &[0.0], &[7.0, 7.0]] {
            let steps = steps(numbers).expect("there is a box");
            for (columns, copies) in [(1, 0), (1, 1000), (100, 1 << 20), (1 << 10, 1 << 23)] {
                let grid = steps.grid(columns, copies).expect("few columns");
                let cells = columns * u64::from(grid.steps);
                assert!(cells <= MAX_CELLS && cells <= (CELLS_A_COPY * copies).max(1 << 10));
            }
        }
    }
}
