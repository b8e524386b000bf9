//! Ranks that work on CUDA devices: the same steps as on the CPU, with boxes and pairs that stay on
//! the device of their rank.

mod abi;
mod agree;
mod broad_phase;
mod brought_ids;
mod cells;
mod devices;
mod engine;
mod exchange;
mod format;
mod frame;
mod kernels;
mod named_pairs;
mod nccl;
mod owned_pairs;
mod peers;
mod search;
mod sort;
mod staged;
mod survey;
mod transport;
mod tuning;
mod update;

pub use broad_phase::DeviceDistributed;
pub use devices::Devices;
pub use frame::DeviceFrame;
pub use nccl::{Nccl, set_nccl_library};
pub use peers::Peers;
pub use sort::DeviceSorter;
pub use staged::Staged;
pub use transport::DeviceTransport;
