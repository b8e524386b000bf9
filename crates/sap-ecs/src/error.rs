//! What can go wrong.

use bevy_ecs::entity::Entity;
use sap::InvalidReason;

/// Why an update found no pairs. The pairs of the last one that did are as they were.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The box of an entity is NaN or inverted: the first such box.
    #[error("the box of entity {entity} is invalid: {reason}")]
    InvalidCollider {
        /// Whose box it is.
        entity: Entity,
        /// What is wrong with it.
        reason: InvalidReason,
    },
    /// The broad phase failed.
    #[error(transparent)]
    BroadPhase(#[from] sap::Error),
}
