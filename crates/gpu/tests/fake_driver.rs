//! Tests of the device layer on a driver made for the tests. Empty on targets without a CUDA
//! driver.

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
