//! What filters and worlds say of a box, or of all boxes below a node: which pairs cannot be.

use crate::cpu::scene::Scene;
use crate::{Filter, FilterFlags};

/// What a box may pair with, or some boxes together.
#[derive(Clone, Copy)]
pub(super) struct Tag {
    /// All layers that one of them is in, or pairs with.
    layers: u32,
    mask: u32,
    /// The flags that all of them have.
    flags: u32,
    group: Group,
    /// The min and the max world.
    worlds: [u32; 2],
}

/// The group of some boxes.
#[derive(Clone, Copy, PartialEq)]
enum Group {
    /// Of no box.
    Any,
    /// All are in this one, which is not 0.
    One(u32),
    /// In several, or in none.
    Mixed,
}

impl Tag {
    /// Of no box: pairs with nothing, and changes no union.
    pub(super) const NONE: Self = Self {
        layers: 0,
        mask: 0,
        flags: u32::MAX,
        group: Group::Any,
        worlds: [u32::MAX, 0],
    };

    /// Whether boxes of this frame have anything to say.
    pub(super) fn is_needed(scene: &Scene) -> bool {
        scene.filters.is_some() || scene.worlds.is_some()
    }

    /// Of one box.
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

    /// Of both together.
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

    /// Of all together.
    pub(super) fn union(tags: &[Self]) -> Self {
        tags.iter().fold(Self::NONE, |all, tag| all.with(tag))
    }

    /// Whether one of these may pair with one of those; for two boxes, whether they do by
    /// [`Filter::allows`] and their worlds.
    pub(super) fn may_pair(&self, other: &Self) -> bool {
        const APART: u32 = FilterFlags::STATIC.0 | FilterFlags::ASLEEP.0;
        let one_group =
            matches!((self.group, other.group), (Group::One(x), Group::One(y)) if x == y);
        self.layers & other.mask != 0
            && other.layers & self.mask != 0
            && self.flags & other.flags & APART == 0
            && !one_group
            && self.worlds[0] <= other.worlds[1]
            && other.worlds[0] <= self.worlds[1]
    }
}
