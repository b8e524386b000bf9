//! The configuration of a sorter.

/// Whether kernels use the subgroups of a device. The results are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Subgroups {
    /// Where the device has them, and memory for the counters of each.
    #[default]
    Auto,
    /// Not at all.
    Never,
}

/// The configuration of a [`Sorter`](super::Sorter).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct SorterConfig {
    /// Whether kernels use subgroups.
    pub subgroups: Subgroups,
    /// Whether the sorts of host slices report the time of each stage, if the device measures
    /// times.
    pub timings: bool,
}

impl SorterConfig {
    /// Returns the default: subgroups where the device has them, and no times.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the same with this use of subgroups.
    #[must_use]
    pub fn subgroups(self, subgroups: Subgroups) -> Self {
        Self { subgroups, ..self }
    }

    /// Returns the same with times of each stage, or without.
    #[must_use]
    pub fn timings(self, timings: bool) -> Self {
        Self { timings, ..self }
    }
}
