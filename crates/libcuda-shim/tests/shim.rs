//! Tests of the shim with and without a driver. Empty on targets without a CUDA driver.

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
