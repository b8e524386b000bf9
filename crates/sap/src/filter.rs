//! Filters: which boxes may pair.

use bytemuck::{Pod, Zeroable};
use std::ops::BitOr;

/// Flags of a [`Filter`], as bits of a `u32`. Unknown bits are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct FilterFlags(pub u32);

impl FilterFlags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// The box never moves: two static boxes do not pair.
    pub const STATIC: Self = Self(1);
    /// The box is asleep: two boxes asleep do not pair.
    pub const ASLEEP: Self = Self(2);

    /// The flags that the two boxes of a pair must not share.
    pub(crate) const EXCLUSIVE: Self = Self(Self::STATIC.0 | Self::ASLEEP.0);

    /// Tells whether all flags of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for FilterFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Decides which boxes a box may pair with: 16 bytes. The default pairs with everything.
///
/// ```
/// use sap::{Filter, FilterFlags};
///
/// let wall = Filter { flags: FilterFlags::STATIC, ..Filter::default() };
/// let ball = Filter { layers: 0b10, mask: 0b01, ..Filter::default() };
/// assert!(wall.allows(&ball));
/// assert!(!wall.allows(&wall)); // both static
/// assert!(!ball.allows(&ball)); // in a layer that its mask leaves out
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct Filter {
    /// The layers that the box is in.
    pub layers: u32,
    /// The layers that it pairs with.
    pub mask: u32,
    /// Boxes of one group do not pair with each other; 0 is no group.
    pub group: u32,
    /// [`FilterFlags::STATIC`] and [`FilterFlags::ASLEEP`].
    pub flags: FilterFlags,
}

impl Default for Filter {
    fn default() -> Self {
        Self {
            layers: u32::MAX,
            mask: u32::MAX,
            group: 0,
            flags: FilterFlags::NONE,
        }
    }
}

impl Filter {
    /// Tells whether two boxes with these filters may pair: each is in a layer of the other's mask,
    /// their groups differ or are 0, and they are neither both static nor both asleep. The test is
    /// symmetric.
    #[must_use]
    pub const fn allows(&self, other: &Self) -> bool {
        let shared = self.flags.0 & other.flags.0 & FilterFlags::EXCLUSIVE.0;
        self.layers & other.mask != 0
            && other.layers & self.mask != 0
            && (self.group != other.group || self.group == 0)
            && shared == 0
    }
}
