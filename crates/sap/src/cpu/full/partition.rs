//! Writes boxes directly into columns, and sorts and sweeps each column while it is in cache.
//!
//! 1. Counts the boxes of each column, by the columns that each box touches ([`Span`]).
//! 2. Writes a record of 32 bytes for each column of a box, scattered.
//! 3. Sorts each column by `min` on the sweep axis and sweeps it, on one thread; a large column on
//!    all threads.
//!
//! Memory traffic: 24 bytes read for a box, 32 bytes written and read for a copy. All else stays in
//! cache.

use super::arrange::ColumnLayout;
use super::column::Column;
use super::columns::{Columns, Span};
use super::entry::Entry;
use super::records::axes;
use super::split::Split;
use crate::cpu::accept::Accept;
use crate::cpu::key::lift;
use crate::cpu::output::collect::{Collector, Found};
use crate::cpu::scatter::{Positions, Target};
use crate::cpu::tuning::{LARGE_COLUMN, STREAM_TASK};
use crate::try_alloc::zeros;
use crate::{OverlapRule, Result};
use rayon::prelude::*;
use std::ops::Range;

/// Boxes in columns.
pub(super) struct Partition {
    entries: Vec<Entry>,
    /// The end of each column, which is the begin of the next one.
    ends: Vec<usize>,
}

impl Partition {
    /// Copies the boxes that are not oversized into columns, within each by ascending index.
    /// `entries` is memory to reuse.
    pub(super) fn new(
        split: &Split,
        layout: &ColumnLayout,
        rule: OverlapRule,
        mut entries: Vec<Entry>,
    ) -> Result<Self> {
        let (boxes, spans, columns) = (split.boxes(), split.spans(), layout.columns);
        // Each part has a count for every column, so it has several boxes for each.
        let part = boxes
            .len()
            .div_ceil(4 * rayon::current_num_threads())
            .max(STREAM_TASK)
            .max(4 * columns.count());
        let parts: Vec<Range<usize>> = (0..boxes.len())
            .step_by(part)
            .map(|first| first..(first + part).min(boxes.len()))
            .collect();
        let mut counts = zeros::<u32>(parts.len() * columns.count())?;
        let count = |(counts, part): (&mut [u32], &Range<usize>)| {
            for i in part.clone().filter(|&i| !split.is_oversized(i)) {
                let [[y0, y1], [z0, z1]] = spans[i];
                if y1.wrapping_sub(y0) > 1 || z1.wrapping_sub(z0) > 1 {
                    each_column(columns, &spans[i], |column, _| counts[column] += 1);
                    continue;
                }
                // Most boxes touch at most four columns, which are counted without a branch.
                let (second_y, second_z) = (u32::from(y1 - y0), u32::from(z1 - z0));
                let mut add = |y, z, count| counts[columns.column(y, z) as usize] += count;
                add(y0, z0, 1);
                add(y0, z1, second_z);
                add(y1, z0, second_y);
                add(y1, z1, second_y * second_z);
            }
        };
        counts
            .par_chunks_mut(columns.count())
            .zip(&parts)
            .for_each(count);
        let mut positions = Positions::new(&counts, columns.count())?;
        let total = positions.total();
        let target = Target::reserve(&mut entries, total)?;
        let (axes, lift, steps) = (axes(layout.axis), lift(rule), &columns.steps);
        let write = |(part, starts): (Range<usize>, &mut [usize])| {
            for i in part.filter(|&i| !split.is_oversized(i)) {
                let entry = Entry::new(&boxes[i], i, axes, lift, steps);
                each_column(columns, &spans[i], |column, homes| {
                    // SAFETY: the positions of all parts and columns differ and are below `total`,
                    // which was reserved, because each part writes to a column as many entries as
                    // it counted there.
                    unsafe { target.write(&mut starts[column], Entry { homes, ..entry }) };
                });
            }
        };
        parts
            .into_par_iter()
            .zip(positions.starts.par_chunks_mut(columns.count()))
            .for_each(write);
        // SAFETY: `total` entries were reserved, and each of them was written above.
        unsafe { entries.set_len(total) };
        Ok(Self {
            entries,
            ends: positions.ends,
        })
    }

    /// Sweeps all columns. Returns the memory of the entries as well.
    pub(super) fn sweep(self, accept: &Accept, collector: &Collector) -> (Found, Vec<Entry>) {
        let column = |column: usize| {
            let first = column.checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.entries[first..self.ends[column]]
        };
        let start = || (collector.task(), Column::default());
        let mut found = (0..self.ends.len())
            .into_par_iter()
            .fold(start, |(mut task, mut sorted), index| {
                let entries = column(index);
                if (2..=LARGE_COLUMN).contains(&entries.len()) && task.charge() {
                    match sorted.load(entries) {
                        Ok(()) => sorted.sweep(accept, &mut task),
                        Err(error) => task.refuse(error),
                    }
                    task.found.sorts.keys += entries.len() as u64;
                }
                (task, sorted)
            })
            .map(|(task, _)| task.finish())
            .reduce(Found::default, Found::merge);
        let large = (0..self.ends.len()).map(column);
        let large = large.filter(|entries| entries.len() > LARGE_COLUMN);
        for entries in large.take_while(|_| !collector.is_exceeded()) {
            let mut sorted = Column::default();
            found.sorts.keys += entries.len() as u64;
            found = found.merge(match sorted.load(entries) {
                Ok(()) => sorted.sweep_by_all(accept, collector),
                Err(error) => Found::refused(error),
            });
        }
        (found, self.entries)
    }
}

/// Calls `f` with each column of a span and the box's home bits there.
#[inline(always)]
fn each_column(columns: &Columns, span: &Span, mut f: impl FnMut(usize, u8)) {
    let [[y0, y1], [z0, z1]] = *span;
    for y in y0..=y1 {
        for z in z0..=z1 {
            let homes = u8::from(y == y0) | u8::from(z == z0) << 1;
            f(columns.column(y, z) as usize, homes);
        }
    }
}
