//! The boxes of all colliders in one array, the form of a frame, with their entities.

use bevy_ecs::entity::Entity;
use sap::{Aabb, Filter, Frame};

/// The boxes and entities by index.
///
/// A free box is [`Aabb::EMPTY`]. It is reused only after an update has seen it empty, so that its
/// old pairs end with the old entity.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    boxes: Vec<Aabb>,
    filters: Vec<Filter>,
    entities: Vec<Entity>,
    free: Vec<u32>,
    released: Vec<u32>,
    /// Number of boxes with a filter other than the default. If it is 0, the frame needs no
    /// filters.
    filtered: usize,
    /// The boxes that were written or released since the last successful update.
    changed: Vec<u32>,
}

impl Slots {
    pub(crate) fn take(&mut self, entity: Entity) -> u32 {
        if let Some(index) = self.free.pop() {
            self.entities[index as usize] = entity;
            return index;
        }
        // An entity's index has 32 bits, which limits the number of boxes.
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
        let slot = index as usize;
        self.boxes[slot] = bounds;
        let old = std::mem::replace(&mut self.filters[slot], filter);
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

    /// Clears the changed set and frees released boxes, after a successful update.
    pub(crate) fn settle(&mut self) {
        self.free.append(&mut self.released);
        self.changed.clear();
    }

    pub(crate) fn entity(&self, index: u32) -> Entity {
        self.entities[index as usize]
    }

    /// Returns the number of colliders and of boxes in the frame. Free boxes count among the
    /// latter.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let boxes = self.boxes.len();
        (boxes - self.free.len() - self.released.len(), boxes)
    }
}
