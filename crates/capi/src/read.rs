//! Calls that read the result of the last update. The header is made from this page, so its comments are for C.

use crate::error::{Failure, RadsweepStatus, entry};
use crate::handle::{self, RadsweepBroadPhase, State};
use crate::pointer::{self, copy_out, list};
use crate::{RadsweepAabb, RadsweepPair, RadsweepRayHit};
use bytemuck::cast_slice;

/// All pairs of the last update.
pub const RADSWEEP_PAIRS_ALL: u32 = 0;
/// The pairs that the update before did not have.
pub const RADSWEEP_PAIRS_STARTED: u32 = 1;
/// The pairs that the update before had and the last has not.
pub const RADSWEEP_PAIRS_ENDED: u32 = 2;

/// What the last update did.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct RadsweepReport {
    /// The size that was asked for.
    pub size: u64,
    /// Boxes in the frame.
    pub boxes: u64,
    /// Pairs that overlap.
    pub pairs: u64,
    /// Pairs that the update before did not have.
    pub started: u64,
    /// Pairs of the update before that are gone.
    pub ended: u64,
    /// Invalid boxes that were skipped.
    pub invalid: u64,
    /// The index of the first of them.
    pub first_invalid: u64,
    /// Interval tests: far more than pairs tell of a scene that the strategy does not suit.
    pub tests: u64,
    /// Milliseconds that the update took.
    pub milliseconds: f64,
    /// RADSWEEP_BACKEND_CPU or RADSWEEP_BACKEND_CUDA.
    pub backend: u32,
    /// RADSWEEP_STRATEGY_*: the one that ran.
    pub strategy: u32,
    /// Boxes that were held apart, being at rest.
    pub resting: u64,
}

/// Ends with `strategy`.
const FIRST_VERSION: usize = std::mem::offset_of!(RadsweepReport, strategy) + size_of::<u32>();
// No padding: the members fill it.
const _: () = assert!(size_of::<RadsweepReport>() == 10 * 8 + 2 * 4);

/// Lends a list out.
///
/// # Safety
///
/// `out` and `count` point at room, where they are not null and aligned.
pub(crate) unsafe fn lend<T>(
    from: &[T],
    out: *mut *const T,
    count: *mut usize,
) -> Result<(), Failure> {
    pointer::check_out(out, "the list's pointer")?;
    pointer::check_out(count, "count")?;
    // SAFETY: the caller's promise.
    unsafe {
        pointer::write(out, "the list's pointer", from.as_ptr())?;
        pointer::write(count, "count", from.len())
    }
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

/// Lends out the pairs of the last update, sorted by a, then b. `which` is RADSWEEP_PAIRS_*.
///
/// # Safety
///
/// `out` and `count` point at room for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_pairs(
    broad_phase: *const RadsweepBroadPhase,
    which: u32,
    out: *mut *const RadsweepPair,
    count: *mut usize,
) -> RadsweepStatus {
    entry(|| {
        handle::with(broad_phase, |state| {
            let pairs = pairs(state, which)?;
            // SAFETY: the caller's promise.
            unsafe { lend(pairs, out, count) }
        })
    })
}

/// Copies the pairs of the last update to `out`, which has room for `room` of them. `count` gets how many there are; with less room than
/// that the status is RADSWEEP_STATUS_TOO_SMALL and nothing is copied. `out` may be null with no room.
///
/// # Safety
///
/// `out` points at room for `room` pairs, `count` at a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_copy_pairs(
    broad_phase: *const RadsweepBroadPhase,
    which: u32,
    out: *mut RadsweepPair,
    room: usize,
    count: *mut usize,
) -> RadsweepStatus {
    entry(|| {
        handle::with(broad_phase, |state| {
            let pairs = pairs(state, which)?;
            // SAFETY: the caller's promise.
            unsafe {
                pointer::write(count, "count", pairs.len())?;
                copy_out(pairs, out, room, "out")
            }
        })
    })
}

/// The pairs of the last update in the memory of the CUDA device: an address, and how many. Waits until they are there. They stay until
/// the next call that updates or clears. RADSWEEP_STATUS_NO_CUDA where the broad phase works on the CPU.
///
/// # Safety
///
/// `out` and `count` point at room for the result.
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
                let on_cpu = || sap::Error::NoCuda {
                    looked_for: "this broad phase works on the CPU".to_owned(),
                };
                let stream = state.broad_phase.stream().ok_or_else(on_cpu)?;
                stream.synchronize().map_err(sap::Error::from)?;
                let pairs = state.broad_phase.device_pairs();
                let (address, len) = pairs.map_or((0, 0), |pairs| (pairs.ptr(), pairs.len()));
                // SAFETY: the caller's promise.
                unsafe {
                    pointer::write(out, "out", address)?;
                    pointer::write(count, "count", len)
                }
            }
            #[cfg(not(cuda))]
            {
                let _ = state;
                Err(crate::calls::no_cuda())
            }
        })
    })
}

/// Boxes at a device address.
///
/// # Safety
///
/// `address` is that of `count` boxes in the memory of the device, which nobody writes while `'a` lasts.
#[cfg(cuda)]
pub(crate) unsafe fn device_list<'a>(
    address: u64,
    count: usize,
) -> Result<gpu::Slice<'a, sap::Aabb>, Failure> {
    if count > 0 {
        let pointer = std::ptr::without_provenance::<RadsweepAabb>(address as usize);
        pointer::check_len(pointer, count, "boxes")?;
    }
    // SAFETY: aligned, or without elements, and the caller's promise.
    Ok(unsafe { gpu::Slice::from_raw(address, count) })
}

/// What the last update did. `size` is sizeof(RadsweepReport).
///
/// # Safety
///
/// `report` points at `size` bytes.
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
                tests: last.tests,
                milliseconds: last.timings.total,
                backend: match last.backend {
                    sap::Backend::Auto => crate::RADSWEEP_BACKEND_AUTO,
                    sap::Backend::Cpu => crate::RADSWEEP_BACKEND_CPU,
                    sap::Backend::Cuda => crate::RADSWEEP_BACKEND_CUDA,
                },
                strategy: match last.strategy {
                    sap::Strategy::Auto => crate::RADSWEEP_STRATEGY_AUTO,
                    sap::Strategy::Endpoints => crate::RADSWEEP_STRATEGY_ENDPOINTS,
                    sap::Strategy::Sweep => crate::RADSWEEP_STRATEGY_SWEEP,
                    sap::Strategy::Subdivided => crate::RADSWEEP_STRATEGY_SUBDIVIDED,
                },
                resting: last.resting,
            };
            // SAFETY: the caller's promise.
            unsafe { pointer::write_sized(report, size, FIRST_VERSION, value, "the report") }
        })
    })
}

/// Finds boxes and lends their indices out.
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
    entry(|| {
        handle::with(broad_phase, |state| {
            pointer::check_out(out, "out")?;
            pointer::check_out(count, "count")?;
            state.indices = find(&mut state.broad_phase)?;
            // SAFETY: the caller's promise.
            unsafe { lend(&state.indices, out, count) }
        })
    })
}

/// Three numbers.
///
/// # Safety
///
/// A pointer that is not null and aligned is one to three numbers.
unsafe fn vector(pointer: *const f32, what: &'static str) -> Result<[f32; 3], Failure> {
    // SAFETY: the caller's promise.
    let numbers = unsafe { list(pointer, 3, what)? };
    Ok([numbers[0], numbers[1], numbers[2]])
}

/// Lends out the indices of the boxes of the last update that overlap `query`, in order. The first query after an update builds a tree,
/// which costs about as much as the update; each then costs microseconds.
///
/// # Safety
///
/// `query_box` points at a box, `out` and `count` at room for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_query_box(
    broad_phase: *mut RadsweepBroadPhase,
    query_box: *const RadsweepAabb,
    out: *mut *const u32,
    count: *mut usize,
) -> RadsweepStatus {
    // SAFETY: the caller's promise.
    unsafe {
        query(broad_phase, out, count, |broad_phase| {
            let boxes: &[sap::Aabb] = cast_slice(list(query_box, 1, "query_box")?);
            Ok(broad_phase.query_box(&boxes[0])?)
        })
    }
}

/// As radsweep_query_box, for the boxes that hold a point (three numbers).
///
/// # Safety
///
/// `point` points at three numbers, `out` and `count` at room for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_query_point(
    broad_phase: *mut RadsweepBroadPhase,
    point: *const f32,
    out: *mut *const u32,
    count: *mut usize,
) -> RadsweepStatus {
    // SAFETY: the caller's promise.
    unsafe {
        query(broad_phase, out, count, |broad_phase| {
            Ok(broad_phase.query_point(vector(point, "point")?)?)
        })
    }
}

/// As radsweep_query_box, for the boxes within `radius` of `center` (three numbers).
///
/// # Safety
///
/// `center` points at three numbers, `out` and `count` at room for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_query_sphere(
    broad_phase: *mut RadsweepBroadPhase,
    center: *const f32,
    radius: f32,
    out: *mut *const u32,
    count: *mut usize,
) -> RadsweepStatus {
    // SAFETY: the caller's promise.
    unsafe {
        query(broad_phase, out, count, |broad_phase| {
            Ok(broad_phase.query_sphere(vector(center, "center")?, radius)?)
        })
    }
}

/// Lends out the boxes of the last update that the ray origin + t * direction, 0 <= t <= max_t, meets, the nearest first. `direction`
/// need not have length 1; t counts in its lengths.
///
/// # Safety
///
/// `origin` and `direction` point at three numbers each, `out` and `count` at room for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_query_ray(
    broad_phase: *mut RadsweepBroadPhase,
    origin: *const f32,
    direction: *const f32,
    max_t: f32,
    out: *mut *const RadsweepRayHit,
    count: *mut usize,
) -> RadsweepStatus {
    entry(|| {
        handle::with(broad_phase, |state| {
            // SAFETY: the caller's promise.
            let (origin, direction) =
                unsafe { (vector(origin, "origin")?, vector(direction, "direction")?) };
            pointer::check_out(out, "out")?;
            pointer::check_out(count, "count")?;
            let hits = state
                .broad_phase
                .query_ray(origin, direction, max_t)?
                .into_iter();
            let hits = hits.map(|hit| RadsweepRayHit {
                index: hit.index,
                t: hit.t,
            });
            state.hits = hits.collect();
            // SAFETY: the caller's promise.
            unsafe { lend(&state.hits, out, count) }
        })
    })
}
