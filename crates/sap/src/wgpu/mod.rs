//! The engine on `wgpu`: Vulkan, Metal and DirectX 12, by sort and sweep.
//!
//! The device sorts the boxes along the axis that the CPU's plan names, in the columns of that
//! plan, makes all tests and sorts the pairs ([`search`], `kernels/wgsl/sap/sweep.wgsl`); only
//! integers are compared there. The host waits for the number of tests and for that of pairs; with
//! columns also for the number of copies.
//!
//! A frame on the host is read, checked and loosened there, as on the CPU. The host downloads the
//! pairs, and compares them with those of the last update ([`engine`]). A frame in buffers of the
//! device is read, checked and loosened on the device ([`reader`]), and its pairs stay there
//! ([`pairs`], [`update`]). Such a frame is one submission and one wait, unless it differs much
//! from the last ([`one_submission`]).
//!
//! Lists of pairs that no buffer of the device holds are found and sorted in parts, each of a range
//! of smaller indices ([`lists`]). The results of the last update are replaced at the very end: an
//! update that fails changes nothing that can be seen.

mod cells;
mod counts;
mod engine;
mod frame;
mod gpu;
mod input;
mod launch;
mod lists;
mod memory;
mod one_submission;
mod pairs;
mod params;
mod reader;
mod resident;
mod scene;
mod search;
mod steps;
mod tuning;
mod update;

pub(crate) use engine::Engine;
pub use frame::WgpuFrame;
pub use pairs::WgpuPairs;

/// Returns what a test has opened on a device. Without one the test is skipped, unless
/// `RADSWEEP_WGPU` is set.
#[cfg(test)]
fn or_skipped<T>(opened: crate::Result<T>) -> Option<T> {
    match opened {
        Ok(opened) => Some(opened),
        Err(error) if std::env::var_os("RADSWEEP_WGPU").is_some() => panic!("{error}"),
        Err(error) => {
            eprintln!("SKIPPED: {error}");
            None
        }
    }
}
