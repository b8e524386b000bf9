//! The shapes that queries look for, and the hits that they find.

use crate::Aabb;

/// What a query looks for ([`BroadPhase::query`](crate::BroadPhase::query)).
///
/// ```
/// use sap::{Aabb, BroadPhase, Config, Shape};
///
/// let mut broad_phase = BroadPhase::new(Config::default())?;
/// broad_phase.update(&[Aabb::new([0.0; 3], [1.0; 3]), Aabb::new([4.0; 3], [5.0; 3])])?;
/// let sphere = Shape::Sphere { center: [3.5; 3], radius: 1.0 };
/// assert_eq!(broad_phase.query(sphere).collect()?, [1]);
/// let moved = Shape::Cast { aabb: Aabb::new([-2.0; 3], [-1.0; 3]), dir: [1.0; 3], max_t: 2.0 };
/// assert_eq!(broad_phase.query(moved).collect()?, [0]);
/// # Ok::<(), sap::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Shape {
    /// Meets the boxes that overlap this one. An empty or invalid box meets none.
    Aabb(Aabb),
    /// Meets the boxes that contain this point; under the closed rule also on their border.
    Point([f32; 3]),
    /// Meets the boxes within `radius` of `center`: at most that far under the closed rule, nearer
    /// than that under the open rule. Distances are taken in `f64`. A radius that is negative or
    /// NaN meets none; an infinite radius meets all boxes at a finite distance.
    Sphere {
        /// The center, which may be infinite.
        center: [f32; 3],
        /// The radius.
        radius: f32,
    },
    /// Meets the boxes that `origin + t * dir` enters, `0 <= t <= max_t`, borders included by
    /// either rule. A direction of length 0 asks for the origin alone. An origin or direction that
    /// is not finite meets none.
    Ray {
        /// Its start.
        origin: [f32; 3],
        /// Where it goes; of any length, and `t` counts in its lengths.
        dir: [f32; 3],
        /// Where it ends; may be infinite.
        max_t: f32,
    },
    /// Meets the boxes that this box touches on its way, moved by `t * dir`, `0 <= t <= max_t`,
    /// borders included by either rule: a ray that is as thick as a box.
    Cast {
        /// The box where it starts; finite, or it meets none.
        aabb: Aabb,
        /// Where it goes, as for a ray.
        dir: [f32; 3],
        /// Where it ends, as for a ray.
        max_t: f32,
    },
}

impl Shape {
    /// Whether its hits differ by how near they are.
    pub(crate) const fn has_distances(&self) -> bool {
        !matches!(self, Self::Aabb(_) | Self::Point(_))
    }
}

impl From<Aabb> for Shape {
    fn from(aabb: Aabb) -> Self {
        Self::Aabb(aabb)
    }
}

impl From<&Aabb> for Shape {
    fn from(aabb: &Aabb) -> Self {
        Self::Aabb(*aabb)
    }
}

/// A box that a query meets.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Hit {
    /// The index of the box.
    pub index: u32,
    /// The distance. For a ray or a cast: where it enters the box, in lengths of the direction; 0
    /// if it starts inside. For a sphere: from its center to the box, in the unit of the
    /// coordinates; 0 inside. Otherwise 0.
    pub t: f32,
}

impl Hit {
    /// Returns a hit of the box of that index, at that distance.
    #[must_use]
    pub const fn new(index: u32, t: f32) -> Self {
        Self { index, t }
    }

    /// The order of hits: nearest first, then by index. `t` is neither NaN nor negative.
    pub(crate) const fn rank(&self) -> (u32, u32) {
        (self.t.to_bits(), self.index)
    }
}
