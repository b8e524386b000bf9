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
    /// The filters and worlds of these boxes.
    pub(crate) labels: Labels<'static>,
    /// The loosened box of each of them; empty without a margin.
    pub(crate) stored: Vec<Aabb>,
}
