//! Structs that the kernels of `kernels/sap` are passed by value, and the counters that they leave.

use crate::{Aabb, Aabb64, Filter, Pair, Sorts};
use bytemuck::{Pod, Zeroable};
use gpu::{DevicePtr, SliceMut, assert_layout};
use gpusort::cuda::SortOutcome;

// The lists of a frame, which the kernels read as `Box`, `double[6]`, `uint4` and `uint2`.
assert_layout!(Aabb, 24: min 0, max 12);
assert_layout!(Aabb64, 48: min 0, max 24);
assert_layout!(Filter, 16: layers 0, mask 4, group 8, flags 12);
assert_layout!(Pair, 8: a 0, b 4);

/// The counters of one update. `first_invalid` is `2^32` less the index, 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct State {
    pub(crate) pairs: u64,
    pub(crate) work: u64,
    pub(crate) longest: u64,
    pub(crate) resting_tests: u64,
    pub(crate) large: u64,
    pub(crate) stopped: u64,
    pub(crate) tests: u64,
    pub(crate) invalid: u64,
    pub(crate) first_invalid: u64,
    pub(crate) empty: u64,
    pub(crate) changed: u64,
    pub(crate) resting_changed: u64,
    pub(crate) left: u64,
    pub(crate) axis: u64,
    pub(crate) axis_tests: [u64; 3],
    pub(crate) axis_blocks: u64,
    pub(crate) invalid_b: u64,
    pub(crate) first_invalid_b: u64,
    pub(crate) levels: u32,
    pub(crate) high: u32,
    pub(crate) placed: u64,
    pub(crate) crowded: u64,
    pub(crate) near: u64,
    pub(crate) started: u64,
    pub(crate) ended: u64,
    /// The outcomes of the sorts at [`BOX_SORT`] and [`PAIR_SORT`]. The kernels do not use them.
    pub(crate) sorts: [SortOutcome; 2],
}

assert_layout!(
    State, 272:
    pairs 0, work 8, longest 16, resting_tests 24, large 32, stopped 40, tests 48,
    invalid 56, first_invalid 64, empty 72, changed 80, resting_changed 88, left 96, axis 104,
    axis_tests 112, axis_blocks 136, invalid_b 144, first_invalid_b 152, levels 160, high 164,
    placed 168, crowded 176, near 184, started 192, ended 200, sorts 208,
);

/// The bit of [`State::left`] that tells that a box has left: `HAS_LEFT` of the kernels.
pub(crate) const HAS_LEFT: u64 = 1;

/// Indices in [`State::sorts`].
pub(crate) const BOX_SORT: usize = 0;
pub(crate) const PAIR_SORT: usize = 1;

/// Returns the address of one counter of the [`State`] at an address.
macro_rules! counter {
    ($state:expr, $field:ident) => {
        $state
            .byte_add(std::mem::offset_of!(crate::cuda::abi::State, $field) as u64)
            .cast::<u64>()
    };
}
pub(crate) use counter;

impl State {
    /// Sums up what was sorted.
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

/// Memory that the kernels of the stage `bounds` set to zero for the steps after them, in units of
/// 16 bytes.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Clear {
    pub(crate) units: DevicePtr<u32>,
    pub(crate) len: u64,
}

assert_layout!(Clear, 16: units 0, len 8);

impl Clear {
    /// The bytes of a unit.
    pub(crate) const UNIT: usize = 16;

    pub(crate) const NOTHING: Self = Self {
        units: DevicePtr::NULL,
        len: 0,
    };
}

/// The arguments that all kernels of the stage `bounds` share.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Prepare {
    pub(crate) n: u32,
    /// The index of the set's first box in the scene.
    pub(crate) base: u32,
    /// 1 for the second of two sets.
    pub(crate) second: u32,
    /// Boxes of the last update.
    pub(crate) known: u32,
    pub(crate) margin: f32,
    /// 1 if the resting set is left out of the search, so that its empty boxes do not count.
    pub(crate) resting: u32,
    pub(crate) last: DevicePtr<Aabb>,
    pub(crate) stored: DevicePtr<Aabb>,
    pub(crate) given: DevicePtr<Aabb>,
    pub(crate) filters: DevicePtr<Filter>,
    pub(crate) last_filters: DevicePtr<Filter>,
    pub(crate) worlds: DevicePtr<u32>,
    pub(crate) last_worlds: DevicePtr<u32>,
    pub(crate) state: DevicePtr<State>,
    pub(crate) clear: [Clear; 3],
}

assert_layout!(
    Prepare, 136:
    n 0, base 4, second 8, known 12, margin 16, resting 20, last 24, stored 32, given 40,
    filters 48, last_filters 56, worlds 64, last_worlds 72, state 80, clear 88,
);

/// The boxes in the order of the sweep axis, and the work list of the sweep.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Sorted {
    pub(crate) sides: DevicePtr<[f32; 4]>,
    pub(crate) span: DevicePtr<[f32; 2]>,
    pub(crate) end: DevicePtr<u32>,
    pub(crate) slots: DevicePtr<u32>,
    pub(crate) reach: DevicePtr<[u32; 4]>,
    pub(crate) units: DevicePtr<u32>,
    pub(crate) first_unit: DevicePtr<u64>,
}

assert_layout!(Sorted, 56: sides 0, span 8, end 16, slots 24, reach 32, units 40, first_unit 48);

/// The conditions under which two boxes that overlap are a pair to report.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Accept {
    pub(crate) filters: DevicePtr<Filter>,
    pub(crate) exact: DevicePtr<Aabb64>,
    pub(crate) excluded: DevicePtr<u64>,
    pub(crate) excluded_len: u64,
    pub(crate) split: u64,
    pub(crate) a_begin: u64,
    pub(crate) a_end: u64,
    pub(crate) open: u32,
    pub(crate) all: u32,
}

assert_layout!(
    Accept, 64:
    filters 0, exact 8, excluded 16, excluded_len 24, split 32, a_begin 40, a_end 48, open 56,
    all 60,
);

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct SweepInput {
    pub(crate) sorted: Sorted,
    pub(crate) index: DevicePtr<u32>,
    pub(crate) tiles: u32,
    pub(crate) pad: u32,
    pub(crate) state: DevicePtr<State>,
    pub(crate) accept: Accept,
    pub(crate) limit: u64,
}

assert_layout!(
    SweepInput, 152:
    sorted 0, index 56, tiles 64, pad 68, state 72, accept 80, limit 144,
);

/// The list that the pairs found go to, as keys `a * 2^bits + b`. With `ranks` they are counted by
/// bin as well, each count in one of `2^spread` words, and `ranks` are theirs in their bins. With
/// entries of bins the pairs go there instead.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Keys {
    pub(crate) keys: DevicePtr<u64>,
    pub(crate) capacity: u64,
    pub(crate) counts: DevicePtr<u32>,
    pub(crate) ranks: DevicePtr<u32>,
    pub(crate) bins: Bins,
    pub(crate) bits: u32,
    pub(crate) spread: u32,
}

assert_layout!(Keys, 64: keys 0, capacity 8, counts 16, ranks 24, bins 32, bits 56, spread 60);

impl Keys {
    /// Returns the keys in a buffer, without bins.
    pub(crate) fn new(buffer: &SliceMut<u64>, bits: u32) -> Self {
        Self {
            keys: buffer.device_ptr(),
            capacity: buffer.len() as u64,
            bits,
            ..Self::zeroed()
        }
    }
}

/// A bin of pairs: where the next one goes, and where its room begins and ends.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Bin {
    pub(crate) next: u32,
    pub(crate) begin: u32,
    pub(crate) end: u32,
    pub(crate) pad: [u32; 5],
}

assert_layout!(Bin, 32: next 0, begin 4, end 8, pad 12);

/// The bins of a search. There are none where the address of entries is null.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Bins {
    pub(crate) bins: DevicePtr<Bin>,
    pub(crate) entries: DevicePtr<u32>,
    pub(crate) len: u32,
    /// A bin is the pairs of `2^shift` smaller indices.
    pub(crate) shift: u32,
}

assert_layout!(Bins, 24: bins 0, entries 8, len 16, shift 20);

/// Bins whose pairs are put in order, and those of the next frame, null for counted bins.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BinOrder {
    pub(crate) bins: Bins,
    pub(crate) starts: DevicePtr<u32>,
    pub(crate) next: DevicePtr<Bin>,
    pub(crate) pairs: DevicePtr<u64>,
    pub(crate) state: DevicePtr<State>,
    pub(crate) capacity: u64,
    pub(crate) count: u32,
    pub(crate) len: u32,
    pub(crate) bits: u32,
    pub(crate) long_blocks: u32,
}

assert_layout!(
    BinOrder, 80:
    bins 0, starts 24, next 32, pairs 40, state 48, capacity 56, count 64, len 68, bits 72,
    long_blocks 76,
);

/// Pairs that are put in order by row.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Rows {
    pub(crate) found: DevicePtr<u64>,
    pub(crate) ranks: DevicePtr<u32>,
    pub(crate) rows: DevicePtr<u32>,
    pub(crate) keys: DevicePtr<u64>,
    pub(crate) pairs: DevicePtr<u64>,
    pub(crate) state: DevicePtr<State>,
    pub(crate) capacity: u64,
    pub(crate) bits: u32,
    pub(crate) pad: u32,
}

assert_layout!(Rows, 64: found 0, ranks 8, rows 16, keys 24, pairs 32, state 40, capacity 48,
    bits 56, pad 60);

/// The candidates of a neighbour list, and where pairs and events go.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Candidates {
    pub(crate) loose: DevicePtr<Aabb>,
    /// The least and the most slack of each box, a byte each.
    pub(crate) slacks: DevicePtr<u16>,
    pub(crate) depths: DevicePtr<u8>,
    pub(crate) list: DevicePtr<u64>,
    pub(crate) n: u32,
    pub(crate) tiles: u32,
    /// Units of slacks and depths in a length of 1.
    pub(crate) units: f32,
    pub(crate) open: u32,
    /// Whether each candidate was a pair in the last frame, and is one: a bit each.
    pub(crate) last: DevicePtr<u32>,
    pub(crate) hits: DevicePtr<u32>,
    /// The pairs of each tile, those started and those ended, and of each group of tiles.
    pub(crate) tile_sums: DevicePtr<u64>,
    pub(crate) group_sums: DevicePtr<u64>,
    pub(crate) pairs: DevicePtr<u64>,
    /// Started, ended.
    pub(crate) out: [DevicePtr<Pair>; 2],
    pub(crate) pairs_capacity: u64,
    pub(crate) capacity: [u64; 2],
}

assert_layout!(
    Candidates, 128:
    loose 0, slacks 8, depths 16, list 24, n 32, tiles 36, units 40, open 44, last 48, hits 56,
    tile_sums 64, group_sums 72, pairs 80, out 88, pairs_capacity 104, capacity 112,
);

/// What a new neighbour list is made of.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Loosen {
    pub(crate) boxes: DevicePtr<Aabb>,
    pub(crate) last: DevicePtr<Aabb>,
    pub(crate) worlds: DevicePtr<u32>,
    pub(crate) loose: DevicePtr<Aabb>,
    pub(crate) loose_worlds: DevicePtr<u32>,
    pub(crate) n: u32,
    pub(crate) least: f32,
    pub(crate) steps: f32,
    pub(crate) most: f32,
}

assert_layout!(
    Loosen, 56:
    boxes 0, last 8, worlds 16, loose 24, loose_worlds 32, n 40, least 44, steps 48, most 52,
);
