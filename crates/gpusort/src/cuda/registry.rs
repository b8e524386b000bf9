//! The list of all families of sorts, by algorithm.

use super::family::Family;
use super::{bucket_sort, ha_radix, onesweep, quicksort, satish_merge, satish_radix};
use crate::Algorithm;

/// Returns the family that runs an algorithm. `Auto` must be resolved before; here it is Onesweep.
pub(super) fn family(algorithm: Algorithm) -> &'static dyn Family {
    match algorithm {
        Algorithm::FourWayRadix => &ha_radix::FOUR_WAY,
        Algorithm::EightWayRadix => &ha_radix::EIGHT_WAY,
        Algorithm::SatishRadix => &satish_radix::SatishRadix,
        Algorithm::SatishMerge => &satish_merge::SatishMerge,
        Algorithm::Quicksort => &quicksort::Quicksort,
        Algorithm::BucketSort => &bucket_sort::BucketSort,
        Algorithm::Onesweep | Algorithm::Auto => &onesweep::Onesweep,
    }
}
