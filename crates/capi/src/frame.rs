//! The frame of an update for C.

use crate::entry::entry;
use crate::error::{Failure, RadsweepStatus};
use crate::pointer::{self, list, optional};
use crate::types::{RadsweepAabb, RadsweepAabb64, RadsweepFilter, RadsweepPair};
use bytemuck::cast_slice;
use sap::Frame;

/// The boxes of a frame, and optional lists. Fill it with radsweep_frame_default, then set `boxes`
/// or `boxes64`, `count`, and any other members. The lists are read only during the call.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RadsweepFrame {
    /// sizeof(RadsweepFrame).
    pub size: u64,
    /// Number of boxes.
    pub count: usize,
    /// The boxes, or null if `boxes64` is set.
    pub boxes: *const RadsweepAabb,
    /// The boxes at the end of a step, or null. If set, a box covers its start and its end.
    pub ends: *const RadsweepAabb,
    /// Boxes of doubles instead of `boxes`, tested exactly; or null.
    pub boxes64: *const RadsweepAabb64,
    /// A filter for each box, or null.
    pub filters: *const RadsweepFilter,
    /// The world of each box, or null. Boxes pair only within a world.
    pub worlds: *const u32,
    /// Pairs that are never reported, sorted by a, then b, with a < b; or null.
    pub excluded: *const RadsweepPair,
    /// Number of excluded pairs.
    pub excluded_count: usize,
    /// The changed set: the indices of the boxes that may have changed since the last update, in
    /// any order; or null. If set, all other boxes must be unchanged, with their filters and
    /// worlds. After an update that failed, all boxes are compared, whatever this says.
    pub changed: *const u32,
    /// Number of boxes in the changed set.
    pub changed_count: usize,
}

const FIRST_VERSION: usize =
    std::mem::offset_of!(RadsweepFrame, excluded_count) + size_of::<usize>();
// The members leave no padding.
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
    /// Reads a frame.
    ///
    /// # Safety
    ///
    /// As for [`pointer::sized`], and each list as for [`list`], with `count` elements.
    pub(crate) unsafe fn read<'a>(frame: *const Self) -> Result<Frame<'a>, Failure> {
        // SAFETY: the members are pointers and numbers without padding, the size first.
        let given = unsafe { pointer::sized(frame, FIRST_VERSION, DEFAULT, "the frame")? };
        let n = given.count;
        // SAFETY: guaranteed by the caller.
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
            // SAFETY: guaranteed by the caller.
            (None, ends) => match (unsafe { list(given.boxes, n, "boxes")? }, ends) {
                (start, Some(end)) => Frame::swept(cast_slice(start), cast_slice(end)),
                (boxes, None) => Frame::boxes(cast_slice(boxes)),
            },
        };
        // SAFETY: guaranteed by the caller.
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

/// Fills a frame with zeros and null pointers. `size` is sizeof(RadsweepFrame).
///
/// # Safety
///
/// `frame` points to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_frame_default(
    frame: *mut RadsweepFrame,
    size: usize,
) -> RadsweepStatus {
    // SAFETY: guaranteed by the caller.
    entry(|| unsafe { pointer::write_sized(frame, size, FIRST_VERSION, DEFAULT, "the frame") })
}
