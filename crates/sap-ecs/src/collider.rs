//! The components, and the hooks that assign a box to every collider.

use crate::BroadPhase;
use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;
use sap::{Aabb, Filter, FilterFlags};

/// The box of an entity, relative to its [`Moved`], with its filter.
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
    /// Creates a box around the origin from its half extents. It pairs with everything.
    #[must_use]
    pub fn new(half_extents: [f32; 3]) -> Self {
        Self::from_aabb(Aabb::new(half_extents.map(|half| -half), half_extents))
    }

    /// Creates a collider from a box. It pairs with everything.
    #[must_use]
    pub fn from_aabb(bounds: Aabb) -> Self {
        Self {
            bounds,
            filter: Filter::default(),
        }
    }

    /// Returns the collider with this filter.
    #[must_use]
    pub const fn with_filter(self, filter: Filter) -> Self {
        Self { filter, ..self }
    }

    /// Returns the collider marked as static: two static boxes do not pair.
    #[must_use]
    pub fn fixed(mut self) -> Self {
        self.filter.flags = self.filter.flags | FilterFlags::STATIC;
        self
    }

    /// Returns the collider marked as asleep: two sleeping boxes do not pair.
    #[must_use]
    pub fn asleep(mut self) -> Self {
        self.filter.flags = self.filter.flags | FilterFlags::ASLEEP;
        self
    }

    /// Returns the box in the coordinates of the scene.
    pub(crate) fn placed(&self, moved: &Moved) -> Aabb {
        let add = |corner: [f32; 3]| std::array::from_fn(|axis| corner[axis] + moved.0[axis]);
        Aabb::new(add(self.bounds.min), add(self.bounds.max))
    }
}

/// The translation of an entity's [`Collider::bounds`]; for half extents, the position of the
/// centre.
///
/// Write it only if the entity moved: every write also writes the box. Without it the box stays
/// where it is.
#[derive(Component, Debug, Clone, Copy, PartialEq, Default)]
pub struct Moved(pub [f32; 3]);

/// The index of the entity's box in the frame. It is unchanged while the entity has its
/// [`Collider`].
#[derive(Component, Debug)]
#[component(on_add = take, on_remove = release)]
pub struct BoxIndex(Option<u32>);

impl BoxIndex {
    const NONE: Self = Self(None);

    /// Returns the index; `None` if there is no [`BroadPhase`] yet.
    #[must_use]
    pub const fn get(&self) -> Option<u32> {
        self.0
    }

    pub(crate) const fn set(&mut self, index: Option<u32>) {
        self.0 = index;
    }
}

/// Assigns a box to a collider, unless it has one: the two components may be added in either order.
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
