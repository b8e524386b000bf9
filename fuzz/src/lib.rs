//! What is fuzzed: each module's `target` takes any bytes and panics if something is wrong.

pub mod capi;
pub mod events;
pub mod npy;
/// What [`program_npy`] writes files with.
#[path = "../../src/output.rs"]
pub mod output;
/// The program's own, without the rest of the program, which takes minutes to build.
#[path = "../../src/npy/mod.rs"]
pub mod program_npy;
