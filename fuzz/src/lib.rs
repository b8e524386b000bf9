//! What is fuzzed: each module's `target` takes any bytes and panics if something is wrong.

mod boxes;
pub mod capi;
pub mod cliffs;
pub mod events;
pub mod npy;
mod truth;

// As the tests of `sap` have them.
#[allow(dead_code)]
#[path = "../../crates/sap/tests/common/generators.rs"]
mod generators;
#[allow(dead_code)]
#[path = "../../crates/sap/tests/common/random.rs"]
mod random;
#[path = "../../crates/sap/tests/common/shapes.rs"]
mod shapes;
