//! Decides which rank searches where: slabs of space, or slabs cut into rows.
//!
//! A box has its home in the cell of its `min`, and a copy in every other cell that it reaches. A
//! cell is a slab of one axis, or a row of such a slab. Two boxes that overlap share the cell of
//! the point whose coordinates are the larger of their two `min`, and no other cell reports them:
//! on each axis one of the two must have its `min` in the slab or row ([`Place`]).
//!
//! Coordinates are compared as integers, so a cut divides boxes the same way on every rank.

use crate::tuning::THIN;
use bytemuck::{Pod, Zeroable};
use sap::Aabb;
use sap::internals::ordered;

/// A box by ordered integers.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Bounds {
    pub(crate) min: [i32; 3],
    pub(crate) max: [i32; 3],
}

impl Bounds {
    /// Bounds that overlap nothing.
    pub(crate) const EMPTY: Self = Self {
        min: [i32::MAX; 3],
        max: [i32::MIN; 3],
    };

    pub(crate) fn of(b: &Aabb) -> Self {
        Self {
            min: b.min.map(ordered),
            max: b.max.map(ordered),
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.min[0] > self.max[0]
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for axis in 0..3 {
            self.min[axis] = self.min[axis].min(other.min[axis]);
            self.max[axis] = self.max[axis].max(other.max[axis]);
        }
    }

    /// Tells whether two boxes overlap or touch.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        (0..3).all(|k| self.min[k] <= other.max[k] && other.min[k] <= self.max[k])
    }
}

/// A box that stands for others of a frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) bounds: Bounds,
    /// How many boxes it stands for.
    pub(crate) boxes: u64,
    /// How much work these are expected to take.
    pub(crate) work: u64,
    /// The rank that brings them.
    pub(crate) rank: usize,
}

/// Where a box is in a cell, by axis of the cut: whether its `min` is in the cell on that axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Its `min` is in the cell on both axes: the cell is its home.
    Home,
    /// Its `min` is in the cell on the first axis only.
    First,
    /// Its `min` is in the cell on the second axis only. With one axis every copy is of this kind.
    Second,
    /// Its `min` is in the cell on neither axis.
    Neither,
}

/// A slab of the first axis, cut into rows of the second.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Slab {
    /// The rank of the first row.
    first: usize,
    cuts: Vec<i32>,
}

/// The cells of all ranks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Layout {
    axes: [usize; 2],
    cuts: Vec<i32>,
    slabs: Vec<Slab>,
}

/// The cells as the kernels take them (`Cells` in `kernels/dist/types.cuh`).
#[cfg(cuda)]
pub(crate) struct FlatCells {
    pub(crate) axes: [u32; 2],
    pub(crate) cuts: Vec<i32>,
    /// The rank of the first row of each slab, and the number of ranks.
    pub(crate) first: Vec<u32>,
    /// The cuts of all slabs, those of slab `s` from `first[s] - s` on.
    pub(crate) rows: Vec<i32>,
}

/// Returns the index of the slab or row of a coordinate: a cut belongs to the one above it.
fn part(cuts: &[i32], value: i32) -> usize {
    cuts.partition_point(|&cut| cut <= value)
}

impl Layout {
    /// Returns the number of slabs on the first axis.
    pub(crate) const fn slabs(&self) -> usize {
        self.slabs.len()
    }

    /// Returns the number of cells.
    pub(crate) fn ranks(&self) -> usize {
        let last = self.slabs.last();
        last.map_or(0, |slab| slab.first + slab.cuts.len() + 1)
    }

    /// Returns the axes that are cut: one, or two if slabs have rows.
    pub(crate) fn axes(&self) -> &[usize] {
        let rows = self.slabs.iter().any(|slab| !slab.cuts.is_empty());
        &self.axes[..1 + usize::from(rows)]
    }

    /// Returns a number that differs, as a rule, from that of another layout.
    pub(crate) fn fingerprint(&self) -> u64 {
        let slabs = self.slabs.iter();
        let rows =
            slabs.flat_map(|slab| std::iter::once(slab.first as u64).chain(words(&slab.cuts)));
        let all = self
            .axes
            .iter()
            .map(|&axis| axis as u64)
            .chain(words(&self.cuts))
            .chain(rows);
        all.fold(0xcbf2_9ce4_8422_2325, |hash: u64, word| {
            (hash ^ word)
                .wrapping_mul(0x0000_0100_0000_01b3)
                .rotate_left(23)
        })
    }

    /// Returns the cells as the kernels take them.
    #[cfg(cuda)]
    pub(crate) fn flat(&self) -> FlatCells {
        let slabs = || self.slabs.iter();
        FlatCells {
            axes: self.axes.map(|axis| axis as u32),
            cuts: self.cuts.clone(),
            first: slabs()
                .map(|slab| slab.first)
                .chain([self.ranks()])
                .map(|rank| rank as u32)
                .collect(),
            rows: slabs().flat_map(|slab| &slab.cuts).copied().collect(),
        }
    }

    /// Returns the rank that is the home of a box.
    pub(crate) fn home(&self, bounds: &Bounds) -> usize {
        let slab = &self.slabs[part(&self.cuts, bounds.min[self.axes[0]])];
        slab.first + part(&slab.cuts, bounds.min[self.axes[1]])
    }

    /// Calls `f` with every rank whose cell the box reaches.
    pub(crate) fn for_each_rank(&self, bounds: &Bounds, mut f: impl FnMut(usize)) {
        let [x, y] = self.axes;
        let slabs = part(&self.cuts, bounds.min[x])..=part(&self.cuts, bounds.max[x]);
        for slab in &self.slabs[slabs] {
            let (from, to) = (
                part(&slab.cuts, bounds.min[y]),
                part(&slab.cuts, bounds.max[y]),
            );
            (from..=to).for_each(|row| f(slab.first + row));
        }
    }

    /// Returns where a box is in the cell of a rank that it reaches.
    pub(crate) fn place(&self, rank: usize, bounds: &Bounds) -> Place {
        let index = self
            .slabs
            .partition_point(|slab| slab.first <= rank)
            .saturating_sub(1);
        let slab = &self.slabs[index];
        let first = part(&self.cuts, bounds.min[self.axes[0]]) == index;
        let second = slab.first + part(&slab.cuts, bounds.min[self.axes[1]]) == rank;
        match (first, second) {
            (true, true) => Place::Home,
            (true, false) => Place::First,
            (false, true) => Place::Second,
            (false, false) => Place::Neither,
        }
    }

    /// Chooses the cells for boxes like the samples: slabs of the axis on which they cost least,
    /// or rows in slabs where even those slabs take many copies.
    pub(crate) fn choose(samples: &[Sample], ranks: usize) -> Self {
        let layout = |axis| Self::new(samples, [axis, (axis + 1) % 3], [ranks, ranks]);
        let mut layouts = [0, 1, 2].map(layout);
        layouts.sort_by_cached_key(|layout| layout.first_cost(samples, ranks));
        let axes = [layouts[0].axes[0], layouts[1].axes[0]];
        let [best, ..] = layouts;
        let boxes: u128 = samples.iter().map(|sample| u128::from(sample.boxes)).sum();
        if best.copies(samples) * THIN <= boxes {
            return best;
        }
        let root = ranks.isqrt();
        let counts = [root / 2, root, ranks.div_ceil(root.max(1)), root * 2];
        let counts = counts
            .into_iter()
            .filter(|&count| 2 <= count && count <= ranks / 2);
        let pairs = [axes, [axes[1], axes[0]]];
        let cells = counts.flat_map(|count| pairs.map(|axes| (axes, count)));
        let cells = cells.map(|(axes, count)| Self::new(samples, axes, [count, ranks]));
        let all = std::iter::once(best.clone()).chain(cells);
        all.min_by_key(|layout| layout.first_cost(samples, ranks))
            .unwrap_or(best)
    }

    /// Returns what a layout costs: all wait for the rank with most work, and copies travel.
    pub(crate) fn cost(&self, samples: &[Sample], ranks: usize) -> u128 {
        self.heaviest(samples, ranks) * ranks as u128 + self.copies(samples)
    }

    /// Returns what it costs at first, while boxes are where they are.
    fn first_cost(&self, samples: &[Sample], ranks: usize) -> u128 {
        self.cost(samples, ranks) + self.away(samples)
    }

    /// Cuts the first axis into `slabs` slabs, and these into rows so that there is one cell for
    /// each rank and each has the same work.
    fn new(samples: &[Sample], axes: [usize; 2], [slabs, ranks]: [usize; 2]) -> Self {
        let first = |slab: usize| slab * ranks / slabs;
        let mut all: Vec<(i32, u64)> = Vec::with_capacity(samples.len());
        let key = |axis: usize| move |sample: &Sample| (sample.bounds.min[axes[axis]], sample.work);
        all.extend(samples.iter().map(key(0)));
        let cuts = quantiles(&mut all, (1..slabs).map(first), ranks);
        let slab = |index: usize| {
            let mut rows: Vec<(i32, u64)> = Vec::new();
            let rows_of = first(index + 1) - first(index);
            if rows_of > 1 {
                let inside = samples.iter();
                let inside = inside.filter(|s| part(&cuts, s.bounds.min[axes[0]]) == index);
                rows.extend(inside.map(key(1)));
            }
            Slab {
                first: first(index),
                cuts: quantiles(&mut rows, 1..rows_of, rows_of),
            }
        };
        let slabs = (0..slabs).map(slab).collect();
        Self { axes, cuts, slabs }
    }

    /// Returns the number of copies of the boxes that the samples stand for.
    fn copies(&self, samples: &[Sample]) -> u128 {
        let copies = |sample: &Sample| {
            let mut cells = 0_u128;
            self.for_each_rank(&sample.bounds, |_| cells += 1);
            u128::from(sample.boxes) * cells.saturating_sub(1)
        };
        samples.iter().map(copies).sum()
    }

    /// Returns how many boxes another rank than their home brings.
    fn away(&self, samples: &[Sample]) -> u128 {
        let away = samples
            .iter()
            .filter(|sample| self.home(&sample.bounds) != sample.rank);
        away.map(|sample| u128::from(sample.boxes)).sum()
    }

    /// Returns the work of the rank that has most.
    fn heaviest(&self, samples: &[Sample], ranks: usize) -> u128 {
        let mut work = vec![0_u128; ranks];
        for sample in samples {
            let home = self.home(&sample.bounds);
            self.for_each_rank(&sample.bounds, |rank| {
                let what = if rank == home {
                    sample.work
                } else {
                    sample.boxes
                };
                work[rank] += u128::from(what);
            });
        }
        work.into_iter().max().unwrap_or(0)
    }
}

fn words(cuts: &[i32]) -> impl Iterator<Item = u64> {
    cuts.iter().map(|&cut| u64::from(cut as u32) | 1 << 32)
}

/// Returns the keys below which the shares lie, in `parts` of the whole weight.
fn quantiles(
    keys: &mut [(i32, u64)],
    shares: impl Iterator<Item = usize>,
    parts: usize,
) -> Vec<i32> {
    keys.sort_unstable();
    let total: u128 = keys.iter().map(|&(_, weight)| u128::from(weight)).sum();
    let (mut next, mut below) = (0, 0_u128);
    let cut = |share: usize| {
        while next < keys.len() && below * (parts as u128) < total * share as u128 {
            below += u128::from(keys[next].1);
            next += 1;
        }
        keys.get(next).map_or(i32::MAX, |&(key, _)| key)
    };
    shares.map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(min: [i32; 3], side: i32) -> Sample {
        Sample {
            bounds: Bounds {
                min,
                max: min.map(|x| x + side),
            },
            boxes: 1,
            work: 1,
            rank: 0,
        }
    }

    #[test]
    fn slabs_follow_the_axis_with_the_fewest_copies() {
        let samples: Vec<_> = (0..400).map(|i| sample([i % 3, i, i % 5], 1)).collect();
        let layout = Layout::choose(&samples, 4);
        assert_eq!((layout.axes(), layout.slabs()), (&[1][..], 4));
        assert_eq!(layout.cuts, [100, 200, 300]);
    }

    /// As many copies on two axes, and a little more work in one half of the first.
    #[test]
    fn slabs_follow_the_ranks_that_bring_the_boxes() {
        let all = (0..400).map(|i| sample([20 * (i % 20), 20 * (i / 20), 0], 1));
        let mut samples: Vec<_> = all.collect();
        for sample in &mut samples {
            sample.rank = usize::from(sample.bounds.min[0] >= 200);
            sample.work = 100 + u64::from(sample.bounds.min == [0, 0, 0]) * 50;
        }
        let layout = Layout::choose(&samples, 2);
        assert_eq!((layout.axes(), &layout.cuts[..]), (&[0][..], &[200][..]));
        for sample in &mut samples {
            sample.rank = usize::from(sample.bounds.min[1] >= 200);
        }
        assert_eq!(Layout::choose(&samples, 2).axes(), [1]);
    }

    #[test]
    fn thin_slabs_get_rows_and_each_pair_one_cell() {
        let point = |i: i32| [i * 7919 % 101, i * 104_729 % 103, i % 2];
        let samples: Vec<_> = (0..500).map(|i| sample(point(i), 8)).collect();
        for ranks in [7, 16, 64] {
            let layout = Layout::choose(&samples, ranks);
            assert_eq!(layout.axes().len(), 2, "{ranks}");
            for a in &samples {
                for b in samples.iter().filter(|b| a.bounds.meets(&b.bounds)) {
                    let mut reported = 0;
                    layout.for_each_rank(&a.bounds, |rank| {
                        let mut both = false;
                        layout.for_each_rank(&b.bounds, |other| both |= other == rank);
                        let places = (layout.place(rank, &a.bounds), layout.place(rank, &b.bounds));
                        let reports = matches!(
                            places,
                            (Place::Home, _)
                                | (_, Place::Home)
                                | (Place::First, Place::Second)
                                | (Place::Second, Place::First)
                        );
                        reported += usize::from(both && reports);
                    });
                    assert_eq!(reported, 1, "{ranks} {a:?} {b:?}");
                }
            }
        }
    }

    #[test]
    fn cuts_hold_equal_work() {
        let mut keys: Vec<(i32, u64)> = (0..100)
            .map(|i| (i, if i < 10 { 90 } else { 10 }))
            .collect();
        // 900 of 1800 below 10.
        assert_eq!(quantiles(&mut keys, 1..2, 2), [10]);
        assert_eq!(quantiles(&mut [], 1..3, 3), [i32::MAX; 2]);
        assert_eq!(quantiles(&mut [(5, 1); 9], 1..3, 3), [5, 5]);
    }
}
