//! Tells oversized boxes, which are swept on their own, from those that are copied into columns.

use super::arrange::ColumnLayout;
use super::columns::{NOWHERE, Span, area};
use super::plan::{COPY, Plan, RECORD, TEST};
use crate::cpu::lanes::LANES;
use crate::cpu::tuning::{FEW_COPIES, MAX_COPIES, STREAM_TASK};
use crate::{Aabb, Result, room};
use rayon::prelude::*;

/// Which boxes are cheaper to sweep against all others than to copy into each of their columns: a
/// box of `k` columns costs `k` copies or a test for each box that shares its interval on the sweep
/// axis.
pub(super) struct Split<'a> {
    boxes: &'a [Aabb],
    spans: Vec<Span>,
    plan: &'a Plan,
    large: Large,
}

#[derive(Clone, Copy, PartialEq)]
enum Large {
    None,
    /// More copies than memory should hold on average.
    ManyCopies,
    /// Those that it saves something for.
    Saving,
}

impl<'a> Split<'a> {
    /// `spans` is memory to use again.
    pub(super) fn new(
        boxes: &'a [Aabb],
        layout: &ColumnLayout,
        plan: &'a Plan,
        mut spans: Vec<Span>,
    ) -> Result<Self> {
        let n = boxes.len();
        room::resize(&mut spans, n, NOWHERE)?;
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
            large: Large::None,
        };
        if total > MAX_COPIES * n as u64 + 1_000_000 {
            split.large = Large::ManyCopies;
        } else if gain > n as f64 * RECORD {
            // Splitting has its price: the others once more, in one column.
            split.large = Large::Saving;
        }
        Ok(split)
    }

    pub(super) const fn boxes(&self) -> &'a [Aabb] {
        self.boxes
    }

    pub(super) fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Boxes to be swept on their own, and the others.
    pub(super) fn parts(&self, order: &[u32]) -> Result<(Vec<u32>, Vec<u32>)> {
        let is_large = |&&i: &&u32| self.is_large(i as usize);
        let count = order.iter().filter(is_large).count();
        let (mut large, mut small) = (Vec::new(), Vec::new());
        room::reserve(&mut large, count + LANES)?;
        room::reserve(&mut small, order.len() - count + LANES)?;
        for i in order {
            let part = if is_large(&i) { &mut large } else { &mut small };
            part.push(*i);
        }
        Ok((large, small))
    }

    /// The memory of the spans.
    pub(super) fn into_spans(self) -> Vec<Span> {
        self.spans
    }

    /// Whether there may be large boxes.
    pub(super) fn has_large(&self) -> bool {
        self.large != Large::None
    }

    /// Whether the box is to be swept on its own.
    #[inline(always)]
    pub(super) fn is_large(&self, i: usize) -> bool {
        match self.large {
            Large::None => false,
            Large::ManyCopies => area(&self.spans[i]) > MAX_COPIES,
            Large::Saving => saved(&self.boxes[i], &self.spans[i], self.plan) > 0.0,
        }
    }
}

/// What a box saves when it is swept on its own.
#[inline(always)]
fn saved(b: &Aabb, span: &Span, plan: &Plan) -> f64 {
    match area(span) {
        0..FEW_COPIES => 0.0,
        copies => copies as f64 * COPY - plan.candidates(b) * TEST,
    }
}
