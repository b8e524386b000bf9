//! Writing `.npy` files so that the target is either what it was before or complete.

use super::{Element, Error, Result, shape_error};
use npyz::{WriteOptions, WriterBuilder};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// An array on its way into a file. Nothing is seen at the target until [`Writer::finish`]: the data goes to a temporary
/// file in the same folder, which then takes the target's name, and which is removed where the writer is dropped before.
/// A target that is not a regular file, such as `/dev/null` or a pipe, is written directly.
///
/// ```
/// use radsweep::npy::{self, Writer};
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

#[derive(Debug)]
enum Output {
    Replacing {
        file: NamedTempFile,
        target: PathBuf,
    },
    Direct(File),
}

impl Writer {
    /// Checks that `path` can be written, without touching it.
    ///
    /// # Errors
    ///
    /// [`Error::Directory`], or [`Error::Write`] where the folder is missing or not writable.
    pub fn create(path: &Path) -> Result<Self> {
        let output = open(path).map_err(|source| write_error(path, source))?;
        Ok(Self {
            path: path.into(),
            output,
        })
    }

    /// Starts an array of this shape; as many elements as that are to be appended.
    ///
    /// # Errors
    ///
    /// [`Error::Write`], as for [`Writer::append`]; [`Error::Shape`] where the shape counts 2^64 elements or more.
    pub fn header<T: Element>(&mut self, shape: &[u64]) -> Result<()> {
        if count(shape).is_none() {
            return Err(shape_error(&self.path, "fewer than 2^64 elements", shape));
        }
        let written = WriteOptions::<T>::new()
            .default_dtype()
            .shape(shape)
            .writer(self.output())
            .write_header_only()
            .map(drop);
        written.map_err(|source| write_error(&self.path, source))
    }

    /// Adds elements in row-major order.
    ///
    /// # Errors
    ///
    /// [`Error::Write`], a full disk among them.
    pub fn append<T: Element>(&mut self, elements: &[T]) -> Result<()> {
        let written = self.output().write_all(bytemuck::cast_slice(elements));
        written.map_err(|source| write_error(&self.path, source))
    }

    /// Puts the file where it belongs.
    ///
    /// # Errors
    ///
    /// [`Error::Write`]; the target is then as it was.
    pub fn finish(self) -> Result<()> {
        let done = match self.output {
            Output::Direct(mut file) => file.flush(),
            Output::Replacing { file, target } => file
                .persist(target)
                .map(drop)
                .map_err(|failed| failed.error),
        };
        done.map_err(|source| write_error(&self.path, source))
    }

    fn output(&mut self) -> &mut dyn Write {
        match &mut self.output {
            Output::Direct(file) => file,
            Output::Replacing { file, .. } => file,
        }
    }
}

/// Writes a whole array of this shape to `path`, completely or not at all.
///
/// # Errors
///
/// As [`Writer`]; [`Error::Shape`] where the shape does not count the elements.
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

/// Number of elements, where it fits.
fn count(shape: &[u64]) -> Option<u64> {
    shape.iter().try_fold(1_u64, |n, &side| n.checked_mul(side))
}

fn open(path: &Path) -> io::Result<Output> {
    // A link stays a link: what it points to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let existing = fs::metadata(&target).ok();
    if let Some(metadata) = &existing {
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let file = File::options().write(true).open(&target)?;
        if !metadata.is_file() {
            return Ok(Output::Direct(file));
        }
    }
    let folder = target
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut builder = Builder::new();
    builder.prefix(".").suffix(".npy.tmp");
    // Temporary files are private otherwise; a new file gets the usual permissions less the process's mask.
    #[cfg(unix)]
    builder.permissions(existing.map_or_else(
        || std::os::unix::fs::PermissionsExt::from_mode(0o666),
        |metadata| metadata.permissions(),
    ));
    let file = builder.tempfile_in(folder)?;
    Ok(Output::Replacing { file, target })
}

fn write_error(path: &Path, source: io::Error) -> Error {
    let path = path.into();
    // `tempfile` adds the name of its file, which says nothing to who asked for another.
    let inner = source.get_ref().and_then(|wrapped| {
        wrapped
            .source()?
            .downcast_ref::<io::Error>()?
            .raw_os_error()
    });
    let source = inner.map_or(source, io::Error::from_raw_os_error);
    match source.kind() {
        io::ErrorKind::IsADirectory => Error::Directory { path },
        _ => Error::Write { path, source },
    }
}
