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
//! with events ([`Stream::record`], [`Stream::wait`]); otherwise the contents of device memory are
//! unspecified.
//!
//! # What makes it safe
//!
//! - Memory is there for all work that uses it. A slice knows its buffer, so every copy, fill and
//!   launch that has it orders its stream after the allocation, and the free after itself, with
//!   events of its own where the streams differ. For addresses in structs [`Stream::using`] does.
//! - A call that lends host memory to a stream gives the work and waits for it in one step, in
//!   which no capture of the stream begins and the stream joins none. So do all calls that a
//!   capture would turn into something else, such as allocations and frees.
//! - While a stream is part of a capture, only the thread that captures gives it work; all other
//!   calls are [`Error::Capturing`]. So a graph has no work of anyone who does not know of it.
//! - A [`Graph`] keeps the kernels and buffers of its work. What is dropped while it is captured,
//!   streams too, lives until the graph or the capture ends. The last handle of a module waits for
//!   the device before it unloads it, and leaves it loaded where that would break off a capture.
//! - Slices, streams, kernels and events of two devices do not meet: [`Error::OtherDevice`].
//!   Regions that a [`Layout`] only measured have no memory: [`Error::Measured`].
//! - What remains is promised: [`Stream::launch`] (what a kernel does with its arguments),
//!   [`Stream::upload_pinned`] and [`Stream::download_pinned`] (how long the host memory lasts),
//!   [`Slice::from_raw`] and [`SliceMut::from_raw`].
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
mod pointer;
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
pub use pointer::DevicePtr;
pub use scratch::Scratch;
pub use slice::{Slice, SliceMut};
pub use stages::Stages;
pub use stream::Stream;
