//! The changed set: the boxes that differ from the last frame's.

use crate::cpu::scene::Scene;
use crate::cpu::tuning::{SAMPLE, STREAM_TASK};
use crate::{Pair, Result, room};
use rayon::prelude::*;
use std::ops::Range;

/// The boxes that differ from the last frame's.
#[derive(Default)]
pub(in crate::cpu) struct ChangedSet {
    /// In order, each once.
    list: Vec<u32>,
    bits: Vec<u64>,
}

impl ChangedSet {
    /// Adds boxes below `n`, in any order, and those of a range. Others are passed over. Where
    /// memory is refused, the set is still one of boxes that are to be looked at.
    pub(super) fn add(
        &mut self,
        n: usize,
        boxes: impl ExactSizeIterator<Item = u32>,
        range: Range<u32>,
    ) -> Result<()> {
        let added = self.extend(n, boxes);
        let added = added.and_then(|()| self.extend(n, range));
        self.list.par_sort_unstable();
        added
    }

    fn extend(&mut self, n: usize, boxes: impl ExactSizeIterator<Item = u32>) -> Result<()> {
        let max = self.list.len() + boxes.len();
        room::reserve(&mut self.list, max)?;
        if self.bits.len() < n.div_ceil(64) {
            room::resize(&mut self.bits, n.div_ceil(64), 0)?;
        }
        let is_new = |i: &u32| {
            let (word, bit) = (*i as usize / 64, 1 << (i % 64));
            let is_new = (*i as usize) < n && self.bits[word] & bit == 0;
            if is_new {
                self.bits[word] |= bit;
            }
            is_new
        };
        self.list.extend(boxes.filter(is_new));
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        for i in self.list.drain(..) {
            self.bits[i as usize / 64] = 0;
        }
    }

    #[inline(always)]
    pub(super) fn has(&self, i: u32) -> bool {
        self.bits[i as usize / 64] >> (i % 64) & 1 == 1
    }

    /// Tells whether one of two boxes has changed.
    #[inline(always)]
    pub(super) fn has_one(&self, pair: &Pair) -> bool {
        self.has(pair.a) || self.has(pair.b)
    }

    /// Returns the boxes in order.
    pub(in crate::cpu) fn list(&self) -> &[u32] {
        &self.list
    }
}

/// Lists the boxes of a frame that differ from the last one's. None where a sample of them tells
/// that they are more than `max`, or memory is refused.
pub(super) fn compare(scene: &Scene, last: &Scene, max: usize) -> Option<Vec<u32>> {
    let n = scene.boxes.len();
    let differs = |&i: &usize| !scene.same_box(last, i);
    // Steps of the golden section: boxes of one kind often stand at even distances.
    let sampled = (0..SAMPLE as u32).map(|k| {
        let part = u64::from(k.wrapping_mul(0x9e37_79b9));
        ((part * n as u64) >> 32) as usize
    });
    let changed = sampled.filter(differs).count();
    // Twice as many as may be, lest chance decides.
    if changed * n > 2 * max * SAMPLE {
        return None;
    }
    // Lists of one task each, which are small.
    let of_task = |task: usize| -> Vec<u32> {
        let boxes = task * STREAM_TASK..n.min((task + 1) * STREAM_TASK);
        boxes.filter(differs).map(|i| i as u32).collect()
    };
    let tasks = (0..n.div_ceil(STREAM_TASK)).into_par_iter();
    let found: Vec<Vec<u32>> = tasks.map(of_task).collect();
    room::concat(&found).ok()
}
