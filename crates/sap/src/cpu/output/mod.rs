//! From pairs found to sorted lists.

pub(super) mod collect;
pub(super) mod events;
pub(super) mod order;
mod rows;
