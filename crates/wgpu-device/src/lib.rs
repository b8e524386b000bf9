//! Device layer over [`wgpu`]: adapters, devices, buffers, kernels, read-back and timestamps, with
//! errors instead of panics. It knows nothing of sorting.
//!
//! [`Device::new`] chooses an adapter: a real one, or a software driver if [`Adapters`] allows it.
//! [`Device::from_parts`] takes a [`wgpu::Device`] and [`wgpu::Queue`] of the caller.
//!
//! ```
//! use wgpu_device::{Adapters, BufferUsages, Device};
//!
//! # fn main() -> wgpu_device::Result<()> {
//! let Ok(device) = Device::new(Adapters::Any) else { return Ok(()) }; // no driver here
//! println!("{}", device.name());
//! let buffer = device.upload("numbers", &[1_u32, 2, 3], BufferUsages::COPY_SRC)?;
//! let numbers: Vec<u32> = device.download(&buffer, 4..12)?.wait()?;
//! assert_eq!(numbers, [2, 3]);
//! # Ok(())
//! # }
//! ```

mod adapter;
mod buffer;
mod device;
mod download;
mod error;
mod kernel;
mod stages;

#[doc(hidden)]
pub use adapter::bench_arguments;
pub use adapter::{AdapterSummary, Adapters, adapters, set_instances};
pub use device::{Device, SubgroupSizes};
pub use download::Download;
pub use error::{Error, Result};
pub use kernel::{Kernel, Module, PARAMS_STRIDE};
pub use stages::{StageTimes, Stages};
pub use wgpu::{self, BufferUsages};
