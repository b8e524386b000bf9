//! The transport of `sap_dist` over MPI: [`Mpi`] sends memory of the host.
//!
//! ```no_run
//! use sap::Aabb;
//! use sap_dist::{Config, Distributed, Frame, Transport};
//! use sap_mpi::Mpi;
//! use std::time::Duration;
//!
//! let universe = mpi::initialize().ok_or("MPI does not start")?;
//! let mut transport = Mpi::new(&universe.world(), Duration::from_secs(60))?;
//! let boxes = [Aabb::new([0.0; 3], [1.0; 3])];
//! let mut broad_phase = Distributed::new(Config::default())?;
//! let frame = Frame::from_id(transport.rank() as u64, &boxes);
//! println!("{}", broad_phase.update(&mut transport, frame)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A process whose transport failed should end with [`Mpi::abort`], since `MPI_Finalize` waits for
//! all ranks, and some may never come.
//!
//! With the feature `cuda`, `DeviceMpi` moves memory between CUDA devices: directly by an MPI that
//! can read it, else over the host. `sap_dist::Staged` and `sap_dist::Nccl` work over [`Mpi`] too.

#[cfg(cuda)]
mod device;
mod transport;

#[cfg(cuda)]
pub use device::DeviceMpi;
pub use transport::Mpi;
