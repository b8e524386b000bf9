//! The sorts on CUDA. They work on device memory that the caller owns.

mod abi;
mod adaptive;
mod auto;
#[doc(hidden)]
pub mod baseline;
mod bucket_sort;
mod buffers;
mod config;
mod context;
mod family;
mod gather;
mod ha_radix;
mod onesweep;
pub(crate) mod order;
mod outcome;
mod payload;
mod plan;
mod quicksort;
mod registry;
mod request;
mod satish_merge;
mod satish_radix;
mod sorter;
mod tile;
mod tuning;

pub use auto::{Calibration, CalibrationError};
#[doc(hidden)]
pub use bucket_sort::bucket_count;
#[doc(hidden)]
pub use config::Knobs;
pub use config::SorterConfig;
pub use outcome::SortOutcome;
pub use payload::{Payload, Value};
pub use request::Request;
pub use satish_merge::{Comparator, MergeSorter, Words};
pub use sorter::Sorter;
