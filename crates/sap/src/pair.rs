//! The output of an update: pairs of box indices.

use bytemuck::{Pod, Zeroable};

/// Two boxes that overlap, by their indices in the frame: 8 bytes, ordered by `a`, then by `b`.
///
/// Within one set `a < b`; between two sets `a` indexes the first and `b` the second.
///
/// ```
/// use sap::Pair;
///
/// assert_eq!(Pair::new(7, 3), Pair { a: 3, b: 7 });
/// assert!(Pair { a: 1, b: 9 } < Pair { a: 2, b: 3 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Pair {
    /// The smaller index.
    pub a: u32,
    /// The larger index.
    pub b: u32,
}

impl Pair {
    /// Creates the pair of two indices, the smaller one first.
    #[must_use]
    pub const fn new(i: u32, j: u32) -> Self {
        if i < j {
            Self { a: i, b: j }
        } else {
            Self { a: j, b: i }
        }
    }

    /// Returns the pair as a number of the same order.
    pub(crate) const fn code(self) -> u64 {
        (self.a as u64) << 32 | self.b as u64
    }
}
