//! The sorts on a GPU. One binary, because building the sorts of six key types takes most of its
//! time.
//!
//! Names of trials begin with their family, as in `quicksort/all NaN with a partial tile`. With
//! `RADSWEEP_SORTS`, the name of a family, there are only its trials.

mod common;
mod data;
mod gpu_rig;
mod suite;

mod cuda {
    pub mod adaptive;
    pub mod bucket_sort;
    pub mod ha_radix;
    pub mod onesweep;
    mod onesweep_small;
    pub mod quicksort;
    pub mod satish_merge;
    pub mod satish_radix;
}

use gpusort::Algorithm;
use suite::Family;

fn main() {
    suite::run(&[
        Family::new("onesweep", Algorithm::Onesweep, cuda::onesweep::add),
        Family::new("adaptive", Algorithm::Onesweep, cuda::adaptive::add).nearly_sorted(),
        Family::new("ha_radix", Algorithm::FourWayRadix, cuda::ha_radix::add),
        Family::new(
            "satish_radix",
            Algorithm::SatishRadix,
            cuda::satish_radix::add,
        ),
        Family::new(
            "satish_merge",
            Algorithm::SatishMerge,
            cuda::satish_merge::add,
        ),
        Family::new("quicksort", Algorithm::Quicksort, cuda::quicksort::add),
        Family::new("bucket_sort", Algorithm::BucketSort, cuda::bucket_sort::add),
    ]);
}
