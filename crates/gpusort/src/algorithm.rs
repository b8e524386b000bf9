//! The names of the sort algorithms.

use std::fmt;
use std::str::FromStr;

/// A sort algorithm on CUDA. The CPU has one sort ([`cpu`](crate::cpu)) and ignores this choice.
/// `wgpu` has one sort too, and any algorithm but [`Algorithm::Auto`] is an error there.
///
/// Parses from and displays as its name on the command line.
///
/// ```
/// use gpusort::Algorithm;
///
/// assert_eq!("onesweep".parse::<Algorithm>()?, Algorithm::Onesweep);
/// assert_eq!(Algorithm::Auto.to_string(), "auto");
/// assert!("bogo".parse::<Algorithm>().is_err());
/// # Ok::<(), gpusort::UnknownAlgorithm>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Algorithm {
    /// Ha, Krüger and Silva 2009: radix sort by 2-bit digits, with an order check before each pass.
    /// Stable.
    FourWayRadix,
    /// The same sort by 3-bit digits, which that paper compares with. Stable.
    EightWayRadix,
    /// Satish, Harris and Garland 2009, §III: radix sort by 4-bit digits, with tiles sorted on chip
    /// by 1-bit splits. Stable.
    SatishRadix,
    /// Satish, Harris and Garland 2009, §IV: merge sort of tiles that an odd-even merge network
    /// sorts, then a tree of merges. It needs an order on keys only. Stable.
    SatishMerge,
    /// Cederman and Tsigas 2009: GPU-Quicksort in two phases. This implementation is stable.
    Quicksort,
    /// Dehne and Zaboli 2010: deterministic sample sort with at most 2n/s keys in each of s
    /// buckets. This implementation is stable.
    BucketSort,
    /// Adinets and Merrill 2022: radix sort by 8-bit digits, with one histogram for all passes and
    /// a chained scan with look-back. Stable.
    Onesweep,
    /// [`Algorithm::Onesweep`], unless the sorter was made with a calibration: then the fastest by
    /// it, for the key type and the number of keys.
    #[default]
    Auto,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: &[Self] = &[
        Self::FourWayRadix,
        Self::EightWayRadix,
        Self::SatishRadix,
        Self::SatishMerge,
        Self::Quicksort,
        Self::BucketSort,
        Self::Onesweep,
        Self::Auto,
    ];

    /// Returns the name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FourWayRadix => "four-way",
            Self::EightWayRadix => "eight-way",
            Self::SatishRadix => "satish-radix",
            Self::SatishMerge => "satish-merge",
            Self::Quicksort => "quicksort",
            Self::BucketSort => "bucket",
            Self::Onesweep => "onesweep",
            Self::Auto => "auto",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error of a name that no algorithm has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown sort algorithm `{name}`: known are {}", known())]
pub struct UnknownAlgorithm {
    /// The name asked for.
    pub name: String,
}

fn known() -> String {
    let names = Algorithm::ALL.iter().map(|algorithm| algorithm.name());
    names.collect::<Vec<_>>().join(", ")
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    /// Parses a name. The error [`UnknownAlgorithm`] lists all names.
    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        let found = Self::ALL.iter().find(|algorithm| algorithm.name() == name);
        found
            .copied()
            .ok_or_else(|| UnknownAlgorithm { name: name.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_unknown_ones_are_errors() {
        for &algorithm in Algorithm::ALL {
            assert_eq!(
                algorithm.to_string().parse::<Algorithm>().ok(),
                Some(algorithm)
            );
        }
        let message = "Onesweep".parse::<Algorithm>().map_err(|e| e.to_string());
        assert_eq!(
            message,
            Err("unknown sort algorithm `Onesweep`: known are four-way, eight-way, satish-radix, satish-merge, quicksort, bucket, onesweep, auto".to_string())
        );
    }
}
