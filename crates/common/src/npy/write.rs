//! Writes `.npy` files atomically: the target is either unchanged or complete.

use super::element::Element;
use super::error::{Error, Result, shape_error};
use super::header;
use crate::output::{self, Output, is_dash};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Writes an array to a file, which appears when [`Writer::finish`] is called.
///
/// Until then the data is in a temporary file in the same folder, on Linux one without a name;
/// dropping the writer removes it. A symbolic link is followed. Stdout (`-`), or a target that is
/// not a regular file, such as `/dev/null` or a pipe, is written directly.
///
/// ```
/// use radsweep_common::npy::{self, Writer};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("keys.npy");
/// let mut writer = Writer::create(&path)?;
/// writer.header::<u32>(&[3])?;
/// writer.append(&[7_u32, 8, 9])?;
/// writer.finish()?;
/// assert!(matches!(npy::read_keys(&path)?, npy::Keys::U32(keys) if keys == [7, 8, 9]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    output: Output,
}

impl Writer {
    /// Opens a writer, and checks that `path` can be written without changing it.
    ///
    /// # Errors
    ///
    /// [`Error::Directory`], or [`Error::Write`] where the folder is missing or not writable, or
    /// stdout is a terminal.
    pub fn create(path: &Path) -> Result<Self> {
        let output = if is_dash(path) && io::stdout().is_terminal() {
            let reason = "it is a terminal: send the file through a pipe, or name one";
            Err(io::Error::other(reason))
        } else {
            Output::create(path)
        };
        let path = output::name(path, "stdout");
        Ok(Self {
            output: output.map_err(|source| write_error(path, source))?,
            path: path.into(),
        })
    }

    /// Starts an array of this shape; the caller then appends as many elements.
    ///
    /// # Errors
    ///
    /// [`Error::Write`], as for [`Writer::append`]; [`Error::Shape`] for 2^64 elements or more.
    pub fn header<T: Element>(&mut self, shape: &[u64]) -> Result<()> {
        if count(shape).is_none() {
            return Err(shape_error(&self.path, "fewer than 2^64 elements", shape));
        }
        let block = header::block(T::DESCR, shape)
            .ok_or_else(|| shape_error(&self.path, "fewer than a thousand sides", shape))?;
        let written = self.output.write_all(&block);
        written.map_err(|source| write_error(&self.path, source))
    }

    /// Appends elements in row-major order.
    ///
    /// # Errors
    ///
    /// [`Error::Write`], as for a full disk.
    pub fn append<T: Element>(&mut self, elements: &[T]) -> Result<()> {
        let written = self.output.write_all(bytemuck::cast_slice(elements));
        written.map_err(|source| write_error(&self.path, source))
    }

    /// Publishes the file at its target.
    ///
    /// # Errors
    ///
    /// [`Error::Write`]; the target is then unchanged.
    pub fn finish(self) -> Result<()> {
        let done = self.output.finish();
        done.map_err(|source| write_error(&self.path, source))
    }
}

/// Writes an array of this shape to `path`, completely or not at all.
///
/// # Errors
///
/// As [`Writer`]; [`Error::Shape`] where the shape has another number of elements.
pub fn write<T: Element>(path: &Path, shape: &[u64], elements: &[T]) -> Result<()> {
    if count(shape) != Some(elements.len() as u64) {
        let expected = format!("a shape of {} elements", elements.len());
        return Err(shape_error(path, expected, shape));
    }
    let mut writer = Writer::create(path)?;
    writer.header::<T>(shape)?;
    writer.append(elements)?;
    writer.finish()
}

/// Returns the number of elements of a shape; `None` if it does not fit.
fn count(shape: &[u64]) -> Option<u64> {
    shape.iter().try_fold(1_u64, |n, &side| n.checked_mul(side))
}

/// Returns the error of a file that cannot be written.
#[must_use]
pub fn write_error(path: &Path, source: io::Error) -> Error {
    let path = path.into();
    match source.kind() {
        io::ErrorKind::IsADirectory => Error::Directory { path },
        _ => Error::Write { path, source },
    }
}
