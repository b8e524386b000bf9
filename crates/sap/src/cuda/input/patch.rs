//! Uploads only the changed boxes of a frame, if all else is as in the last update.

use crate::cuda::input::source::{BoxLists, List, Source};
use crate::cuda::tuning::{MAX_PATCH_SHARE, MIN_PATCHED};
use crate::{Aabb, Filter, try_alloc};
use bytemuck::{Pod, Zeroable};
use gpu::assert_layout;

/// A changed box, with its filter and its world: the layout of `kernels/sap/patch.cuh`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Patch {
    bounds: Aabb,
    filter: Filter,
    index: u32,
    pub(crate) world: u32,
}

assert_layout!(Patch, 48: bounds 0, filter 24, index 40, world 44);

/// Collects the changed boxes of a frame that lists them into `patches`, whose memory it reuses.
/// Returns false where they are not few, memory for them is refused, or the frame is not `is_like`
/// the last one otherwise.
pub(crate) fn collect(
    patches: &mut Vec<Patch>,
    sets: &[Source],
    is_like: impl FnOnce(&Source) -> bool,
) -> bool {
    let [set] = sets else {
        return false;
    };
    let (BoxLists::Plain(List::Host(boxes)), Some(changed)) = (set.boxes, set.changed) else {
        return false;
    };
    let n = boxes.len();
    if n < MIN_PATCHED || changed.len() > n / MAX_PATCH_SHARE || !is_like(set) {
        return false;
    }
    let patch = |&index: &u32| {
        let i = index as usize;
        Patch {
            bounds: boxes[i],
            filter: match set.filters {
                Some(List::Host(filters)) => filters[i],
                _ => Filter::default(),
            },
            index,
            world: match set.worlds {
                Some(List::Host(worlds)) => worlds[i],
                _ => 0,
            },
        }
    };
    try_alloc::refill(patches, changed.iter().map(patch)).is_ok()
}
