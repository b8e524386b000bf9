//! Sweeps the sorted ends of the boxes.
//!
//! L. Ha, J. Krüger, C. Silva, "Fast Four-Way Parallel Radix Sorting on GPUs", Computer Graphics
//! Forum 28(8), 2009, §6.1 "Broad-phase collision detection".
//!
//! 1. Each box gives two records: its `min` and its `max` on x, each with the box's index and a bit
//!    that says which of the two it is.
//! 2. The records are sorted by value. Under the closed rule a `min` comes before a `max` of the
//!    same value, under the open rule after it. Keys are lifted (see `key`), so that the first
//!    order serves both rules.
//! 3. A parallel scan over the `min` bits ranks the boxes by their `min`. The number of `min`s
//!    before a box's `max` is the end of its candidates: the boxes whose `min` lies between its two
//!    records, the paper's "out of order indices". Only `min`s count, so each candidate pair is
//!    found once.
//! 4. Intervals on y are compared for all candidates, then intervals on z for the rest.
//!
//! Departures: the overlap list of x is stored as one range for each box and never written out,
//! because it can be far longer than memory; the lists after y are written in blocks. Intervals on
//! y and z are compared and not sorted again: the list holds pairs by then, and sorting 2 n records
//! for each axis would not shorten it.

use super::arrange::in_one_column;
use super::records::Records;
use crate::cpu::accept::Accept;
use crate::cpu::key::{biased, lift, ordered};
use crate::cpu::lanes::{Job, LANES, Lanes, run_best};
use crate::cpu::output::collect::{Collector, Found, Task};
use crate::cpu::scatter::cut;
use crate::cpu::tuning::{OVERLAP_BLOCK, STREAM_TASK, SWEEP_TASK};
use crate::try_alloc::{self, zeros};
use crate::{Aabb, Config, Pair, Result, Sorts};
use gpusort::SortOptions;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// Boxes in order of their `min` on x, and the end of each one's candidates.
pub(super) struct Ranges {
    records: Records,
    /// For each box of the frame, one past its last candidate in `records`.
    until: Vec<AtomicU32>,
}

impl Ranges {
    /// Runs steps 1 to 3.
    pub(super) fn new(boxes: &[Aabb], config: &Config, sorts: &mut Sorts) -> Result<Self> {
        let lift = lift(config.rule);
        let is_nonempty = |&i: &u32| !boxes[i as usize].is_empty();
        let mut nonempty = try_alloc::gather((0..boxes.len() as u32).into_par_iter())?;
        if !nonempty.par_iter().all(is_nonempty) {
            nonempty.retain(is_nonempty);
        }
        let min = |&i: &u32| biased(ordered(boxes[i as usize].min[0]) + lift);
        let max = |&i: &u32| biased(ordered(boxes[i as usize].max[0]));
        // All mins stand before all maxs, and the sort is stable.
        let (mins, maxs) = (nonempty.par_iter().map(min), nonempty.par_iter().map(max));
        let mut keys = try_alloc::gather(mins.chain(maxs))?;
        let (mins, maxs) = (
            nonempty.par_iter().map(|i| i << 1),
            nonempty.par_iter().map(|i| i << 1 | 1),
        );
        let mut ends = try_alloc::gather(mins.chain(maxs))?;
        let options = SortOptions::new().algorithm(config.sort);
        *sorts += Sorts::from(&gpusort::cpu::sort_pairs(&mut keys, &mut ends, &options)?);

        let is_min = |end: &&u32| **end & 1 == 0;
        let counts: Vec<usize> = ends
            .par_chunks(STREAM_TASK)
            .map(|part| part.iter().filter(is_min).count())
            .collect();
        let mut order = zeros::<u32>(nonempty.len() + LANES)?;
        order.truncate(nonempty.len());
        let until = try_alloc::gather(boxes.par_iter().map(|_| AtomicU32::new(0)))?;
        let mut ranks = 0;
        let tasks = ends
            .chunks(STREAM_TASK)
            .zip(cut(&mut order, counts.into_iter()))
            .map(|(part, ranked)| {
                let first = ranks;
                ranks += ranked.len() as u32;
                (part, first, ranked)
            });
        let tasks: Vec<_> = tasks.collect();
        tasks.into_par_iter().for_each(|(part, first, ranked)| {
            let mut count = 0;
            for &end in part {
                if is_min(&&end) {
                    ranked[count as usize] = end >> 1;
                    count += 1;
                } else {
                    until[(end >> 1) as usize].store(first + count, Ordering::Relaxed);
                }
            }
        });
        Ok(Self {
            records: in_one_column(boxes, order, 0, config)?,
            until,
        })
    }

    /// Runs step 4.
    pub(super) fn run(&self, accept: &Accept, collector: &Collector) -> Found {
        collector.run_parts(self.records.len(), SWEEP_TASK, |task, range| {
            run_best(Boxes {
                ranges: self,
                range,
                accept,
                task,
            });
        })
    }

    /// Compares the intervals on z of an overlap list of x and y. Where a box is thin on x, it
    /// compares those on x again.
    fn filter_by_z(&self, overlap: &mut Vec<(u32, u32)>, accept: &Accept, task: &mut Task) {
        let Records {
            min, max, index, ..
        } = &self.records;
        let (min, max) = (&min[1], &max[1]);
        let (storing, tests) = (task.storing(), accept.tests_anything());
        for (i, j) in overlap.drain(..) {
            let (i, j) = (i as usize, j as usize);
            if min[i] > max[j] || min[j] > max[i] || (self.records.thin && !self.overlap_x(i, j)) {
                continue;
            }
            let pair = Pair::new(index[i], index[j]);
            if tests && !accept.keeps(pair.a, pair.b) {
                continue;
            }
            if storing {
                task.push(pair)
            } else {
                task.count(1)
            }
        }
    }

    fn overlap_x(&self, i: usize, j: usize) -> bool {
        let Records { keys, .. } = &self.records;
        keys[j] <= self.records.limit(i) && keys[i] <= self.records.limit(j)
    }
}

/// Finds the pairs of the boxes `range`, in order of their `min`: compares their candidates on y,
/// then the overlap list on z.
struct Boxes<'a, 'b> {
    ranges: &'a Ranges,
    range: Range<usize>,
    accept: &'a Accept<'a>,
    task: &'a mut Task<'b>,
}

impl Job for Boxes<'_, '_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self {
            ranges,
            range,
            accept,
            task,
        } = self;
        let Records {
            min, max, index, ..
        } = &ranges.records;
        let [min_y, max_y] = [min, max].map(|bound| std::array::from_ref(&bound[0]));
        let mut overlap = Vec::with_capacity(OVERLAP_BLOCK + LANES);
        for i in range {
            let until = ranges.until[index[i] as usize].load(Ordering::Relaxed) as usize;
            let [[low, _], [high, _]] = ranges.records.bounds(i);
            task.found.tests += until.saturating_sub(i + 1) as u64;
            let mut j = i + 1;
            while j < until {
                // SAFETY: `j` is below the number of records and the arrays are LANES longer; the
                // processor suits `L`.
                let mut mask = unsafe { L::overlap(min_y, max_y, j, [&[low], &[high]]) };
                if until - j < LANES {
                    mask &= (1 << (until - j)) - 1;
                }
                while mask != 0 {
                    overlap.push((i as u32, j as u32 + mask.trailing_zeros()));
                    mask &= mask - 1;
                }
                j += LANES;
                if overlap.len() >= OVERLAP_BLOCK {
                    ranges.filter_by_z(&mut overlap, accept, task);
                }
            }
        }
        ranges.filter_by_z(&mut overlap, accept, task);
    }
}
