//! What the kernels are passed by value, and the counters they leave: the layouts of `kernels/sap`.

use crate::Sorts;
use bytemuck::{Pod, Zeroable};
use gpusort::cuda::SortOutcome;

/// Counters of one update. `first_invalid` is `2^32` less the index, 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct State {
    pub(super) pairs: u64,
    pub(super) work: u64,
    pub(super) longest: u64,
    pub(super) between: u64,
    pub(super) large: u64,
    pub(super) stopped: u64,
    pub(super) tests: u64,
    pub(super) invalid: u64,
    pub(super) first_invalid: u64,
    pub(super) empty: u64,
    pub(super) changed: u64,
    pub(super) still_changed: u64,
    pub(super) axis: u64,
    pub(super) axis_tests: [u64; 3],
    pub(super) axis_blocks: u64,
    pub(super) invalid_b: u64,
    pub(super) first_invalid_b: u64,
    pub(super) levels: u64,
    pub(super) placed: u64,
    pub(super) started: u64,
    pub(super) ended: u64,
    /// What the sorts of [`OF_BOXES`] and [`OF_PAIRS`] left; the kernels here do not know of it.
    pub(super) sorts: [SortOutcome; 2],
}

/// Places in [`State::sorts`].
pub(super) const OF_BOXES: usize = 0;
pub(super) const OF_PAIRS: usize = 1;

impl State {
    /// What was sorted.
    pub(super) fn sorts(&self) -> Sorts {
        let mut all = Sorts::default();
        for sort in &self.sorts {
            all += Sorts {
                keys: sort.n(),
                passes_run: sort.passes_run(),
                passes_skipped: sort.passes_skipped(),
                early_exits: sort.early_exit().into(),
            };
        }
        all
    }
}

/// The words of [`State`] that a sweep starts from zero: those before `tests`, and `tests` too where the sweep itself counts them.
pub(super) const SWEEP_WORDS: usize = 6;
pub(super) const GRID_WORDS: usize = 7;

/// Addresses are those of device memory; 0 where there is none.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Prepare {
    pub(super) n: u32,
    pub(super) base: u32,
    pub(super) second: u32,
    pub(super) known: u32,
    pub(super) margin: f32,
    pub(super) apart: u32,
    pub(super) last: u64,
    pub(super) stored: u64,
    pub(super) given: u64,
    pub(super) filters: u64,
    pub(super) last_filters: u64,
    pub(super) worlds: u64,
    pub(super) last_worlds: u64,
    pub(super) state: u64,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Sorted {
    pub(super) sides: u64,
    pub(super) span: u64,
    pub(super) end: u64,
    pub(super) slots: u64,
    pub(super) reach: u64,
    pub(super) units: u64,
    pub(super) first_unit: u64,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Accept {
    pub(super) filters: u64,
    pub(super) exact: u64,
    pub(super) excluded: u64,
    pub(super) excluded_len: u64,
    pub(super) split: u64,
    pub(super) a_begin: u64,
    pub(super) a_end: u64,
    pub(super) open: u64,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct SweepInput {
    pub(super) sorted: Sorted,
    pub(super) index: u64,
    pub(super) tiles: u32,
    pub(super) pad: u32,
    pub(super) state: u64,
    pub(super) accept: Accept,
    pub(super) limit: u64,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Keys {
    pub(super) keys: u64,
    pub(super) capacity: u64,
    pub(super) rows: u64,
    pub(super) ranks: u64,
    pub(super) bits: u32,
    pub(super) pad: u32,
}

/// A sorted list of `n` pairs, or of as many as the number at `count` says, at most `n`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct List {
    pub(super) pairs: u64,
    pub(super) n: u64,
    pub(super) count: u64,
}
