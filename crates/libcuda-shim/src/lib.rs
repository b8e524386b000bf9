//! The CUDA driver, bound at its first call instead of at program start.
//!
//! A program linked against `libcuda` does not start on a machine without an NVIDIA driver. This
//! crate defines the driver's functions itself ([`SYMBOLS`]: all that `cust_raw` 0.11.3 declares,
//! and some newer ones). It forwards each call to the driver's own library, which the first call of
//! any function opens. One binary then serves machines with and without a driver.
//!
//! To use it, name it once in the crate that calls the driver, so that it is linked:
//!
//! ```
//! use libcuda_shim as _;
//! ```
//!
//! `cust_raw` asks the linker for a library `cuda`, and panics at build time if it finds no CUDA
//! folder. `link/lib64` of this crate has an empty archive of that name. Set `CUDA_LIBRARY_PATH` to
//! `link`, as the workspace's `.cargo/config.toml` does.
//!
//! # Where the driver is looked for
//!
//! The crate looks for `libcuda.so.1` on the dynamic linker's paths, then in the folders of WSL and
//! NixOS. `LD_LIBRARY_PATH` puts a folder in front of these. [`set_library`] replaces all of them
//! by another path or name. The module [`library`] opens other libraries in the same way.
//!
//! # What a call returns
//!
//! - with a driver: the driver's result;
//! - with a driver that lacks the function: [`NOT_FOUND`] (500);
//! - without a driver: [`NO_DEVICE`] (100), which programs already understand as "no GPU here".
//!
//! `cuGetErrorName` and `cuGetErrorString` always set their result. For an unknown code they set it
//! to null and return 1 (invalid value). [`load`] distinguishes a missing driver from a missing
//! device.
//!
//! # Targets
//!
//! Linux on x86-64 and aarch64. On all others, including Windows, the crate is empty.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

mod driver;
mod entry;
pub mod library;
mod names;

pub use driver::{NO_DEVICE, NOT_FOUND};
pub use entry::{SYMBOLS, has, load, set_library};
pub use library::LoadError;
