//! The sort on any GPU: Vulkan, Metal and DirectX 12, by `wgpu`.
//!
//! It is a radix sort by digits of 8 bits, the lowest first, with the contract of
//! [`cpu`](crate::cpu): the same order, the same bits, stable, and the keys of all six types.
//! Digits that are the same in all keys are skipped, and keys in order are not moved; the device
//! decides both. `kernels/wgsl/sort/radix.wgsl` describes the kernels.
//!
//! [`Sorter::sort_keys`], [`Sorter::sort_pairs`] and [`Sorter::sort_index`] take host slices.
//! [`Sorter::encode`] sorts buffers that stay on the device, in a command encoder of the caller.
//! [`Request::counted`] takes the number of keys from the device.
//!
//! What it does not do yet: values of 64 bits, records, and a choice of
//! [`Algorithm`](crate::Algorithm): any other than `Auto` is
//! [`Error::Unsupported`](crate::Error::Unsupported). The hint
//! [`SortOptions::nearly_sorted`](crate::SortOptions::nearly_sorted) has no effect.
//!
//! ```
//! use gpusort::{SortOptions, wgpu::{Sorter, SorterConfig}};
//! use wgpu_device::{Adapters, Device};
//!
//! # fn main() -> gpusort::Result<()> {
//! let Ok(device) = Device::new(Adapters::Any) else { return Ok(()) }; // no driver here
//! let sorter = Sorter::new(&device, SorterConfig::default())?;
//! let mut index = [0; 3];
//! sorter.sort_index(&[2.5_f32, -1.0, 7.25], &mut index, &SortOptions::new().descending())?;
//! assert_eq!(index, [2, 0, 1]);
//! # Ok(())
//! # }
//! ```

mod config;
mod host;
mod modules;
mod params;
mod request;
mod scratch;
mod sorter;

pub use config::{SorterConfig, Subgroups};
pub use request::Request;
pub use scratch::{Payload, Scratch};
pub use sorter::{PreparedSort, ReportDownload, Sorter};
