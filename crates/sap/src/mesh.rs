//! Bounds of meshes: the first step of Ha, Krüger and Silva 2009, §6.1, "AABBs … using parallel
//! reduction max and min on the input meshes".
//!
//! Minimum and maximum are taken in the order of `f32::total_cmp`, in which `-0.0` is below `+0.0`.
//! A NaN counts as below all numbers for the minimum, and as above all for the maximum. So the
//! result does not depend on the order of the work, and `kernels/sap/bounds.cuh` gives the same.

use crate::cpu::tuning::MESH_TASK;
use crate::threads::on_threads;
use crate::try_alloc::gather;
use crate::{Aabb, Error, Result};
use rayon::prelude::*;
use std::ops::Range;

/// Returns the box of each triangle of a mesh. A triangle is three indices into `vertices`.
///
/// The mesh may be empty. A triangle with a NaN coordinate gets a box with NaN on that axis, which
/// [`BroadPhase::update`](crate::BroadPhase::update) reports as invalid. O(triangles), on all
/// threads.
///
/// ```
/// let vertices = [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]];
/// let boxes = sap::aabbs_from_mesh(&vertices, &[[0, 1, 2], [1, 2, 3]])?;
/// assert_eq!(boxes[0].max, [1.0, 2.0, 0.0]);
/// assert_eq!(boxes[1].max, [1.0, 2.0, 3.0]);
/// # Ok::<(), sap::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::VertexIndex`] with the first triangle that has a vertex index out of range;
/// [`Error::OutOfMemory`].
pub fn aabbs_from_mesh(vertices: &[[f32; 3]], triangles: &[[u32; 3]]) -> Result<Vec<Aabb>> {
    on_threads(|| of_triangles(vertices, triangles))
}

fn of_triangles(vertices: &[[f32; 3]], triangles: &[[u32; 3]]) -> Result<Vec<Aabb>> {
    let outside = |triangle: &[u32; 3]| invalid_corner(triangle, vertices.len()).is_some();
    if let Some(triangle) = triangles.par_iter().position_first(outside) {
        return Err(invalid_triangle(
            triangle,
            triangles[triangle],
            vertices.len(),
        ));
    }
    let of = |triangle: &[u32; 3]| {
        let corners = triangle.map(|vertex| vertices[vertex as usize]);
        Bounds::of(&corners).aabb()
    };
    gather(triangles.par_iter().with_min_len(MESH_TASK / 3).map(of))
}

/// Returns the box of each object. Object `k` has the vertices `offsets[k]..offsets[k + 1]`, so
/// there is one more offset than there are objects; with fewer than two offsets there are none.
///
/// An object without vertices gets [`Aabb::EMPTY`]. Vertices before the first offset and from the
/// last one on belong to no object. NaN is handled as in [`aabbs_from_mesh`]. O(vertices +
/// objects), on all threads even where one object has most of the vertices.
///
/// ```
/// use sap::Aabb;
///
/// let vertices = [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [5.0; 3]];
/// let boxes = sap::aabbs_from_objects(&vertices, &[0, 3, 3, 4])?;
/// let (first, last) = (Aabb::new([0.0; 3], [1.0, 2.0, 0.0]), Aabb::new([5.0; 3], [5.0; 3]));
/// assert_eq!(boxes, [first, Aabb::EMPTY, last]);
/// # Ok::<(), sap::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Offset`] with the first offset that is below the one before it, or above the number of
/// vertices; [`Error::OutOfMemory`].
pub fn aabbs_from_objects(vertices: &[[f32; 3]], offsets: &[u32]) -> Result<Vec<Aabb>> {
    on_threads(|| of_objects(vertices, offsets))
}

fn of_objects(vertices: &[[f32; 3]], offsets: &[u32]) -> Result<Vec<Aabb>> {
    let fits = |offset: u32| offset as usize <= vertices.len();
    let wrong = |ends: &[u32]| !fits(ends[0]) || !fits(ends[1]) || ends[1] < ends[0];
    if let Some(object) = offsets.par_windows(2).position_first(wrong) {
        let index = object + usize::from(fits(offsets[object]));
        return Err(invalid_offset(index, offsets[index], vertices.len()));
    }
    let of = |ends: &[u32]| reduce(vertices, ends[0] as usize..ends[1] as usize).aabb();
    gather(offsets.par_windows(2).map(of))
}

/// Reduces a range of vertices, a large one by halves in parallel.
fn reduce(vertices: &[[f32; 3]], range: Range<usize>) -> Bounds {
    if range.len() <= MESH_TASK {
        return Bounds::of(&vertices[range]);
    }
    let middle = range.start + range.len() / 2;
    let (low, high) = rayon::join(
        || reduce(vertices, range.start..middle),
        || reduce(vertices, middle..range.end),
    );
    low.merged(high)
}

/// Returns the first index of a triangle that is out of range.
fn invalid_corner(triangle: &[u32; 3], vertices: usize) -> Option<u32> {
    triangle
        .iter()
        .copied()
        .find(|&vertex| vertex as usize >= vertices)
}

pub(crate) fn invalid_triangle(triangle: usize, corners: [u32; 3], vertices: usize) -> Error {
    Error::VertexIndex {
        triangle,
        // A triangle on the device may have changed since it was found invalid.
        vertex: invalid_corner(&corners, vertices).unwrap_or(corners[0]),
        vertices,
    }
}

pub(crate) const fn invalid_offset(index: usize, offset: u32, vertices: usize) -> Error {
    Error::Offset {
        index,
        offset,
        vertices,
    }
}

/// Bounds as integers in the order of `f32::total_cmp`.
#[derive(Clone, Copy)]
struct Bounds {
    min: [i32; 3],
    max: [i32; 3],
}

impl Bounds {
    fn of(vertices: &[[f32; 3]]) -> Self {
        let none = Self {
            min: [in_total_order(f32::INFINITY); 3],
            max: [in_total_order(f32::NEG_INFINITY); 3],
        };
        vertices.iter().fold(none, |bounds, vertex| {
            let at = |nan: i32| vertex.map(|v| if v.is_nan() { nan } else { in_total_order(v) });
            bounds.merged(Self {
                min: at(i32::MIN),
                max: at(i32::MAX),
            })
        })
    }

    fn merged(self, other: Self) -> Self {
        Self {
            min: std::array::from_fn(|axis| self.min[axis].min(other.min[axis])),
            max: std::array::from_fn(|axis| self.max[axis].max(other.max[axis])),
        }
    }

    fn aabb(self) -> Aabb {
        Aabb::new(self.min.map(float), self.max.map(float))
    }
}

/// Returns an integer in the order of `f32::total_cmp`.
const fn in_total_order(value: f32) -> i32 {
    let bits = value.to_bits() as i32;
    bits ^ ((bits >> 31) as u32 >> 1) as i32
}

/// Inverts [`in_total_order`].
const fn float(number: i32) -> f32 {
    f32::from_bits((number ^ ((number >> 31) as u32 >> 1) as i32) as u32)
}
