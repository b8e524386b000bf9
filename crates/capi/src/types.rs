//! Plain data that crosses the ABI, laid out as its like in `sap`.

use bytemuck::{Pod, Zeroable};

/// An axis-aligned box. Borders belong to it; sides may be infinite. A box is invalid when a number is NaN or min > max on an axis,
/// but min = +INFINITY, max = -INFINITY on all three is the empty box, which overlaps nothing.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct RadsweepAabb {
    /// The least corner: x, y, z.
    pub min: [f32; 3],
    /// The greatest corner.
    pub max: [f32; 3],
}

/// An axis-aligned box of doubles.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct RadsweepAabb64 {
    /// The least corner: x, y, z.
    pub min: [f64; 3],
    /// The greatest corner.
    pub max: [f64; 3],
}

/// Two boxes that overlap, by their index. Within one set a < b; between two sets a is of the first and b of the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RadsweepPair {
    /// The smaller index.
    pub a: u32,
    /// The larger index.
    pub b: u32,
}

/// The flag of a box that never moves: two static boxes do not pair.
pub const RADSWEEP_FILTER_STATIC: u32 = 1;
/// The flag of a box at rest: two boxes asleep do not pair.
pub const RADSWEEP_FILTER_ASLEEP: u32 = 2;

/// What a box may pair with: each of two must be in a layer of the other's mask, and their groups differ or are 0.
/// {0xffffffff, 0xffffffff, 0, 0} pairs with everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RadsweepFilter {
    /// The layers that the box is in.
    pub layers: u32,
    /// The layers that it pairs with.
    pub mask: u32,
    /// Boxes of one group do not pair; 0 is no group.
    pub group: u32,
    /// RADSWEEP_FILTER_STATIC, RADSWEEP_FILTER_ASLEEP.
    pub flags: u32,
}

/// A box that a ray meets.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct RadsweepRayHit {
    /// The index of the box.
    pub index: u32,
    /// Where the ray enters it, in lengths of the direction; 0 when it starts inside.
    pub t: f32,
}

/// Layouts agree: a slice of one is a slice of the other.
macro_rules! same_layout {
    ($($ours:ty = $theirs:ty { $($field:ident),+ }),+ $(,)?) => {
        $(const _: () = {
            assert!(size_of::<$ours>() == size_of::<$theirs>() && align_of::<$ours>() == align_of::<$theirs>());
            $(assert!(std::mem::offset_of!($ours, $field) == std::mem::offset_of!($theirs, $field));)+
        };)+
    };
}
same_layout!(
    RadsweepAabb = sap::Aabb { min, max },
    RadsweepAabb64 = sap::Aabb64 { min, max },
    RadsweepPair = sap::Pair { a, b },
    RadsweepFilter = sap::Filter {
        layers,
        mask,
        group,
        flags
    },
);
