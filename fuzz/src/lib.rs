//! The fuzz targets: the `target` of each module takes any bytes and panics on a finding.

mod boxes;
pub mod capi;
pub mod cliffs;
pub mod events;
pub mod npy;
mod truth;

// Shared with the tests of `sap`.
#[allow(dead_code)]
#[path = "../../crates/sap/tests/common/generators.rs"]
mod generators;
#[allow(dead_code)]
#[path = "../../crates/sap/tests/common/random.rs"]
pub mod random;
#[path = "../../crates/sap/tests/common/shapes.rs"]
mod shapes;
