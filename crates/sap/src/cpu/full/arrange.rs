//! Arranges boxes as records in sweep order, in one column or many.

use super::columns::{Columns, NOWHERE, Span, area};
use super::records::{Records, TAG_BITS, axes, tag};
use crate::cpu::key::{biased, lift, ordered};
use crate::cpu::lanes::{AHEAD, LANES, prefetch};
use crate::cpu::tuning::STREAM_TASK;
use crate::room::{self, gather, zeros};
use crate::{Aabb, Config, Result, Sorts};
use gpusort::SortOptions;
use rayon::prelude::*;

/// The boxes of a set that are not empty, in order of their `min` on an axis. O(n) radix sort.
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
    let keys = room::map(boxes, STREAM_TASK, key)?;
    // With the capacity for what records have beyond their end.
    let mut order = zeros::<u32>(boxes.len() + LANES)?;
    order.truncate(boxes.len());
    let options = SortOptions::new().algorithm(config.sort);
    *sorts += Sorts::from(&gpusort::cpu::sort_index(&keys, &mut order, &options)?);
    order.truncate(order.partition_point(|&i| keys[i as usize] != u32::MAX));
    Ok(order)
}

/// Columns are numbered in what is left of a tag.
pub(in crate::cpu) const MAX_COLUMNS: u64 = 1 << (32 - TAG_BITS);

/// The worlds of a frame as numbers that columns can be numbered by.
#[derive(Default)]
pub(super) struct Worlds {
    /// The ids in order, where they are too far apart to be used as they are.
    ids: Vec<u32>,
    count: u64,
}

impl Worlds {
    /// The worlds of one or two sets.
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
        room::reserve(&mut ids, boxes as usize + 1)?;
        ids.extend(all());
        ids.par_sort_unstable();
        ids.dedup();
        Ok(Self {
            count: ids.len() as u64,
            ids,
        })
    }

    fn number(&self, id: u32) -> u32 {
        // Every id is in the list; the position is below 2^32.
        if self.ids.is_empty() {
            id
        } else {
            self.ids.partition_point(|&other| other < id) as u32
        }
    }

    /// Whether so many worlds of so many columns can be numbered.
    pub(super) fn fit(&self, columns: &Columns) -> bool {
        self.count * columns.count() as u64 <= MAX_COLUMNS
    }
}

/// Records of one column: `order` must be in sweep order.
pub(super) fn in_one_column(
    boxes: &[Aabb],
    order: Vec<u32>,
    axis: usize,
    config: &Config,
) -> Result<Records> {
    Records::gather(boxes, config.rule, axis, order, None)
}

/// The columns that the boxes of a set lie in: cuts of two axes, for each world.
pub(super) struct ColumnLayout<'a> {
    pub(super) columns: &'a Columns,
    pub(super) worlds: &'a Worlds,
    pub(super) axis: usize,
}

impl ColumnLayout<'_> {
    /// The columns that each box touches.
    pub(super) fn spans(&self, boxes: &[Aabb]) -> Result<Vec<Span>> {
        let boxes = boxes.par_iter().with_min_len(STREAM_TASK);
        gather(boxes.map(|b| self.span(b)))
    }

    #[inline(always)]
    pub(super) fn span(&self, b: &Aabb) -> Span {
        let [_, y, z] = axes(self.axis);
        if b.is_empty() {
            NOWHERE
        } else {
            self.columns.span(b, [y, z])
        }
    }

    /// Records in columns: a copy of each box of `order` (in sweep order) for each column of its
    /// span and its world.
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
        let (mut rest_c, mut rest_i) = (&mut columns[..], &mut index[..]);
        let mut tasks = Vec::with_capacity(parts.len());
        for (part, count) in parts.into_iter().zip(counts) {
            let (c, after_c) = rest_c.split_at_mut(count);
            let (i, after_i) = rest_i.split_at_mut(count);
            tasks.push((part, c, i));
            (rest_c, rest_i) = (after_c, after_i);
        }
        let per_world = self.columns.count() as u32;
        tasks.into_par_iter().for_each(|(part, columns, index)| {
            let mut at = 0;
            for (k, &i) in part.iter().enumerate() {
                prefetch(spans, part.get(k + AHEAD));
                let first = self.worlds.number(ids.map_or(0, |ids| ids[i as usize])) * per_world;
                let [[y0, y1], [z0, z1]] = spans[i as usize];
                for y in y0..=y1 {
                    for z in z0..=z1 {
                        columns[at] = tag(first + self.columns.column(y, z), [y == y0, z == z0]);
                        index[at] = i;
                        at += 1;
                    }
                }
            }
        });
        // Stable, so that boxes stay in sweep order within their column; only the bits in use.
        let bits = 64
            - (self.worlds.count * u64::from(per_world))
                .saturating_sub(1)
                .leading_zeros();
        let options = SortOptions::new()
            .algorithm(config.sort)
            .bits(TAG_BITS..TAG_BITS + bits);
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
