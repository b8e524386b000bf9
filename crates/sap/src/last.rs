//! The result that one engine hands on to the next.

use crate::query::Labels;
use crate::{Aabb, Pair};

/// The last result of an engine that failed, as far as it can still be read.
#[derive(Default)]
pub(crate) struct Last {
    pub(crate) pairs: Vec<Pair>,
    pub(crate) started: Vec<Pair>,
    pub(crate) ended: Vec<Pair>,
    /// The boxes of the last frame, before margins.
    pub(crate) given: Vec<Aabb>,
    /// Their filters and worlds.
    pub(crate) labels: Labels<'static>,
    /// With a margin, the stored box of each of them; else empty.
    pub(crate) stored: Vec<Aabb>,
}
