//! What the measurements of this folder share.

use std::fmt;

/// A way from device to device.
#[derive(Clone, Copy)]
pub enum Way {
    /// `Peers`.
    Driver,
    Nccl,
    /// `Staged`.
    Host,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Driver => "copies of the driver",
            Self::Nccl => "NCCL",
            Self::Host => "the host",
        })
    }
}

/// Returns the arguments, without the word that `cargo bench` adds.
pub fn arguments() -> impl Iterator<Item = String> {
    std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .fuse()
}

/// Returns the ways from device to device to measure, by an argument.
pub fn ways(word: Option<&str>) -> Result<Vec<Way>, String> {
    match word {
        None | Some("all") => Ok(vec![Way::Driver, Way::Nccl, Way::Host]),
        Some("driver") => Ok(vec![Way::Driver]),
        Some("nccl") => Ok(vec![Way::Nccl]),
        Some("host") => Ok(vec![Way::Host]),
        Some(other) => Err(format!("{other} is none of driver, nccl, host and all")),
    }
}

/// Returns the number of GPUs; if there is none, says why.
pub fn devices() -> Option<usize> {
    match gpu::Device::count() {
        Ok(0) => println!("nothing to measure: no CUDA device"),
        Ok(count) => return Some(count),
        Err(error) => println!("nothing to measure: {error}"),
    }
    None
}

/// Returns the median of some times, of which there is at least one.
pub fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
