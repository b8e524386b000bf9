//! Exact broad-phase collision detection: axis-aligned boxes in, exactly the pairs that overlap out.
//!
//! [`BroadPhase`] takes the boxes of a frame and keeps the sorted list of overlapping [`Pair`]s, with
//! those that started and ended since the last frame. The list is the same, bit for bit, on every
//! backend, strategy and number of threads.
//!
//! ```
//! use radsweep::{Aabb, BroadPhase, Config, Pair};
//!
//! let mut boxes = [Aabb::new([0.0; 3], [1.0; 3]), Aabb::new([0.5; 3], [1.5; 3]), Aabb::new([9.0; 3], [9.5; 3])];
//! let mut broad_phase = BroadPhase::new(Config::default())?;
//! broad_phase.update(&boxes)?;
//! assert_eq!(broad_phase.pairs(), [Pair { a: 0, b: 1 }]);
//!
//! boxes[2] = Aabb::new([1.2; 3], [2.0; 3]); // moves over to the second box
//! broad_phase.update(&boxes)?;
//! assert_eq!(broad_phase.started(), [Pair { a: 1, b: 2 }]);
//! # Ok::<(), radsweep::Error>(())
//! ```
//!
//! - The root is the broad phase, the crate `radsweep-sap`.
//! - [`sort`] is the sorts under it, the crate `gpusort`: keys, pairs, index and record sorts.
//! - The feature `cuda` adds NVIDIA GPUs: `gpu`, the device layer, and what takes and gives memory of
//!   a device. It needs no toolkit to build and no driver to start.
//! - The feature `ecs` adds `ecs`, the crate `radsweep-ecs`: the broad phase as components and systems
//!   of `bevy_ecs`.
//!
//! Neither feature is on by default.

pub use gpusort as sort;
#[doc(inline)]
pub use sap::*;

#[cfg(cuda)]
pub use gpu;
#[cfg(feature = "ecs")]
pub use sap_ecs as ecs;

/// Compiles and runs what the README and the guide show.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Front;
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guide/README.md")]
    struct Guide;
    #[doc = include_str!("../../../docs/guide/strategies.md")]
    struct Strategies;
    #[doc = include_str!("../../../docs/guide/engines.md")]
    struct Engines;
}
