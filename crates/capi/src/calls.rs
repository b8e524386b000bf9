//! Calls that create, update and destroy a broad phase. The header is generated from this file: its
//! comments address C programmers.

use crate::config::RadsweepConfig;
use crate::entry::entry;
use crate::error::RadsweepStatus;
use crate::frame::RadsweepFrame;
use crate::handle::{self, RadsweepBroadPhase};
use crate::pointer::{self, list};
use crate::types::{RadsweepAabb, RadsweepPair};
use bytemuck::cast_slice;
use std::ffi::c_void;

/// Creates a broad phase without boxes. A null `config` means the default. On failure *out is null.
///
/// # Safety
///
/// `config` is null or points to a configuration with the right size; `out` points to memory for a
/// handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_create(
    config: *const RadsweepConfig,
    out: *mut *mut RadsweepBroadPhase,
) -> RadsweepStatus {
    entry(|| {
        // SAFETY: guaranteed by the caller.
        let config = unsafe {
            pointer::write(out, "out", std::ptr::null_mut())?;
            RadsweepConfig::read(config)?
        };
        let broad_phase = sap::BroadPhase::new(config)?;
        // SAFETY: guaranteed by the caller.
        unsafe { pointer::write(out, "out", handle::insert(broad_phase)) }
    })
}

/// Destroys a broad phase. Its handle and the lists that it lent become invalid.
#[unsafe(no_mangle)]
pub extern "C" fn radsweep_destroy(broad_phase: *mut RadsweepBroadPhase) -> RadsweepStatus {
    entry(|| handle::remove(broad_phase))
}

/// Finds all pairs of the `count` boxes of a frame. `boxes` may be null if `count` is 0.
///
/// # Safety
///
/// `boxes` points to `count` boxes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_update(
    broad_phase: *mut RadsweepBroadPhase,
    boxes: *const RadsweepAabb,
    count: usize,
) -> RadsweepStatus {
    entry(|| {
        handle::with(broad_phase, |state| {
            // SAFETY: guaranteed by the caller.
            let boxes = unsafe { list(boxes, count, "boxes")? };
            state
                .broad_phase
                .update(cast_slice::<_, sap::Aabb>(boxes))?;
            Ok(())
        })
    })
}

/// Finds all pairs of a frame, like radsweep_update, with boxes of any form, filters, worlds and
/// excluded pairs.
///
/// # Safety
///
/// `frame` points to a frame with the right size, whose lists have as many elements as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_update_frame(
    broad_phase: *mut RadsweepBroadPhase,
    frame: *const RadsweepFrame,
) -> RadsweepStatus {
    entry(|| {
        handle::with(broad_phase, |state| {
            // SAFETY: guaranteed by the caller.
            let frame = unsafe { RadsweepFrame::read(frame)? };
            state.broad_phase.update(frame)?;
            Ok(())
        })
    })
}

/// Finds all pairs of boxes in the memory of the first CUDA device.
///
/// `boxes` is an address from the CUDA driver API or runtime API (primary context). The boxes must
/// be complete: synchronize the stream that writes them first. Returns RADSWEEP_STATUS_NO_CUDA if
/// the broad phase does not run on CUDA.
///
/// # Safety
///
/// `boxes` is the address of `count` boxes in device memory.
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
                // SAFETY: guaranteed by the caller.
                let list = unsafe { crate::read::device_list(boxes, count)? };
                state.broad_phase.update_device(list)?;
                Ok(())
            }
            #[cfg(not(cuda))]
            {
                let _ = (state, boxes, count);
                Err(crate::error::no_cuda())
            }
        })
    })
}

/// Waits until all work on the device is done. Lists from radsweep_device_pairs can then be read on
/// any stream. It does nothing unless the broad phase runs on CUDA.
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

/// Removes all boxes, pairs and margins. The next update reports all its pairs as started.
#[unsafe(no_mangle)]
pub extern "C" fn radsweep_clear(broad_phase: *mut RadsweepBroadPhase) -> RadsweepStatus {
    entry(|| {
        handle::with(broad_phase, |state| {
            state.broad_phase.clear();
            Ok(())
        })
    })
}

/// Lends the overlapping pairs between two sets, sorted: a is an index of the first set, b of the
/// second.
///
/// Margins do not apply. The excluded pairs are those of the first frame. The result of the last
/// update is unchanged.
///
/// # Safety
///
/// Both frames as for radsweep_update_frame; `pairs` and `count` point to memory for the result.
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
            // SAFETY: guaranteed by the caller.
            let (first, second) =
                unsafe { (RadsweepFrame::read(first)?, RadsweepFrame::read(second)?) };
            pointer::check_out(pairs, "pairs")?;
            pointer::check_out(count, "count")?;
            state.between = state.broad_phase.overlaps_between(first, second)?;
            // SAFETY: guaranteed by the caller.
            unsafe { crate::read::lend(cast_slice(&state.between), pairs, count) }
        })
    })
}

/// Passes all pairs of a frame to `each`, in sorted order and at most `chunk` at once (0 means 1),
/// in bounded memory.
///
/// `total`, which may be null, receives the number of pairs. Margins do not apply. The result of
/// the last update is unchanged. `each` receives `user`; it must return, and may use other handles
/// but not this one.
///
/// # Safety
///
/// `frame` as for radsweep_update_frame; `each` is a function of that type; `total` is null or
/// points to a number.
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
            // SAFETY: guaranteed by the caller.
            let frame = unsafe { RadsweepFrame::read(frame)? };
            let each = each.ok_or(crate::error::Failure::Null { what: "each" })?;
            if !total.is_null() {
                pointer::check_out(total, "total")?;
            }
            let report = state
                .broad_phase
                .for_each_pair_chunk(frame, chunk, |pairs| {
                    let pairs: &[RadsweepPair] = cast_slice(pairs);
                    // SAFETY: the caller guarantees that it is such a function.
                    unsafe { each(pairs.as_ptr(), pairs.len(), user) }
                })?;
            if total.is_null() {
                return Ok(());
            }
            // SAFETY: guaranteed by the caller.
            unsafe { pointer::write(total, "total", report.pairs) }
        })
    })
}
