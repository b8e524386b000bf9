//! Plain data of the ABI, with the layout of the same types in `sap`.

use bytemuck::{Pod, Zeroable};

/// An axis-aligned box, including its borders. Sides may be infinite.
///
/// A box is invalid if a number is NaN or min > max on an axis, except for the empty box, with min
/// = +INFINITY and max = -INFINITY on all axes, which overlaps nothing.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct RadsweepAabb {
    /// The min corner: x, y, z.
    pub min: [f32; 3],
    /// The max corner: x, y, z.
    pub max: [f32; 3],
}

/// An axis-aligned box of doubles.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct RadsweepAabb64 {
    /// The min corner: x, y, z.
    pub min: [f64; 3],
    /// The max corner: x, y, z.
    pub max: [f64; 3],
}

/// The indices of two overlapping boxes. Within one set a < b; between two sets a is of the first
/// and b of the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RadsweepPair {
    /// The smaller index.
    pub a: u32,
    /// The larger index.
    pub b: u32,
}

/// Marks a box that never moves. Two static boxes do not pair.
pub const RADSWEEP_FILTER_STATIC: u32 = 1;
/// Marks a sleeping box. Two sleeping boxes do not pair.
pub const RADSWEEP_FILTER_ASLEEP: u32 = 2;

/// The filter of a box. Two boxes may pair if each is in a layer of the other's mask, their groups
/// differ or are 0, and they are neither both static nor both asleep. A filter of {0xffffffff,
/// 0xffffffff, 0, 0} pairs with everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RadsweepFilter {
    /// The layers of the box, as bits.
    pub layers: u32,
    /// The layers that it pairs with, as bits.
    pub mask: u32,
    /// The group; boxes of a group do not pair. 0 means no group.
    pub group: u32,
    /// RADSWEEP_FILTER_STATIC and RADSWEEP_FILTER_ASLEEP, as bits.
    pub flags: u32,
}

/// A box that a query hits.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct RadsweepRayHit {
    /// The index of the box.
    pub index: u32,
    /// Distance to the box: see radsweep_query_hits.
    pub t: f32,
}

impl From<sap::Hit> for RadsweepRayHit {
    fn from(hit: sap::Hit) -> Self {
        Self {
            index: hit.index,
            t: hit.t,
        }
    }
}

/// Asserts that two types have the same layout, so that slices can be cast.
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
