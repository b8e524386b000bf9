//! L. Ha, J. Krüger, C. Silva, "Fast Four-Way Parallel Radix Sorting on GPUs", Computer Graphics
//! Forum 28(8), 2009, §6.1 "Broad-phase collision detection".
//!
//! 1. Every box gives two records: its `min` and its `max` on x, with the box's index and a bit
//!    that tells which.
//! 2. The records are sorted by value. Under the closed rule a `min` comes before a `max` of the
//!    same value, under the open rule after it (keys are lifted, see `key`, so that the first order
//!    does for both).
//! 3. A parallel scan over the `min` bits numbers the boxes in order of their `min`; the number of
//!    `min`s before a box's `max` ends its candidates: the boxes whose `min` lies between its two
//!    records, the paper's "out of order indices". Because only `min`s are looked at, each
//!    candidate pair is found once.
//! 4. The candidates go through y, and those left through z.
//!
//! Departures: the overlap list of x is kept as one range for each box and never written out, as it
//! can be far longer than memory; the lists after y are written in blocks. For y and z intervals
//! are compared, not sorted again: the list holds pairs by then, and sorting 2 n records for each
//! axis again would not shorten it.

use super::arrange::in_one_column;
use super::records::Records;
use crate::cpu::accept::Accept;
use crate::cpu::key::{biased, lift, ordered};
use crate::cpu::lanes::{Job, LANES, Lanes, run_best};
use crate::cpu::output::collect::{Collector, Found, Task};
use crate::cpu::tuning::{OVERLAP_BLOCK, STREAM_TASK, SWEEP_TASK};
use crate::room::{self, zeros};
use crate::{Aabb, Config, Pair, Result, Sorts};
use gpusort::SortOptions;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// Boxes in order of their `min` on x, and where each one's candidates end.
pub(super) struct Ranges {
    records: Records,
    /// For each box of the frame, one past the last of its candidates in `records`.
    until: Vec<AtomicU32>,
}

impl Ranges {
    /// Steps 1 to 3.
    pub(super) fn new(boxes: &[Aabb], config: &Config, sorts: &mut Sorts) -> Result<Self> {
        let lift = lift(config.rule);
        let is_nonempty = |&i: &u32| !boxes[i as usize].is_empty();
        let mut nonempty = room::gather((0..boxes.len() as u32).into_par_iter())?;
        if !nonempty.par_iter().all(is_nonempty) {
            nonempty.retain(is_nonempty);
        }
        let min = |&i: &u32| biased(ordered(boxes[i as usize].min[0]) + lift);
        let max = |&i: &u32| biased(ordered(boxes[i as usize].max[0]));
        // All mins stand before all maxs, and the sort is stable.
        let (mins, maxs) = (nonempty.par_iter().map(min), nonempty.par_iter().map(max));
        let mut keys = room::gather(mins.chain(maxs))?;
        let (mins, maxs) = (
            nonempty.par_iter().map(|i| i << 1),
            nonempty.par_iter().map(|i| i << 1 | 1),
        );
        let mut ends = room::gather(mins.chain(maxs))?;
        let options = SortOptions::new().algorithm(config.sort);
        *sorts += Sorts::from(&gpusort::cpu::sort_pairs(&mut keys, &mut ends, &options)?);

        let is_min = |end: &&u32| **end & 1 == 0;
        let counts: Vec<usize> = ends
            .par_chunks(STREAM_TASK)
            .map(|part| part.iter().filter(is_min).count())
            .collect();
        let mut order = zeros::<u32>(nonempty.len() + LANES)?;
        order.truncate(nonempty.len());
        let until = room::gather(boxes.par_iter().map(|_| AtomicU32::new(0)))?;
        let (mut tasks, mut rest, mut first) =
            (Vec::with_capacity(counts.len()), &mut order[..], 0);
        for (part, count) in ends.chunks(STREAM_TASK).zip(counts) {
            let (numbered, after) = rest.split_at_mut(count);
            tasks.push((part, first, numbered));
            (rest, first) = (after, first + count as u32);
        }
        tasks.into_par_iter().for_each(|(part, first, numbered)| {
            let mut count = 0;
            for &end in part {
                if is_min(&&end) {
                    numbered[count as usize] = end >> 1;
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

    /// Step 4.
    pub(super) fn run(&self, accept: &Accept, collector: &Collector) -> Found {
        let n = self.records.len();
        let sweep = |mut task, number: usize| {
            let range = number * SWEEP_TASK..((number + 1) * SWEEP_TASK).min(n);
            run_best(Boxes {
                ranges: self,
                range,
                accept,
                task: &mut task,
            });
            task
        };
        let tasks = (0..n.div_ceil(SWEEP_TASK)).into_par_iter();
        tasks
            .fold(|| collector.task(), sweep)
            .map(Task::finish)
            .reduce(Found::default, Found::merge)
    }

    /// Takes the overlap list of x and y through z, and through x again where a box is thin there.
    fn through_z(&self, overlap: &mut Vec<(u32, u32)>, accept: &Accept, task: &mut Task) {
        let Records {
            min, max, index, ..
        } = &self.records;
        let (min, max) = (&min[1], &max[1]);
        let (storing, tests) = (task.storing(), accept.tests_anything());
        for (i, j) in overlap.drain(..) {
            let (i, j) = (i as usize, j as usize);
            if min[i] > max[j] || min[j] > max[i] || (self.records.thin && !self.meet_on_x(i, j)) {
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

    fn meet_on_x(&self, i: usize, j: usize) -> bool {
        let Records { keys, .. } = &self.records;
        keys[j] <= self.records.limit(i) && keys[i] <= self.records.limit(j)
    }
}

/// The boxes `range`, in order of their `min`, through y, and their overlap list through z.
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
                    ranges.through_z(&mut overlap, accept, task);
                }
            }
        }
        ranges.through_z(&mut overlap, accept, task);
    }
}
