//! What the kernels are passed by value, and the counters they leave: the layouts of `kernels/sap`.

use crate::Sorts;
use bytemuck::{Pod, Zeroable};
use gpusort::cuda::SortOutcome;

/// Counters of one update. `first_invalid` is `2^32` less the index, 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct State {
    pub(crate) pairs: u64,
    pub(crate) work: u64,
    pub(crate) longest: u64,
    pub(crate) between: u64,
    pub(crate) large: u64,
    pub(crate) stopped: u64,
    pub(crate) tests: u64,
    pub(crate) invalid: u64,
    pub(crate) first_invalid: u64,
    pub(crate) empty: u64,
    pub(crate) changed: u64,
    pub(crate) still_changed: u64,
    pub(crate) axis: u64,
    pub(crate) axis_tests: [u64; 3],
    pub(crate) axis_blocks: u64,
    pub(crate) invalid_b: u64,
    pub(crate) first_invalid_b: u64,
    pub(crate) levels: u64,
    pub(crate) placed: u64,
    pub(crate) started: u64,
    pub(crate) ended: u64,
    /// What the sorts of [`OF_BOXES`] and [`OF_PAIRS`] left; the kernels here do not know of it.
    pub(crate) sorts: [SortOutcome; 2],
}

/// Places in [`State::sorts`].
pub(crate) const OF_BOXES: usize = 0;
pub(crate) const OF_PAIRS: usize = 1;

impl State {
    /// What was sorted.
    pub(crate) fn sorts(&self) -> Sorts {
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
pub(crate) const SWEEP_WORDS: usize = 6;
pub(crate) const GRID_WORDS: usize = 7;

/// Addresses are those of device memory; 0 where there is none.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Prepare {
    pub(crate) n: u32,
    pub(crate) base: u32,
    pub(crate) second: u32,
    pub(crate) known: u32,
    pub(crate) margin: f32,
    pub(crate) apart: u32,
    pub(crate) last: u64,
    pub(crate) stored: u64,
    pub(crate) given: u64,
    pub(crate) filters: u64,
    pub(crate) last_filters: u64,
    pub(crate) worlds: u64,
    pub(crate) last_worlds: u64,
    pub(crate) state: u64,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Sorted {
    pub(crate) sides: u64,
    pub(crate) span: u64,
    pub(crate) end: u64,
    pub(crate) slots: u64,
    pub(crate) reach: u64,
    pub(crate) units: u64,
    pub(crate) first_unit: u64,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Accept {
    pub(crate) filters: u64,
    pub(crate) exact: u64,
    pub(crate) excluded: u64,
    pub(crate) excluded_len: u64,
    pub(crate) split: u64,
    pub(crate) a_begin: u64,
    pub(crate) a_end: u64,
    pub(crate) open: u64,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct SweepInput {
    pub(crate) sorted: Sorted,
    pub(crate) index: u64,
    pub(crate) tiles: u32,
    pub(crate) pad: u32,
    pub(crate) state: u64,
    pub(crate) accept: Accept,
    pub(crate) limit: u64,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Keys {
    pub(crate) keys: u64,
    pub(crate) capacity: u64,
    pub(crate) rows: u64,
    pub(crate) ranks: u64,
    pub(crate) bits: u32,
    pub(crate) pad: u32,
}

/// A sorted list of `n` pairs, or of as many as the number at `count` says, at most `n`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct List {
    pub(crate) pairs: u64,
    pub(crate) n: u64,
    pub(crate) count: u64,
}

/// What the kernel is passed, by the list that has the pairs: `Differences` of `kernels/sap/events.cuh`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct PassedDifferences {
    pub(crate) lists: [List; 2],
    pub(crate) words: [u64; 2],
    pub(crate) out: [u64; 2],
    pub(crate) room: [u64; 2],
    pub(crate) totals: [u64; 2],
}
