//! The errors of `.npy` files.

use super::header::tuple;
use std::io;
use std::path::{Path, PathBuf};

/// The result of reading or writing a file.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a file was not read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is missing or cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The path names a folder.
    #[error("{} is a folder, not a file", path.display())]
    Directory {
        /// The folder.
        path: PathBuf,
    },
    /// The file is not an `.npy` file, has an unknown version, or a damaged header.
    #[error("{} is not a readable .npy file: {reason}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The elements have another type.
    #[error("{} has elements of type {found}, expected {expected}", path.display())]
    Type {
        /// The file.
        path: PathBuf,
        /// The supported types.
        expected: &'static str,
        /// The type in NumPy's notation.
        found: String,
    },
    /// The array has another shape.
    #[error("{} has shape {}, expected {expected}", path.display(), tuple(shape))]
    Shape {
        /// The file.
        path: PathBuf,
        /// The supported shape.
        expected: String,
        /// The shape in the file.
        shape: Vec<u64>,
    },
    /// The file is too short or too long for its shape.
    #[error("{} has {found} bytes of data, but its shape {} of {descr} takes {}", path.display(), tuple(shape), takes(*expected))]
    Length {
        /// The file.
        path: PathBuf,
        /// The shape in the file.
        shape: Vec<u64>,
        /// The type in NumPy's notation.
        descr: &'static str,
        /// Bytes that the shape takes; `None` when more than 2^64.
        expected: Option<u64>,
        /// Bytes of data in the file.
        found: u64,
    },
    /// The array does not fit in host memory.
    #[error("out of host memory: cannot allocate {bytes} bytes for {}", path.display())]
    OutOfMemory {
        /// The file.
        path: PathBuf,
        /// Bytes requested.
        bytes: u64,
    },
}

pub(super) fn shape_error(path: &Path, expected: impl Into<String>, shape: &[u64]) -> Error {
    Error::Shape {
        path: path.into(),
        expected: expected.into(),
        shape: shape.into(),
    }
}

fn takes(expected: Option<u64>) -> String {
    expected.map_or("more than 2^64".into(), |bytes| bytes.to_string())
}
