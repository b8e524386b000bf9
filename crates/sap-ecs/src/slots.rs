//! The boxes of all colliders in one array, as a frame wants them, and whose each is.

use bevy_ecs::entity::Entity;
use sap::{Aabb, Filter, Frame};

/// A box that nobody has is [`Aabb::EMPTY`]. It is given away again only after an update has seen it empty: so its old pairs end
/// under its old entity's name before a new one has it.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    boxes: Vec<Aabb>,
    filters: Vec<Filter>,
    entities: Vec<Entity>,
    free: Vec<u32>,
    released: Vec<u32>,
    /// Boxes whose filter is not the default: without any, the frame has no filters.
    filtered: usize,
    /// What was written or released since the last update that succeeded.
    changed: Vec<u32>,
}

impl Slots {
    pub(crate) fn take(&mut self, entity: Entity) -> u32 {
        if let Some(index) = self.free.pop() {
            self.entities[index as usize] = entity;
            return index;
        }
        // An entity's index has 32 bits, so there are no more boxes than that.
        let index = self.boxes.len() as u32;
        self.boxes.push(Aabb::EMPTY);
        self.filters.push(Filter::default());
        self.entities.push(entity);
        index
    }

    pub(crate) fn release(&mut self, index: u32) {
        self.write(index, Aabb::EMPTY, Filter::default());
        self.released.push(index);
    }

    pub(crate) fn write(&mut self, index: u32, bounds: Aabb, filter: Filter) {
        let place = index as usize;
        self.boxes[place] = bounds;
        let old = std::mem::replace(&mut self.filters[place], filter);
        let special = |filter: Filter| usize::from(filter != Filter::default());
        self.filtered = self.filtered + special(filter) - special(old);
        self.changed.push(index);
    }

    pub(crate) const fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    pub(crate) fn frame(&self) -> Frame<'_> {
        let frame = Frame::boxes(&self.boxes).changed(&self.changed);
        if self.filtered > 0 {
            frame.filters(&self.filters)
        } else {
            frame
        }
    }

    /// An update has seen everything.
    pub(crate) fn settle(&mut self) {
        self.free.append(&mut self.released);
        self.changed.clear();
    }

    pub(crate) fn entity(&self, index: u32) -> Entity {
        self.entities[index as usize]
    }

    /// Colliders, and boxes in the frame: the most colliders that there were at a time, and those that came before an update saw
    /// others go.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let boxes = self.boxes.len();
        (boxes - self.free.len() - self.released.len(), boxes)
    }
}
