//! Broad-phase collision detection by GPU sorting: boxes in, exactly the overlapping pairs out.
//!
//! This crate gathers the libraries of the project and holds the program of the same name:
//!
//! - [`sap`]: the broad phase. [`sap::BroadPhase`] takes the boxes of a frame and gives the sorted list of overlapping
//!   pairs, with those that started and ended; the same on the CPU and on CUDA.
//! - [`gpusort`]: the sorts under it, which are of use by themselves: keys, pairs, index and record sorts.
//! - `gpu`: the CUDA device layer, with the feature `cuda` where there can be a driver.
//! - [`sap_ecs`]: the broad phase as components and systems of `bevy_ecs`.
//! - [`npy`]: NumPy files of boxes, pairs and keys.
//! - [`scenes`]: the scenes of the program, to measure and to test with.
//!
//! A program that only wants the pairs depends on `radsweep-sap` alone.
//!
//! ```
//! use radsweep::sap::{Aabb, BroadPhase, Config, Pair};
//!
//! let mut boxes = vec![
//!     Aabb::new([0.0; 3], [1.0; 3]),
//!     Aabb::new([0.5; 3], [1.5; 3]),
//!     Aabb::new([9.0; 3], [9.5; 3]),
//! ];
//! let mut broad_phase = BroadPhase::new(Config::default())?;
//! broad_phase.update(&boxes)?;
//! assert_eq!(broad_phase.pairs(), [Pair { a: 0, b: 1 }]);
//!
//! boxes[2] = Aabb::new([1.2; 3], [2.0; 3]); // moves over to the second
//! broad_phase.update(&boxes)?;
//! assert_eq!(broad_phase.started(), [Pair { a: 1, b: 2 }]);
//! # Ok::<(), radsweep::sap::Error>(())
//! ```

pub use gpusort;
pub use sap;
pub use sap_ecs;

#[cfg(cuda)]
pub use gpu;

pub mod npy;
#[doc(hidden)]
pub mod output;
pub mod scenes;

/// What the README and the guide show compiles and runs.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../docs/guide/README.md")]
    struct Guide;
    #[doc = include_str!("../docs/guide/strategies.md")]
    struct Strategies;
    #[doc = include_str!("../docs/guide/engines.md")]
    struct Engines;
}
