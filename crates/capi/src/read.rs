//! Calls that read the result of the last update. The header is generated from this file: its
//! comments address C programmers.

use crate::entry::entry;
use crate::error::{Failure, RadsweepStatus};
use crate::handle::{self, RadsweepBroadPhase, State};
use crate::pointer::{self, copy_out, list};
use crate::types::{RadsweepAabb, RadsweepPair, RadsweepRayHit};
use bytemuck::cast_slice;

/// All pairs of the last update.
pub const RADSWEEP_PAIRS_ALL: u32 = 0;
/// The pairs of the last update that the update before did not have.
pub const RADSWEEP_PAIRS_STARTED: u32 = 1;
/// The pairs of the update before that the last update does not have.
pub const RADSWEEP_PAIRS_ENDED: u32 = 2;

/// The report of the last update.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct RadsweepReport {
    /// The size passed to radsweep_report.
    pub size: u64,
    /// Number of boxes.
    pub boxes: u64,
    /// Number of overlapping pairs.
    pub pairs: u64,
    /// Number of pairs that the update before did not have.
    pub started: u64,
    /// Number of pairs of the update before that no longer overlap.
    pub ended: u64,
    /// Number of skipped invalid boxes.
    pub invalid: u64,
    /// Index of the first invalid box.
    pub first_invalid: u64,
    /// Number of tests. With hundreds for each box and pair the strategy does not suit the scene.
    pub tests: u64,
    /// Milliseconds of the update.
    pub milliseconds: f64,
    /// RADSWEEP_BACKEND_CPU, RADSWEEP_BACKEND_CUDA or RADSWEEP_BACKEND_WGPU.
    pub backend: u32,
    /// The strategy that ran: RADSWEEP_STRATEGY_*.
    pub strategy: u32,
    /// Number of boxes in the resting set; on the CPU of all that an incremental update leaves out.
    pub resting: u64,
}

/// The size of the first version, which ends with `strategy`.
const FIRST_VERSION: usize = std::mem::offset_of!(RadsweepReport, strategy) + size_of::<u32>();
// The members leave no padding.
const _: () = assert!(size_of::<RadsweepReport>() == 10 * 8 + 2 * 4);

/// Lends a list to the caller.
///
/// # Safety
///
/// `out` and `count` point to memory for the result, where they are not null and aligned.
pub(crate) unsafe fn lend<T>(
    from: &[T],
    out: *mut *const T,
    count: *mut usize,
) -> Result<(), Failure> {
    pointer::check_out(out, "the list's pointer")?;
    pointer::check_out(count, "count")?;
    // SAFETY: guaranteed by the caller.
    unsafe {
        pointer::write(out, "the list's pointer", from.as_ptr())?;
        pointer::write(count, "count", from.len())
    }
}

/// Lends the list that `find` leaves in the state of a broad phase.
///
/// # Safety
///
/// As for [`lend`].
pub(crate) unsafe fn lend_found<T>(
    broad_phase: *const RadsweepBroadPhase,
    out: *mut *const T,
    count: *mut usize,
    find: impl FnOnce(&mut State) -> Result<&[T], Failure>,
) -> RadsweepStatus {
    entry(|| {
        handle::with(broad_phase, |state| {
            pointer::check_out(out, "out")?;
            pointer::check_out(count, "count")?;
            // SAFETY: guaranteed by the caller.
            unsafe { lend(find(state)?, out, count) }
        })
    })
}

fn pairs(state: &mut State, which: u32) -> Result<&[RadsweepPair], Failure> {
    let broad_phase = &mut state.broad_phase;
    broad_phase.download()?;
    let pairs = match which {
        RADSWEEP_PAIRS_ALL => broad_phase.pairs(),
        RADSWEEP_PAIRS_STARTED => broad_phase.started(),
        RADSWEEP_PAIRS_ENDED => broad_phase.ended(),
        _ => {
            return Err(Failure::Argument {
                what: "which",
                given: which.to_string(),
                allowed: "RADSWEEP_PAIRS_ALL, _STARTED or _ENDED",
            });
        }
    };
    Ok(cast_slice(pairs))
}

/// Lends the pairs of the last update, sorted by a, then b. `which` is RADSWEEP_PAIRS_*.
///
/// # Safety
///
/// `out` and `count` point to memory for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_pairs(
    broad_phase: *const RadsweepBroadPhase,
    which: u32,
    out: *mut *const RadsweepPair,
    count: *mut usize,
) -> RadsweepStatus {
    // SAFETY: guaranteed by the caller.
    unsafe { lend_found(broad_phase, out, count, |state| pairs(state, which)) }
}

/// Copies the pairs of the last update to `out`, which has a capacity of `capacity` pairs.
///
/// `count` receives the number of pairs. If it is above the capacity, the status is
/// RADSWEEP_STATUS_TOO_SMALL and nothing is copied. `out` may be null if the capacity is 0.
///
/// # Safety
///
/// `out` points to memory for `capacity` pairs, `count` to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_copy_pairs(
    broad_phase: *const RadsweepBroadPhase,
    which: u32,
    out: *mut RadsweepPair,
    capacity: usize,
    count: *mut usize,
) -> RadsweepStatus {
    entry(|| {
        handle::with(broad_phase, |state| {
            let pairs = pairs(state, which)?;
            // SAFETY: guaranteed by the caller.
            unsafe { copy_out(pairs, out, capacity, count) }
        })
    })
}

/// Returns the address and the number of the last update's pairs in the memory of the CUDA device.
///
/// It waits until they are complete. They are valid until the next call that updates or clears.
/// Returns RADSWEEP_STATUS_NO_CUDA if the broad phase does not run on CUDA.
///
/// # Safety
///
/// `out` and `count` point to memory for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_device_pairs(
    broad_phase: *const RadsweepBroadPhase,
    out: *mut u64,
    count: *mut usize,
) -> RadsweepStatus {
    entry(|| {
        handle::with(broad_phase, |state| {
            pointer::check_out(out, "out")?;
            pointer::check_out(count, "count")?;
            #[cfg(cuda)]
            {
                let pairs = state.broad_phase.device_pairs()?;
                if let Some(stream) = state.broad_phase.stream() {
                    stream.synchronize().map_err(sap::Error::from)?;
                }
                let (address, len) = (pairs.ptr(), pairs.len());
                // SAFETY: guaranteed by the caller.
                unsafe {
                    pointer::write(out, "out", address)?;
                    pointer::write(count, "count", len)
                }
            }
            #[cfg(not(cuda))]
            {
                let _ = state;
                Err(crate::error::no_cuda())
            }
        })
    })
}

/// Returns a slice of boxes in device memory.
///
/// # Safety
///
/// `address` is that of `count` boxes in device memory, which nobody writes during `'a`.
#[cfg(cuda)]
pub(crate) unsafe fn device_list<'a>(
    address: u64,
    count: usize,
) -> Result<gpu::Slice<'a, sap::Aabb>, Failure> {
    if count > 0 {
        let pointer = std::ptr::without_provenance::<RadsweepAabb>(address as usize);
        pointer::check_len(pointer, count, "boxes")?;
    }
    // SAFETY: aligned, or without elements; the caller guarantees the rest.
    Ok(unsafe { gpu::Slice::from_raw(address, count) })
}

/// Returns the report of the last update. `size` is sizeof(RadsweepReport).
///
/// # Safety
///
/// `report` points to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_report(
    broad_phase: *const RadsweepBroadPhase,
    report: *mut RadsweepReport,
    size: usize,
) -> RadsweepStatus {
    entry(|| {
        handle::with(broad_phase, |state| {
            let last = state.broad_phase.report();
            let value = RadsweepReport {
                size: size as u64,
                boxes: last.n as u64,
                pairs: last.pairs,
                started: last.started,
                ended: last.ended,
                invalid: last.invalid.map_or(0, |invalid| invalid.count),
                first_invalid: last.invalid.map_or(0, |invalid| invalid.first as u64),
                tests: last.stats.tests,
                milliseconds: last.stats.timings.total,
                backend: match last.stats.backend {
                    sap::Backend::Cpu => crate::config::RADSWEEP_BACKEND_CPU,
                    sap::Backend::Cuda => crate::config::RADSWEEP_BACKEND_CUDA,
                    sap::Backend::Wgpu => crate::config::RADSWEEP_BACKEND_WGPU,
                    // No report names another.
                    _ => crate::config::RADSWEEP_BACKEND_AUTO,
                },
                strategy: match last.stats.strategy {
                    sap::Strategy::Endpoints => crate::config::RADSWEEP_STRATEGY_ENDPOINTS,
                    sap::Strategy::Sweep => crate::config::RADSWEEP_STRATEGY_SWEEP,
                    sap::Strategy::Subdivided => crate::config::RADSWEEP_STRATEGY_SUBDIVIDED,
                    // Before the first update.
                    _ => crate::config::RADSWEEP_STRATEGY_AUTO,
                },
                resting: last.stats.resting,
            };
            // SAFETY: guaranteed by the caller.
            unsafe { pointer::write_sized(report, size, FIRST_VERSION, value, "the report") }
        })
    })
}

/// Finds boxes and lends their indices.
///
/// # Safety
///
/// As for [`lend`].
unsafe fn query(
    broad_phase: *mut RadsweepBroadPhase,
    out: *mut *const u32,
    count: *mut usize,
    find: impl FnOnce(&mut sap::BroadPhase) -> Result<Vec<u32>, Failure>,
) -> RadsweepStatus {
    // SAFETY: guaranteed by the caller.
    unsafe {
        lend_found(broad_phase, out, count, |state| {
            state.indices = find(&mut state.broad_phase)?;
            Ok(&state.indices)
        })
    }
}

/// Reads three numbers.
///
/// # Safety
///
/// A pointer that is not null and aligned points to three numbers.
unsafe fn vector(pointer: *const f32, what: &'static str) -> Result<[f32; 3], Failure> {
    // SAFETY: guaranteed by the caller.
    let numbers = unsafe { list(pointer, 3, what)? };
    Ok([numbers[0], numbers[1], numbers[2]])
}

/// Lends the indices of the last update's boxes that overlap `query_box`, in ascending order.
///
/// The first query after an update builds a tree, which costs about as much as the update. On CUDA
/// the device answers the first 16, and the next one builds it. Each query then costs microseconds.
///
/// # Safety
///
/// `query_box` points to a box, `out` and `count` to memory for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_query_box(
    broad_phase: *mut RadsweepBroadPhase,
    query_box: *const RadsweepAabb,
    out: *mut *const u32,
    count: *mut usize,
) -> RadsweepStatus {
    // SAFETY: guaranteed by the caller.
    unsafe {
        query(broad_phase, out, count, |broad_phase| {
            let boxes: &[sap::Aabb] = cast_slice(list(query_box, 1, "query_box")?);
            Ok(broad_phase.query_box(&boxes[0])?)
        })
    }
}

/// Lends the indices of the boxes that contain a point (three numbers), like radsweep_query_box.
///
/// # Safety
///
/// `point` points to three numbers, `out` and `count` to memory for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_query_point(
    broad_phase: *mut RadsweepBroadPhase,
    point: *const f32,
    out: *mut *const u32,
    count: *mut usize,
) -> RadsweepStatus {
    // SAFETY: guaranteed by the caller.
    unsafe {
        query(broad_phase, out, count, |broad_phase| {
            Ok(broad_phase.query_point(vector(point, "point")?)?)
        })
    }
}

/// Lends the indices of the boxes within `radius` of `center` (three numbers), like
/// radsweep_query_box.
///
/// # Safety
///
/// `center` points to three numbers, `out` and `count` to memory for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_query_sphere(
    broad_phase: *mut RadsweepBroadPhase,
    center: *const f32,
    radius: f32,
    out: *mut *const u32,
    count: *mut usize,
) -> RadsweepStatus {
    // SAFETY: guaranteed by the caller.
    unsafe {
        query(broad_phase, out, count, |broad_phase| {
            Ok(broad_phase.query_sphere(vector(center, "center")?, radius)?)
        })
    }
}

/// Lends the boxes of the last update that a ray hits, the nearest first.
///
/// The ray is origin + t * direction with 0 <= t <= max_t. `direction` need not have length 1.
///
/// # Safety
///
/// `origin` and `direction` point to three numbers each, `out` and `count` to memory for the
/// result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_query_ray(
    broad_phase: *mut RadsweepBroadPhase,
    origin: *const f32,
    direction: *const f32,
    max_t: f32,
    out: *mut *const RadsweepRayHit,
    count: *mut usize,
) -> RadsweepStatus {
    // SAFETY: guaranteed by the caller.
    unsafe {
        lend_found(broad_phase, out, count, |state| {
            let (origin, direction) = (vector(origin, "origin")?, vector(direction, "direction")?);
            let hits = state.broad_phase.query_ray(origin, direction, max_t)?;
            state.hits = hits.into_iter().map(RadsweepRayHit::from).collect();
            Ok(&state.hits)
        })
    }
}
