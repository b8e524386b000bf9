//! Stable sorts on CUDA GPUs, on the CPU, and by `wgpu` on other GPUs.
//!
//! Keys are `u32 i32 f32 u64 i64 f64` ([`Key`]). They sort in either [`Order`], by any window of
//! their bits ([`SortOptions`]). There are four kinds of sort:
//!
//! - a *key sort* sorts keys alone;
//! - a *pair sort* moves a value with each key;
//! - an *index sort* (argsort) leaves the keys unchanged and returns the permutation that sorts
//!   them;
//! - a *record sort* sorts an index and then moves records of any size once.
//!
//! All sorts are stable, and the same input gives the same bits on every backend, run after run.
//! Floats sort by IEEE total order, except that `-0.0` equals `+0.0`. Zeros keep their order, NaNs
//! of negative sign come first, NaNs of positive sign last ([`Key::to_ordered_bits`]).
//!
//! No call panics. A wrong call returns an [`Error`] and leaves keys, values and output unchanged.
//! A process that runs out of memory within a sort on the CPU ends ([`cpu`]).
//!
//! ```
//! use gpusort::{SortOptions, cpu};
//!
//! let distance = [2.5_f32, -1.0, 7.25];
//! let mut order = [0; 3];
//! cpu::sort_index(&distance, &mut order, &SortOptions::new().descending())?;
//! assert_eq!(order, [2, 0, 1]);
//! # Ok::<(), gpusort::Error>(())
//! ```
//!
//! The module [`cpu`] is always available. The CUDA sorts need the feature `cuda`, which has no
//! effect on targets without a CUDA driver. The module `wgpu` sorts on any GPU, and
//! needs the feature `wgpu`.

mod algorithm;
mod bytes;
pub mod cpu;
#[cfg(cuda)]
pub mod cuda;
mod error;
mod key;
#[cfg(any(cuda, feature = "wgpu"))]
mod key_masks;
mod options;
mod report;
#[cfg(feature = "wgpu")]
pub mod wgpu;

pub use algorithm::{Algorithm, UnknownAlgorithm};
pub use error::{Error, Result};
pub use key::{Key, KeyType, OrderedBits};
pub use options::{Order, SortOptions};
pub use report::SortReport;

/// What the sorts of several ranks look at. It may change in any release.
#[cfg(cuda)]
#[doc(hidden)]
pub mod internals {
    pub use crate::cuda::order::KeyOrder;
}
