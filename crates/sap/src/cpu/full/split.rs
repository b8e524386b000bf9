//! Tells oversized boxes, which are swept against all others, from those that are copied into
//! columns.

use super::arrange::ColumnLayout;
use super::columns::{NOWHERE, Span, area};
use super::plan::Plan;
use crate::cpu::lanes::LANES;
use crate::cpu::tuning::{
    COPY_COST, FREE_COPIES, MAX_MEAN_COPIES, MIN_OVERSIZED_COPIES, RECORD_COST, STREAM_TASK,
};
use crate::{Aabb, Result, try_alloc};
use rayon::prelude::*;

/// Decides for each box whether it is cheaper to sweep it against all others than to copy it into
/// each of its columns. A box of `k` columns costs either `k` copies, or a test for each box whose
/// interval on the sweep axis overlaps its own.
pub(super) struct Split<'a> {
    boxes: &'a [Aabb],
    spans: Vec<Span>,
    plan: &'a Plan,
    oversized: Oversized,
}

/// The boxes that count as oversized.
#[derive(Clone, Copy, PartialEq)]
enum Oversized {
    None,
    /// Boxes of more copies than the mean may be, because all copies would take too much memory.
    ManyCopies,
    /// Boxes that are cheaper to sweep against all others.
    Cheaper,
}

impl<'a> Split<'a> {
    /// Computes the span of each box and decides which boxes are oversized. `spans` is memory to
    /// reuse.
    pub(super) fn new(
        boxes: &'a [Aabb],
        layout: &ColumnLayout,
        plan: &'a Plan,
        mut spans: Vec<Span>,
    ) -> Result<Self> {
        let n = boxes.len();
        try_alloc::resize(&mut spans, n, NOWHERE)?;
        let of_task = |(boxes, spans): (&[Aabb], &mut [Span])| {
            let (mut total, mut gain) = (0, 0.0);
            for (b, span) in boxes.iter().zip(spans) {
                *span = layout.span(b);
                total += area(span);
                gain += saved(b, span, plan).max(0.0);
            }
            (total, gain)
        };
        let tasks = boxes
            .par_chunks(STREAM_TASK)
            .zip(spans.par_chunks_mut(STREAM_TASK));
        let (total, gain) = tasks
            .map(of_task)
            .reduce(|| (0, 0.0), |p, q| (p.0 + q.0, p.1 + q.1));
        let mut split = Self {
            boxes,
            spans,
            plan,
            oversized: Oversized::None,
        };
        if total > max_copies(n) {
            split.oversized = Oversized::ManyCopies;
        } else if gain > n as f64 * RECORD_COST {
            // A split costs a second record of each box, in one column.
            split.oversized = Oversized::Cheaper;
        }
        Ok(split)
    }

    pub(super) const fn boxes(&self) -> &'a [Aabb] {
        self.boxes
    }

    pub(super) fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Divides a list of boxes into the oversized ones and the others.
    pub(super) fn parts(&self, order: &[u32]) -> Result<(Vec<u32>, Vec<u32>)> {
        let is_oversized = |&&i: &&u32| self.is_oversized(i as usize);
        let count = order.iter().filter(is_oversized).count();
        let (mut oversized, mut others) = (Vec::new(), Vec::new());
        try_alloc::reserve(&mut oversized, count + LANES)?;
        try_alloc::reserve(&mut others, order.len() - count + LANES)?;
        for i in order {
            let part = if is_oversized(&i) {
                &mut oversized
            } else {
                &mut others
            };
            part.push(*i);
        }
        Ok((oversized, others))
    }

    /// Returns the memory of the spans.
    pub(super) fn into_spans(self) -> Vec<Span> {
        self.spans
    }

    /// Tells whether there may be oversized boxes.
    pub(super) fn has_oversized(&self) -> bool {
        self.oversized != Oversized::None
    }

    /// Tells whether a box is oversized.
    #[inline(always)]
    pub(super) fn is_oversized(&self, i: usize) -> bool {
        match self.oversized {
            Oversized::None => false,
            Oversized::ManyCopies => area(&self.spans[i]) > MAX_MEAN_COPIES,
            Oversized::Cheaper => saved(&self.boxes[i], &self.spans[i], self.plan) > 0.0,
        }
    }
}

/// Returns the max number of copies of `n` boxes that columns may hold.
pub(crate) const fn max_copies(n: usize) -> u64 {
    MAX_MEAN_COPIES * n as u64 + FREE_COPIES
}

/// Returns the cost that a box saves if it is oversized.
#[inline(always)]
fn saved(b: &Aabb, span: &Span, plan: &Plan) -> f64 {
    match area(span) {
        0..MIN_OVERSIZED_COPIES => 0.0,
        copies => copies as f64 * COPY_COST - plan.candidates(b),
    }
}
