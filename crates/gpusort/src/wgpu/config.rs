//! The configuration of a sorter.

/// Whether kernels use the subgroups of a device. The results are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Subgroups {
    /// Where the device has them, and memory for the counters of each.
    #[default]
    Auto,
    /// Not at all.
    Never,
}

/// The configuration of a [`Sorter`](super::Sorter).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SorterConfig {
    /// Whether kernels use subgroups.
    pub subgroups: Subgroups,
    /// Whether the sorts of host slices report the time of each stage, if the device measures
    /// times.
    pub timings: bool,
}
