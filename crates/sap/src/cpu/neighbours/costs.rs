//! The cost of each step of an update by the neighbour list.

use crate::cpu::tuning::{
    CANDIDATE_COSTS, HUGE_LIST, LARGE_LIST, LEAVING_COST, LEFT_CANDIDATE_COST, LEFT_COSTS,
    LONG_LIST, LONG_LIST_COST, MAX_LEFT_BRUTE,
};

/// What steps of an update by the list cost, in tests of two boxes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Costs {
    boxes: usize,
    /// A candidate of a list that stays in the cache.
    candidate: f32,
    /// A box that left, beside its candidates.
    left: f32,
}

impl Costs {
    /// Returns the costs for `n` boxes.
    pub(super) fn of(n: usize) -> Self {
        Self {
            boxes: n,
            candidate: CANDIDATE_COSTS[usize::from(n > LARGE_LIST) + usize::from(n > HUGE_LIST)],
            left: LEFT_COSTS[usize::from(n > MAX_LEFT_BRUTE) + usize::from(n > LARGE_LIST)],
        }
    }

    /// Returns the cost of a candidate. It depends on their number.
    pub(super) fn candidate(self, candidates_per_box: f32) -> f32 {
        let is_long = self.boxes as f32 * candidates_per_box > LONG_LIST;
        self.candidate + if is_long { LONG_LIST_COST } else { 0.0 }
    }

    /// Returns the cost of a box that left. It grows with the candidates, each of which belongs to
    /// two boxes.
    pub(super) fn left(self, candidates_per_box: f32) -> f32 {
        self.left + 2.0 * LEFT_CANDIDATE_COST * candidates_per_box
    }

    /// Returns the cost of a box that left beside the tests that find its candidates.
    pub(super) fn leaving_cost(self, candidates_per_box: f32) -> f32 {
        LEAVING_COST + 2.0 * LEFT_CANDIDATE_COST * candidates_per_box
    }
}
