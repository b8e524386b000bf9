//! Reads and writes NumPy `.npy` files: boxes as `<f4` or `<f8` of shape `(n, 6)` or `(n, 2, 3)`,
//! keys as one-dimensional `<u4`, `<i4`, `<f4`, `<u8`, `<i8` or `<f8`.
//!
//! It reads format versions 1 to 3, little-endian, in C and Fortran order. The path `-` is stdin or
//! stdout. A header is checked against the length of the file before anything is allocated, so a
//! file of a hundred bytes that claims 10^18 rows costs nothing. Every [`Error`] names the file.

mod element;
mod error;
mod header;
mod write;

pub use element::Element;
pub use error::{Error, Result};
pub use write::{Writer, write, write_error};

use crate::output::{self, is_dash};
use bytemuck::Pod;
use error::shape_error;
use header::Header;
use radsweep::sort::KeyType;
use radsweep::{Aabb, Aabb64};
use std::collections::TryReserveError;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

#[cfg(target_endian = "big")]
compile_error!("arrays are moved as little-endian bytes without conversion");

macro_rules! keys {
    ($($type:ty, $variant:ident, $doc:literal;)*) => {
        /// Keys of one of the six types.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Keys {
            $(#[doc = $doc] $variant(Vec<$type>),)*
        }

        impl Keys {
            /// Returns the number of keys.
            #[must_use]
            pub fn len(&self) -> usize {
                match self { $(Self::$variant(keys) => keys.len(),)* }
            }

            /// Returns the type of the keys.
            #[must_use]
            pub fn key_type(&self) -> KeyType {
                match self { $(Self::$variant(_) => <$type as radsweep::sort::Key>::TYPE,)* }
            }
        }

        fn keys(file: NpyFile) -> Result<Keys> {
            match file.header.descr.as_str() {
                $(<$type>::DESCR => Ok(Keys::$variant(file.elements()?)),)*
                _ => Err(file.wrong_type("one of <u4 <i4 <f4 <u8 <i8 <f8")),
            }
        }
    };
}

keys! {
    u32, U32, "`<u4`";
    i32, I32, "`<i4`";
    f32, F32, "`<f4`";
    u64, U64, "`<u8`";
    i64, I64, "`<i8`";
    f64, F64, "`<f8`";
}

impl Keys {
    /// Tells whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Boxes of one of the two types.
#[derive(Debug, Clone, PartialEq)]
pub enum Boxes {
    /// `<f4`
    F32(Vec<Aabb>),
    /// `<f8`
    F64(Vec<Aabb64>),
}

impl Boxes {
    /// Returns the number of boxes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::F32(boxes) => boxes.len(),
            Self::F64(boxes) => boxes.len(),
        }
    }

    /// Tells whether there are no boxes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns boxes of `f32`; those of `f64` are rounded outward.
    #[must_use]
    pub fn outward(self) -> Vec<Aabb> {
        match self {
            Self::F32(boxes) => boxes,
            Self::F64(boxes) => boxes.iter().map(Aabb64::outward).collect(),
        }
    }
}

/// Reads boxes: `<f4` or `<f8` of shape `(n, 6)`, the min corner's x, y, z, then the max corner's,
/// or of shape `(n, 2, 3)`, the two corners.
///
/// It does not check the boxes themselves: the broad phase does.
///
/// # Errors
///
/// All of [`Error`] but [`Error::Write`].
///
/// ```
/// use radsweep_common::npy::{self, Boxes};
/// use radsweep::Aabb;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("boxes.npy");
/// npy::write(&path, &[2, 6], &[0.0_f32, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0])?;
/// let Boxes::F32(boxes) = npy::read_boxes(&path)? else { panic!("not f32") };
/// assert_eq!(boxes[1], Aabb::new([2.0; 3], [3.0; 3]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_boxes(path: &Path) -> Result<Boxes> {
    let file = NpyFile::open(path)?;
    match file.header.descr.as_str() {
        f32::DESCR => file.boxes::<f32, _>().map(Boxes::F32),
        f64::DESCR => file.boxes::<f64, _>().map(Boxes::F64),
        _ => Err(file.wrong_type("<f4 or <f8")),
    }
}

/// Reads a one-dimensional array of keys of any of the six types.
///
/// # Errors
///
/// All of [`Error`] but [`Error::Write`].
pub fn read_keys(path: &Path) -> Result<Keys> {
    let file = NpyFile::open(path)?;
    file.expect_shape("(n,)", |shape| shape.len() == 1)?;
    keys(file)
}

/// An input, and its length if that is known.
type Input = (Box<dyn Read>, Option<u64>);

fn stdin() -> io::Result<Input> {
    if io::stdin().is_terminal() {
        let reason = "it is a terminal: name a file, or send one through a pipe";
        return Err(io::Error::other(reason));
    }
    Ok((Box::new(io::stdin().lock()), None))
}

/// Arranges columns, one after the other, as rows.
fn rows<T: Copy>(columns: &[T], order: [usize; 6]) -> Result<Vec<T>, TryReserveError> {
    let mut rows = Vec::new();
    rows.try_reserve_exact(columns.len())?;
    let n = columns.len() / order.len();
    rows.extend((0..n).flat_map(|row| order.map(|column| columns[column * n + row])));
    Ok(rows)
}

/// An open file, positioned after its header.
struct NpyFile {
    path: PathBuf,
    input: Box<dyn Read>,
    header: Header,
    /// Bytes after the header; `None` for a pipe and for stdin, whose length is unknown.
    data_bytes: Option<u64>,
}

impl NpyFile {
    fn open(path: &Path) -> Result<Self> {
        let opened = if is_dash(path) {
            stdin()
        } else {
            Self::input(path)
        };
        let path = output::name(path, "stdin");
        let read_error = |source: io::Error| match source.kind() {
            io::ErrorKind::IsADirectory => Error::Directory { path: path.into() },
            _ => Error::Read {
                path: path.into(),
                source,
            },
        };
        let (mut input, length) = opened.map_err(read_error)?;
        let (header, header_bytes) =
            header::read(&mut input).map_err(|source| match source.kind() {
                io::ErrorKind::InvalidData => Error::Foreign {
                    path: path.into(),
                    reason: source.to_string(),
                },
                io::ErrorKind::UnexpectedEof => Error::Foreign {
                    path: path.into(),
                    reason: "it ends within its header".into(),
                },
                _ => read_error(source),
            })?;
        Ok(Self {
            path: path.into(),
            input,
            header,
            data_bytes: length.map(|length| length.saturating_sub(header_bytes)),
        })
    }

    /// Opens a file and returns its length, if it has one.
    fn input(path: &Path) -> io::Result<Input> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok((Box::new(file), metadata.is_file().then_some(metadata.len())))
    }

    fn wrong_type(self, expected: &'static str) -> Error {
        Error::Type {
            path: self.path,
            expected,
            found: self.header.descr,
        }
    }

    fn expect_shape(&self, expected: &str, fits: impl Fn(&[u64]) -> bool) -> Result<()> {
        let shape = &self.header.shape;
        if fits(shape) {
            return Ok(());
        }
        Err(shape_error(&self.path, expected, shape))
    }

    /// Reads boxes of six numbers each.
    fn boxes<T: Element, B: Pod>(self) -> Result<Vec<B>> {
        self.expect_shape("(n, 6) or (n, 2, 3)", |shape| {
            matches!(shape, [_, 6] | [_, 2, 3])
        })?;
        // The columns of the data that hold x, y and z of the min corner, then of the max corner.
        let columns = match (self.header.fortran_order, self.header.shape.len()) {
            (false, _) => None,
            (true, 2) => Some([0, 1, 2, 3, 4, 5]),
            (true, _) => Some([0, 2, 4, 1, 3, 5]),
        };
        let path = self.path.clone();
        let mut numbers = self.elements::<T>()?;
        if let Some(columns) = columns {
            numbers = rows(&numbers, columns).map_err(|_| Error::OutOfMemory {
                path,
                bytes: size_of_val(numbers.as_slice()) as u64,
            })?;
        }
        // The alignment is the same. Where the capacity is a multiple of a box, the vector is
        // reused without a copy.
        bytemuck::try_cast_vec(numbers)
            .or_else(|(_, numbers)| Ok(bytemuck::cast_slice(&numbers).to_vec()))
    }

    /// Reads all elements. Where the length is unknown, memory grows as data arrives.
    fn elements<T: Element>(mut self) -> Result<Vec<T>> {
        let expected = self.header.len.checked_mul(size_of::<T>() as u64);
        let length = |found| Error::Length {
            path: self.path.clone(),
            shape: self.header.shape.clone(),
            descr: T::DESCR,
            expected,
            found,
        };
        let known = self.data_bytes;
        let fits = |&bytes: &u64| known.is_none_or(|found| found == bytes);
        let bytes = expected
            .filter(fits)
            .ok_or_else(|| length(known.unwrap_or(0)))?;
        let memory = |_| Error::OutOfMemory {
            path: self.path.clone(),
            bytes,
        };
        let count = usize::try_from(self.header.len).unwrap_or(usize::MAX);
        let mut elements = Vec::new();
        let trusted = known.map_or(0, |_| count);
        elements.try_reserve_exact(trusted).map_err(memory)?;
        const PIECE: usize = 1 << 20;
        while elements.len() < count {
            let start = elements.len();
            let piece = PIECE.min(count - start);
            elements.try_reserve(piece).map_err(memory)?;
            elements.resize(start + piece, T::zeroed());
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut elements[start..]);
            self.input
                .read_exact(bytes)
                .map_err(|source| match source.kind() {
                    io::ErrorKind::UnexpectedEof => length((start * size_of::<T>()) as u64),
                    _ => Error::Read {
                        path: self.path.clone(),
                        source,
                    },
                })?;
        }
        Ok(elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("array.npy");
        std::fs::write(&path, bytes).expect("written");
        (folder, path)
    }

    #[test]
    fn a_written_file_has_the_documented_bytes_and_reads_back() {
        let (_folder, path) = file(b"");
        let keys = [3.5_f64, f64::NAN, -0.0, f64::MIN_POSITIVE / 2.0];
        write(&path, &[4], &keys).expect("written");
        let Ok(Keys::F64(read)) = read_keys(&path) else {
            panic!("not read as f64")
        };
        let bits = |keys: &[f64]| keys.iter().map(|key| key.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&read), bits(&keys));
        // Version 1.0, 118 = 128 - 10 bytes of text, so that the data starts at a multiple of 64.
        let dict = "{'descr': '<f8', 'fortran_order': False, 'shape': (4,), }";
        let mut expected = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        expected.extend(format!("{dict:<117}\n").bytes());
        expected.extend(keys.iter().flat_map(|key| key.to_le_bytes()));
        assert_eq!(std::fs::read(&path).expect("bytes"), expected);
    }

    #[test]
    fn more_keys_than_one_piece_are_all_read() {
        let (_folder, path) = file(b"");
        let keys: Vec<u32> = (0..(1 << 20) + 7).collect();
        write(&path, &[keys.len() as u64], &keys).expect("written");
        assert!(matches!(read_keys(&path), Ok(Keys::U32(read)) if read == keys));
    }

    #[test]
    fn a_shape_of_another_element_count_is_rejected() {
        let (_folder, path) = file(b"old");
        for shape in [&[3][..], &[2, 3], &[u64::MAX, u64::MAX]] {
            assert!(
                matches!(write(&path, shape, &[1_u32, 2]), Err(Error::Shape { .. })),
                "{shape:?}"
            );
        }
        let header =
            Writer::create(&path).and_then(|mut writer| writer.header::<u32>(&[u64::MAX, 2]));
        assert!(matches!(header, Err(Error::Shape { .. })));
        assert_eq!(std::fs::read(&path).expect("bytes"), b"old");
    }

    #[test]
    fn a_dropped_writer_leaves_target_and_folder_unchanged() {
        let (folder, path) = file(b"old");
        let mut writer = Writer::create(&path).expect("writable");
        writer.header::<u32>(&[1]).expect("written");
        drop(writer);
        assert_eq!(std::fs::read(&path).expect("bytes"), b"old");
        assert_eq!(
            std::fs::read_dir(folder.path()).expect("entries").count(),
            1
        );
    }

    /// Two boxes whose twelve numbers are all distinct, in every order and shape.
    #[test]
    fn boxes_are_read_in_either_order_type_and_shape() {
        let row_by_row: Vec<f64> = (0..12).map(|i| f64::from(i) + 0.1).collect();
        let boxes: Vec<Aabb64> = bytemuck::cast_slice(&row_by_row).to_vec();
        let column = |step: [usize; 3]| {
            let at = |i: usize| step[0] * (i % 2) + step[1] * (i / 2 % step[2]) + i / 2 / step[2];
            (0..12).map(|i| row_by_row[at(i)]).collect::<Vec<f64>>()
        };
        for (shape, order, data) in [
            (&[2, 6][..], "False", row_by_row.clone()),
            (&[2, 2, 3], "False", row_by_row.clone()),
            (&[2, 6], "True ", column([6, 1, 6])),
            (&[2, 2, 3], "True ", column([6, 3, 2])),
        ] {
            let (_folder, path) = file(b"");
            write(&path, shape, &data).expect("written");
            let mut bytes = std::fs::read(&path).expect("bytes");
            let at = bytes.windows(5).position(|part| part == b"False");
            let at = at.expect("the order");
            bytes[at..at + 5].copy_from_slice(order.as_bytes());
            std::fs::write(&path, &bytes).expect("written");
            let read = read_boxes(&path).expect("read");
            assert_eq!(read, Boxes::F64(boxes.clone()), "{shape:?} {order}");
            assert_eq!(read.outward()[1].min, boxes[1].outward().min);
        }
    }

    #[test]
    fn no_truncated_or_corrupted_file_panics() {
        let (_folder, path) = file(b"");
        write(&path, &[2, 6], &[0.5_f32; 12]).expect("written");
        let whole = std::fs::read(&path).expect("bytes");
        for at in 0..whole.len() {
            std::fs::write(&path, &whole[..at]).expect("written");
            assert!(read_boxes(&path).is_err(), "cut at {at}");
            for byte in [0, b'9', b'(', b'\'', 0xff] {
                let mut changed = whole.clone();
                changed[at] = byte;
                std::fs::write(&path, &changed).expect("written");
                // Both may be read or refused.
                let _ = read_boxes(&path);
                let _ = read_keys(&path);
            }
        }
    }
}
