//! The record that a partition writes for a box in one of its columns.

use super::columns::Steps;
use crate::Aabb;
use crate::cpu::key::ordered;

/// A box in one of its columns.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct Entry {
    /// `min` on the sweep axis.
    pub(super) start: i32,
    /// `max` on the sweep axis.
    pub(super) end: i32,
    /// `min` on the two other axes.
    pub(super) min: [i32; 2],
    /// `max` on the two other axes.
    pub(super) max: [i32; 2],
    pub(super) index: u32,
    /// The step of `start` among 2^16 even steps of the sweep axis. It is monotone in `start`.
    pub(super) rank: u16,
    /// Bit `k`: the box begins in this column on axis `k` of the two others.
    pub(super) homes: u8,
}

impl Entry {
    pub(super) fn new(
        b: &Aabb,
        index: usize,
        [x, y, z]: [usize; 3],
        lift: i32,
        steps: &Steps,
    ) -> Self {
        Self {
            start: ordered(b.min[x]) + lift,
            end: ordered(b.max[x]),
            min: [y, z].map(|k| ordered(b.min[k]) + lift),
            max: [y, z].map(|k| ordered(b.max[k])),
            index: index as u32,
            rank: steps.rank(b.min[x]),
            homes: 0,
        }
    }
}
