//! Exact broad-phase collision detection over several ranks: threads of a process, or processes
//! over MPI.
//!
//! Every rank brings boxes with ids; together they find the pairs that one engine with all boxes
//! finds, bit for bit ([`Distributed`]). The ranks talk through a [`Transport`]: [`Threads`] within
//! a process, MPI by the package `radsweep-mpi`. Over the same transports, [`sort_keys`] and
//! [`sort_pairs`] sort the elements of all ranks.
//!
//! A rank that fails ends the call on all ranks with the same [`Error`], and the last result
//! stays. A rank that is missing is an error too: every call between ranks has a time limit.
//!
//! ```
//! use sap::Aabb;
//! use sap_dist::{Config, Distributed, Frame, Threads, Transport};
//! use std::time::Duration;
//!
//! let boxes: Vec<Aabb> = (0..1000)
//!     .map(|i| Aabb::new([i as f32, 0.0, 0.0], [i as f32 + 1.5, 1.0, 1.0]))
//!     .collect();
//! let parts = Threads::run(4, Duration::from_secs(10), |transport| {
//!     let first = 250 * transport.rank();
//!     let mut broad_phase = Distributed::new(Config::default())?;
//!     let frame = Frame::from_id(first as u64, &boxes[first..first + 250]);
//!     broad_phase.update(transport, frame)?;
//!     Ok::<_, sap_dist::Error>(broad_phase.pairs().to_vec())
//! })?;
//! let pairs = parts.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
//!
//! let mut one = sap::BroadPhase::new(sap::Config::default()).expect("no engine");
//! one.update(&boxes).expect("the boxes are valid");
//! let same = |(x, y): (&sap_dist::Pair, &sap::Pair)| (x.a, x.b) == (y.a.into(), y.b.into());
//! assert_eq!(pairs.len(), one.pairs().len());
//! assert!(pairs.iter().zip(one.pairs()).all(same));
//! # Ok::<(), sap_dist::Error>(())
//! ```
//!
//! The engine of a rank works on the CPU, or with the feature `cuda` on a device
//! (`DeviceDistributed`, `Devices` for boxes of the host, `DeviceSorter`). Margins, swept and `f64`
//! boxes, queries, two sets and chunks are not supported.
//! `docs/distributed.md` describes how boxes and pairs travel, what that costs, and where it stops
//! scaling.

mod config;
#[cfg(cuda)]
mod device;
mod distributed;
mod error;
mod frame;
mod layout;
mod outline;
mod pair;
mod protocol;
mod report;
mod results;
mod search;
mod sort;
mod threads;
mod transport;
mod tuning;
mod wire;

pub use config::Config;
#[cfg(cuda)]
pub use device::{
    DeviceDistributed, DeviceFrame, DeviceSorter, DeviceTransport, Devices, Nccl, Peers, Staged,
    set_nccl_library,
};
pub use distributed::Distributed;
pub use error::{Cause, Error, List, Result};
pub use frame::Frame;
pub use pair::Pair;
pub use report::{Invalid, RankReport, Report, Timings};
pub use sort::{sort_keys, sort_pairs};
pub use threads::Threads;
pub use transport::{Reduce, Traffic, Transport, TransportError};
