//! The CUDA driver, bound when it is first called instead of when the program starts.
//!
//! A program linked against `libcuda` does not start on a machine without an NVIDIA driver. This
//! crate defines the driver's functions itself ([`SYMBOLS`]: all that `cust_raw` 0.11.3 declares
//! and some newer ones) and forwards each call to the driver's own library, opened at the first
//! call of any of them. One binary then serves machines with and without a driver.
//!
//! To use it, name it once in the crate that calls the driver, so that it is linked:
//!
//! ```
//! use libcuda_shim as _;
//! ```
//!
//! `cust_raw` asks the linker for a library `cuda` and panics at build time when it finds no CUDA
//! folder. The folder `link` of this crate holds an empty archive of that name; set
//! `CUDA_LIBRARY_PATH` to it (the workspace's `.cargo/config.toml` does).
//!
//! # What is looked for
//!
//! `libcuda.so.1` where the dynamic linker looks, then where WSL and NixOS keep it. The environment
//! variable `RADSWEEP_CUDA_LIBRARY`, a path or a library name, takes the place of that list.
//!
//! # What a call returns
//!
//! - with a driver: what the driver returns;
//! - with a driver that does not have the function: [`NOT_FOUND`] (500);
//! - without a driver: [`NO_DEVICE`] (100), which programs already take as "no GPU here".
//!
//! `cuGetErrorName` and `cuGetErrorString` always set their result: to null, returning 1 (invalid
//! value), for codes that they do not know. [`load`] tells a missing driver from a missing device.
//!
//! # Targets
//!
//! Linux on x86-64 and aarch64. Elsewhere, Windows included, the crate is empty.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

mod library;
mod resolve;
mod table;

pub use library::{ENV, LoadError, NO_DEVICE, NOT_FOUND, has, load};
pub use table::SYMBOLS;
