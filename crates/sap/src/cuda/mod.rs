//! The CUDA engine: [`crate::Strategy::Sweep`] from boxes to sorted pairs and events on the device.
//!
//! An update uploads the frame into the spare [`scene::Scene`], whose boxes it checks and stores, chooses the axis, sorts,
//! and sweeps ([`sweep::Sweep`], `kernels/sap`). It then waits for the counters, and runs the sweep again with more room
//! where there was too little. Pairs are sorted, compared with those of the last update ([`events`]) and, for updates from
//! the host, downloaded. What the last update left is in other memory, and changes places with the new at the very end: an
//! update that fails changes nothing that can be seen.

mod chunks;
mod engine;
mod events;
mod kernels;
mod memory;
mod params;
mod scene;
mod sweep;

pub(crate) use engine::Engine;
