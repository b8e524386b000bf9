//! Arranges boxes as records in sweep order, in one or many columns.

use super::columns::{Columns, NOWHERE, Span, area};
use super::records::{HOME_BITS, Records, axes, packed_column};
use crate::cpu::key::{biased, lift, ordered};
use crate::cpu::lanes::{LANES, prefetch};
use crate::cpu::scatter::cut;
use crate::cpu::tuning::{PREFETCH_DISTANCE, STREAM_TASK};
use crate::try_alloc::{self, gather, zeros};
use crate::{Aabb, Config, Result, Sorts};
use gpusort::SortOptions;
use rayon::prelude::*;

/// Sorts the boxes of a set that are not empty by their `min` on an axis. O(n) radix sort.
pub(super) fn order_by_min(
    boxes: &[Aabb],
    axis: usize,
    config: &Config,
    sorts: &mut Sorts,
) -> Result<Vec<u32>> {
    let lift = lift(config.rule);
    let key = |b: &Aabb| {
        if b.is_empty() {
            u32::MAX
        } else {
            biased(ordered(b.min[axis]) + lift)
        }
    };
    let keys = try_alloc::map(boxes, STREAM_TASK, key)?;
    // With capacity for the padding of records.
    let mut order = zeros::<u32>(boxes.len() + LANES)?;
    order.truncate(boxes.len());
    let options = SortOptions::new().algorithm(config.sort);
    *sorts += Sorts::from(&gpusort::cpu::sort_index(&keys, &mut order, &options)?);
    order.truncate(order.partition_point(|&i| keys[i as usize] != u32::MAX));
    Ok(order)
}

/// Max number of columns of all worlds: a packed column has this many bits.
pub(in crate::cpu) const MAX_COLUMNS: u64 = 1 << (32 - HOME_BITS);

/// Maps the worlds of a frame to small indices.
#[derive(Default)]
pub(super) struct Worlds {
    /// The sorted ids. Empty if each id is small enough to be the index itself.
    ids: Vec<u32>,
    count: u64,
}

impl Worlds {
    /// Collects the worlds of one or two sets.
    pub(super) fn new(sets: [Option<&[u32]>; 2]) -> Result<Self> {
        let all = || sets.into_iter().flatten().flatten().copied();
        let boxes = all().count() as u64;
        let count = all().max().map_or(1, |max| u64::from(max) + 1);
        if count <= (2 * boxes + 1024).min(MAX_COLUMNS) {
            return Ok(Self {
                ids: Vec::new(),
                count,
            });
        }
        // A set without worlds is in world 0.
        let mut ids = vec![0];
        try_alloc::reserve(&mut ids, boxes as usize + 1)?;
        ids.extend(all());
        ids.par_sort_unstable();
        ids.dedup();
        Ok(Self {
            count: ids.len() as u64,
            ids,
        })
    }

    /// Returns the index of a world.
    fn index(&self, id: u32) -> u32 {
        // Every id is in the list, and positions are below 2^32.
        if self.ids.is_empty() {
            id
        } else {
            self.ids.partition_point(|&other| other < id) as u32
        }
    }

    /// Tells whether these columns of all worlds are at most [`MAX_COLUMNS`].
    pub(super) fn fit(&self, columns: &Columns) -> bool {
        self.count * columns.count() as u64 <= MAX_COLUMNS
    }
}

/// Gathers the boxes of `order`, which is in sweep order, as records of one column.
pub(super) fn in_one_column(
    boxes: &[Aabb],
    order: Vec<u32>,
    axis: usize,
    config: &Config,
) -> Result<Records> {
    Records::gather(boxes, config.rule, axis, order, None)
}

/// The columns of a set: cuts of two axes, for each world.
pub(super) struct ColumnLayout<'a> {
    pub(super) columns: &'a Columns,
    pub(super) worlds: &'a Worlds,
    pub(super) axis: usize,
}

impl ColumnLayout<'_> {
    /// Returns the columns that each box touches.
    pub(super) fn spans(&self, boxes: &[Aabb]) -> Result<Vec<Span>> {
        let boxes = boxes.par_iter().with_min_len(STREAM_TASK);
        gather(boxes.map(|b| self.span(b)))
    }

    /// Returns the columns that a box touches.
    #[inline(always)]
    pub(super) fn span(&self, b: &Aabb) -> Span {
        let [_, y, z] = axes(self.axis);
        if b.is_empty() {
            NOWHERE
        } else {
            self.columns.span(b, [y, z])
        }
    }

    /// Gathers the boxes of `order`, which is in sweep order, as records: a copy of each box for
    /// each column of its span in its world. `ids` are the worlds.
    pub(super) fn records(
        &self,
        boxes: &[Aabb],
        ids: Option<&[u32]>,
        spans: &[Span],
        order: &[u32],
        config: &Config,
        sorts: &mut Sorts,
    ) -> Result<Records> {
        let parts: Vec<&[u32]> = order.chunks(STREAM_TASK).collect();
        let copies =
            |part: &&[u32]| part.iter().map(|&i| area(&spans[i as usize])).sum::<u64>() as usize;
        let counts: Vec<usize> = parts.par_iter().map(copies).collect();
        let total: usize = counts.iter().sum();
        let (mut columns, mut index) = (zeros::<u32>(total)?, zeros::<u32>(total + LANES)?);
        index.truncate(total);
        let tasks = parts
            .into_par_iter()
            .zip(cut(&mut columns, counts.iter().copied()))
            .zip(cut(&mut index, counts.into_iter()));
        let per_world = self.columns.count() as u32;
        tasks.for_each(|((part, columns), index)| {
            let mut at = 0;
            for (k, &i) in part.iter().enumerate() {
                prefetch(spans, part.get(k + PREFETCH_DISTANCE));
                let first = self.worlds.index(ids.map_or(0, |ids| ids[i as usize])) * per_world;
                let [[y0, y1], [z0, z1]] = spans[i as usize];
                for y in y0..=y1 {
                    for z in z0..=z1 {
                        columns[at] =
                            packed_column(first + self.columns.column(y, z), [y == y0, z == z0]);
                        index[at] = i;
                        at += 1;
                    }
                }
            }
        });
        // The sort is stable, so boxes stay in sweep order within their column.
        let bits = 64
            - (self.worlds.count * u64::from(per_world))
                .saturating_sub(1)
                .leading_zeros();
        let options = SortOptions::new()
            .algorithm(config.sort)
            .bits(HOME_BITS..HOME_BITS + bits);
        *sorts += Sorts::from(&gpusort::cpu::sort_pairs(
            &mut columns,
            &mut index,
            &options,
        )?);
        let records = Records::gather(boxes, config.rule, self.axis, index, Some(&columns))?;
        Ok(Records {
            in_columns: per_world > 1,
            ..records
        })
    }
}
