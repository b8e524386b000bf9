//! The sorts by name.

use std::fmt;
use std::str::FromStr;

/// Which family of sorts runs on a GPU. The CPU has one sort ([`crate::cpu`]), whatever is named here.
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
    /// Ha, Krüger and Silva 2009: 2-bit digits, order check before each pass. Stable.
    FourWayRadix,
    /// The same with 3-bit digits, the comparison of that paper. Stable.
    EightWayRadix,
    /// Satish, Harris and Garland 2009, §III: 4-bit digits, tiles sorted by 1-bit splits on chip. Stable.
    SatishRadix,
    /// Satish, Harris and Garland 2009, §IV: tiles by odd-even merge, then a tree of merges. Needs only an order. Stable.
    SatishMerge,
    /// Cederman and Tsigas 2009: GPU-Quicksort in two phases. Stable, as it is built here.
    Quicksort,
    /// Dehne and Zaboli 2010: deterministic sample sort; no bucket beyond 2n/s keys. Stable, as it is built here.
    BucketSort,
    /// Adinets and Merrill 2022: 8-bit digits, one histogram for all passes, chained scan with look-back. Stable.
    Onesweep,
    /// The fastest for the key type and the number of keys.
    #[default]
    Auto,
}

impl Algorithm {
    /// Every algorithm that is built.
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

    /// The name on the command line.
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

/// No algorithm has that name.
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

    /// [`UnknownAlgorithm`] lists the names that are known.
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
    fn names_parse_back_and_unknown_ones_list_the_known() {
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
