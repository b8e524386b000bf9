//! The changed set: the boxes that differ from those of the last frame.

use crate::cpu::scene::Scene;
use crate::cpu::tuning::{COMPARED_SAMPLE, STREAM_TASK};
use crate::{Pair, Result, try_alloc};
use rayon::prelude::*;
use std::ops::Range;

/// The boxes that differ from those of the last frame.
#[derive(Default)]
pub(in crate::cpu) struct ChangedSet {
    /// The boxes by ascending index, each once.
    list: Vec<u32>,
    /// A bit for each box of the frame, set for those in the list.
    bits: Vec<u64>,
}

impl ChangedSet {
    /// Adds boxes in any order, and a range of boxes. Indices from `n` on are ignored. On an error
    /// the set has only some of the boxes.
    pub(in crate::cpu) fn add(
        &mut self,
        n: usize,
        boxes: impl ExactSizeIterator<Item = u32>,
        range: Range<u32>,
    ) -> Result<()> {
        let added = self.extend(n, boxes);
        let added = added.and_then(|()| self.extend(n, range));
        if self.list.len() <= STREAM_TASK {
            self.list.sort_unstable();
        } else {
            self.list.par_sort_unstable();
        }
        added
    }

    fn extend(&mut self, n: usize, boxes: impl ExactSizeIterator<Item = u32>) -> Result<()> {
        let max = self.list.len() + boxes.len();
        try_alloc::reserve(&mut self.list, max)?;
        if self.bits.len() < n.div_ceil(64) {
            try_alloc::resize(&mut self.bits, n.div_ceil(64), 0)?;
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

    /// Empties the set.
    pub(in crate::cpu) fn clear(&mut self) {
        for i in self.list.drain(..) {
            self.bits[i as usize / 64] = 0;
        }
    }

    /// Tells whether a box has changed.
    #[inline(always)]
    pub(in crate::cpu) fn has(&self, i: u32) -> bool {
        self.bits[i as usize / 64] >> (i % 64) & 1 == 1
    }

    /// Tells whether one of two boxes has changed.
    #[inline(always)]
    pub(super) fn has_either(&self, pair: &Pair) -> bool {
        self.has(pair.a) || self.has(pair.b)
    }

    /// Returns the boxes by ascending index.
    pub(in crate::cpu) fn list(&self) -> &[u32] {
        &self.list
    }
}

/// Lists the boxes of a frame that differ from those of the last. Returns None if a sample shows
/// that they are many more than `max`, or an allocation failed.
pub(super) fn compare(scene: &Scene, last: &Scene, max: usize) -> Option<Vec<u32>> {
    let n = scene.boxes.len();
    let differs = |&i: &usize| !scene.same_box(last, i);
    // Steps of the golden ratio, because boxes of one kind often come at even distances.
    let sampled = (0..COMPARED_SAMPLE as u32).map(|k| {
        let part = u64::from(k.wrapping_mul(0x9e37_79b9));
        ((part * n as u64) >> 32) as usize
    });
    let changed = sampled.filter(differs).count();
    // A sample varies, so twice the max share is allowed.
    if changed * n > 2 * max * COMPARED_SAMPLE {
        return None;
    }
    // One small list for each task.
    let of_task = |task: usize| -> Vec<u32> {
        let boxes = task * STREAM_TASK..n.min((task + 1) * STREAM_TASK);
        boxes.filter(differs).map(|i| i as u32).collect()
    };
    if n <= STREAM_TASK {
        return Some(of_task(0));
    }
    let tasks = (0..n.div_ceil(STREAM_TASK)).into_par_iter();
    let found: Vec<Vec<u32>> = tasks.map(of_task).collect();
    // Without memory for the list all boxes count as changed.
    try_alloc::concat(&found).ok()
}
