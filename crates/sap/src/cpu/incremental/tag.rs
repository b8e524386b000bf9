//! Tags: what filters and worlds say of a box, or of all boxes below a node. Tags that cannot pair
//! exclude whole nodes.

use crate::cpu::scene::Scene;
use crate::{Filter, FilterFlags};

/// The filters and worlds of a set of boxes.
#[derive(Clone, Copy)]
pub(super) struct Tag {
    /// The layers that any of the boxes is in.
    layers: u32,
    /// The layers that any of the boxes pairs with.
    mask: u32,
    /// The flags that all of the boxes have.
    flags: u32,
    group: Group,
    /// The min and the max world.
    worlds: [u32; 2],
}

/// The group of a set of boxes.
#[derive(Clone, Copy, PartialEq)]
enum Group {
    /// There are no boxes.
    Any,
    /// All boxes are in this group, which is not 0.
    One(u32),
    /// The boxes are in several groups, or some are in none.
    Mixed,
}

impl Tag {
    /// The tag of no boxes: it pairs with nothing and changes no union.
    pub(super) const NONE: Self = Self {
        layers: 0,
        mask: 0,
        flags: u32::MAX,
        group: Group::Any,
        worlds: [u32::MAX, 0],
    };

    /// Tells whether a frame has filters or worlds.
    pub(super) fn is_needed(scene: &Scene) -> bool {
        scene.filters.is_some() || scene.worlds.is_some()
    }

    /// Returns the tag of a box.
    pub(super) fn of(scene: &Scene, i: usize) -> Self {
        if scene.boxes[i].is_empty() {
            return Self::NONE;
        }
        let Filter {
            layers,
            mask,
            group,
            flags,
        } = scene
            .filters
            .as_ref()
            .map_or(Filter::default(), |filters| filters[i]);
        let world = scene.worlds.as_ref().map_or(0, |worlds| worlds[i]);
        Self {
            layers,
            mask,
            flags: flags.0,
            group: if group == 0 {
                Group::Mixed
            } else {
                Group::One(group)
            },
            worlds: [world; 2],
        }
    }

    /// Returns the tag of the boxes of both.
    pub(super) fn with(&self, other: &Self) -> Self {
        Self {
            layers: self.layers | other.layers,
            mask: self.mask | other.mask,
            flags: self.flags & other.flags,
            group: match (self.group, other.group) {
                (Group::Any, group) | (group, Group::Any) => group,
                (one, another) if one == another => one,
                _ => Group::Mixed,
            },
            worlds: [
                self.worlds[0].min(other.worlds[0]),
                self.worlds[1].max(other.worlds[1]),
            ],
        }
    }

    /// Returns the tag of the boxes of all.
    pub(super) fn union(tags: &[Self]) -> Self {
        tags.iter().fold(Self::NONE, |all, tag| all.with(tag))
    }

    /// Tells whether a box of this set may pair with one of the other. For sets of one box this is
    /// exact: [`Filter::allows`] and the worlds.
    pub(super) fn may_pair(&self, other: &Self) -> bool {
        let one_group =
            matches!((self.group, other.group), (Group::One(x), Group::One(y)) if x == y);
        self.layers & other.mask != 0
            && other.layers & self.mask != 0
            && self.flags & other.flags & FilterFlags::EXCLUSIVE.0 == 0
            && !one_group
            && self.worlds[0] <= other.worlds[1]
            && other.worlds[0] <= self.worlds[1]
    }
}
