//! A device layer over the CUDA driver: everything needed to run kernels, and nothing about what
//! the kernels do.
//!
//! A [`Device`] makes [`Stream`]s and loads [`Module`]s, which hold [`Kernel`]s. A stream makes
//! [`Buffer`]s, [`Event`]s and [`Graph`]s. The crate uses the raw types of `cust` (`cust::sys`) and
//! binds the driver at run time through `libcuda-shim`. A program built on it therefore starts on a
//! machine without an NVIDIA driver, where [`Device::first`] returns [`Error::NoDriver`].
//!
//! # What is checked, and what the caller promises
//!
//! Lengths, ranges, launch shapes and argument sizes are checked. Misuse is an [`Error`], never a
//! panic. All handles are `Send` and `Sync`, may be dropped in any order on any thread, and keep
//! alive what they need. Errors during a drop are ignored.
//!
//! Kernels are foreign code, so [`Stream::launch`] is `unsafe`. Fills are safe, and so are copies
//! that touch host memory only during the call. Copies that outlast the call are `unsafe`
//! ([`Stream::upload_pinned`], [`Stream::download_pinned`]). Device memory holds plain data only
//! ([`bytemuck::Pod`]), so its contents can be wrong, but never invalid.
//!
//! # Streams and order
//!
//! Work on one stream runs in order. A buffer belongs to the stream that made it and is freed
//! there, after all work queued on that stream before. To use it on another stream, order the two
//! streams with events ([`Stream::record`], [`Stream::wait`]); otherwise the contents of device
//! memory are unspecified.
//!
//! # Why it is safe
//!
//! - Memory outlives the work that uses it. A slice knows its buffer. Every copy, fill and launch
//!   with a slice therefore orders its stream after the allocation, and the free after itself;
//!   where the streams differ it does so with events. For addresses inside structs,
//!   [`Stream::using`] does the same.
//! - A call that lends host memory to a stream queues the work and waits for it in one step. During
//!   that step no capture of the stream begins, and the stream joins none. The same holds for all
//!   calls that a capture would change in meaning, such as allocations and frees.
//! - While a stream is part of a capture, only the capturing thread may queue work on it; calls of
//!   other threads return [`Error::Capturing`]. A graph therefore never contains work of a thread
//!   that does not know of the capture.
//! - A [`Graph`] keeps the kernels and buffers of its work alive. Buffers and streams that are
//!   dropped during a capture live until the graph is dropped or the capture fails. Dropping the
//!   last handle of a module waits for the device and then unloads the module; while a capture is
//!   in progress, the wait would invalidate it, so the module stays loaded.
//! - A call that mixes slices, streams, kernels or events of two devices returns
//!   [`Error::OtherDevice`]. Using a region of [`Layout::measure`], which has no memory, returns
//!   [`Error::Measured`].
//! - The caller promises the rest, in `unsafe` calls: what a kernel does with its arguments
//!   ([`Stream::launch`]), how long host memory lasts ([`Stream::upload_pinned`],
//!   [`Stream::download_pinned`]), and what a raw address points to ([`Slice::from_raw`],
//!   [`SliceMut::from_raw`]).
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

mod assert_layout;
mod buffer;
mod capture;
mod device;
mod driver;
mod error;
mod event;
mod graph;
mod grow;
mod image;
mod launch;
mod layout;
mod memory;
mod module;
mod peer;
mod pinned;
mod pointer;
mod slice;
mod stages;
mod stream;
mod transfer;
mod work;

pub use buffer::Buffer;
pub use device::{Device, DeviceInfo};
pub use driver::driver_version;
pub use error::{Error, Result};
pub use event::Event;
pub use graph::Graph;
pub use grow::{Grow, Scratch};
pub use launch::{Arg, ByValue, KernelArg, Launch, blocks};
pub use layout::{ALIGNMENT, Layout};
#[doc(hidden)]
pub use libcuda_shim::library;
pub use libcuda_shim::{library::AlreadyBound, set_library as set_driver_library};
pub use memory::Memory;
pub use module::{Kernel, KernelAttributes, Module};
pub use pinned::Pinned;
pub use pointer::DevicePtr;
pub use slice::{Slice, SliceMut};
pub use stages::Stages;
pub use stream::Stream;
