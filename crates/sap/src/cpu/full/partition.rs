//! Writes boxes straight into columns, each then sorted and swept while it is in cache.
//!
//! 1. The columns that each box touches ([`Span`]), and how many boxes each column gets.
//! 2. One scattered write of a record of 32 bytes for each column of a box.
//! 3. Column by column: sort by `min` on the sweep axis, sweep. A column that one thread would be
//!    long at is shared by all.
//!
//! Bytes: 24 read a box, 32 written and read a copy; all else stays in cache.

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
use crate::room::zeros;
use crate::{OverlapRule, Result};
use rayon::prelude::*;
use std::ops::Range;

/// Boxes in columns.
pub(super) struct Partition {
    entries: Vec<Entry>,
    /// Where each column ends; it begins where the one before it ends.
    ends: Vec<usize>,
}

impl Partition {
    /// Copies the boxes that are not oversized, column by column; in each they are in the order of
    /// their indices. `entries` is memory to use again.
    pub(super) fn new(
        split: &Split,
        layout: &ColumnLayout,
        rule: OverlapRule,
        mut entries: Vec<Entry>,
    ) -> Result<Self> {
        let (boxes, spans, columns) = (split.boxes(), split.spans(), layout.columns);
        // Each part counts every column, so it should have several boxes for each.
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
            for i in part.clone().filter(|&i| !split.is_large(i)) {
                let [[y0, y1], [z0, z1]] = spans[i];
                if y1.wrapping_sub(y0) > 1 || z1.wrapping_sub(z0) > 1 {
                    each_column(columns, &spans[i], |column, _| counts[column] += 1);
                    continue;
                }
                // Most boxes: four columns at most, without a branch on which of them.
                let (more_y, more_z) = (u32::from(y1 - y0), u32::from(z1 - z0));
                let mut add = |y, z, more| counts[columns.column(y, z) as usize] += more;
                add(y0, z0, 1);
                add(y0, z1, more_z);
                add(y1, z0, more_y);
                add(y1, z1, more_y * more_z);
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
            for i in part.filter(|&i| !split.is_large(i)) {
                let entry = Entry::new(&boxes[i], i, axes, lift, steps);
                each_column(columns, &spans[i], |column, homes| {
                    // SAFETY: positions of all parts and columns are apart and below `total`, which
                    // was reserved: each part has as many in a column as it counted there.
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

    /// Sweeps all columns. Returns the memory of the entries too.
    pub(super) fn sweep(self, accept: &Accept, collector: &Collector) -> (Found, Vec<Entry>) {
        let column = |column: usize| {
            let first = column.checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.entries[first..self.ends[column]]
        };
        let start = || (collector.task(), Column::default());
        let mut found = (0..self.ends.len())
            .into_par_iter()
            .fold(start, |(mut task, mut sorted), number| {
                let entries = column(number);
                if (2..=LARGE_COLUMN).contains(&entries.len()) && task.goes_on() {
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
        let large = (0..self.ends.len()).filter(|&number| column(number).len() > LARGE_COLUMN);
        for number in large.take_while(|_| !collector.is_exceeded()) {
            let mut sorted = Column::default();
            found.sorts.keys += column(number).len() as u64;
            found = found.merge(match sorted.load(column(number)) {
                Ok(()) => sorted.sweep_by_all(accept, collector),
                Err(error) => Found::refused(error),
            });
        }
        (found, self.entries)
    }
}

/// The columns of a span, each with its home bits.
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
