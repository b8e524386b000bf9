//! The output of an update: pairs of ids.

use bytemuck::{Pod, Zeroable};

/// Two boxes that overlap, by their ids: 16 bytes, `a < b`, ordered by `a`, then by `b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Pair {
    /// The smaller id.
    pub a: u64,
    /// The larger id.
    pub b: u64,
}
