//! Exact broad-phase collision detection: axis-aligned boxes in, exactly the overlapping pairs out.
//!
//! [`BroadPhase`] takes the boxes of a frame and returns the sorted list of overlapping [`Pair`]s,
//! and the pairs that started and ended since the last frame. The list is the same, bit for bit, on
//! every backend, strategy and number of threads.
//!
//! ```
//! use radsweep::{Aabb, BroadPhase, Config, Pair};
//!
//! let mut boxes = [
//!     Aabb::new([0.0; 3], [1.0; 3]),
//!     Aabb::new([0.5; 3], [1.5; 3]),
//!     Aabb::new([9.0; 3], [9.5; 3]),
//! ];
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
//! - The root re-exports the broad phase, the crate `radsweep-sap`.
//! - [`sort`] is the crate `gpusort`: sorts of keys, pairs, indices and records.
//! - The feature `cuda` adds NVIDIA GPUs: the device layer `gpu`, and the calls that read and write
//!   device memory. It needs no toolkit to build and no driver to start.
//! - The feature `ecs` adds `ecs`, the crate `radsweep-ecs`: components and systems of `bevy_ecs`.
//!
//! Neither feature is on by default.

pub use gpusort as sort;
#[doc(inline)]
pub use sap::*;

#[cfg(cuda)]
pub use gpu;
#[cfg(feature = "ecs")]
pub use sap_ecs as ecs;

/// Tests the examples of the README and the guide.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Front;
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guide/README.md")]
    struct Guide;
    #[doc = include_str!("../../../docs/guide/queries.md")]
    struct Queries;
    #[doc = include_str!("../../../docs/guide/strategies.md")]
    struct Strategies;
    #[doc = include_str!("../../../docs/guide/engines.md")]
    struct Engines;
}
