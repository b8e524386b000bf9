//! Scenes on a device of `wgpu`: kernels write their boxes and read their pairs there, a renderer
//! on the same device draws from their buffers, and the host only launches them.

mod balls;
pub(super) mod bodies;
mod galaxy;
mod neighbours;
mod particles;
mod scene;
mod work;

pub use balls::Balls;
