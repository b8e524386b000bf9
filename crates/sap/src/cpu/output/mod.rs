//! Collects the pairs of an update, sorts them and finds the events.

pub(super) mod collect;
pub(super) mod events;
pub(super) mod lists;
pub(super) mod order;
mod rows;
