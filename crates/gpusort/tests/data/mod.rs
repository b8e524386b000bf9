//! The published key arrays: their folder, their list, and their format.

#![allow(dead_code, reason = "each test program uses a part of this")]

use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// One line of `keys.jsonl`.
pub struct KeyFile {
    pub file: String,
    pub n: usize,
    /// `u4`, `i4`, `f4` or `u8`.
    pub dtype: String,
    /// The SHA-256 of the sorted keys, as little-endian bytes.
    pub sorted_sha256: String,
    /// The SHA-256 of the stable argsort, as little-endian `u32`.
    pub argsort_u32_sha256: String,
}

/// Why the arrays beyond the fixtures are not sorted.
pub const NO_FOLDER: &str = "RADSWEEP_DATA is not set; CONTRIBUTING.md says where data is from";

/// Returns the folder that `RADSWEEP_DATA` names.
pub fn folder() -> Option<PathBuf> {
    std::env::var_os("RADSWEEP_DATA").map(PathBuf::from)
}

/// Returns the lines of `keys.jsonl` in `folder`.
pub fn key_files(folder: &Path) -> Result<Vec<KeyFile>, String> {
    let path = folder.join("keys.jsonl");
    let text =
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    text.lines().map(key_file).collect()
}

fn key_file(line: &str) -> Result<KeyFile, String> {
    let json: serde_json::Value =
        serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
    let text = |field: &str| {
        json[field]
            .as_str()
            .map(String::from)
            .ok_or_else(|| format!("{line}: no {field}"))
    };
    Ok(KeyFile {
        file: text("file")?,
        n: json["n"].as_u64().ok_or_else(|| format!("{line}: no n"))? as usize,
        dtype: text("dtype")?,
        sorted_sha256: text("sorted_sha256")?,
        argsort_u32_sha256: text("argsort_u32_sha256")?,
    })
}

/// Reads the numbers of a `.npy` file.
pub fn read<T: npyz::Deserialize>(path: &Path) -> Result<Vec<T>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let file =
        npyz::NpyFile::new(BufReader::new(File::open(path).map_err(failed)?)).map_err(failed)?;
    file.into_vec().map_err(failed)
}

/// Returns the SHA-256 of the bytes, in hex.
pub fn sha256<T: bytemuck::Pod>(all: &[T]) -> String {
    Sha256::digest(bytemuck::cast_slice::<T, u8>(all))
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Runs a body on the keys of a file, by their type. An unknown type is an error.
macro_rules! with_keys {
    ($dtype:expr, $path:expr, |$keys:ident| $body:expr) => {
        match $dtype {
            "u4" => data::with_keys!(u32, $path, $keys, $body),
            "i4" => data::with_keys!(i32, $path, $keys, $body),
            "f4" => data::with_keys!(f32, $path, $keys, $body),
            "u8" => data::with_keys!(u64, $path, $keys, $body),
            "i8" => data::with_keys!(i64, $path, $keys, $body),
            "f8" => data::with_keys!(f64, $path, $keys, $body),
            other => Err(format!("unknown type {other}").into()),
        }
    };
    ($type:ident, $path:expr, $keys:ident, $body:expr) => {{
        let $keys = data::read::<$type>($path)?;
        $body
    }};
}
pub(crate) use with_keys;
