//! Tests of the device layer on a device. Empty on targets without a CUDA driver.

#![allow(clippy::unwrap_used)]

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#[path = "cuda_gpu/suite.rs"]
mod suite;

fn main() {
    #[cfg(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))]
    suite::main();
}
