//! What the measurements of this folder share.

use sap_dist::TransportKind;

/// Returns the arguments, without the word that `cargo bench` adds.
pub fn arguments() -> impl Iterator<Item = String> {
    std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .fuse()
}

/// Returns the ways from device to device to measure, by an argument.
pub fn kinds(word: Option<&str>) -> Result<Vec<TransportKind>, String> {
    match word {
        None | Some("both") => Ok(vec![TransportKind::Staged, TransportKind::Nccl]),
        Some("staged") => Ok(vec![TransportKind::Staged]),
        Some("nccl") => Ok(vec![TransportKind::Nccl]),
        Some(other) => Err(format!("{other} is neither staged, nccl nor both")),
    }
}

/// Returns the median of some times, of which there is at least one.
pub fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
