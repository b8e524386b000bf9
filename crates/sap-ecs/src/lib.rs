//! The broad phase of `sap` as components, a resource and systems of `bevy_ecs`. It needs no app
//! framework.
//!
//! An entity with a [`Collider`] has a box at the position of its [`Moved`]. [`install`] creates
//! the resource [`BroadPhase`] and the schedule [`BroadPhaseSchedule`]. Each run of the schedule
//! writes the boxes of changed entities, finds all pairs, and sends [`PairStarted`] and
//! [`PairEnded`].
//!
//! ```
//! use bevy_ecs::prelude::*;
//! use sap_ecs::{BroadPhase, BroadPhaseSchedule, Collider, Moved, PairStarted};
//!
//! let mut world = World::new();
//! sap_ecs::install(&mut world, sap_ecs::sap::Config::default())?;
//! let crate_box = world.spawn((Collider::new([0.5; 3]), Moved([0.0, 3.0, 0.0]))).id();
//! let floor = world.spawn(Collider::new([10.0, 0.5, 10.0]).fixed()).id();
//! world.run_schedule(BroadPhaseSchedule);
//! assert_eq!(world.resource::<BroadPhase>().pairs().len(), 0);
//!
//! if let Some(mut moved) = world.get_mut::<Moved>(crate_box) {
//!     moved.0[1] = 1.0; // it lands
//! }
//! world.run_schedule(BroadPhaseSchedule);
//! let pairs: Vec<_> = world.resource::<BroadPhase>().pairs().collect();
//! assert_eq!(pairs, [[crate_box, floor]]);
//! let started = world.resource::<Messages<PairStarted>>();
//! assert_eq!(started.iter_current_update_messages().count(), 1);
//! # Ok::<(), sap_ecs::Error>(())
//! ```
//!
//! # When an update fails
//!
//! A box that is NaN or inverted makes the update fail, unless the configuration skips such boxes
//! ([`sap::OnInvalid::Skip`]). Pairs and queries are then those of the last successful update, no
//! message is sent, and the next run tries again. The failure is logged by the crate `log`, once
//! for equal failures in a row; an app of bevy prints it. Without a logger, read
//! [`BroadPhase::error`] after each run:
//!
//! ```
//! # use bevy_ecs::prelude::*;
//! # use sap_ecs::{BroadPhase, BroadPhaseSchedule, Collider, Moved};
//! # let mut world = World::new();
//! # sap_ecs::install(&mut world, sap_ecs::sap::Config::default())?;
//! let lost = world.spawn((Collider::new([0.5; 3]), Moved([0.0, f32::NAN, 0.0]))).id();
//! world.run_schedule(BroadPhaseSchedule);
//! if let Some(error) = world.resource::<BroadPhase>().error() {
//!     assert_eq!(error.to_string(), format!("the box of entity {lost} is invalid: min y is NaN"));
//! }
//! # Ok::<(), sap_ecs::Error>(())
//! ```
//!
//! # What a frame costs
//!
//! A run writes the boxes of entities whose [`Collider`] or [`Moved`] changed, by the change
//! detection of `bevy_ecs`: a write through `Mut` counts, a read does not. It passes their indices
//! to the broad phase ([`sap::Frame::changed`]): on the CPU the pairs of all others are reused, on
//! CUDA only these boxes are uploaded. A run without changed, added or removed entities ends there.
//! For 10,000 entities on 2 CPU cores (`benches/bench_moving.rs`):
//!
//! | moving entities | boxes written | ms per run | of it in the broad phase |
//! |---|---|---|---|
//! | 0 | 0 | 0.011 | 0 |
//! | 1 | 1 | 0.023 | 0.013 |
//! | 100 | 100 | 0.073 | 0.060 |
//! | 1,000 | 1,000 | 0.40 | 0.35 |
//! | 10,000 | 10,000 | 0.69 | 0.56 |

mod broad_phase;
mod collider;
mod error;
mod slots;
mod systems;

pub use broad_phase::{BroadPhase, EntityHit, EntityQuery};
pub use collider::{BoxIndex, Collider, Moved};
pub use error::Error;
pub use sap;
pub use systems::{
    BroadPhaseSchedule, BroadPhaseSystems, PairEnded, PairStarted, install, systems,
};
