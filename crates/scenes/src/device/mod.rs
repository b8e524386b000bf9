//! Scenes on the CUDA device of a broad phase: kernels write their boxes and read their pairs
//! there, and the host only launches them.

pub(super) mod bodies;
pub(super) mod galaxy;
mod gravity;
mod neighbours;
pub(super) mod particles;
