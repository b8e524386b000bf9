//! The components, and the hooks that give every collider a box of its own.

use crate::BroadPhase;
use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;
use sap::{Aabb, Filter, FilterFlags};

/// The box of an entity, relative to its [`Moved`], and what it may pair with.
///
/// ```
/// use sap_ecs::Collider;
/// use sap_ecs::sap::{Aabb, Filter};
///
/// let crate_box = Collider::new([0.5, 0.5, 0.5]);
/// let wall = Collider::from_aabb(Aabb::new([0.0; 3], [10.0, 3.0, 0.2])).fixed();
/// let ball = Collider { filter: Filter { group: 7, ..Filter::default() }, ..crate_box };
/// assert!(wall.filter.allows(&ball.filter) && !wall.filter.allows(&wall.filter));
/// ```
#[derive(Component, Debug, Clone, Copy, PartialEq)]
#[require(Moved, BoxIndex = BoxIndex::NONE)]
#[component(on_add = take, on_remove = release)]
pub struct Collider {
    /// The box, in the unit of the scene. [`Aabb::EMPTY`] overlaps nothing.
    pub bounds: Aabb,
    /// Layers, group, and whether it is static or asleep.
    pub filter: Filter,
}

impl Collider {
    /// A box around the origin by its half extents, that pairs with everything.
    #[must_use]
    pub fn new(half_extents: [f32; 3]) -> Self {
        Self::from_aabb(Aabb::new(half_extents.map(|half| -half), half_extents))
    }

    /// This box, that pairs with everything.
    #[must_use]
    pub fn from_aabb(bounds: Aabb) -> Self {
        Self {
            bounds,
            filter: Filter::default(),
        }
    }

    /// The same with this filter.
    #[must_use]
    pub const fn with_filter(self, filter: Filter) -> Self {
        Self { filter, ..self }
    }

    /// The same, static: two static boxes do not pair.
    #[must_use]
    pub fn fixed(mut self) -> Self {
        self.filter.flags = self.filter.flags | FilterFlags::STATIC;
        self
    }

    /// The same, asleep: two boxes asleep do not pair.
    #[must_use]
    pub fn asleep(mut self) -> Self {
        self.filter.flags = self.filter.flags | FilterFlags::ASLEEP;
        self
    }

    /// The box in the scene.
    pub(crate) fn placed(&self, moved: &Moved) -> Aabb {
        let add = |corner: [f32; 3]| std::array::from_fn(|axis| corner[axis] + moved.0[axis]);
        Aabb::new(add(self.bounds.min), add(self.bounds.max))
    }
}

/// How far an entity's box has moved from its [`Collider::bounds`]: for half extents, where its centre is.
///
/// Write it only where an entity did move: every write costs the writing of its box. Where it is removed, the box stays.
#[derive(Component, Debug, Clone, Copy, PartialEq, Default)]
pub struct Moved(pub [f32; 3]);

/// Which box of the frame is the entity's. It stays the same as long as the entity has its [`Collider`].
#[derive(Component, Debug)]
#[component(on_add = take, on_remove = release)]
pub struct BoxIndex(Option<u32>);

impl BoxIndex {
    const NONE: Self = Self(None);

    /// The index; none where there is no [`BroadPhase`] yet.
    #[must_use]
    pub const fn get(&self) -> Option<u32> {
        self.0
    }

    pub(crate) const fn set(&mut self, index: Option<u32>) {
        self.0 = index;
    }
}

/// Gives a collider a box, unless it has one: of the two components either may come later.
fn take(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let lacks = |index: &BoxIndex| index.0.is_none();
    if world.get::<Collider>(entity).is_some()
        && world.get(entity).is_some_and(lacks)
        && let Some(mut broad_phase) = world.get_resource_mut::<BroadPhase>()
    {
        let index = broad_phase.slots.take(entity);
        if let Some(mut held) = world.get_mut::<BoxIndex>(entity) {
            held.set(Some(index));
        }
    }
}

fn release(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let held = world.get_mut::<BoxIndex>(entity);
    if let Some(index) = held.and_then(|mut held| held.0.take())
        && let Some(mut broad_phase) = world.get_resource_mut::<BroadPhase>()
    {
        broad_phase.slots.release(index);
    }
}
