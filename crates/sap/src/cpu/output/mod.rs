//! From pairs in no order to the sorted lists of an update.

pub(super) mod collect;
pub(super) mod events;
pub(super) mod lists;
pub(super) mod order;
mod rows;
