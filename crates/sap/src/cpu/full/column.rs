//! One column of boxes, sorted and swept by one thread while it is in cache.

use super::entry::Entry;
use crate::Result;
use crate::cpu::accept::Accept;
use crate::cpu::key::biased;
use crate::cpu::lanes::{Bounds, Job, LANES, Lanes, Naming, retain_bits, run_best};
use crate::cpu::output::collect::{Collector, Found, Task};
use crate::cpu::small_sort::{insertion_sort, prefix_sums};
use crate::cpu::tuning::{LARGE_COLUMN, SWEEP_TASK};
use crate::try_alloc::resize;
use rayon::prelude::*;
use std::ops::Range;

/// The `start` of the entries after the last box: above every end.
const PAST: i32 = i32::MAX;

/// The boxes of a column in sweep order, in reused memory. All arrays but `end` have [`LANES`] more
/// entries than there are boxes. Of those, only `start` matters.
#[derive(Default)]
pub(super) struct Column {
    /// `min` on the sweep axis.
    start: Vec<i32>,
    /// `max` on the sweep axis.
    end: Vec<i32>,
    /// `min` on the two other axes.
    min: Bounds<2>,
    /// `max` on the two other axes.
    max: Bounds<2>,
    index: Vec<u32>,
    homes: Vec<u8>,
    /// Whether some box is thin on the sweep axis.
    thin: bool,
    /// Sort keys: the biased `start` above the index of the entry.
    order: Vec<u64>,
    /// The number of entries of each bucket of ranks; then the position of its next entry.
    counts: Vec<u32>,
}

impl Column {
    /// Loads the boxes of a column.
    pub(super) fn load(&mut self, entries: &[Entry]) -> Result<()> {
        self.sort(entries)?;
        let n = entries.len();
        let Self {
            start,
            end,
            min: [min_y, min_z],
            max: [max_y, max_z],
            index,
            homes,
            ..
        } = self;
        resize(end, n, 0)?;
        for bound in [&mut *start, min_y, min_z, max_y, max_z] {
            resize(bound, n + LANES, 0)?;
        }
        resize(index, n + LANES, 0)?;
        resize(homes, n + LANES, 0)?;
        start[n..].fill(PAST);
        self.thin = false;
        for (k, &key) in self.order.iter().enumerate() {
            let entry = &entries[key as u32 as usize];
            (start[k], end[k]) = (entry.start, entry.end);
            [min_y[k], min_z[k]] = entry.min;
            [max_y[k], max_z[k]] = entry.max;
            index[k] = entry.index;
            homes[k] = entry.homes;
            self.thin |= entry.start > entry.end;
        }
        Ok(())
    }

    /// Sorts the entries by `start`: into buckets by rank, of about two entries each, then by
    /// insertion. Where many share a bucket, a comparison sort takes the place of insertion.
    fn sort(&mut self, entries: &[Entry]) -> Result<()> {
        let Self { order, counts, .. } = self;
        let buckets = (entries.len() / 2).next_power_of_two().clamp(1, 1 << 16);
        let shift = 16 - buckets.trailing_zeros();
        counts.clear();
        resize(counts, buckets, 0)?;
        let bucket = |entry: &Entry| usize::from(entry.rank) >> shift;
        entries.iter().for_each(|entry| counts[bucket(entry)] += 1);
        let are_small = prefix_sums(counts);
        resize(order, entries.len(), 0)?;
        for (entry, index) in entries.iter().zip(0..) {
            let next = &mut counts[bucket(entry)];
            order[*next as usize] = u64::from(biased(entry.start)) << 32 | index;
            *next += 1;
        }
        if are_small {
            insertion_sort(order);
        } else if order.len() > LARGE_COLUMN {
            order.par_sort_unstable();
        } else {
            order.sort_unstable();
        }
        Ok(())
    }

    /// Sweeps the column on this thread.
    pub(super) fn sweep(&self, accept: &Accept, task: &mut Task) {
        self.sweep_part(0..self.end.len(), accept, task);
    }

    /// Sweeps the column on all threads.
    pub(super) fn sweep_by_all(&self, accept: &Accept, collector: &Collector) -> Found {
        collector.run_parts(self.end.len(), SWEEP_TASK, |task, range| {
            if task.charge() {
                self.sweep_part(range, accept, task);
            }
        })
    }

    fn sweep_part(&self, range: Range<usize>, accept: &Accept, task: &mut Task) {
        run_best(Sweep {
            column: self,
            range,
            accept,
            task,
        });
    }
}

/// Sweeps the boxes `range` of a column: each against those after it, up to the first one that
/// begins past its end.
struct Sweep<'a, 'b> {
    column: &'a Column,
    range: Range<usize>,
    accept: &'a Accept<'a>,
    task: &'a mut Task<'b>,
}

impl Job for Sweep<'_, '_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self {
            column,
            range,
            accept,
            task,
        } = self;
        let Column {
            start,
            end,
            min,
            max,
            index,
            homes,
            ..
        } = column;
        let accept = accept.tests_anything().then_some(accept);
        let one_by_one = accept.is_some() || column.thin;
        let storing = task.storing();
        let mut tests = 0;
        for i in range {
            let (limit, home, p) = (end[i], homes[i], index[i]);
            let [low, high] = [min, max].map(|bound| [bound[0][i], bound[1][i]]);
            let mut j = i + 1;
            loop {
                // `i + 1` is at most the number of boxes. If the last of eight starts is within the
                // limit, all eight are boxes. So `j + LANES` stays within the padded length.
                let is_full = start[j + LANES - 1] <= limit;
                // SAFETY: `j + LANES` is within the length; the processor suits `L`.
                let (within, mut mask) = unsafe {
                    let within = L::starts_within(start, j, limit);
                    let overlap = L::overlap(min, max, j, [&low, &high]);
                    (within, within & overlap & L::reported_here(homes, j, home))
                };
                if one_by_one {
                    let overlapping = mask.count_ones();
                    mask = retain_bits(mask, |lane| {
                        let pair = Naming::Smaller.pair(p, index[j + lane]);
                        end[j + lane] >= start[i]
                            && accept.is_none_or(|accept| accept.keeps(pair.a, pair.b))
                    });
                    task.drop_pairs(overlapping - mask.count_ones());
                }
                // There is no branch on the mask: about every third step has a pair, which no
                // branch predictor foresees.
                if storing {
                    // SAFETY: as above.
                    unsafe { task.push_mask::<L>(index, j, mask, p, Naming::Smaller) };
                } else {
                    task.count(mask.count_ones());
                }
                tests += u64::from(within.count_ones());
                if !is_full {
                    break;
                }
                j += LANES;
            }
        }
        task.found.tests += tests;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::accept::WorldTest;
    use crate::cpu::full::arrange::{ColumnLayout, Worlds};
    use crate::cpu::full::columns::{Columns, Cuts, Steps};
    use crate::cpu::full::partition::Partition;
    use crate::cpu::full::plan::plan;
    use crate::cpu::full::split::Split;
    use crate::cpu::output::collect::SpareBlocks;
    use crate::cpu::output::order::sorted_pairs;
    use crate::cpu::scene::Scene;
    use crate::random::Random;
    use crate::{Aabb, OverlapRule, Pair, Strategy};

    /// One column has more boxes than one thread sweeps. Many of them begin at the same coordinate
    /// or are thin.
    #[test]
    fn a_large_column_among_small_ones_is_swept_completely() {
        let mut random = Random(5);
        let mut next = |steps| random.below(steps);
        let boxes: Vec<Aabb> = (0..LARGE_COLUMN as u32 + 2000)
            .map(|i| {
                let crowded = i % 4 != 0;
                let y = if crowded { 0.5 } else { next(10) as f32 };
                let x = if i % 3 == 0 {
                    7.0
                } else {
                    next(4000) as f32 * 0.25
                };
                let min = [x, y, next(50) as f32];
                let side = [next(3) as f32, 0.25, 0.5];
                Aabb::new(min, std::array::from_fn(|k| min[k] + side[k]))
            })
            .collect();
        for rule in [OverlapRule::Closed, OverlapRule::Open] {
            let plan = plan(&boxes, None, Strategy::Subdivided);
            let columns = Columns {
                cuts: [Cuts::even(&[0.0, 1.0, 2.0, 3.0, 4.0], 5), Cuts::default()],
                steps: Steps::new(0.0, 1000.0),
            };
            let Ok(worlds) = Worlds::new([None, None]) else {
                panic!("no memory")
            };
            let layout = ColumnLayout {
                columns: &columns,
                worlds: &worlds,
                axis: 0,
            };
            let spare = SpareBlocks::default();
            let Ok(split) = Split::new(&boxes, &layout, &plan, Vec::new()) else {
                panic!("no memory")
            };
            assert!(!split.has_oversized());
            let Ok(partition) = Partition::new(&split, &layout, rule, Vec::new()) else {
                panic!("no memory")
            };
            let scene = Scene::default();
            let accept = Accept::new(&scene, &scene, rule, WorldTest::ByColumns).expect("memory");
            let (found, _) = partition.sweep(&accept, &Collector::new(u64::MAX, &spare));
            let pairs = sorted_pairs(Ok(found), boxes.len());
            let mut expected = Vec::new();
            for (a, first) in (0..).zip(&boxes) {
                for (b, second) in (0..).zip(&boxes).skip(a as usize + 1) {
                    if first.overlaps(second, rule) {
                        expected.push(Pair { a, b });
                    }
                }
            }
            assert!(expected.len() > 1000);
            assert!(
                pairs == expected,
                "{} of {} pairs",
                pairs.len(),
                expected.len()
            );
        }
    }
}
