//! What the parts of the program `radsweep` share: files, the backend that runs, and what is said on a terminal.
//!
//! [`npy`] reads and writes NumPy files, [`output`] writes files whole or not at all, [`backend`] says where a command
//! runs, `calibration` where its sort calibration is kept (feature `cuda`), [`byte_limit`] how fast a sort could be, and
//! [`terminal`] has notes and progress bars.

pub mod backend;
pub mod byte_limit;
#[cfg(cuda)]
pub mod calibration;
pub mod npy;
pub mod output;
pub mod terminal;

/// The result of a command. An [`std::io::Error`] that is not wrapped comes from writing to stdout: files name themselves in
/// [`npy::Error`].
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
