//! The sweep: tests each record against the records after it, eight at a time, up to the first one
//! that begins past its end.

use super::records::Records;
use crate::cpu::accept::Accept;
use crate::cpu::lanes::{Job, LANES, Lanes, Naming, retain_bits, run_best};
use crate::cpu::output::collect::{Collector, Found, Task};
use crate::cpu::tuning::SWEEP_TASK;
use std::ops::Range;

/// Decides at which record of `into` the sweep of a record of `from` begins, and which of the two
/// indices is first in a pair.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Role {
    /// Sweeps a set against itself, from the next record on. The smaller index is first.
    Within,
    /// Sweeps the first set against the second, from the first record of no smaller key on.
    Forth,
    /// Sweeps the second set against the first, from the first record of a greater key on, so that
    /// each pair is found once.
    Back,
    /// Like `Forth`, between two parts of one set. The smaller index is first.
    ForthPart,
    /// Like `Back`, between two parts of one set. The smaller index is first.
    BackPart,
}

/// A sweep of all records of `from` through `into`.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) from: &'a Records,
    pub(super) into: &'a Records,
    pub(super) role: Role,
    pub(super) accept: &'a Accept<'a>,
}

impl<'a> Pass<'a> {
    /// Creates the sweep of a set against itself.
    pub(super) fn within(records: &'a Records, accept: &'a Accept<'a>) -> Self {
        Self {
            from: records,
            into: records,
            role: Role::Within,
            accept,
        }
    }
}

/// Runs passes one after the other, each on all threads.
pub(super) fn run(passes: &[Pass], collector: &Collector) -> Found {
    passes
        .iter()
        .map(|pass| run_pass(pass, collector))
        .fold(Found::default(), Found::merge)
}

/// Runs a pass on all threads of the current pool, or on this thread if that is in no pool.
pub(super) fn run_pass(pass: &Pass, collector: &Collector) -> Found {
    collector.run_parts(pass.from.len(), SWEEP_TASK, |task, range| {
        if task.charge() {
            run_best(Sweep { pass, range, task });
        }
    })
}

/// Sweeps the records `range` of a pass.
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
            Role::Forth => Naming::Searching,
            Role::Back => Naming::Found,
        };
        let accept = accept.tests_anything().then_some(accept);
        let one_by_one = accept.is_some() || from.thin || into.thin;
        let storing = task.storing();
        let first = from.keys[range.start];
        let is_before = |other: i64, key: i64| other < key || (!forth && other == key);
        let mut start = into.keys[..into.len()].partition_point(|&other| is_before(other, first));
        for i in range {
            let (key, limit, [low, high]) = (from.keys[i], from.limit(i), from.bounds(i));
            // The keys after the last record are above every key and limit, so they stop this loop
            // and the next.
            if role == Role::Within {
                start = i + 1;
            } else {
                start += into.keys[start..]
                    .iter()
                    .take_while(|&&other| is_before(other, key))
                    .count();
            }
            let p = from.index[i];
            let mut j = start;
            loop {
                // `start` is at most the number of records. If the last of eight keys is within the
                // limit, all eight are records. So `j + LANES` stays within the padded length.
                let is_full = into.keys[j + LANES - 1] <= limit;
                let within = if is_full {
                    u32::MAX
                } else {
                    // SAFETY: `j + LANES` is within the length; the processor suits `L`.
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
                        mask = retain_bits(mask, |lane| {
                            let pair = naming.pair(p, into.index[j + lane]);
                            into.reaches(j + lane, from, i)
                                && accept.is_none_or(|accept| accept.keeps(pair.a, pair.b))
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
                if !is_full {
                    task.found.tests += (j - start) as u64 + u64::from(within.count_ones());
                    break;
                }
                j += LANES;
            }
        }
    }
}
