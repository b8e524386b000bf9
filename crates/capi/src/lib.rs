//! The C ABI of radsweep. `include/radsweep.h` is generated from this crate and documents it for
//! callers; this page describes the implementation.
//!
//! - A handle is a unique number, not an address: it is looked up in a table and never dereferenced
//!   ([`radsweep_create`]).
//! - Every call catches panics and stores their message for the calling thread
//!   ([`radsweep_last_error`]).
//! - Structures of the caller begin with their size, so that later versions can append members.
//! - Lists are lent as pointers to memory of the handle, or copied.
//!
//! Link it with `-l radsweep_capi`; `install PREFIX` installs the libraries, the header, and files
//! for pkg-config (`radsweep`) and CMake (`find_package(radsweep)`).
//!
//! The features `cuda` (NVIDIA GPUs) and `wgpu` (Vulkan, Metal and DirectX 12) are off by default.
//! They need no toolkit to build and no driver to start.

mod calls;
mod config;
mod entry;
mod error;
mod frame;
mod handle;
mod pointer;
mod query;
mod read;
mod types;

pub use calls::{
    radsweep_clear, radsweep_create, radsweep_destroy, radsweep_for_each_pair_chunk,
    radsweep_overlaps_between, radsweep_synchronize, radsweep_update, radsweep_update_device,
    radsweep_update_frame,
};
pub use config::*;
pub use entry::{radsweep_last_error, radsweep_last_error_detail};
pub use error::{RadsweepErrorDetail, RadsweepStatus, radsweep_status_name};
pub use frame::{RadsweepFrame, radsweep_frame_default};
pub use handle::RadsweepBroadPhase;
pub use query::*;
pub use read::*;
pub use types::*;

/// The version of the ABI. It increases with every change that affects programs built against an
/// older header.
pub const RADSWEEP_ABI_VERSION: u32 = 1;

/// Returns the ABI version of the loaded library, to compare with RADSWEEP_ABI_VERSION of the
/// header.
#[unsafe(no_mangle)]
pub extern "C" fn radsweep_abi_version() -> u32 {
    RADSWEEP_ABI_VERSION
}

/// Returns the version of the loaded library, such as "0.1.0". The pointer is never null and always
/// valid.
#[unsafe(no_mangle)]
pub extern "C" fn radsweep_version() -> *const std::ffi::c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
