//! The CUDA engine: from boxes to sorted pairs and events on the device, by every strategy.
//!
//! [`update`] runs the stages of an update in the order of the fields of [`crate::Timings`]:
//!
//! - `upload` ([`input`]): the frame, or only its changed boxes, goes to the spare scene.
//! - `bounds` ([`input`]): its boxes are checked and stored, and compared with those of the last
//!   update. The [`resting`] set is left out of what follows. With a list of [`neighbours`] the
//!   same launch finds pairs and events in order, and the rest is left out ([`neighbour_frames`]).
//! - `keys` and `sort` ([`find`]): a finder is planned, and the boxes are arranged for it: along
//!   one axis, in cells of several sizes, or in a tree.
//! - `sweep` ([`find`]): the finder searches for pairs. [`crate::Strategy::Auto`] is bounded:
//!   beyond the bound, the tree finds the pairs.
//! - `order` ([`order`]): the pairs are put in order by bins, by rows or by a sort.
//! - `events` ([`events`]): they are compared with those of the last update.
//! - `download` ([`memory`]): for updates from the host, the lists are copied there.
//!
//! The host waits once, after `events`, for the [`counters`]; before that only where cells are
//! planned, a resting set or a neighbour list is built, or nothing moved in the update before, so
//! that it asks first whether anything has now. If the capacity was too small, it grows and the
//! search repeats. The results of the last update are in other memory and are swapped with
//! the new ones at the very end: an update that fails changes nothing that can be seen.

mod abi;
mod between;
mod chunks;
mod counters;
pub mod differences;
mod engine;
mod events;
mod find;
mod graph;
mod input;
mod launch;
mod limits;
mod memory;
mod mesh;
mod neighbour_frames;
mod neighbours;
mod offsets;
mod order;
mod query;
mod resting;
pub mod scan;
mod sorting;
mod stages;
pub(crate) mod tuning;
mod update;

pub(crate) use engine::Engine;
pub use graph::FrameGraph;
pub use input::device_frame::DeviceFrame;
pub use mesh::MeshBounds;
