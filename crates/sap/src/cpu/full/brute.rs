//! Tests every box of a small scene against all others, eight at a time.

use crate::cpu::incremental::tree::probe;
use crate::cpu::lanes::{Bounds, Job, LANES, Lanes, each_bit, run_best};
use crate::try_alloc;
use crate::{Aabb, OverlapRule, Pair, Result};

/// The bounds of boxes by index, in whole groups of [`LANES`].
#[derive(Default)]
pub(in crate::cpu) struct Sides {
    min: Bounds<3>,
    max: Bounds<3>,
    rule: OverlapRule,
    boxes: usize,
}

impl Sides {
    /// Takes the sides of these boxes.
    pub(in crate::cpu) fn fill(&mut self, boxes: &[Aabb], rule: OverlapRule) -> Result<()> {
        (self.rule, self.boxes) = (rule, boxes.len());
        let padded = boxes.len().next_multiple_of(LANES);
        for k in 0..3 {
            let [min, max] = [&mut self.min[k], &mut self.max[k]];
            min.clear();
            max.clear();
            try_alloc::reserve(min, padded)?;
            try_alloc::reserve(max, padded)?;
            min.resize(padded, i32::MAX);
            max.resize(padded, i32::MIN);
        }
        for (i, b) in boxes.iter().enumerate() {
            self.set(i, b);
        }
        Ok(())
    }

    /// Replaces a box.
    pub(in crate::cpu) fn set(&mut self, i: usize, b: &Aabb) {
        let [min, max] = probe(b, self.rule);
        for k in 0..3 {
            self.min[k][i] = min[k];
            self.max[k][i] = max[k];
        }
    }

    /// Calls `found` with every box but `i` itself that overlaps box `i`, in order.
    pub(in crate::cpu) fn overlapping(&self, i: usize, found: impl FnMut(u32)) {
        run_best(Row {
            sides: self,
            i,
            from: 0,
            found,
        });
    }

    /// Stores all pairs in order.
    pub(in crate::cpu) fn all(&self, pairs: &mut Vec<Pair>) -> Result<()> {
        pairs.clear();
        let mut result = Ok(());
        run_best(All {
            sides: self,
            pairs,
            result: &mut result,
        });
        result
    }
}

/// One box against all from `from` on.
struct Row<'a, F> {
    sides: &'a Sides,
    i: usize,
    from: usize,
    found: F,
}

impl<F: FnMut(u32)> Job for Row<'_, F> {
    #[inline(always)]
    fn run<L: Lanes>(mut self) {
        let Sides {
            min, max, boxes, ..
        } = self.sides;
        let probe = [min, max].map(|all| [all[0][self.i], all[1][self.i], all[2][self.i]]);
        let first = self.from / LANES * LANES;
        for start in (first..*boxes).step_by(LANES) {
            // SAFETY: the sides are whole groups, and this is the start of one.
            let mut mask = unsafe { L::overlap(min, max, start, [&probe[0], &probe[1]]) };
            if start < self.from {
                mask &= u32::MAX << (self.from - start);
            }
            each_bit(mask, |lane| {
                if start + lane != self.i {
                    (self.found)((start + lane) as u32);
                }
            });
        }
    }
}

/// All boxes against those after them.
struct All<'a> {
    sides: &'a Sides,
    pairs: &'a mut Vec<Pair>,
    result: &'a mut Result<()>,
}

impl Job for All<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self {
            sides,
            pairs,
            result,
        } = self;
        for i in 0..sides.boxes {
            // As many as a row may have, so that none is asked for within it.
            *result = try_alloc::grow(pairs, sides.boxes - i);
            if result.is_err() {
                return;
            }
            Row {
                sides,
                i,
                from: i + 1,
                found: |b| {
                    pairs.push(Pair { a: i as u32, b });
                },
            }
            .run::<L>();
        }
    }
}
