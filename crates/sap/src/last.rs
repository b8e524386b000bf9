//! What one engine hands on to the next.

use crate::{Aabb, Pair};

/// The last result, as far as it can be had. Lists are as the engine's calls of those names give them.
pub(crate) struct Last {
    pub(crate) pairs: Vec<Pair>,
    pub(crate) started: Vec<Pair>,
    pub(crate) ended: Vec<Pair>,
    /// The boxes as they were given.
    pub(crate) given: Vec<Aabb>,
    /// With a margin, the boxes that are kept while those given stay inside; as many, or none.
    pub(crate) stored: Vec<Aabb>,
}
