//! Nodes of a tree: the bounds of eight entries, as integers.

use super::key::{lift, ordered};
use super::lanes::{LANES, Lanes};
use crate::{Aabb, OverlapRule};

/// The bounds of a box, or of several together: min and max.
pub(super) type Probe = [[i32; 3]; 2];

/// The probe of an empty box: it overlaps nothing and changes no union.
pub(super) const NONE: Probe = [[i32::MAX; 3], [i32::MIN; 3]];

/// Returns the probe of a box.
pub(super) fn probe(b: &Aabb, rule: OverlapRule) -> Probe {
    if b.is_empty() {
        return NONE;
    }
    [
        b.min.map(|value| ordered(value) + lift(rule)),
        b.max.map(ordered),
    ]
}

/// Returns the bounds of two boxes together.
pub(super) fn union([a, b]: Probe, [c, d]: Probe) -> Probe {
    let min = std::array::from_fn(|k| a[k].min(c[k]));
    [min, std::array::from_fn(|k| b[k].max(d[k]))]
}

/// Tells whether two boxes overlap.
pub(super) fn overlap([a, b]: &Probe, [c, d]: &Probe) -> bool {
    (0..3).all(|k| a[k] <= d[k] && c[k] <= b[k])
}

/// The bounds of [`LANES`] entries, in three lines of the cache.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Node {
    pub(super) min: [[i32; LANES]; 3],
    pub(super) max: [[i32; LANES]; 3],
}

impl Node {
    /// Entries that overlap nothing and change no union.
    pub(super) const NONE: Self = Self {
        min: [[i32::MAX; LANES]; 3],
        max: [[i32::MIN; LANES]; 3],
    };

    pub(super) fn set(&mut self, lane: usize, [min, max]: &Probe) {
        for k in 0..3 {
            self.min[k][lane] = min[k];
            self.max[k][lane] = max[k];
        }
    }

    /// Returns the bounds of an entry.
    #[inline(always)]
    pub(super) fn probe(&self, lane: usize) -> Probe {
        [&self.min, &self.max].map(|all| std::array::from_fn(|k| all[k][lane]))
    }

    /// Returns the bounds of all entries together.
    pub(super) fn union(&self) -> Probe {
        let min = |all: &[i32; LANES]| all.iter().copied().fold(i32::MAX, i32::min);
        let max = |all: &[i32; LANES]| all.iter().copied().fold(i32::MIN, i32::max);
        [self.min.each_ref().map(min), self.max.each_ref().map(max)]
    }

    /// Returns the entries that overlap a probe.
    ///
    /// # Safety
    ///
    /// The processor suits `L`.
    #[inline(always)]
    pub(super) unsafe fn overlap<L: Lanes>(&self, [min, max]: &Probe) -> u32 {
        // SAFETY: the caller's promise.
        unsafe { L::overlap_eight(self.min.each_ref(), self.max.each_ref(), [min, max]) }
    }

    /// Returns the pairs of entries that overlap, as [`Lanes::overlap_rotated`].
    ///
    /// # Safety
    ///
    /// The processor suits `L`.
    #[inline(always)]
    pub(super) unsafe fn overlap_rotated<L: Lanes>(&self) -> u32 {
        // SAFETY: the caller's promise.
        unsafe { L::overlap_rotated(&self.min, &self.max) }
    }
}
