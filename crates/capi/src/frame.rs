//! What an update reads, as C sees it.

use crate::error::{Failure, RadsweepStatus, entry};
use crate::pointer::{self, list, optional};
use crate::{RadsweepAabb, RadsweepAabb64, RadsweepFilter, RadsweepPair};
use bytemuck::cast_slice;
use sap::Frame;

/// Boxes, and what may come with them. Fill it with radsweep_frame_default, then set `boxes` or `boxes64`, `count`, and what else there is.
/// Everything is read during the call only.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RadsweepFrame {
    /// sizeof(RadsweepFrame).
    pub size: u64,
    /// How many boxes.
    pub count: usize,
    /// The boxes, or null with boxes64.
    pub boxes: *const RadsweepAabb,
    /// Where each box ends in this step, or null: then a box takes the room of its start and its end together.
    pub ends: *const RadsweepAabb,
    /// Boxes of doubles in the place of `boxes`, tested exactly, or null.
    pub boxes64: *const RadsweepAabb64,
    /// A filter for each box, or null.
    pub filters: *const RadsweepFilter,
    /// A world for each box, or null: boxes pair within one world only.
    pub worlds: *const u32,
    /// Pairs never to report, sorted by a, then b, with a < b; or null.
    pub excluded: *const RadsweepPair,
    /// How many pairs are excluded.
    pub excluded_count: usize,
    /// The boxes that may differ from those of the last update that succeeded, by index, in any order; null: nothing is told. All others
    /// are taken to be as they were, with their filters and worlds.
    pub changed: *const u32,
    /// How many boxes are told to have changed.
    pub changed_count: usize,
}

const FIRST_VERSION: usize =
    std::mem::offset_of!(RadsweepFrame, excluded_count) + size_of::<usize>();
// No padding: the members fill it.
const _: () = assert!(size_of::<RadsweepFrame>() == size_of::<u64>() + 10 * size_of::<*const u8>());

const DEFAULT: RadsweepFrame = RadsweepFrame {
    size: size_of::<RadsweepFrame>() as u64,
    count: 0,
    boxes: std::ptr::null(),
    ends: std::ptr::null(),
    boxes64: std::ptr::null(),
    filters: std::ptr::null(),
    worlds: std::ptr::null(),
    excluded: std::ptr::null(),
    excluded_count: 0,
    changed: std::ptr::null(),
    changed_count: 0,
};

impl RadsweepFrame {
    /// The frame behind a pointer from outside.
    ///
    /// # Safety
    ///
    /// As for [`pointer::sized`], and each list as for [`list`], with `count` elements.
    pub(crate) unsafe fn read<'a>(frame: *const Self) -> Result<Frame<'a>, Failure> {
        // SAFETY: pointers and numbers without padding, the size first.
        let given = unsafe { pointer::sized(frame, FIRST_VERSION, DEFAULT, "the frame")? };
        let n = given.count;
        // SAFETY: the caller's promise.
        let (ends, boxes64) = unsafe {
            (
                optional(given.ends, n, "ends")?,
                optional(given.boxes64, n, "boxes64")?,
            )
        };
        let both = |allowed| Failure::Argument {
            what: "the frame",
            given: "more than one form of boxes".to_owned(),
            allowed,
        };
        let mut frame = match (boxes64, ends) {
            (Some(_), Some(_)) => return Err(both("boxes64 without ends")),
            (Some(_), None) if !given.boxes.is_null() => {
                return Err(both("either boxes or boxes64"));
            }
            (Some(boxes), None) => Frame::exact(cast_slice(boxes)),
            // SAFETY: the caller's promise.
            (None, ends) => match (unsafe { list(given.boxes, n, "boxes")? }, ends) {
                (start, Some(end)) => Frame::swept(cast_slice(start), cast_slice(end)),
                (boxes, None) => Frame::boxes(cast_slice(boxes)),
            },
        };
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(filters) = optional(given.filters, n, "filters")? {
                frame = frame.filters(cast_slice(filters));
            }
            if let Some(worlds) = optional(given.worlds, n, "worlds")? {
                frame = frame.worlds(worlds);
            }
            if let Some(changed) = optional(given.changed, given.changed_count, "changed")? {
                frame = frame.changed(changed);
            }
            let excluded = list(given.excluded, given.excluded_count, "excluded")?;
            Ok(frame.excluded(cast_slice(excluded)))
        }
    }
}

/// Fills a frame with nothing. `size` is sizeof(RadsweepFrame).
///
/// # Safety
///
/// `frame` points at `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_frame_default(
    frame: *mut RadsweepFrame,
    size: usize,
) -> RadsweepStatus {
    // SAFETY: the caller's promise.
    entry(|| unsafe { pointer::write_sized(frame, size, FIRST_VERSION, DEFAULT, "the frame") })
}
