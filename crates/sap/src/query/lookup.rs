//! The tree and the labels that queries keep until the next update.

use super::labels::Labels;
use super::lazy::Lazy;
use super::tree::Tree;
#[cfg(cuda)]
use crate::cuda::tuning::MAX_SCANS;
#[cfg(cuda)]
use std::sync::atomic::{AtomicU32, Ordering};

/// The tree and the labels that queries keep until the next update. Each is made by the first query
/// that needs it.
#[derive(Default)]
pub(crate) struct Lookup {
    pub(crate) tree: Lazy<Tree>,
    /// The filters and worlds, where they had to be copied from a device.
    pub(crate) labels: Lazy<Labels<'static>>,
    /// Queries that a device answered.
    #[cfg(cuda)]
    scans: AtomicU32,
}

#[cfg(cuda)]
impl Lookup {
    /// Takes one of the queries that a device may answer, if there is one left and no tree yet.
    pub(crate) fn takes_scan(&self) -> bool {
        let more = |scans: u32| (scans < MAX_SCANS).then_some(scans + 1);
        let taken = || (self.scans).fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        self.tree.get().is_none() && taken().is_ok()
    }
}
