//! Boxes in sweep order, which is by column, then by `min` on the sweep axis. Each bound has an
//! array of its own.

use crate::cpu::key::{biased, lift, ordered};
use crate::cpu::lanes::{ALL_HOMES, Bounds, LANES, prefetch};
use crate::cpu::tuning::{PREFETCH_DISTANCE, STREAM_TASK};
use crate::try_alloc::{self, zeros};
use crate::{Aabb, OverlapRule, Result};
use rayon::prelude::*;

/// The key of the entries after the last record: above every limit.
const PAST: i64 = i64::MAX;

/// Boxes in sweep order. All arrays but `ends` have [`LANES`] more entries than there are records,
/// so that eight can be read from any record on.
pub(in crate::cpu) struct Records {
    /// Column in the high half, biased `min` on the sweep axis in the low half; ascending.
    pub(in crate::cpu) keys: Vec<i64>,
    /// Biased `max` on the sweep axis.
    pub(in crate::cpu) ends: Vec<u32>,
    /// `min` on the two other axes.
    pub(in crate::cpu) min: Bounds<2>,
    /// `max` on the two other axes.
    pub(in crate::cpu) max: Bounds<2>,
    /// The index of the box in the frame.
    pub(in crate::cpu) index: Vec<u32>,
    /// Bit `k`: the box begins in this column on axis `k` of the two others.
    pub(in crate::cpu) homes: Vec<u8>,
    /// Whether boxes may have several records, so that home bits decide which of them reports a
    /// pair.
    pub(in crate::cpu) in_columns: bool,
    /// Whether a box is thin on the sweep axis, so that a sweep tests boxes that it does not
    /// overlap on that axis.
    pub(in crate::cpu) thin: bool,
}

/// Number of home bits, the low bits of a packed column.
pub(in crate::cpu) const HOME_BITS: u32 = 2;

/// Packs a column and a box's home bits there, which say on which of the two axes it begins in that
/// column.
pub(in crate::cpu) const fn packed_column(column: u32, homes: [bool; 2]) -> u32 {
    column << HOME_BITS | homes[0] as u32 | (homes[1] as u32) << 1
}

/// Returns the sweep axis and the two others.
pub(crate) const fn axes(axis: usize) -> [usize; 3] {
    [axis, (axis + 1) % 3, (axis + 2) % 3]
}

impl Records {
    /// Returns the number of records.
    pub(in crate::cpu) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Gathers the records of the boxes `index[i]`, which must be in sweep order. `columns` has the
    /// [`packed_column`] of each; None means a single column.
    pub(in crate::cpu) fn gather(
        boxes: &[Aabb],
        rule: OverlapRule,
        axis: usize,
        mut index: Vec<u32>,
        columns: Option<&[u32]>,
    ) -> Result<Self> {
        let n = index.len();
        let [x, y, z] = axes(axis);
        let lift = lift(rule);
        let mut ends = zeros(n)?;
        let mut keys = zeros(n + LANES)?;
        keys[n..].fill(PAST);
        let mut homes = zeros(n + LANES)?;
        let (mut min_y, mut max_y) = (zeros(n + LANES)?, zeros(n + LANES)?);
        let (mut min_z, mut max_z) = (zeros(n + LANES)?, zeros(n + LANES)?);
        let write =
            |(task, (index, keys, ends, homes, min_y, max_y, min_z, max_z)): (usize, Part<'_>)| {
                let mut thin = false;
                for (k, &i) in index.iter().enumerate() {
                    prefetch(boxes, index.get(k + PREFETCH_DISTANCE));
                    let b = &boxes[i as usize];
                    let (start, end) =
                        (biased(ordered(b.min[x]) + lift), biased(ordered(b.max[x])));
                    let packed = columns.map_or(0, |columns| columns[task * STREAM_TASK + k]);
                    keys[k] = i64::from(packed >> HOME_BITS) << 32 | i64::from(start);
                    homes[k] = packed as u8 & ALL_HOMES;
                    ends[k] = end;
                    (min_y[k], max_y[k]) = (ordered(b.min[y]) + lift, ordered(b.max[y]));
                    (min_z[k], max_z[k]) = (ordered(b.min[z]) + lift, ordered(b.max[z]));
                    thin |= start > end;
                }
                thin
            };
        let thin = if n <= STREAM_TASK {
            let all = (
                &index[..],
                &mut keys[..],
                &mut ends[..],
                &mut homes[..],
                &mut min_y[..],
                &mut max_y[..],
                &mut min_z[..],
                &mut max_z[..],
            );
            write((0, all))
        } else {
            let parts = (
                index.par_chunks(STREAM_TASK),
                keys[..n].par_chunks_mut(STREAM_TASK),
                ends.par_chunks_mut(STREAM_TASK),
                homes[..n].par_chunks_mut(STREAM_TASK),
                min_y[..n].par_chunks_mut(STREAM_TASK),
                max_y[..n].par_chunks_mut(STREAM_TASK),
                min_z[..n].par_chunks_mut(STREAM_TASK),
                max_z[..n].par_chunks_mut(STREAM_TASK),
            );
            parts
                .into_par_iter()
                .enumerate()
                .map(write)
                .reduce(|| false, |p, q| p | q)
        };
        try_alloc::resize(&mut index, n + LANES, 0)?;
        Ok(Self {
            keys,
            ends,
            min: [min_y, min_z],
            max: [max_y, max_z],
            index,
            homes,
            in_columns: columns.is_some(),
            thin,
        })
    }

    /// Returns the max key that record `i` sweeps to.
    #[inline(always)]
    pub(in crate::cpu) fn limit(&self, i: usize) -> i64 {
        self.keys[i] & !0xffff_ffff | i64::from(self.ends[i])
    }

    /// Returns `min` and `max` of record `i` on the two other axes.
    #[inline(always)]
    pub(in crate::cpu) fn bounds(&self, i: usize) -> [[i32; 2]; 2] {
        [&self.min, &self.max].map(|bound| [bound[0][i], bound[1][i]])
    }

    /// Tells whether record `j` overlaps record `i` of `from` on the sweep axis. Given that it is
    /// neither before that record nor beyond its limit, only a thin record `j` does not.
    #[inline(always)]
    pub(in crate::cpu) fn reaches(&self, j: usize, from: &Self, i: usize) -> bool {
        i64::from(self.ends[j]) >= from.keys[i] & 0xffff_ffff
    }
}

type Part<'a> = (
    &'a [u32],
    &'a mut [i64],
    &'a mut [u32],
    &'a mut [u8],
    &'a mut [i32],
    &'a mut [i32],
    &'a mut [i32],
    &'a mut [i32],
);
