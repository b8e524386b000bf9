//! Queries with a shape, a filter, a world and a rule. The header is generated from this file: its
//! comments address C programmers.

use crate::config::{RADSWEEP_RULE_CLOSED, RADSWEEP_RULE_OPEN};
use crate::entry::entry;
use crate::error::{Failure, RadsweepStatus};
use crate::handle::{self, RadsweepBroadPhase};
use crate::pointer::{self, copy_out};
use crate::read::lend_found;
use crate::types::{RadsweepAabb, RadsweepFilter, RadsweepRayHit};
use bytemuck::cast;
use sap::{Aabb, OverlapRule, Query, Shape};
use std::ffi::c_void;
use std::ops::ControlFlow;

/// The boxes that overlap `bounds`.
pub const RADSWEEP_SHAPE_BOX: u32 = 0;
/// The boxes that contain `point`.
pub const RADSWEEP_SHAPE_POINT: u32 = 1;
/// The boxes within `radius` of `point`.
pub const RADSWEEP_SHAPE_SPHERE: u32 = 2;
/// The boxes that the ray point + t * direction hits, with 0 <= t <= max_t. `direction` need not
/// have length 1.
pub const RADSWEEP_SHAPE_RAY: u32 = 3;
/// The boxes that `bounds` hits when it moves by t * direction, with 0 <= t <= max_t.
pub const RADSWEEP_SHAPE_CAST: u32 = 4;

/// Finds only boxes that could pair with a box of `filter`.
pub const RADSWEEP_QUERY_FILTER: u32 = 1;
/// Finds only boxes of `world`.
pub const RADSWEEP_QUERY_WORLD: u32 = 2;
/// Uses `rule` instead of the rule of the broad phase. Rays and casts meet borders by either rule.
pub const RADSWEEP_QUERY_RULE: u32 = 4;

/// A query of the boxes of the last update. Fill it with radsweep_query_default, then set `shape`
/// and the members of that shape.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RadsweepQuery {
    /// sizeof(RadsweepQuery).
    pub size: u64,
    /// RADSWEEP_SHAPE_*.
    pub shape: u32,
    /// Which of `filter`, `world` and `rule` apply: RADSWEEP_QUERY_* as bits.
    pub flags: u32,
    /// The box, or the box that is cast.
    pub bounds: RadsweepAabb,
    /// The point, the center of the sphere, or the origin of the ray.
    pub point: [f32; 3],
    /// The direction of the ray or the cast.
    pub direction: [f32; 3],
    /// The radius of the sphere.
    pub radius: f32,
    /// The end of the ray or the cast; INFINITY by default.
    pub max_t: f32,
    /// The filter, with RADSWEEP_QUERY_FILTER.
    pub filter: RadsweepFilter,
    /// The world, with RADSWEEP_QUERY_WORLD. Boxes of a frame without worlds are in world 0.
    pub world: u32,
    /// The rule, with RADSWEEP_QUERY_RULE: RADSWEEP_RULE_*.
    pub rule: u32,
}

/// The size of the first version, which ends with `rule`.
const FIRST_VERSION: usize = size_of::<RadsweepQuery>();
// No padding: the members fill it.
const _: () = assert!(size_of::<RadsweepQuery>() == 8 + 2 * 4 + 24 + 2 * 12 + 2 * 4 + 16 + 2 * 4);

const DEFAULT: RadsweepQuery = RadsweepQuery {
    size: size_of::<RadsweepQuery>() as u64,
    shape: RADSWEEP_SHAPE_BOX,
    flags: 0,
    bounds: RadsweepAabb {
        min: Aabb::EMPTY.min,
        max: Aabb::EMPTY.max,
    },
    point: [0.0; 3],
    direction: [0.0; 3],
    radius: 0.0,
    max_t: f32::INFINITY,
    filter: RadsweepFilter {
        layers: u32::MAX,
        mask: u32::MAX,
        group: 0,
        flags: 0,
    },
    world: 0,
    rule: RADSWEEP_RULE_CLOSED,
};

impl RadsweepQuery {
    /// Reads a query.
    ///
    /// # Safety
    ///
    /// As for [`pointer::sized`].
    unsafe fn read(
        query: *const Self,
        broad_phase: &sap::BroadPhase,
    ) -> Result<Query<'_>, Failure> {
        // SAFETY: numbers without padding, the size first.
        let given = unsafe { pointer::sized(query, FIRST_VERSION, DEFAULT, "the query")? };
        let wrong = |what, value: u32, allowed| Failure::Argument {
            what,
            given: value.to_string(),
            allowed,
        };
        let (dir, max_t) = (given.direction, given.max_t);
        let shape = match given.shape {
            RADSWEEP_SHAPE_BOX => Shape::Aabb(cast(given.bounds)),
            RADSWEEP_SHAPE_POINT => Shape::Point(given.point),
            RADSWEEP_SHAPE_SPHERE => Shape::Sphere {
                center: given.point,
                radius: given.radius,
            },
            RADSWEEP_SHAPE_RAY => Shape::Ray {
                origin: given.point,
                dir,
                max_t,
            },
            RADSWEEP_SHAPE_CAST => Shape::Cast {
                aabb: cast(given.bounds),
                dir,
                max_t,
            },
            other => return Err(wrong("shape", other, "RADSWEEP_SHAPE_*")),
        };
        let known = RADSWEEP_QUERY_FILTER | RADSWEEP_QUERY_WORLD | RADSWEEP_QUERY_RULE;
        if given.flags & !known != 0 {
            return Err(wrong("flags", given.flags, "RADSWEEP_QUERY_*, added up"));
        }
        let has = |flag: u32| given.flags & flag != 0;
        let mut query = broad_phase.query(shape);
        if has(RADSWEEP_QUERY_FILTER) {
            query = query.filter(cast(given.filter));
        }
        if has(RADSWEEP_QUERY_WORLD) {
            query = query.world(given.world);
        }
        if has(RADSWEEP_QUERY_RULE) {
            query = query.rule(match given.rule {
                RADSWEEP_RULE_CLOSED => OverlapRule::Closed,
                RADSWEEP_RULE_OPEN => OverlapRule::Open,
                other => return Err(wrong("rule", other, "RADSWEEP_RULE_*")),
            });
        }
        Ok(query)
    }
}

/// Fills a query that finds nothing. `size` is sizeof(RadsweepQuery).
///
/// # Safety
///
/// `query` points to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_query_default(
    query: *mut RadsweepQuery,
    size: usize,
) -> RadsweepStatus {
    // SAFETY: guaranteed by the caller.
    entry(|| unsafe { pointer::write_sized(query, size, FIRST_VERSION, DEFAULT, "the query") })
}

/// Lends the indices of the last update's boxes that a query finds, in ascending order.
///
/// The first query after an update builds a tree, which costs about as much as the update. On CUDA
/// the device answers the first 16, and the next one builds it. Each query then costs microseconds.
///
/// # Safety
///
/// `query` points to a query with the right size, `out` and `count` at memory for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_query(
    broad_phase: *mut RadsweepBroadPhase,
    query: *const RadsweepQuery,
    out: *mut *const u32,
    count: *mut usize,
) -> RadsweepStatus {
    // SAFETY: guaranteed by the caller.
    unsafe {
        lend_found(broad_phase, out, count, |state| {
            RadsweepQuery::read(query, &state.broad_phase)?.collect_into(&mut state.indices)?;
            Ok(&state.indices)
        })
    }
}

/// Lends the boxes that a query finds with their distances, the nearest first, then by index.
///
/// For a ray or a cast the distance t is that to the box in lengths of the direction, 0 if it
/// starts inside; for a sphere it is that from the center to the box; else 0.
///
/// # Safety
///
/// As radsweep_query.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_query_hits(
    broad_phase: *mut RadsweepBroadPhase,
    query: *const RadsweepQuery,
    out: *mut *const RadsweepRayHit,
    count: *mut usize,
) -> RadsweepStatus {
    // SAFETY: guaranteed by the caller.
    unsafe {
        lend_found(broad_phase, out, count, |state| {
            let found = RadsweepQuery::read(query, &state.broad_phase)?.hits()?;
            state.hits.clear();
            state
                .hits
                .extend(found.into_iter().map(RadsweepRayHit::from));
            Ok(&state.hits)
        })
    }
}

/// Copies the indices of the boxes that a query finds to `out`, which has a capacity of `capacity`
/// indices, in ascending order.
///
/// `count` receives their number. If it is above the capacity, the status is
/// RADSWEEP_STATUS_TOO_SMALL and nothing is copied. `out` may be null if the capacity is 0. Several
/// threads may call it at once.
///
/// # Safety
///
/// `query` points to a query with the right size, `out` at memory for `capacity` indices, `count`
/// at a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_query_copy(
    broad_phase: *const RadsweepBroadPhase,
    query: *const RadsweepQuery,
    out: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> RadsweepStatus {
    entry(|| {
        handle::with_shared(broad_phase, |state| {
            pointer::check_out(count, "count")?;
            // SAFETY: guaranteed by the caller.
            unsafe {
                let found = RadsweepQuery::read(query, &state.broad_phase)?.collect()?;
                copy_out(&found, out, capacity, count)
            }
        })
    })
}

/// Finds only the first hit of radsweep_query_hits. `found` receives 1, or 0 without any hit.
/// Several threads may call it at once.
///
/// # Safety
///
/// `query` points to a query with the right size, `nearest` and `found` at memory for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_query_closest(
    broad_phase: *const RadsweepBroadPhase,
    query: *const RadsweepQuery,
    nearest: *mut RadsweepRayHit,
    found: *mut u32,
) -> RadsweepStatus {
    entry(|| {
        handle::with_shared(broad_phase, |state| {
            pointer::check_out(nearest, "nearest")?;
            pointer::check_out(found, "found")?;
            // SAFETY: guaranteed by the caller.
            unsafe {
                let closest = RadsweepQuery::read(query, &state.broad_phase)?.closest()?;
                if let Some(closest) = closest {
                    pointer::write(nearest, "nearest", closest.into())?;
                }
                pointer::write(found, "found", closest.is_some().into())
            }
        })
    })
}

/// Calls `each` with each box that a query finds, until `each` returns a value other than 0.
///
/// For a ray, a cast or a sphere the nearest comes first, as for radsweep_query_hits; else the
/// order is arbitrary. Several threads may call it at once. `each` may query the same broad phase
/// by the calls that say this. It must not unwind or jump out.
///
/// # Safety
///
/// `query` points to a query with the right size; `each` is a function of that type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_query_visit(
    broad_phase: *const RadsweepBroadPhase,
    query: *const RadsweepQuery,
    each: Option<unsafe extern "C" fn(hit: RadsweepRayHit, user: *mut c_void) -> i32>,
    user: *mut c_void,
) -> RadsweepStatus {
    entry(|| {
        handle::with_shared(broad_phase, |state| {
            let each = each.ok_or(Failure::Null { what: "each" })?;
            // SAFETY: guaranteed by the caller.
            let query = unsafe { RadsweepQuery::read(query, &state.broad_phase)? };
            query.visit(|met| {
                // SAFETY: the caller guarantees that it is such a function.
                match unsafe { each(met.into(), user) } {
                    0 => ControlFlow::Continue(()),
                    _ => ControlFlow::Break(()),
                }
            })?;
            Ok(())
        })
    })
}
