//! The cost of levels of cells, and the levels that cost least.
//!
//! Each level that holds boxes costs every box below it a look-up, and each box that is on a higher
//! level than it must be is tested against more boxes than needed.

use crate::cuda::tuning::{
    HIGHER_CELLS, HIGHER_ROWS, MIN_SAMPLED_PAIRS, OWN_CELLS, OWN_ROWS, ROW_COST,
};
use crate::packing::spread;
use std::iter;

/// The level that takes boxes of any size.
pub(super) const TOP: usize = 30;

/// Returns the levels that cost least as a mask, and their cost in tests. `at_level` has the
/// expected number of boxes by the lowest level that fits them. `share` is the probability that
/// another box is in the same cell.
pub(super) fn cheapest(at_level: &[f64; TOP + 1], share: impl Fn(usize) -> f64) -> (f64, u32) {
    let mut up_to = [0.0; TOP + 2];
    for level in 0..=TOP {
        up_to[level + 1] = up_to[level] + at_level[level];
    }
    // The min cost of all boxes up to a level that is in use, and the level in use before it, plus
    // one.
    let mut least = [(f64::INFINITY, 0_usize); TOP + 1];
    for level in 0..=TOP {
        let shared = share(level);
        for before in 0..=level {
            let (below, cost) = match before {
                0 => (0.0, 0.0),
                _ => (up_to[before], least[before - 1].0),
            };
            let here = up_to[level + 1] - below;
            let own = here * (here * shared * OWN_CELLS + OWN_ROWS * ROW_COST);
            // A single box there has all below it look for it.
            let is_used = 1.0 - (-here).exp();
            let higher = below * (here * shared * HIGHER_CELLS + is_used * HIGHER_ROWS * ROW_COST);
            let cost = cost + own + higher;
            if cost < least[level].0 {
                least[level] = (cost, before);
            }
        }
    }
    let mut levels = 0;
    let mut next = TOP + 1;
    while next > 0 {
        levels |= 1 << (next - 1);
        next = least[next - 1].1;
    }
    (least[TOP].0, levels)
}

/// The probability that two boxes are in the same cell of the same world, by its level: logarithms
/// to base 2, which fall towards fine levels.
pub(super) struct Crowd([f64; TOP + 1]);

impl Crowd {
    /// Counts the boxes that share cells, by their cells of level 0 and their worlds.
    pub(super) fn new(boxes: impl Iterator<Item = ([i32; 3], u32)>) -> Self {
        let mut codes: Vec<u128> = boxes
            .map(|(cells, world)| u128::from(world) << 96 | interleaved(cells))
            .collect();
        codes.sort_unstable();
        let sharing = sharing(&codes);
        let all = (codes.len() as u64 * codes.len().saturating_sub(1) as u64 / 2).max(1);
        let mut logarithms = [0.0; TOP + 1];
        let mut slope = 3.0;
        for level in (0..=TOP).rev() {
            let pairs = sharing[level];
            let above = if level == TOP {
                0.0
            } else {
                logarithms[level + 1]
            };
            logarithms[level] = if pairs >= MIN_SAMPLED_PAIRS {
                let here = (pairs as f64 / all as f64).log2();
                if above < 0.0 {
                    slope = (above - here).clamp(0.0, 3.0);
                }
                here
            } else {
                above - slope
            };
        }
        Self(logarithms)
    }

    /// Returns the probability at a level, interpolated between whole ones.
    pub(super) fn share(&self, level: f64) -> f64 {
        let level = level.clamp(0.0, TOP as f64);
        let below = (level as usize).min(TOP - 1);
        let part = level - below as f64;
        (self.0[below] * (1.0 - part) + self.0[below + 1] * part).exp2()
    }
}

/// Returns the pairs of boxes that share a cell, by its level, of their codes in order. O(codes).
fn sharing(codes: &[u128]) -> [u64; TOP + 1] {
    // Neighbours in this order share cells from some level on.
    let shared_from = codes
        .windows(2)
        .map(|two| (128 - (two[0] ^ two[1]).leading_zeros() as usize).div_ceil(3));
    let ends = || iter::once(usize::MAX);
    let mut pairs = [0; TOP + 1];
    // Boxes of one cell are a run: the level from which it shares that of the run before it, which
    // falls from run to run, and its length.
    let mut runs: Vec<(usize, u64)> = Vec::new();
    for from in ends().chain(shared_from).chain(ends()) {
        let mut run = 0;
        while let Some((level, len)) = runs.pop_if(|last| last.0 <= from.min(TOP)) {
            // The run before it, with which it is one from this level on.
            run += len;
            if let Some((_, before)) = runs.last_mut() {
                pairs[level] += run * *before;
            }
        }
        if let Some((_, len)) = runs.last_mut() {
            *len += run;
        }
        runs.push((from, 1));
    }
    for level in 1..=TOP {
        pairs[level] += pairs[level - 1];
    }
    pairs
}

/// Returns the bits of three cells by turns, as unsigned numbers of the same order.
fn interleaved(cells: [i32; 3]) -> u128 {
    let [x, y, z] = cells.map(|cell| {
        let cell = u64::from(cell as u32 ^ 1 << 31);
        u128::from(spread(cell >> 21)) << 63 | u128::from(spread(cell & 0x1f_ffff))
    });
    x << 2 | y << 1 | z
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn pairs_that_share_a_cell_are_counted_by_level() {
        let mut random = Random(1);
        let mut cell = || {
            let far = (1 << random.below(31)) as f32;
            ((random.unit() - 0.5) * far) as i32
        };
        let boxes: Vec<([i32; 3], u32)> = (0..300)
            .map(|i| ([cell(), cell(), cell()], i % 2))
            .collect();
        let mut codes: Vec<u128> = boxes
            .iter()
            .map(|&(cells, world)| u128::from(world) << 96 | interleaved(cells))
            .collect();
        codes.sort_unstable();
        let found = sharing(&codes);
        for (level, &pairs) in found.iter().enumerate() {
            let share = |i: usize, j: usize| {
                let at = |i: usize| (boxes[i].0.map(|cell| cell >> level), boxes[i].1);
                u64::from(at(i) == at(j))
            };
            let expected: u64 = (0..boxes.len())
                .map(|i| (0..i).map(|j| share(i, j)).sum::<u64>())
                .sum();
            assert_eq!(pairs, expected, "level {level}");
        }
        assert!(found[TOP] > found[10] && found[10] > 0);
        assert_eq!(sharing(&[]), [0; TOP + 1]);
        assert_eq!(sharing(&[7; 9]), [36; TOP + 1]);
    }
}
