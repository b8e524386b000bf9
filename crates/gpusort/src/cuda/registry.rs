//! Which family of sorts an algorithm is: the one place that knows them all.

use super::family::Family;
use super::{bucket_sort, ha_radix, onesweep, quicksort, satish_merge, satish_radix};
use crate::Algorithm;

/// The family of an algorithm, `Auto` apart.
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
