//! Structs that the kernels of `kernels/dist` are passed.

pub(crate) use crate::layout::Bounds;
use crate::{Cause, Pair};
use bytemuck::{Pod, Zeroable};
use gpu::{DevicePtr, assert_layout};
use gpusort::internals::KeyOrder;
use sap::{Aabb, Filter};

assert_layout!(Bounds, 24: min 0, max 12);
assert_layout!(Pair, 16: a 0, b 8);

/// The ids of the boxes of a rank: `each`, or where that is null those from `first` on.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Ids {
    pub(crate) each: DevicePtr<u64>,
    pub(crate) first: u64,
}

assert_layout!(Ids, 16: each 0, first 8);

/// The boxes of a rank.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Frame {
    pub(crate) boxes: DevicePtr<Aabb>,
    pub(crate) filters: DevicePtr<Filter>,
    pub(crate) worlds: DevicePtr<u32>,
    pub(crate) ids: Ids,
    pub(crate) n: u64,
}

assert_layout!(Frame, 48: boxes 0, filters 8, worlds 16, ids 24, n 40);

/// Whether boxes were found that have the same id, and the complement of the smallest such id.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Twice {
    pub(crate) found: u64,
    pub(crate) id: u64,
}

assert_layout!(Twice, 16: found 0, id 8);

impl Twice {
    /// Words of its memory.
    pub(crate) const WORDS: usize = size_of::<Self>() / size_of::<u64>();

    /// Returns the error of boxes with the same id.
    pub(crate) fn check(words: &[u64]) -> Result<(), Cause> {
        match *words {
            [found, id] if found != 0 => Err(Cause::DuplicateId { id: !id }),
            _ => Ok(()),
        }
    }
}

/// Who a box is: its id, the rank that brought it, and its index there.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Name {
    pub(crate) id: u64,
    pub(crate) origin: u32,
    pub(crate) index: u32,
}

assert_layout!(Name, 16: id 0, origin 8, index 12);

/// Boxes of a cell by their names: what came from other ranks, or the homes near that.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Set {
    pub(crate) boxes: DevicePtr<Aabb>,
    pub(crate) names: DevicePtr<Name>,
    pub(crate) filters: DevicePtr<Filter>,
    pub(crate) worlds: DevicePtr<u32>,
}

assert_layout!(Set, 32: boxes 0, names 8, filters 16, worlds 24);

/// The cells of all ranks.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Cells {
    pub(crate) axes: [u32; 2],
    pub(crate) columns: u32,
    pub(crate) rank: u32,
    pub(crate) cuts: DevicePtr<i32>,
    pub(crate) first: DevicePtr<u32>,
    pub(crate) rows: DevicePtr<i32>,
}

assert_layout!(Cells, 40: axes 0, columns 8, rank 12, cuts 16, first 24, rows 32);

/// The places of a box in a cell (`Place` in the kernels): its home, and three kinds of copies.
pub(crate) const PLACES: usize = 4;
pub(crate) const HOME: usize = 0;
pub(crate) const FIRST: usize = 1;
pub(crate) const SECOND: usize = 2;

/// What a rank counts of its boxes. `first_invalid` and `first_unordered` are complements of the
/// index, 0 for none.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Survey {
    pub(crate) invalid: u64,
    pub(crate) first_invalid: u64,
    pub(crate) homes: u64,
    pub(crate) first_unordered: u64,
    pub(crate) has_other_ids: u64,
}

assert_layout!(
    Survey, 40:
    invalid 0, first_invalid 8, homes 16, first_unordered 24, has_other_ids 32,
);

/// Records that came from one rank for one place.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Segment {
    pub(crate) start: u64,
    pub(crate) to: u64,
    pub(crate) first: u64,
    pub(crate) origin: u32,
    pub(crate) home: u32,
    /// The bounds that its boxes are part of.
    pub(crate) group: u32,
    pub(crate) unused: u32,
}

assert_layout!(Segment, 40: start 0, to 8, first 16, origin 24, home 28, group 32, unused 36);

/// The homes of a cell: the boxes of this rank, and those that came.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Homes {
    pub(crate) all: Frame,
    pub(crate) own: u64,
    pub(crate) names: DevicePtr<Name>,
    pub(crate) rank: u32,
    pub(crate) unused: u32,
}

assert_layout!(Homes, 72: all 0, own 48, names 56, rank 64, unused 68);

/// A pair on its way to its owner.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Found {
    pub(crate) b: u64,
    pub(crate) a: u32,
    pub(crate) owner: u32,
}

assert_layout!(Found, 16: b 0, a 8, owner 12);

/// Two sets, and which of the pairs between them are left out.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Between {
    pub(crate) a: DevicePtr<Name>,
    pub(crate) b: DevicePtr<Name>,
    /// Where the homes that are in both sets begin in `a`, and how many these are.
    pub(crate) homes_a: u64,
    pub(crate) homes_b: u64,
    /// Whether pairs of two boxes of one rank are left out.
    pub(crate) skips_own: u32,
    pub(crate) unused: u32,
}

assert_layout!(Between, 40: a 0, b 8, homes_a 16, homes_b 24, skips_own 32, unused 36);

/// Two sorted lists of pairs of a rank, and where they go.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Merge {
    pub(crate) own: DevicePtr<sap::Pair>,
    pub(crate) own_count: u64,
    pub(crate) other: DevicePtr<Pair>,
    pub(crate) count: u64,
    pub(crate) ids: Ids,
    pub(crate) out: DevicePtr<Pair>,
    pub(crate) twice: DevicePtr<Twice>,
}

assert_layout!(
    Merge, 64:
    own 0, own_count 8, other 16, count 24, ids 32, out 48, twice 56,
);

/// What keys are compared by.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct KeyMap {
    pub(crate) flip: u64,
    pub(crate) fold: u64,
    pub(crate) minus_zero: u64,
}

assert_layout!(KeyMap, 24: flip 0, fold 8, minus_zero 16);

/// An element that ends a part of all keys.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Splitter {
    pub(crate) bits: u64,
    pub(crate) has_same: u64,
}

assert_layout!(Splitter, 16: bits 0, has_same 8);

/// Sorted elements.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Run {
    pub(crate) keys: DevicePtr<u8>,
    pub(crate) values: DevicePtr<u8>,
    pub(crate) length: u64,
}

assert_layout!(Run, 24: keys 0, values 8, length 16);

/// Two runs, and where their merge goes.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Runs {
    pub(crate) a: Run,
    pub(crate) b: Run,
    pub(crate) keys_out: DevicePtr<u8>,
    pub(crate) values_out: DevicePtr<u8>,
    /// The elements of `a` before each tile of the merge, and in all.
    pub(crate) splits: DevicePtr<u64>,
    pub(crate) map: KeyMap,
}

assert_layout!(Runs, 96: a 0, b 24, keys_out 48, values_out 56, splits 64, map 72);

/// Where the segments of all ranks begin, and how they are divided.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Tables {
    pub(crate) starts: DevicePtr<u32>,
    pub(crate) cuts: DevicePtr<u64>,
    pub(crate) largest: DevicePtr<u64>,
    /// The bits of a segment.
    pub(crate) bits: u32,
    pub(crate) ranks: u32,
    pub(crate) parts: u32,
    pub(crate) padding: u32,
}

assert_layout!(Tables, 40: starts 0, cuts 8, largest 16, bits 24, ranks 28, parts 32, padding 36);

/// Where elements of a rank are: the one at place `p` of all that it has sorted is at `keys[p]`.
/// Only those of a piece are there.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Source {
    pub(crate) keys: DevicePtr<u8>,
    pub(crate) values: DevicePtr<u8>,
    /// Where its segments begin.
    pub(crate) starts: DevicePtr<u32>,
}

assert_layout!(Source, 24: keys 0, values 8, starts 16);

/// Segments of all ranks, from one on, and where they go.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Segments {
    pub(crate) sources: DevicePtr<Source>,
    /// By buffer of a sort. Only the second, the output, is used.
    pub(crate) keys: [DevicePtr<u8>; 3],
    /// The same.
    pub(crate) values: [DevicePtr<u8>; 3],
    pub(crate) order: KeyOrder,
    /// The keys of all ranks before those that the result begins with.
    pub(crate) before: u64,
    pub(crate) ranks: u32,
    pub(crate) first: u32,
    pub(crate) segment_bits: u32,
    pub(crate) flags: u32,
    /// All bits set.
    pub(crate) minus_one: u32,
    pub(crate) padding: u32,
}

assert_layout!(
    Segments, 128:
    sources 0, keys 8, values 32, order 56, before 96, ranks 104, first 108, segment_bits 112,
    flags 116, minus_one 120, padding 124,
);
