//! The device layer: what a program needs of the CUDA driver to run kernels, and nothing about what
//! the kernels do.
//!
//! [`Device`] → [`Stream`] → [`Buffer`], [`Module`] → [`Kernel`], [`Event`], [`Graph`]. It is built
//! on the raw functions and types of `cust` (`cust::sys`), bound at run time by `libcuda-shim`: a
//! program built over it starts on a machine without an NVIDIA driver, and [`Device::first`] there
//! returns [`Error::NoDriver`].
//!
//! # What is checked, and what is promised
//!
//! Lengths, ranges, launch shapes and argument sizes are checked: misuse is an [`Error`], never a
//! panic. All handles are `Send` and `Sync`, may be dropped in any order on any thread, and keep
//! alive what they need. Errors met while dropping are swallowed.
//!
//! Kernels are foreign code, so [`Stream::launch`] is `unsafe`. Copies and fills are safe: they
//! touch host memory only while the call lasts, or are `unsafe` ([`Stream::upload_pinned`],
//! [`Stream::download_pinned`]). Device memory holds plain data only ([`bytemuck::Pod`]), so its
//! contents can be wrong, never invalid.
//!
//! # Streams and order
//!
//! Work on one stream runs in order. A buffer belongs to the stream that made it and is freed
//! there, after the work given to that stream before. To use it on another stream, order the two
//! with events ([`Stream::record`], [`Stream::wait`]), and back again before the buffer is dropped;
//! otherwise the contents of device memory are unspecified.
//!
//! ```
//! # fn main() -> gpu::Result<()> {
//! let device = match gpu::Device::first() {
//!     Ok(device) => device,
//!     Err(error) => {
//!         println!("no GPU: {error}");
//!         return Ok(());
//!     }
//! };
//! let stream = gpu::Stream::new(&device)?;
//! let mut numbers = stream.from_slice(&[1u32, 2, 3, 4])?;
//! stream.fill_u32(numbers.range_mut(1..3)?, 7)?;
//! assert_eq!(stream.to_vec(numbers.slice())?, [1, 7, 7, 4]);
//! # Ok(())
//! # }
//! ```

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod buffer;
mod capture;
mod device;
mod driver;
mod error;
mod event;
mod graph;
mod image;
mod launch;
mod layout;
mod memory;
mod module;
mod pinned;
mod scratch;
mod slice;
mod stages;
mod stream;

pub use buffer::Buffer;
pub use device::{Device, DeviceInfo, driver_version};
pub use error::{Error, Result};
pub use event::Event;
pub use graph::Graph;
pub use launch::{Arg, ByValue, KernelArg, Launch};
pub use layout::{ALIGNMENT, Layout};
pub use memory::Memory;
pub use module::{Kernel, KernelAttributes, Module};
pub use pinned::Pinned;
pub use scratch::Scratch;
pub use slice::{Slice, SliceMut};
pub use stages::Stages;
pub use stream::Stream;
