//! How the space is cut into cells: which sizes, from a sample of the boxes and a model of the cost.
//!
//! Any cut gives the same pairs ([`crate::cuda::find::grid`]); a bad one costs time. The size of the cells that most boxes fit is one of a
//! few quantiles of their sides, so that as few as may be fall to the next size, which is twice as large. Which sizes are used
//! is what costs least by dynamic programming over the levels: each level that holds boxes costs every box below it a look,
//! and each box that stands on a higher level than it must meets more boxes in vain.

use crate::{Aabb, Subdivision};
use bytemuck::{Pod, Zeroable};

/// How the space is cut: the layout of `Cut` in `kernels/sap/grid.cuh`.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Cut {
    pub(crate) origin: [f32; 3],
    /// Cells of level 0 in a unit of length.
    pub(crate) inverse: [f32; 3],
    /// The levels in use, one bit each; bit 30 is set.
    pub(crate) levels: u32,
    /// The level with a bucket for each cell of a block; 32 = none.
    pub(crate) main: u32,
    /// The first cell of the block, and its cells, by axis.
    pub(crate) low: [i32; 3],
    pub(crate) size: [u32; 3],
    /// The first bucket of hashed rows, and their buckets less one.
    pub(crate) hashed: u32,
    pub(crate) mask: u32,
}

/// The fewest hashed buckets.
const FEWEST: usize = 1024;

/// A box of the sample, and its world: the layout of `Sampled` in `kernels/sap/grid.cuh`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Sampled {
    pub(crate) aabb: Aabb,
    pub(crate) world: u32,
    pub(crate) pad: u32,
}

/// The level that takes boxes of any size.
const TOP: usize = 30;
/// The level whose cells are those of the quantile; ten finer ones below it, and 2^20 of its cells to each side.
const MIDDLE: i32 = 10;
/// Quantiles of the sides that are tried.
const QUANTILES: [f64; 8] = [1.0, 0.99, 0.96, 0.9, 0.75, 0.5, 0.25, 0.1];
/// Cells a little larger than the quantile, so that boxes a little larger than the sample's fit too.
const SLACK: f64 = 1.0 + 1.0 / 64.0;

/// Cost of looking a row up, in tests (both wait for L2; a row for two entries, one after the other with its boxes).
const ROW: f64 = 4.0;
/// Rows that a box of one level looks up there, and on each higher level.
const OWN_ROWS: f64 = 3.6;
const HIGHER_ROWS: f64 = 5.0;
/// Cells that it looks through.
const OWN_CELLS: f64 = 8.2;
const HIGHER_CELLS: f64 = 12.0;

impl Cut {
    /// The cell of a coordinate at level 0, as the kernels have it.
    fn cell(&self, axis: usize, x: f32) -> i32 {
        const FAR: i32 = 1 << 30;
        let scaled = (x - self.origin[axis]) * self.inverse[axis];
        (scaled.floor() as i32).clamp(-FAR, FAR - 1)
    }

    /// The lowest level at which the box touches at most two cells on every axis.
    fn least_level(&self, b: &Aabb) -> usize {
        let of = |axis: usize| {
            let (low, high) = (self.cell(axis, b.min[axis]), self.cell(axis, b.max[axis]));
            (0..=TOP).find(|level| (high >> level) - (low >> level) <= 1)
        };
        (0..3).filter_map(of).max().unwrap_or(TOP)
    }

    /// Cuts the space for `n` boxes of which these are a sample; with `worlds` no level has a block, which would be all worlds'.
    ///
    /// Gives the expected cost too, in tests.
    pub(crate) fn new(sample: &[Sampled], n: usize, worlds: bool) -> (Self, f64) {
        let there = || sample.iter().filter(|sampled| !sampled.aabb.is_empty());
        let boxes: Vec<Aabb> = there().map(|sampled| sampled.aabb).collect();
        let sides: [f64; 3] =
            std::array::from_fn(|axis| quantile(&sorted(boxes.iter().map(|b| side(b, axis))), 0.5));
        let places: [Vec<f64>; 3] =
            std::array::from_fn(|axis| sorted(boxes.iter().map(|b| f64::from(b.min[axis]))));
        // Axes are taken in units of their own typical side, where that is not next to nothing.
        let largest = sides.iter().fold(0.0, |a: f64, &b| a.max(b));
        let units = sides.map(|side| match largest {
            0.0 => 1.0,
            _ => side.max(largest / 1024.0),
        });
        let origin = std::array::from_fn(|axis| quantile(&places[axis], 0.5) as f32);
        let spread = (0..3)
            .map(|axis| {
                (quantile(&places[axis], 0.95) - quantile(&places[axis], 0.05)) / units[axis]
            })
            .fold(0.0, f64::max);
        let sizes = sorted(boxes.iter().map(|b| {
            (0..3)
                .map(|axis| side(b, axis) / units[axis])
                .fold(0.0, f64::max)
        }));
        // Points have no size: cells of a spacing or so, at least what coordinates tell apart.
        let least = match spread {
            0.0 => 1.0,
            _ => spread * 2.0_f64.powi(-18),
        };
        let cut_for = |size: f64| {
            let level_0 = size * 2.0_f64.powi(-MIDDLE);
            let inverse = units.map(|unit| {
                let inverse = (1.0 / (unit * level_0)) as f32;
                inverse.clamp(f32::MIN_POSITIVE, f32::MAX)
            });
            Self {
                origin,
                inverse,
                levels: 1 << TOP,
                ..Self::zeroed()
            }
        };
        let size_of = |q: f64| (quantile(&sizes, q) * SLACK).max(least);
        let mut tried: Vec<f64> = QUANTILES.iter().map(|&q| size_of(q)).collect();
        tried.dedup();
        // In cells of the middle size, which no box alone can make large.
        let middle = size_of(0.5);
        let crowd = Crowd::new(there(), &cut_for(middle));
        let scale = n as f64 / boxes.len().max(1) as f64;
        let mut best: Option<(f64, Self)> = None;
        for size in tried {
            let mut cut = cut_for(size);
            let mut at_level = [0.0; TOP + 1];
            for b in &boxes {
                at_level[cut.least_level(b)] += scale;
            }
            let share = |level: usize| crowd.share(level as f64 + (size / middle).log2());
            let (cost, levels) = cheapest(&at_level, share);
            if best.as_ref().is_none_or(|&(least, _)| cost < least) {
                // Larger boxes than any of the sample go no higher than they must: a level without boxes costs nothing.
                let largest = at_level.iter().rposition(|&n| n > 0.0).unwrap_or(0);
                cut.levels |= levels | u32::MAX >> 1 & u32::MAX << largest;
                best = Some((cost, cut));
            }
        }
        let (cost, mut cut) = best.unwrap_or_else(|| (0.0, cut_for(1.0)));
        cut.make_tables(&boxes, n, !worlds);
        (cut, cost)
    }

    /// Origin and size of the cells of the main level; of the lowest in use, where there is no main one.
    pub(crate) fn cells(&self) -> Subdivision {
        let lowest = self.levels.trailing_zeros();
        let level = if self.main < 32 { self.main } else { lowest };
        Subdivision::Cells {
            origin: self.origin,
            size: self
                .inverse
                .map(|inverse| (1_u64 << level) as f32 / inverse),
        }
    }

    /// The level of a box.
    fn level(&self, b: &Aabb) -> usize {
        let least = self.least_level(b);
        least + (self.levels >> least).trailing_zeros() as usize
    }

    /// All buckets.
    pub(crate) fn buckets(&self) -> usize {
        self.hashed as usize + self.mask as usize + 1
    }

    /// Gives the level that most boxes are on a block, if there may be one, and all others hashed buckets.
    fn make_tables(&mut self, boxes: &[Aabb], n: usize, block: bool) {
        let mut at_level = [0; TOP + 1];
        for b in boxes {
            at_level[self.level(b)] += 1;
        }
        let main = (0..TOP).max_by_key(|&level| at_level[level]).unwrap_or(0);
        // The sample's cells and a little more. A few far away on each side do not count: they come into the outermost cells.
        let mut sides = [(0, 1_u64); 3];
        for (axis, side) in sides.iter_mut().enumerate() {
            let mut cells: Vec<i64> = boxes
                .iter()
                .filter(|b| self.level(b) == main)
                .map(|b| i64::from(self.cell(axis, b.min[axis]) >> main))
                .collect();
            cells.sort_unstable();
            let (low, high) = ends(&cells);
            let more = 1 + (high - low) / 512;
            *side = (low - more, (high - low + 2 * more + 1) as u64);
        }
        let cells = sides
            .iter()
            .try_fold(1_u64, |cells, &(_, size)| cells.checked_mul(size));
        let scale = n as f64 / boxes.len().max(1) as f64;
        let most = (CELLS_A_BOX * n as u64).clamp(FEWEST as u64, 1 << 30);
        let mut elsewhere = n;
        if let Some(cells) = cells.filter(|&cells| block && cells <= most) {
            self.main = main as u32;
            self.low = sides.map(|(low, _)| low as i32);
            self.size = sides.map(|(_, size)| size as u32);
            self.hashed = cells as u32;
            // As many again as the sample has elsewhere, for what it has not seen.
            let seen = boxes.len() - at_level[main];
            elsewhere = ((2 * seen + 8) as f64 * scale) as usize;
        } else {
            self.main = 32;
        }
        let hashed = (2 * elsewhere.min(n)).next_power_of_two();
        self.mask = hashed.clamp(FEWEST, 1 << 30) as u32 - 1;
    }
}

/// Cells of a block for each box, at most.
const CELLS_A_BOX: u64 = 3;

/// One cell in so many may be far away at each end, if the distance is more than that of all others: as many boxes in one outermost
/// cell cost no more tests than all others have, up to some millions.
const FAR_SHARE: usize = 512;

/// The first and last of sorted cells, without a few that are as far from the others as those are from each other.
fn ends(cells: &[i64]) -> (i64, i64) {
    let few = cells.len() / FAR_SHARE;
    let (Some(&low), Some(&high)) = (cells.first(), cells.last()) else {
        return (0, 0);
    };
    let (inner_low, inner_high) = (cells[few], cells[cells.len() - 1 - few]);
    let far = (inner_high - inner_low).max(1);
    (
        if inner_low - low > far {
            inner_low
        } else {
            low
        },
        if high - inner_high > far {
            inner_high
        } else {
            high
        },
    )
}

/// The levels that cost least, and their cost in tests. `at_level` are the boxes whose lowest level is that; `share` is how
/// likely another box is in the same cell.
fn cheapest(at_level: &[f64; TOP + 1], share: impl Fn(usize) -> f64) -> (f64, u32) {
    let mut up_to = [0.0; TOP + 2];
    for level in 0..=TOP {
        up_to[level + 1] = up_to[level] + at_level[level];
    }
    // The least cost of all boxes up to a level if that is in use, and the level in use before it, plus one.
    let mut least = [(f64::INFINITY, 0_usize); TOP + 1];
    for level in 0..=TOP {
        let shared = share(level);
        for before in 0..=level {
            let (below, cost) = match before {
                0 => (0.0, 0.0),
                _ => (up_to[before], least[before - 1].0),
            };
            let here = up_to[level + 1] - below;
            let own = here * (here * shared * OWN_CELLS + OWN_ROWS * ROW);
            let higher = if here > 0.0 {
                below * (here * shared * HIGHER_CELLS + HIGHER_ROWS * ROW)
            } else {
                0.0
            };
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

/// Candidates on the axis that has the fewest, for `n` boxes of which these are a sample: pairs of one world whose intervals
/// overlap there.
pub(crate) fn candidates(sample: &[Sampled], n: usize) -> f64 {
    let there: Vec<&Sampled> = sample
        .iter()
        .filter(|sampled| !sampled.aabb.is_empty())
        .collect();
    let on_axis = |axis: usize| {
        let mut ends: Vec<(u32, f32, f32)> = there
            .iter()
            .map(|sampled| {
                (
                    sampled.world,
                    sampled.aabb.min[axis],
                    sampled.aabb.max[axis],
                )
            })
            .collect();
        ends.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let runs = ends.iter().enumerate().map(|(i, &(world, _, max))| {
            ends[i + 1..].partition_point(|other| other.0 == world && other.1 <= max)
        });
        runs.sum::<usize>() as f64
    };
    let scale = n as f64 / there.len().max(1) as f64;
    (0..3).map(on_axis).fold(f64::INFINITY, f64::min) * scale * scale
}

/// How likely two boxes are in the same cell of the same world, by its level: logarithms to base 2, falling towards fine levels.
struct Crowd([f64; TOP + 1]);

/// Pairs of the sample that say something.
const ENOUGH: u64 = 16;

impl Crowd {
    fn new<'a>(boxes: impl Iterator<Item = &'a Sampled>, cut: &Cut) -> Self {
        let mut codes: Vec<u128> = boxes
            .map(|Sampled { aabb, world, .. }| {
                let cells = std::array::from_fn(|axis| cut.cell(axis, aabb.min[axis]));
                u128::from(*world) << 96 | interleaved(cells)
            })
            .collect();
        codes.sort_unstable();
        // Neighbours in this order share cells from some level on; boxes of one cell are a run.
        let shared_from: Vec<usize> = codes
            .windows(2)
            .map(|two| (128 - (two[0] ^ two[1]).leading_zeros() as usize).div_ceil(3))
            .collect();
        let all = (codes.len() as u64 * codes.len().saturating_sub(1) as u64 / 2).max(1);
        let mut logarithms = [0.0; TOP + 1];
        let mut slope = 3.0;
        for level in (0..=TOP).rev() {
            let (mut pairs, mut run) = (0_u64, 1_u64);
            for &from in shared_from.iter().chain([&usize::MAX]) {
                if from <= level {
                    run += 1;
                } else {
                    pairs += run * (run - 1) / 2;
                    run = 1;
                }
            }
            let above = if level == TOP {
                0.0
            } else {
                logarithms[level + 1]
            };
            logarithms[level] = if pairs >= ENOUGH {
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

    /// By interpolation between levels.
    fn share(&self, level: f64) -> f64 {
        let level = level.clamp(0.0, TOP as f64);
        let below = (level as usize).min(TOP - 1);
        let part = level - below as f64;
        (self.0[below] * (1.0 - part) + self.0[below + 1] * part).exp2()
    }
}

/// The bits of three cells by turns, as unsigned numbers of the same order.
fn interleaved(cells: [i32; 3]) -> u128 {
    let mut code = 0;
    for bit in (0..32).rev() {
        for cell in cells {
            let cell = cell as u32 ^ 1 << 31;
            code = code << 1 | u128::from(cell >> bit & 1);
        }
    }
    code
}

/// Infinite for infinite sides.
fn side(b: &Aabb, axis: usize) -> f64 {
    f64::from(b.max[axis]) - f64::from(b.min[axis])
}

/// The finite values, in order.
fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// 0 of nothing.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted
        .get((last as f64 * q).round() as usize)
        .copied()
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(state: &mut u64) -> f32 {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (*state >> 40) as f32 / (1 << 24) as f32
    }

    fn boxes(n: usize, mut size: impl FnMut(f32) -> f32) -> Vec<Aabb> {
        let mut state = 1;
        let side = (n as f32).cbrt();
        (0..n)
            .map(|_| {
                let min: [f32; 3] = std::array::from_fn(|_| random(&mut state) * side);
                let size = size(random(&mut state));
                Aabb::new(min, min.map(|x| x + size))
            })
            .collect()
    }

    fn sampled(boxes: &[Aabb]) -> Vec<Sampled> {
        let one = |&aabb: &Aabb| Sampled {
            aabb,
            ..Sampled::zeroed()
        };
        boxes.iter().map(one).collect()
    }

    fn cut(boxes: &[Aabb], n: usize) -> Cut {
        Cut::new(&sampled(boxes), n, false).0
    }

    fn used(cut: &Cut, boxes: &[Aabb]) -> Vec<usize> {
        let mut levels: Vec<usize> = boxes.iter().map(|b| cut.level(b)).collect();
        levels.sort_unstable();
        levels.dedup();
        levels
    }

    #[test]
    fn boxes_of_like_size_share_a_level() {
        let boxes = boxes(2048, |x| 0.4 + 0.6 * x);
        let cut = cut(&boxes, 2048);
        assert_eq!(used(&cut, &boxes).len(), 1, "{cut:?}");
        let level = used(&cut, &boxes)[0];
        let cell = 2.0_f32.powi(level as i32) / cut.inverse[0];
        assert!((0.95..1.1).contains(&cell), "{cell}");
        let told = Subdivision::Cells {
            origin: cut.origin,
            size: cut
                .inverse
                .map(|inverse| 2.0_f32.powi(level as i32) / inverse),
        };
        assert_eq!(cut.cells(), told);
    }

    #[test]
    fn a_few_large_boxes_have_a_level_of_their_own() {
        let boxes = boxes(2048, |x| if x < 0.01 { 12.0 } else { 0.3 });
        let cut = cut(&boxes, 2048 * 500);
        assert!(used(&cut, &boxes).len() >= 2, "{cut:?}");
    }

    #[test]
    fn a_few_far_boxes_change_nothing_for_the_others() {
        let uniform = boxes(2048, |x| 0.4 + 0.6 * x);
        let plain = cut(&uniform, 2048);
        assert!(plain.main < 32, "{plain:?}");
        let far = [
            Aabb::new([f32::MIN; 3], [f32::MAX, 0.0, f32::MAX]),
            Aabb::new([3.0, -1e8, 3.0], [4.0, -1e8 + 16.0, 4.0]),
            Aabb::new([1e30; 3], [1.1e30; 3]),
            Aabb::new([3.0, -2e7, 3.0], [4.0, -2e7, 4.0]),
        ];
        for some in [&far[..1], &far[1..2], &far[2..3], &far[3..], &far[..]] {
            let mut with = uniform.clone();
            with[500..500 + some.len()].copy_from_slice(some);
            let (cut, cost) = Cut::new(&sampled(&with), 2048, false);
            let (_, plain_cost) = Cut::new(&sampled(&uniform), 2048, false);
            assert_eq!((cut.main, cut.size), (plain.main, plain.size), "{some:?}");
            assert!(
                (0.9..1.1).contains(&(cut.inverse[0] / plain.inverse[0])),
                "{cut:?}"
            );
            // A look at a higher level for each, and a test.
            assert!(
                cost < 2.0 * plain_cost + 60.0 * 2048.0,
                "{cost} {plain_cost}"
            );
        }
    }

    #[test]
    fn any_boxes_are_cut() {
        let point = |x: f32| Aabb::new([x; 3], [x; 3]);
        for boxes in [
            vec![],
            vec![Aabb::EMPTY],
            vec![point(0.0)],
            vec![point(1e30); 9],
            vec![
                point(f32::INFINITY),
                point(f32::NEG_INFINITY),
                point(f32::MAX),
            ],
            vec![Aabb::new([f32::NEG_INFINITY; 3], [f32::INFINITY; 3]); 3],
            vec![Aabb::new([f32::MIN; 3], [f32::MAX; 3]), point(1e-45)],
        ] {
            let cut = cut(&boxes, 1_000_000);
            assert!(
                cut.origin.iter().chain(&cut.inverse).all(|x| x.is_finite()),
                "{cut:?}"
            );
            assert!(
                cut.inverse.iter().all(|&x| x > 0.0) && cut.levels >> TOP == 1,
                "{cut:?}"
            );
            for b in &boxes {
                assert!(cut.least_level(b) <= TOP);
            }
        }
    }
}
