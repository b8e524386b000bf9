//! The C ABI of radsweep, for engines that are not written in Rust. `include/radsweep.h` is made from this crate and says what a
//! caller must know; this page says how it is built.
//!
//! - A handle is a number that was never given out before, not an address: it is looked up in a table and never followed ([`radsweep_create`]).
//! - Every entry catches panics, and leaves its message in the calling thread ([`radsweep_last_error`]).
//! - Structures that a caller makes begin with their size, so that later versions can add members at their end.
//! - Lists are lent out as pointers into the handle's own memory, or copied.
//!
//! `-l radsweep_capi` links it; `install PREFIX` puts the libraries, the header and a pkg-config file in place.

mod calls;
mod config;
mod error;
mod frame;
mod handle;
mod pointer;
mod read;
mod types;

pub use calls::{
    radsweep_clear, radsweep_create, radsweep_destroy, radsweep_for_each_pair_chunk,
    radsweep_overlaps_between, radsweep_synchronize, radsweep_update, radsweep_update_device,
    radsweep_update_frame,
};
pub use config::*;
pub use error::{
    RadsweepErrorDetail, RadsweepStatus, radsweep_last_error, radsweep_last_error_detail,
    radsweep_status_name,
};
pub use frame::{RadsweepFrame, radsweep_frame_default};
pub use handle::RadsweepBroadPhase;
pub use read::*;
pub use types::*;

/// Counts up with every change that a program built against an older header could notice.
pub const RADSWEEP_ABI_VERSION: u32 = 1;

/// The ABI of the library that runs, to compare with RADSWEEP_ABI_VERSION of the header.
#[unsafe(no_mangle)]
pub extern "C" fn radsweep_abi_version() -> u32 {
    RADSWEEP_ABI_VERSION
}

/// The version of the library that runs, as "0.1.0". Never null; stays for ever.
#[unsafe(no_mangle)]
pub extern "C" fn radsweep_version() -> *const std::ffi::c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
