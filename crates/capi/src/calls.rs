//! Calls that make, feed and end a broad phase. The header is made from this page, so its comments are for C.

use crate::error::{RadsweepStatus, entry};
use crate::handle::{self, RadsweepBroadPhase};
use crate::pointer::{self, list};
use crate::{RadsweepAabb, RadsweepConfig, RadsweepFrame, RadsweepPair};
use bytemuck::cast_slice;
use std::ffi::c_void;

/// Makes a broad phase without boxes. A null `config` is the default. On failure *out is null.
///
/// # Safety
///
/// `config` is null or points at a configuration whose size is right; `out` points at room for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_create(
    config: *const RadsweepConfig,
    out: *mut *mut RadsweepBroadPhase,
) -> RadsweepStatus {
    entry(|| {
        // SAFETY: the caller's promise.
        let config = unsafe {
            pointer::write(out, "out", std::ptr::null_mut())?;
            RadsweepConfig::read(config)?
        };
        let broad_phase = sap::BroadPhase::new(config)?;
        // SAFETY: the caller's promise.
        unsafe { pointer::write(out, "out", handle::insert(broad_phase)) }
    })
}

/// Ends a broad phase; the handle is none from then on. Lists that it lent out are gone.
#[unsafe(no_mangle)]
pub extern "C" fn radsweep_destroy(broad_phase: *mut RadsweepBroadPhase) -> RadsweepStatus {
    entry(|| handle::remove(broad_phase))
}

/// Takes the `count` boxes of a frame and finds all their pairs. `boxes` may be null if there are none.
///
/// # Safety
///
/// `boxes` points at `count` boxes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_update(
    broad_phase: *mut RadsweepBroadPhase,
    boxes: *const RadsweepAabb,
    count: usize,
) -> RadsweepStatus {
    entry(|| {
        handle::with(broad_phase, |state| {
            // SAFETY: the caller's promise.
            let boxes = unsafe { list(boxes, count, "boxes")? };
            state
                .broad_phase
                .update(cast_slice::<_, sap::Aabb>(boxes))?;
            Ok(())
        })
    })
}

/// As radsweep_update, for boxes of any form, with filters, worlds and excluded pairs.
///
/// # Safety
///
/// `frame` points at a frame whose size is right and whose lists have as many elements as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_update_frame(
    broad_phase: *mut RadsweepBroadPhase,
    frame: *const RadsweepFrame,
) -> RadsweepStatus {
    entry(|| {
        handle::with(broad_phase, |state| {
            // SAFETY: the caller's promise.
            let frame = unsafe { RadsweepFrame::read(frame)? };
            state.broad_phase.update(frame)?;
            Ok(())
        })
    })
}

/// As radsweep_update, for boxes in the memory of the first CUDA device, as its driver's or its runtime's API gives it (the primary
/// context). What writes them must be done: synchronise its stream first. RADSWEEP_STATUS_NO_CUDA where the broad phase works on the CPU.
///
/// # Safety
///
/// `boxes` is the address of `count` boxes in the memory of the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_update_device(
    broad_phase: *mut RadsweepBroadPhase,
    boxes: u64,
    count: usize,
) -> RadsweepStatus {
    entry(|| {
        handle::with(broad_phase, |state| {
            #[cfg(cuda)]
            {
                // SAFETY: the caller's promise.
                let list = unsafe { crate::read::device_list(boxes, count)? };
                state.broad_phase.update_device(list)?;
                Ok(())
            }
            #[cfg(not(cuda))]
            {
                let _ = (state, boxes, count);
                Err(no_cuda())
            }
        })
    })
}

/// Why calls about a device fail in a build without one.
#[cfg(not(cuda))]
pub(crate) fn no_cuda() -> crate::error::Failure {
    let looked_for = "this build of the library has no feature `cuda`".to_owned();
    sap::Error::NoCuda { looked_for }.into()
}

/// Waits until all work on the device is done, so that lists from radsweep_device_pairs can be read on any stream. Nothing to wait for
/// on the CPU.
#[unsafe(no_mangle)]
pub extern "C" fn radsweep_synchronize(broad_phase: *mut RadsweepBroadPhase) -> RadsweepStatus {
    entry(|| {
        handle::with(broad_phase, |state| {
            let _ = &state;
            #[cfg(cuda)]
            if let Some(stream) = state.broad_phase.stream() {
                stream.synchronize().map_err(sap::Error::from)?;
            }
            Ok(())
        })
    })
}

/// Forgets the last update: no boxes, no pairs, no margins; the next update starts every pair it finds.
#[unsafe(no_mangle)]
pub extern "C" fn radsweep_clear(broad_phase: *mut RadsweepBroadPhase) -> RadsweepStatus {
    entry(|| {
        handle::with(broad_phase, |state| {
            state.broad_phase.clear();
            Ok(())
        })
    })
}

/// Lends out the overlapping pairs between two sets, sorted: a is an index in the first, b in the second. Margins do not apply; excluded
/// pairs are those of the first frame. The result of the last update stays.
///
/// # Safety
///
/// Both frames as for radsweep_update_frame; `pairs` and `count` point at room for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_overlaps_between(
    broad_phase: *mut RadsweepBroadPhase,
    first: *const RadsweepFrame,
    second: *const RadsweepFrame,
    pairs: *mut *const RadsweepPair,
    count: *mut usize,
) -> RadsweepStatus {
    entry(|| {
        handle::with(broad_phase, |state| {
            // SAFETY: the caller's promise.
            let (first, second) =
                unsafe { (RadsweepFrame::read(first)?, RadsweepFrame::read(second)?) };
            pointer::check_out(pairs, "pairs")?;
            pointer::check_out(count, "count")?;
            state.between = state.broad_phase.overlaps_between(first, second)?;
            // SAFETY: the caller's promise.
            unsafe { crate::read::lend(cast_slice(&state.between), pairs, count) }
        })
    })
}

/// Delivers all pairs of a frame, sorted over all calls of `each`, at most `chunk` at once (0 counts as 1), in memory that does not grow with
/// their number. `total`, which may be null, gets their number. Margins do not apply; the result of the last update stays. `each` gets
/// `user`; it must return, and may use other handles but not this one.
///
/// # Safety
///
/// `frame` as for radsweep_update_frame; `each` is a function of that type; `total` is null or points at a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_for_each_pair_chunk(
    broad_phase: *mut RadsweepBroadPhase,
    frame: *const RadsweepFrame,
    chunk: usize,
    each: Option<unsafe extern "C" fn(pairs: *const RadsweepPair, count: usize, user: *mut c_void)>,
    user: *mut c_void,
    total: *mut u64,
) -> RadsweepStatus {
    entry(|| {
        handle::with(broad_phase, |state| {
            // SAFETY: the caller's promise.
            let frame = unsafe { RadsweepFrame::read(frame)? };
            let each = each.ok_or(crate::error::Failure::Null { what: "each" })?;
            if !total.is_null() {
                pointer::check_out(total, "total")?;
            }
            let report = state
                .broad_phase
                .for_each_pair_chunk(frame, chunk, |pairs| {
                    let pairs: &[RadsweepPair] = cast_slice(pairs);
                    // SAFETY: a function that takes this, by the caller's promise.
                    unsafe { each(pairs.as_ptr(), pairs.len(), user) }
                })?;
            if total.is_null() {
                return Ok(());
            }
            // SAFETY: the caller's promise.
            unsafe { pointer::write(total, "total", report.pairs) }
        })
    })
}
