//! What is fuzzed: each module's `target` takes any bytes and panics if something is wrong.

mod boxes;
pub mod capi;
pub mod cliffs;
pub mod events;
pub mod npy;
/// What [`program_npy`] writes files with.
#[path = "../../src/output.rs"]
pub mod output;
/// The program's own, without the rest of the program, which takes minutes to build.
#[path = "../../src/npy/mod.rs"]
pub mod program_npy;
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
