//! What is fuzzed: each module's `target` takes any bytes and panics if something is wrong.

pub mod capi;
pub mod events;
pub mod npy;
