//! The sorts on CUDA, over device memory that the caller owns.

mod buffers;
mod kernels;
mod layout;
mod sorter;
mod tuning;

pub use layout::Payload;
pub use sorter::{Sorter, SorterConfig, Value};
