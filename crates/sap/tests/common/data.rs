//! The published scenes.

use sap::Aabb;
use std::path::{Path, PathBuf};

/// The fixtures in this repository, built in so that a test binary has them on another machine.
pub const SCENES: &str = include_str!("../fixtures/boxes.jsonl");
pub const PEER_CASES: &str = include_str!("../fixtures/peer_cases.jsonl");
const FIXTURES: [(&str, &[u8]); 4] = [
    (
        "mujoco_flag_00.npy",
        include_bytes!("../fixtures/mujoco_flag_00.npy"),
    ),
    (
        "mujoco_flag_10.npy",
        include_bytes!("../fixtures/mujoco_flag_10.npy"),
    ),
    (
        "rapier_primitives_00.npy",
        include_bytes!("../fixtures/rapier_primitives_00.npy"),
    ),
    (
        "rapier_primitives_10.npy",
        include_bytes!("../fixtures/rapier_primitives_10.npy"),
    ),
];

/// Returns the folder of the large files: `RADSWEEP_DATA`, else one beside the repository.
pub fn folder() -> PathBuf {
    match std::env::var_os("RADSWEEP_DATA") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    }
}

/// Reads the boxes of a `.npy` file of float32 (n, 6). `None` if it is neither built in nor in the
/// folder.
pub fn boxes(file: &str) -> Option<Vec<Aabb>> {
    let built_in = FIXTURES
        .iter()
        .find(|(name, _)| *name == file)
        .map(|(_, bytes)| bytes.to_vec());
    let bytes = built_in.or_else(|| std::fs::read(folder().join(file)).ok())?;
    let numbers: Vec<f32> = npyz::NpyFile::new(&bytes[..]).ok()?.into_vec().ok()?;
    let (rows, rest) = numbers.as_chunks::<6>();
    rest.is_empty()
        .then(|| rows.iter().map(|row| Aabb::from_min_max(*row)).collect())
}
