//! The CUDA engine: from boxes to sorted pairs and events on the device, by every strategy.
//!
//! An update uploads the frame, or what has changed of it ([`patch`]), into the spare [`scene::Scene`] and checks and stores its boxes. [`sweep::Sweep`] sorts them
//! along one axis and sweeps, from the ends of boxes for [`crate::Strategy::Endpoints`] ([`endpoints`]); [`grid::Grid`] puts
//! them into cells of several sizes for [`crate::Strategy::Subdivided`], cut by a plan of an earlier frame where that still
//! suits ([`cut`]); [`tree::Tree`] comes after either where [`crate::Strategy::Auto`] goes beyond its bound ([`bound`]). Pairs are put in order by rows ([`rows`]) or by a sort, and compared with those of the last update
//! ([`events`]), as many as the device has counted: the host waits once, at the end, and has the pairs found again with more
//! room where there was too little. For updates from the host the lists are then downloaded. What the last update left is in
//! other memory, and changes places with the new at the very end: an update that fails changes nothing that can be seen.

mod abi;
mod between;
mod bounds;
mod chunks;
mod engine;
mod events;
mod find;
mod graph;
mod input;
mod kernels;
mod limits;
mod memory;
mod offsets;
mod order;
mod query;
mod resting;
mod stages;
mod update;

pub use bounds::MeshBounds;
pub(crate) use engine::Engine;
pub use graph::FrameGraph;
pub use input::device_frame::DeviceFrame;
pub(crate) use query::Question;
