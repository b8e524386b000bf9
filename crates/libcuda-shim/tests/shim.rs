//! The shim, with and without a driver. Empty where there is no such driver to be had.

#![allow(clippy::unwrap_used)]

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#[path = "shim/suite.rs"]
mod suite;

fn main() {
    #[cfg(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))]
    suite::main();
}
