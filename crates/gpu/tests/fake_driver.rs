//! The device layer over a driver made for the tests. Empty where there is no such driver to be had.

#![allow(clippy::unwrap_used)]

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#[path = "fake_driver/suite.rs"]
mod suite;

fn main() {
    #[cfg(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))]
    suite::main();
}
