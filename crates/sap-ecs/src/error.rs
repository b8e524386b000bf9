//! The errors of an update.

use bevy_ecs::entity::Entity;
use sap::InvalidReason;

/// Why an update failed. The pairs of the last successful update are unchanged.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The box of an entity is NaN or inverted: the first such box.
    #[error("the box of entity {entity} is invalid: {reason}")]
    InvalidCollider {
        /// The entity of the box.
        entity: Entity,
        /// What is wrong with the box.
        reason: InvalidReason,
    },
    /// The broad phase failed.
    #[error(transparent)]
    BroadPhase(#[from] sap::Error),
}
