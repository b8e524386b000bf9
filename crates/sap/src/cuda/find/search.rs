//! The input of a search for pairs, whichever finder makes it.

use crate::cuda::abi::{Accept, State};
use crate::cuda::input::scene::Scene;
use gpu::DevicePtr;

/// The boxes that are sorted and searched: all of a frame, or those outside the resting set.
#[derive(Clone, Copy)]
pub(crate) struct Active<'a> {
    pub(crate) scene: &'a Scene,
    /// The indices of the active boxes in the frame; null if they are all boxes.
    pub(crate) ids: DevicePtr<u32>,
}

/// The pairs that are searched for, and where they are counted.
#[derive(Clone, Copy)]
pub(crate) struct Search {
    pub(crate) accept: Accept,
    /// Worlds by index in the frame, or null.
    pub(crate) worlds: DevicePtr<u32>,
    pub(crate) state: DevicePtr<State>,
    /// The max tests, beside those for pairs.
    pub(crate) limit: u64,
}

impl Search {
    pub(crate) const fn is_open(&self) -> bool {
        self.accept.open != 0
    }
}
