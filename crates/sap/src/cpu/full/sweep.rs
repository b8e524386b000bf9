//! The sweep: each record goes forward through those after it until one begins past its end, eight
//! at a time.

use super::records::Records;
use crate::cpu::accept::Accept;
use crate::cpu::lanes::{Job, LANES, Lanes, Naming, each_bit, run_best};
use crate::cpu::output::collect::{Collector, Found, Task};
use crate::cpu::tuning::SWEEP_TASK;
use crate::threads::in_pool;
use rayon::prelude::*;
use std::ops::Range;

/// Which records of `into` a record of `from` meets first, and which index of the two a pair names
/// first.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Role {
    /// One set against itself: the next record. The smaller index first.
    Within,
    /// The first set against the second: the first record with the same key or a greater one.
    Forth,
    /// The second set against the first: the first record with a greater key, so that each pair is
    /// met once.
    Back,
    /// As `Forth` and `Back`, between two parts of one set: the smaller index first.
    ForthPart,
    /// See `ForthPart`.
    BackPart,
}

/// One sweep of all records of `from` through `into`.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) from: &'a Records,
    pub(super) into: &'a Records,
    pub(super) role: Role,
    pub(super) accept: &'a Accept<'a>,
}

impl<'a> Pass<'a> {
    /// A set against itself.
    pub(super) fn within(records: &'a Records, accept: &'a Accept<'a>) -> Self {
        Self {
            from: records,
            into: records,
            role: Role::Within,
            accept,
        }
    }
}

/// Runs the passes one after the other, each on all threads.
pub(super) fn run(passes: &[Pass], collector: &Collector) -> Found {
    passes
        .iter()
        .map(|pass| of_pass(pass, collector))
        .fold(Found::default(), Found::merge)
}

/// One pass, on all threads of the pool that this one is of, or on this one.
pub(super) fn of_pass<'a>(pass: &Pass, collector: &'a Collector) -> Found {
    let n = pass.from.len();
    let sweep = |mut task: Task<'a>, number: usize| {
        let range = number * SWEEP_TASK..((number + 1) * SWEEP_TASK).min(n);
        if task.goes_on() {
            run_best(Sweep {
                pass,
                range,
                task: &mut task,
            });
        }
        task
    };
    let tasks = 0..n.div_ceil(SWEEP_TASK);
    if !in_pool() {
        return tasks.fold(collector.task(), sweep).finish();
    }
    tasks
        .into_par_iter()
        .fold(|| collector.task(), sweep)
        .map(Task::finish)
        .reduce(Found::default, Found::merge)
}

/// The records `range` of a pass.
struct Sweep<'a, 'b> {
    pass: &'a Pass<'a>,
    range: Range<usize>,
    task: &'a mut Task<'b>,
}

impl Job for Sweep<'_, '_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self { pass, range, task } = self;
        let Pass {
            from,
            into,
            role,
            accept,
        } = *pass;
        let forth = matches!(role, Role::Forth | Role::ForthPart);
        let naming = match role {
            Role::Within | Role::ForthPart | Role::BackPart => Naming::Smaller,
            Role::Forth => Naming::Sweeping,
            Role::Back => Naming::Met,
        };
        let accept = accept.tests_anything().then_some(accept);
        let one_by_one = accept.is_some() || from.thin || into.thin;
        let storing = task.storing();
        let first = from.keys[range.start];
        let follows = |key: i64, other: i64| other < key || (!forth && other == key);
        let mut start = into.keys[..into.len()].partition_point(|&other| follows(first, other));
        for i in range {
            let (key, limit, [low, high]) = (from.keys[i], from.limit(i), from.bounds(i));
            // The key after the last record follows nothing and is above every limit: it stops this
            // loop and the next.
            if role == Role::Within {
                start = i + 1;
            } else {
                start += into.keys[start..]
                    .iter()
                    .take_while(|&&other| follows(key, other))
                    .count();
            }
            let p = from.index[i];
            let mut j = start;
            loop {
                // `start` is at most the number of records, and a last key of eight within the
                // limit means that all eight are records, so `j + LANES` stays within the padded
                // length.
                let whole = into.keys[j + LANES - 1] <= limit;
                let within = if whole {
                    u32::MAX
                } else {
                    // SAFETY: as just said; the processor suits `L`.
                    unsafe { L::at_most(&into.keys, j, limit) }
                };
                // SAFETY: as above.
                let mut mask =
                    unsafe { L::overlap(&into.min, &into.max, j, [&low, &high]) } & within;
                if mask != 0 && into.in_columns {
                    // SAFETY: as above.
                    mask &= unsafe { L::reported_here(&into.homes, j, from.homes[i]) };
                }
                if mask != 0 {
                    if one_by_one {
                        let overlapping = mask.count_ones();
                        each_bit(mask, |lane| {
                            let pair = naming.pair(p, into.index[j + lane]);
                            let kept = into.reaches(j + lane, from, i)
                                && accept.is_none_or(|accept| accept.keeps(pair.a, pair.b));
                            mask &= !(u32::from(!kept) << lane);
                        });
                        task.drop_pairs(overlapping - mask.count_ones());
                    }
                    if storing {
                        // SAFETY: as above.
                        unsafe { task.push_mask::<L>(&into.index, j, mask, p, naming) };
                    } else {
                        task.count(mask.count_ones());
                    }
                }
                if !whole {
                    task.found.tests += (j - start) as u64 + u64::from(within.count_ones());
                    break;
                }
                j += LANES;
            }
        }
    }
}
