//! Exact broad-phase collision detection by sort and sweep: axis-aligned boxes in, the pairs that
//! overlap out.
//!
//! [`BroadPhase`] takes the boxes of a scene each frame and keeps the sorted list of overlapping
//! [`Pair`]s, with those that started and ended. It works on the CPU, on a rayon pool for
//! all but small frames, and, with the features `cuda` and `wgpu`, on GPUs: all give the same
//! pairs, bit for bit, whatever the [`Strategy`] and the thread count.
//!
//! ```
//! use sap::{Aabb, BroadPhase, Config, Pair};
//!
//! let boxes = [
//!     Aabb::new([0.0; 3], [1.0; 3]),
//!     Aabb::new([1.0, 0.0, 0.0], [2.0, 1.0, 1.0]), // touches the first
//!     Aabb::new([5.0; 3], [6.0; 3]),
//! ];
//! let mut broad_phase = BroadPhase::new(Config::default())?;
//! let report = broad_phase.update(&boxes)?;
//! assert_eq!(report.pairs, 1);
//! assert_eq!(broad_phase.pairs(), [Pair { a: 0, b: 1 }]);
//! # Ok::<(), sap::Error>(())
//! ```
//!
//! Programs depend on the crate `radsweep`, which has this crate at its root; its page has sections
//! on filters, events, queries and the GPU.
//!
//! # Features
//!
//! Both are off by default. `cuda` adds NVIDIA GPUs. It needs no toolkit to build and no driver to
//! start, and has no effect on targets without a CUDA driver. `wgpu` adds GPUs of
//! Vulkan, Metal and DirectX 12.

mod aabb;
mod backend;
mod broad_phase;
mod choice;
mod config;
mod cpu;
#[cfg(cuda)]
mod cuda;
mod engine;
mod error;
mod filter;
mod frame;
#[cfg(on_device)]
mod handover;
mod hash;
mod mesh;
mod packing;
mod pair;
mod policy;
mod queries;
mod query;
#[cfg(test)]
mod random;
mod report;
mod stratified;
mod subdivision;
mod threads;
mod try_alloc;
#[cfg(feature = "wgpu")]
mod wgpu;

pub use aabb::{Aabb, Aabb64, OverlapRule};
pub use broad_phase::BroadPhase;
pub use config::{Backend, Config, OnInvalid, Strategy};
#[cfg(cuda)]
pub use cuda::{DeviceFrame, FrameGraph, MeshBounds};
pub use error::{Error, InvalidReason, Result};
pub use filter::{Filter, FilterFlags};
pub use frame::Frame;
pub use mesh::{aabbs_from_mesh, aabbs_from_objects};
pub use pair::Pair;
pub use queries::Query;
pub use query::{Hit, Shape};
pub use report::{ChunkReport, Invalid, Report, Sorts, Stats, Timings};
#[cfg(feature = "wgpu")]
pub use wgpu::{WgpuFrame, WgpuPairs};

/// What the ranks, the program and the tests of radsweep look at. It may change in any release.
#[doc(hidden)]
pub mod internals {
    pub use crate::choice::{Choice, Reason};
    pub use crate::cpu::key::ordered;
    #[cfg(cuda)]
    pub use crate::cuda::{differences, scan::Scan};
    pub use crate::hash::{PairHasher, pair_hash};
    pub use crate::subdivision::Subdivision;

    /// Tells whether there is a neighbour list after the last update.
    #[must_use]
    pub fn has_list(broad_phase: &crate::BroadPhase) -> bool {
        broad_phase.engine().has_list()
    }
}
