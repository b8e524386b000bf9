//! What has changed of a frame, as it goes to the device where all else is there from the last update.

use crate::cuda::input::source::Source;
use crate::frame::Boxes;
use crate::{Aabb, Filter, Frame};
use bytemuck::{Pod, Zeroable};

/// A box that has changed, with its filter and its world: the layout of `kernels/sap/patch.cuh`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Patch {
    bounds: Aabb,
    filter: Filter,
    index: u32,
    pub(crate) world: u32,
}

/// The fewest boxes of a frame of which only those changed are uploaded, and the part of it that these may be. Below that,
/// the upload of all takes no longer than the copies on the device that are needed instead.
const FEWEST: usize = 16 * 1024;
const MOST_CHANGED: usize = 4;

/// The frame, where it lists what has changed since one that it `is_like`, and that is little.
pub(crate) fn patched<'a>(
    sets: &[Source<'a>],
    is_like: impl FnOnce(&Frame) -> bool,
) -> Option<(&'a Frame<'a>, Vec<Patch>)> {
    let [Source::Host(frame)] = sets else {
        return None;
    };
    let (Boxes::Plain(boxes), Some(changed)) = (frame.boxes, frame.changed) else {
        return None;
    };
    let n = boxes.len();
    if n < FEWEST || changed.len() > n / MOST_CHANGED || !is_like(frame) {
        return None;
    }
    let patch = |&index: &u32| {
        let i = index as usize;
        Patch {
            bounds: boxes[i],
            filter: frame
                .filters
                .map_or(Filter::default(), |filters| filters[i]),
            index,
            world: frame.worlds.map_or(0, |worlds| worlds[i]),
        }
    };
    Some((frame, changed.iter().map(patch).collect()))
}
