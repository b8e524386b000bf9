//! The cut of space into cells: their sizes, from a sample of the boxes and a model of the cost.
//!
//! Any cut gives the same pairs ([`crate::cuda::find::grid`]); a bad one costs time. The size of
//! the cells that most boxes fit is one of a few quantiles of their sides, so that few boxes are on
//! the next level, whose cells are twice as large. The levels in use are those that cost least
//! ([`crate::cuda::find::levels`]).

use crate::Aabb;
use crate::cuda::find::levels::{Crowd, TOP, cheapest};
use crate::cuda::find::sample::{Sampled, present, quantile, quantiles, side, sorted};
use crate::cuda::tuning::{
    CELL_SLACK, CELLS_A_BOX, FAR_SHARE, MAX_BUCKETS, MIN_BUCKETS, QUANTILES,
};
use crate::subdivision::Subdivision;
use bytemuck::{Pod, Zeroable};
use gpu::assert_layout;

/// A cut of space into cells: the layout of `Cut` in `kernels/sap/grid.cuh`.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Cut {
    pub(crate) origin: [f32; 3],
    /// Cells of level 0 in a unit of length.
    pub(crate) inverse: [f32; 3],
    /// The levels in use, one bit each; bit 30 is set.
    pub(crate) levels: u32,
    /// The level with a bucket for each cell of a block, or [`NO_BLOCK`].
    pub(crate) main: u32,
    /// The first cell of the block, and its cells, by axis.
    pub(crate) low: [i32; 3],
    pub(crate) size: [u32; 3],
    /// The first bucket of hashed rows, and their buckets less one.
    pub(crate) hashed: u32,
    pub(crate) mask: u32,
}

assert_layout!(
    Cut, 64:
    origin 0, inverse 12, levels 24, main 28, low 32, size 44, hashed 56, mask 60,
);

/// A level above all, for cuts without a block.
pub(super) const NO_BLOCK: u32 = 32;

/// A box of a grid: `Record` of the kernels.
pub(super) type Record = [[f32; 4]; 2];

/// The level whose cells are those of the quantile. There are ten finer ones below it, and 2^20 of
/// its cells to each side.
const MIDDLE: i32 = 10;

/// The extent of a sample, by axis.
struct Extent {
    origin: [f32; 3],
    /// The units that lengths are measured in: the typical side of an axis, if it is not close to
    /// 0.
    units: [f64; 3],
    /// The largest side of each box in these units, sorted.
    sizes: Vec<f64>,
    /// The min size of cells.
    min_size: f64,
}

impl Extent {
    fn new(boxes: &[Aabb]) -> Self {
        let sides: [f64; 3] = std::array::from_fn(|axis| {
            let [median] = quantiles(boxes.iter().map(|b| side(b, axis)), [0.5]);
            median
        });
        let starts: [[f64; 3]; 3] = std::array::from_fn(|axis| {
            let starts = boxes.iter().map(|b| f64::from(b.min[axis]));
            quantiles(starts, [0.05, 0.5, 0.95])
        });
        let largest = sides.iter().fold(0.0, |a: f64, &b| a.max(b));
        let units = sides.map(|side| match largest {
            0.0 => 1.0,
            _ => side.max(largest / 1024.0),
        });
        let spread = (0..3)
            .map(|axis| (starts[axis][2] - starts[axis][0]) / units[axis])
            .fold(0.0, f64::max);
        let size = |b: &Aabb| {
            let sides = (0..3).map(|axis| side(b, axis) / units[axis]);
            sides.fold(0.0, f64::max)
        };
        Self {
            origin: starts.map(|[_, median, _]| median as f32),
            units,
            sizes: sorted(boxes.iter().map(size)),
            // Points have no size: their cells are what coordinates can tell apart.
            min_size: match spread {
                0.0 => 1.0,
                _ => spread * 2.0_f64.powi(-18),
            },
        }
    }

    /// Returns the size of cells that this part of the boxes fits.
    fn size(&self, q: f64) -> f64 {
        (quantile(&self.sizes, q) * CELL_SLACK).max(self.min_size)
    }

    /// Returns the cut with cells of a size at the middle level, and only the top level in use.
    fn cut(&self, size: f64) -> Cut {
        let level_0 = size * 2.0_f64.powi(-MIDDLE);
        let inverse = self.units.map(|unit| {
            let inverse = (1.0 / (unit * level_0)) as f32;
            inverse.clamp(f32::MIN_POSITIVE, f32::MAX)
        });
        Cut {
            origin: self.origin,
            inverse,
            levels: 1 << TOP,
            ..Cut::zeroed()
        }
    }
}

impl Cut {
    /// Returns the cell of a coordinate at level 0, as the kernels do.
    fn cell(&self, axis: usize, x: f32) -> i32 {
        const FAR: i32 = 1 << 30;
        let scaled = (x - self.origin[axis]) * self.inverse[axis];
        (scaled.floor() as i32).clamp(-FAR, FAR - 1)
    }

    /// Returns the lowest level at which the box touches at most two cells on every axis, as the
    /// kernels do.
    fn min_level(&self, b: &Aabb) -> usize {
        let of = |axis: usize| {
            let (low, high) = (self.cell(axis, b.min[axis]), self.cell(axis, b.max[axis]));
            let distance = i64::from(high) - i64::from(low);
            if distance <= 1 {
                return 0;
            }
            let level = 64 - (distance - 1).leading_zeros();
            let is_lower = (high >> (level - 1)) - (low >> (level - 1)) <= 1;
            (level - u32::from(is_lower)) as usize
        };
        (0..3).map(of).fold(0, usize::max)
    }

    /// Adds `boxes` with the sides of `b` to the levels. By its place a side of 1 to 2 cells
    /// touches two cells or three, which puts the box into one of two levels. Each gets its share,
    /// so a level counts even if no box of the sample is in it.
    fn add_to_levels(&self, b: &Aabb, boxes: f64, at_level: &mut [f64; TOP + 1]) {
        let sides: [f64; 3] =
            std::array::from_fn(|axis| (side(b, axis) * f64::from(self.inverse[axis])).max(0.0));
        let largest = sides.iter().fold(1.0, |a: f64, &b| a.max(b));
        // Its logarithm: the exponent.
        let level = ((largest.to_bits() >> 52) as usize - 1023).min(TOP);
        let cells = 1.0 / (1_u64 << level) as f64;
        let fits = |side: f64| (2.0 - side * cells).clamp(0.0, 1.0);
        let share: f64 = sides.into_iter().map(fits).product();
        at_level[level] += share * boxes;
        at_level[(level + 1).min(TOP)] += (1.0 - share) * boxes;
    }

    /// Cuts the space for `n` boxes by a sample of them. Returns the expected cost too, in tests.
    /// With `worlds` no level has a block, which all worlds would share.
    pub(crate) fn new(sample: &[Sampled], n: usize, worlds: bool) -> (Self, f64) {
        let boxes: Vec<Aabb> = present(sample).map(|sampled| sampled.aabb).collect();
        let extent = Extent::new(&boxes);
        let mut sizes: Vec<f64> = QUANTILES.iter().map(|&q| extent.size(q)).collect();
        sizes.dedup();
        // In cells of the middle size, which no box alone can make large.
        let middle = extent.size(0.5);
        let middle_cut = extent.cut(middle);
        let crowd = Crowd::new(present(sample).map(|Sampled { aabb, world, .. }| {
            let cells = std::array::from_fn(|axis| middle_cut.cell(axis, aabb.min[axis]));
            (cells, *world)
        }));
        let scale = n as f64 / boxes.len().max(1) as f64;
        let mut best: Option<(f64, Self)> = None;
        for size in sizes {
            let mut cut = extent.cut(size);
            let mut at_level = [0.0; TOP + 1];
            for b in &boxes {
                cut.add_to_levels(b, scale, &mut at_level);
            }
            let share = |level: usize| crowd.share(level as f64 + (size / middle).log2());
            let (cost, levels) = cheapest(&at_level, share);
            if best.as_ref().is_none_or(|&(least, _)| cost < least) {
                // Boxes larger than any of the sample go no higher than they must: a level without
                // boxes costs nothing.
                let largest = at_level.iter().rposition(|&n| n > 0.0).unwrap_or(0);
                cut.levels |= levels | u32::MAX >> 1 & u32::MAX << largest;
                best = Some((cost, cut));
            }
        }
        let (cost, mut cut) = best.unwrap_or_else(|| (0.0, extent.cut(1.0)));
        cut.make_buckets(&boxes, n, worlds);
        (cut, cost)
    }

    /// Returns origin and size of the cells of the main level, or of the lowest in use where there
    /// is no main one.
    pub(crate) fn cells(&self) -> Subdivision {
        let lowest = self.levels.trailing_zeros();
        let level = if self.main < NO_BLOCK {
            self.main
        } else {
            lowest
        };
        Subdivision::Cells {
            origin: self.origin,
            size: self
                .inverse
                .map(|inverse| (1_u64 << level) as f32 / inverse),
        }
    }

    /// Returns the level of a box.
    pub(super) fn level(&self, b: &Aabb) -> usize {
        let min = self.min_level(b);
        min + (self.levels >> min).trailing_zeros() as usize
    }

    /// Returns the bucket of a box that is not empty, as the kernels do.
    pub(super) fn bucket(&self, b: &Aabb, world: u32) -> usize {
        let level = self.level(b);
        let [x, y, z]: [i32; 3] = std::array::from_fn(|axis| self.cell(axis, b.min[axis]) >> level);
        if level as u32 == self.main {
            let within = |axis: usize, at: i32| {
                let offset = i64::from(at) - i64::from(self.low[axis]);
                offset.clamp(0, i64::from(self.size[axis]) - 1) as usize
            };
            let (x, y, z) = (within(0, x), within(1, y), within(2, z));
            return (z * self.size[1] as usize + y) * self.size[0] as usize + x;
        }
        let row = row_hash(level as u32, y as u32, z as u32, world);
        (self.hashed + (row.wrapping_add(x as u32) & self.mask)) as usize
    }

    /// Returns the number of buckets.
    pub(crate) fn buckets(&self) -> usize {
        self.hashed as usize + self.mask as usize + 1
    }

    /// Gives a block to the level that most boxes are on, unless there are `worlds`, and hashed
    /// buckets to all others.
    fn make_buckets(&mut self, boxes: &[Aabb], n: usize, worlds: bool) {
        let levels: Vec<usize> = boxes.iter().map(|b| self.level(b)).collect();
        let mut at_level = [0; TOP + 1];
        for &level in &levels {
            at_level[level] += 1;
        }
        let main = (0..TOP).max_by_key(|&level| at_level[level]).unwrap_or(0);
        let on_main = boxes
            .iter()
            .zip(&levels)
            .filter(|&(_, &level)| level == main);
        // The cells of the sample and a little more. A few far away on each side do not count: they
        // are put into the outermost cells.
        let mut sides = [(0, 1_u64); 3];
        for (axis, side) in sides.iter_mut().enumerate() {
            let cells = on_main
                .clone()
                .map(|(b, _)| self.cell(axis, b.min[axis]) >> main);
            let (low, high) = ends(&mut cells.map(i64::from).collect::<Vec<_>>());
            let more = 1 + (high - low) / 512;
            *side = (low - more, (high - low + 2 * more + 1) as u64);
        }
        let cells = sides
            .iter()
            .try_fold(1_u64, |cells, &(_, size)| cells.checked_mul(size));
        let scale = n as f64 / boxes.len().max(1) as f64;
        let max = (CELLS_A_BOX * n as u64).clamp(MIN_BUCKETS as u64, MAX_BUCKETS as u64);
        let mut elsewhere = n;
        if let Some(cells) = cells.filter(|&cells| !worlds && cells <= max) {
            self.main = main as u32;
            self.low = sides.map(|(low, _)| low as i32);
            self.size = sides.map(|(_, size)| size as u32);
            self.hashed = cells as u32;
            // Twice as many as the sample has elsewhere, for boxes that it missed.
            let seen = boxes.len() - at_level[main];
            elsewhere = ((2 * seen + 8) as f64 * scale) as usize;
        } else {
            self.main = NO_BLOCK;
        }
        let hashed = (2 * elsewhere.min(n)).next_power_of_two();
        self.mask = hashed.clamp(MIN_BUCKETS, MAX_BUCKETS) as u32 - 1;
    }
}

/// Returns the hash of a row of cells, as the kernels do.
const fn row_hash(level: u32, y: u32, z: u32, world: u32) -> u32 {
    let mut h = y
        .wrapping_mul(0x9e37_79b1)
        .wrapping_add(z.wrapping_mul(0x85eb_ca77))
        .wrapping_add(level.wrapping_mul(0x27d4_eb2f))
        .wrapping_add(world.wrapping_mul(0xc2b2_ae3d));
    h = (h ^ h >> 15).wrapping_mul(0x2c1b_3c6d);
    h = (h ^ h >> 12).wrapping_mul(0x297a_2d39);
    h ^ h >> 15
}

/// Returns the first and last of some cells, without a few that are as far from the others as those
/// are from each other.
fn ends(cells: &mut [i64]) -> (i64, i64) {
    let n = cells.len();
    let few = n / FAR_SHARE;
    let (Some(&low), Some(&high)) = (cells.iter().min(), cells.iter().max()) else {
        return (0, 0);
    };
    let mut nth = |at| *cells.select_nth_unstable(at).1;
    let (inner_low, inner_high) = (nth(few), nth(n - 1 - few));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn boxes(n: usize, mut size: impl FnMut(f32) -> f32) -> Vec<Aabb> {
        let mut random = Random(1);
        let side = (n as f32).cbrt();
        (0..n)
            .map(|_| {
                let min: [f32; 3] = std::array::from_fn(|_| random.unit() * side);
                let size = size(random.unit());
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
        let expected = Subdivision::Cells {
            origin: cut.origin,
            size: cut
                .inverse
                .map(|inverse| 2.0_f32.powi(level as i32) / inverse),
        };
        assert_eq!(cut.cells(), expected);
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
        assert!(plain.main < NO_BLOCK, "{plain:?}");
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
            // A look-up on a higher level for each, and a test.
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
                assert!(cut.min_level(b) <= TOP);
            }
        }
    }
}
