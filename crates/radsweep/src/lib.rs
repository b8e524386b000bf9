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
//! # Filters
//!
//! A [`Filter`] for each box says what the box may pair with: layers and masks, groups whose boxes
//! do not pair with each other, and flags for static and sleeping boxes. A pair that a filter
//! leaves out is never stored. [`Frame`] also takes a world for each box, excluded pairs, and the
//! list of the boxes that changed.
//!
//! ```
//! use radsweep::{Aabb, BroadPhase, Config, Filter, Frame, Pair};
//!
//! const SENSOR: u32 = 1;
//! const PLAYER: u32 = 2;
//! const CRATE: u32 = 4;
//! let only = |layers, mask| Filter { layers, mask, ..Filter::default() };
//! let filters = [only(SENSOR, PLAYER), only(PLAYER, SENSOR | CRATE), only(CRATE, PLAYER | CRATE)];
//! let boxes = [Aabb::new([0.0; 3], [1.0; 3]); 3]; // all in one place
//! let mut broad_phase = BroadPhase::new(Config::default())?;
//! broad_phase.update(Frame::boxes(&boxes).filters(&filters))?;
//! // The sensor does not see the crate.
//! assert_eq!(broad_phase.pairs(), [Pair { a: 0, b: 1 }, Pair { a: 1, b: 2 }]);
//! # Ok::<(), radsweep::Error>(())
//! ```
//!
//! # Events
//!
//! [`BroadPhase::started`] and [`BroadPhase::ended`] have the pairs that are new since the last
//! update, and those that ended. They compare indices, so a body must keep its index;
//! [`Aabb::EMPTY`] is the box of an index that no body has. With a margin ([`Config::margin`])
//! small motion starts and ends no pair. [`Config::events`] turns events off, which saves their
//! time.
//!
//! # Queries
//!
//! [`BroadPhase::query`] looks for the boxes of the last update that meet a [`Shape`]: a box, a
//! point, a sphere, a ray, or a box that is cast. It may leave boxes out by filter and world.
//!
//! ```
//! use radsweep::{Aabb, BroadPhase, Config, Shape};
//!
//! let boxes = [2.0, 4.0].map(|x| Aabb::new([x, 0.0, 0.0], [x + 1.0, 1.0, 1.0]));
//! let mut broad_phase = BroadPhase::new(Config::default())?;
//! broad_phase.update(&boxes)?;
//! let ray = Shape::Ray { origin: [0.0, 0.5, 0.5], dir: [1.0, 0.0, 0.0], max_t: 100.0 };
//! assert_eq!(broad_phase.query(ray).closest()?.map(|hit| hit.index), Some(0));
//! assert_eq!(broad_phase.query(boxes[1]).collect()?, [1]);
//! # Ok::<(), radsweep::Error>(())
//! ```
//!
//! [`BroadPhase::overlaps_between`] finds the pairs of two sets of boxes.
//!
//! # GPU
//!
//! [`Backend::Auto`] tries the first NVIDIA GPU (feature `cuda`), then any other GPU (feature
//! `wgpu`), then the CPU. The pairs are the same. A backend on a GPU copies boxes from host memory
//! to the GPU in each update. A program whose boxes are on an NVIDIA GPU calls
//! `BroadPhase::update_device`, and reads the pairs there (`BroadPhase::device_pairs`) or copies
//! them (`BroadPhase::download`). `FrameGraph` runs a whole frame in one launch. With `wgpu` these
//! are `BroadPhase::update_wgpu` and `BroadPhase::wgpu_pairs`, on any GPU.
//! [`BroadPhase::fallback`] has the reason if a GPU is not used.
//!
//! # Features
//!
//! None of the features is on by default.
//!
//! - `cuda`: NVIDIA GPUs, the device layer `gpu`, and the calls that read and write device memory.
//!   It needs no toolkit to build and no driver to start, and has no effect on targets without a
//!   CUDA driver. A crate outside of the workspace that enables it needs a few lines of
//!   configuration, which the guide lists.
//! - `wgpu`: GPUs through Vulkan, Metal and DirectX 12 ([`Backend::Wgpu`]), the module
//!   `sort::wgpu`, and the device layer `wgpu_device`.
//! - `ecs`: the module `ecs`, which is the crate `radsweep-ecs`: components, a resource and systems
//!   of `bevy_ecs`.
//!
//! # The crates behind it
//!
//! The root re-exports the broad phase, the crate `radsweep-sap`. [`sort`] is the crate `gpusort`:
//! sorts of keys, pairs, indices and records. The guide and the examples are in the
//! [repository](https://github.com/radsweep/radsweep).

#[doc(inline)]
pub use gpusort as sort;
#[doc(inline)]
pub use sap::*;

#[cfg(cuda)]
#[doc(inline)]
pub use gpu;
#[cfg(feature = "ecs")]
#[doc(inline)]
pub use sap_ecs as ecs;
#[cfg(feature = "wgpu")]
#[doc(inline)]
pub use wgpu_device;

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
    #[cfg(all(cuda, feature = "wgpu"))]
    #[doc = include_str!("../../../docs/guide/gpu.md")]
    mod gpus {}
}
