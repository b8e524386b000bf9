//! The published scenes.

use sap::Aabb;
use std::path::PathBuf;

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

/// Returns the line that says how many scenes are not checked, since nobody said where they are.
pub fn skipped(scenes: usize) -> String {
    format!(
        "skipped: {scenes} scenes; RADSWEEP_DATA is not set, CONTRIBUTING.md says where data is from"
    )
}

/// Reads the boxes of a `.npy` file of float32 (n, 6), which is built in or in the folder that
/// `RADSWEEP_DATA` names. `None` if it is not built in and the variable is not set.
pub fn boxes(file: &str) -> Option<Vec<Aabb>> {
    built_in(file).or_else(|| {
        let path = PathBuf::from(std::env::var_os("RADSWEEP_DATA")?).join(file);
        let bytes = std::fs::read(&path);
        let boxes = bytes.ok().and_then(|bytes| parse(&bytes));
        assert!(
            boxes.is_some(),
            "RADSWEEP_DATA: no boxes in {}",
            path.display()
        );
        boxes
    })
}

/// Reads the boxes of a file that is built in.
pub fn built_in(file: &str) -> Option<Vec<Aabb>> {
    let (_, bytes) = FIXTURES.iter().find(|(name, _)| *name == file)?;
    parse(bytes)
}

fn parse(bytes: &[u8]) -> Option<Vec<Aabb>> {
    let numbers: Vec<f32> = npyz::NpyFile::new(bytes).ok()?.into_vec().ok()?;
    let (rows, rest) = numbers.as_chunks::<6>();
    rest.is_empty()
        .then(|| rows.iter().map(|row| Aabb::from_min_max(*row)).collect())
}
