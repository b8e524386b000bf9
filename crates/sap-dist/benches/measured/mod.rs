//! What the measurements of this folder share.

/// Returns the arguments, without the word that `cargo bench` adds.
pub fn arguments() -> impl Iterator<Item = String> {
    std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .fuse()
}

/// Returns the median of some times, of which there is at least one.
pub fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
