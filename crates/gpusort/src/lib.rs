//! Sorting on CUDA GPUs and, with the same calls on slices, on the CPU.
//!
//! Keys are `u32 i32 f32 u64 i64 f64` ([`Key`]), in either [`Order`], by any window of their bits ([`SortOptions`]). There
//! are four sorts: keys alone; *pairs*, a key and a value; *index*, which leaves the keys where they are and gives the
//! permutation that sorts them (argsort); and *records* of any size, which are moved once, by the index.
//!
//! All of them are stable, and the same input gives the same bits on every backend, run after run. Floats are sorted by
//! IEEE total order, but with `-0.0` equal to `+0.0`: zeros keep the order they came in, NaNs of negative sign come
//! first, NaNs of positive sign last ([`Key::to_ordered_bits`]).
//!
//! Nothing here panics: whatever is wrong with a call is an [`Error`], and then keys, values and output are as before.
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
//! [`cpu`] is always there. The CUDA sorts are behind the feature `cuda`, which does nothing on targets that cannot have
//! a CUDA driver.

mod algorithm;
mod bytes;
pub mod cpu;
#[cfg(cuda)]
pub mod cuda;
mod error;
mod key;
mod options;
mod report;

pub use algorithm::{Algorithm, UnknownAlgorithm};
pub use error::{Error, Result};
pub use key::{Key, KeyType, OrderedBits};
pub use options::{Order, SortOptions};
pub use report::SortReport;
