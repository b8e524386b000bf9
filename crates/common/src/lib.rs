//! Code shared by the parts of the program `radsweep`.
//!
//! - [`npy`] reads and writes NumPy files.
//! - [`output`] writes files completely or not at all.
//! - [`backend`] chooses the backend of a command.
//! - `calibration` finds and loads the sort calibration (feature `cuda`).
//! - [`byte_limit`] computes how fast a sort could be.
//! - [`numbers`] parses counts such as `10k`, `1e6` and `2^20`.
//! - [`terminal`] prints notes, warnings and progress bars.

pub mod backend;
pub mod byte_limit;
#[cfg(cuda)]
pub mod calibration;
pub mod npy;
pub mod numbers;
pub mod output;
pub mod terminal;

/// The result of a command.
///
/// A bare [`std::io::Error`] comes from writing to stdout; errors of files are an [`npy::Error`].
pub type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;
