//! The parameters of a launch, which host and kernels share.

use super::input::{Input, Tags};
use crate::OverlapRule;
use crate::cpu::shared::axes;
use bytemuck::{Pod, Zeroable};
use std::mem::offset_of;
use std::ops::Range;

/// `Params` in `kernels/wgsl/sap/sweep.wgsl`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Params {
    pub(super) entries: u32,
    axis: u32,
    rule: u32,
    first_set: u32,
    first_test: [u32; 2],
    pub(super) tests: u32,
    capacity: u32,
    rows: [u32; 2],
    filters_at: u32,
    worlds_at: u32,
    exact_at: u32,
    excluded_at: u32,
    excluded: u32,
    first_columns: u32,
    others: [u32; 2],
    cuts_at: [u32; 2],
    pub(super) cut_counts: [u32; 2],
    pub(super) copy_capacity: u32,
    pub(super) index_bits: u32,
    pub(super) grid: Grid,
    pub(super) blocks: Blocks,
    pub(super) last_pairs: u32,
    pub(super) thread_tests: u32,
    unused: u32,
}

/// The cells of a search that counts, as the kernels have them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
pub(super) struct Grid {
    /// The steps of a column.
    pub(super) steps: u32,
    pub(super) shift: u32,
    pub(super) first: i32,
    pub(super) last: i32,
    pub(super) exponent: i32,
}

/// The blocks that counts are scanned in.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
pub(super) struct Blocks {
    /// What a launch scans, with the bits of the number of elements of a block.
    pub(super) scanned: u32,
    pub(super) scan_bits: u32,
    pub(super) cell_bits: u32,
    pub(super) entry_bits: u32,
    pub(super) row_bits: u32,
    /// The number of blocks that a launch enters.
    pub(super) entered: u32,
}

const _: () = {
    assert!(size_of::<Params>() == 152);
    assert!(offset_of!(Params, axis) == 4);
    assert!(offset_of!(Params, rule) == 8);
    assert!(offset_of!(Params, first_set) == 12);
    assert!(offset_of!(Params, first_test) == 16);
    assert!(offset_of!(Params, tests) == 24);
    assert!(offset_of!(Params, capacity) == 28);
    assert!(offset_of!(Params, rows) == 32);
    assert!(offset_of!(Params, filters_at) == 40);
    assert!(offset_of!(Params, worlds_at) == 44);
    assert!(offset_of!(Params, exact_at) == 48);
    assert!(offset_of!(Params, excluded_at) == 52);
    assert!(offset_of!(Params, excluded) == 56);
    assert!(offset_of!(Params, first_columns) == 60);
    assert!(offset_of!(Params, others) == 64);
    assert!(offset_of!(Params, cuts_at) == 72);
    assert!(offset_of!(Params, cut_counts) == 80);
    assert!(offset_of!(Params, copy_capacity) == 88);
    assert!(offset_of!(Params, index_bits) == 92);
    assert!(offset_of!(Params, grid) == 96);
    assert!(offset_of!(Params, blocks) == 116);
    assert!(offset_of!(Params, last_pairs) == 140);
    assert!(offset_of!(Params, thread_tests) == 144);
    assert!(offset_of!(Grid, shift) == 4);
    assert!(offset_of!(Grid, first) == 8);
    assert!(offset_of!(Grid, last) == 12);
    assert!(offset_of!(Grid, exponent) == 16);
    assert!(offset_of!(Blocks, scan_bits) == 4);
    assert!(offset_of!(Blocks, cell_bits) == 8);
    assert!(offset_of!(Blocks, entry_bits) == 12);
    assert!(offset_of!(Blocks, row_bits) == 16);
    assert!(offset_of!(Blocks, entered) == 20);
};

/// Returns the number of bits of a number, at least 1.
pub(super) const fn bits_of(number: u32) -> u32 {
    u32::BITS - (number | 1).leading_zeros()
}

/// `FIRST_COLUMNS` in the kernels.
const FIRST_COLUMNS: u32 = 3 << 30;

impl Params {
    /// Returns the parameters of the launches that take all entries.
    pub(super) fn new(input: &Input, tags: &Tags) -> Self {
        let [filters_at, worlds_at, exact_at, excluded_at, u_at, v_at] = tags.starts();
        let [axis, u, v] = axes(input.axis).map(|axis| axis as u32);
        Self {
            entries: input.len() as u32,
            axis,
            rule: match input.rule {
                OverlapRule::Closed => 0,
                OverlapRule::Open => 1,
            },
            first_set: input.first_set as u32,
            filters_at,
            worlds_at,
            exact_at,
            excluded_at,
            excluded: input.excluded.len() as u32,
            first_columns: FIRST_COLUMNS,
            others: [u, v],
            cuts_at: [u_at, v_at],
            cut_counts: input.cuts.each_ref().map(|cuts| cuts.len() as u32),
            index_bits: bits_of(input.len() as u32),
            ..Self::zeroed()
        }
    }

    /// Returns the parameters of the launches that take this many copies of boxes, which have the
    /// bits of their first column.
    pub(super) const fn of_copies(self, copies: u32) -> Self {
        Self {
            entries: copies,
            first_columns: 0,
            ..self
        }
    }

    /// Returns the parameters of a launch that makes some tests, looks for pairs with their smaller
    /// index in `rows`, and stores `capacity` of them.
    pub(super) fn piece(self, tests: Range<u64>, rows: &Range<u32>, capacity: u64) -> Self {
        Self {
            first_test: [tests.start as u32, (tests.start >> 32) as u32],
            tests: (tests.end - tests.start) as u32,
            capacity: capacity as u32,
            rows: [rows.start, rows.end],
            ..self
        }
    }

    /// Returns the parameters of a launch that scans this many elements.
    pub(super) fn scanning(self, elements: u64, scan_bits: u32) -> Self {
        let blocks = Blocks {
            scanned: elements as u32,
            scan_bits,
            ..self.blocks
        };
        Self { blocks, ..self }
    }

    /// Returns the parameters of a launch that enters this many blocks.
    pub(super) const fn entering(self, entered: u32) -> Self {
        let blocks = Blocks {
            entered,
            ..self.blocks
        };
        Self { blocks, ..self }
    }

    /// Returns the number of pairs that are stored.
    pub(super) const fn capacity(&self) -> u64 {
        self.capacity as u64
    }
}
