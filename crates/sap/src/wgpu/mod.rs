//! The engine on `wgpu`: Vulkan, Metal and DirectX 12, by sort and sweep.
//!
//! A frame is read, checked and loosened on the host, as on the CPU. The device sorts the boxes
//! along the axis that the CPU's plan names, in the columns of that plan, makes all tests and sorts
//! the pairs ([`search`], `kernels/wgsl/sap/sweep.wgsl`); only integers are compared there. The
//! host compares the pairs with those of the last update. It waits three times: for the number of
//! tests, for the number of pairs, and for the pairs; with columns also for the number of copies.
//!
//! Lists of pairs that no buffer of the device holds are found and sorted in parts, each of a range
//! of smaller indices ([`lists`]). The results of the last update are replaced at the very end: an
//! update that fails changes nothing that can be seen.

mod engine;
mod frame;
mod gpu;
mod input;
mod lists;
mod memory;
mod pairs;
mod params;
mod search;
mod tuning;

pub(crate) use engine::Engine;
pub use frame::WgpuFrame;
pub use pairs::WgpuPairs;
