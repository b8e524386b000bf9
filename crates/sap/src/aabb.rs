//! Axis-aligned boxes and the overlap test.

use crate::InvalidReason;
use bytemuck::{Pod, Zeroable};

/// Decides whether boxes that only touch overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OverlapRule {
    /// `a.min <= b.max && b.min <= a.max` on all three axes: boxes that touch overlap.
    #[default]
    Closed,
    /// `a.min < b.max && b.min < a.max` on all three axes: boxes that only touch do not overlap,
    /// and neither do a box of zero thickness and its copy. A point strictly inside a box overlaps
    /// it.
    Open,
}

/// An axis-aligned box of `f32`: 24 bytes, `min` before `max`, six contiguous numbers.
///
/// Sides may be infinite and volumes zero. A box is *invalid* when a number is NaN, or when `min >
/// max` on an axis, unless it is [`Aabb::EMPTY`]. The layout is that of two packed three-vectors,
/// so `parry3d`'s boxes and pairs of `glam::Vec3` cast to `&[Aabb]` without a copy.
///
/// ```
/// use sap::{Aabb, OverlapRule};
///
/// let a = Aabb::new([0.0; 3], [1.0; 3]);
/// let b = Aabb::new([1.0, 0.0, 0.0], [2.0, 1.0, 1.0]);
/// assert!(a.overlaps(&b, OverlapRule::Closed));
/// assert!(!a.overlaps(&b, OverlapRule::Open));
/// let numbers: &[[f32; 6]] = bytemuck::cast_slice(std::slice::from_ref(&b));
/// assert_eq!(numbers, [[1.0, 0.0, 0.0, 2.0, 1.0, 1.0]]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Aabb {
    /// The corner of the smallest coordinates.
    pub min: [f32; 3],
    /// The corner of the largest coordinates.
    pub max: [f32; 3],
}

/// An axis-aligned box of `f64`: 48 bytes, for scenes that `f32` cannot hold
/// ([`Frame::exact`](crate::Frame::exact)).
///
/// ```
/// use sap::{Aabb64, OverlapRule};
///
/// let a = Aabb64::new([0.0; 3], [1.0; 3]);
/// let b = Aabb64::new([1.0 + 1e-12, 0.0, 0.0], [2.0; 3]);
/// assert!(!a.overlaps(&b, OverlapRule::Closed));
/// // Rounded to f32 they touch.
/// assert!(a.outward().overlaps(&b.outward(), OverlapRule::Closed));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Aabb64 {
    /// The corner of the smallest coordinates.
    pub min: [f64; 3],
    /// The corner of the largest coordinates.
    pub max: [f64; 3],
}

macro_rules! common {
    ($box:ident, $float:ident) => {
        impl $box {
            /// The empty box: `min = +∞`, `max = −∞` on all axes. It is valid and overlaps nothing.
            pub const EMPTY: Self = Self {
                min: [$float::INFINITY; 3],
                max: [$float::NEG_INFINITY; 3],
            };

            /// Creates a box from its two corners. The corners are not checked or swapped.
            #[must_use]
            pub const fn new(min: [$float; 3], max: [$float; 3]) -> Self {
                Self { min, max }
            }

            /// Tells whether this is [`Self::EMPTY`].
            #[must_use]
            pub fn is_empty(&self) -> bool {
                *self == Self::EMPTY
            }

            /// Tells whether two boxes overlap. Empty and invalid boxes overlap nothing.
            #[must_use]
            pub fn overlaps(&self, other: &Self, rule: OverlapRule) -> bool {
                let below = |low: $float, high: $float| match rule {
                    OverlapRule::Closed => low <= high,
                    OverlapRule::Open => low < high,
                };
                (0..3).all(|axis| {
                    self.min[axis] <= self.max[axis]
                        && other.min[axis] <= other.max[axis]
                        && below(self.min[axis], other.max[axis])
                        && below(other.min[axis], self.max[axis])
                })
            }

            /// Returns the smallest box that contains both. Empty boxes add nothing. The result is
            /// unspecified if one of the boxes is invalid.
            #[must_use]
            pub fn merged(&self, other: &Self) -> Self {
                Self {
                    min: std::array::from_fn(|axis| self.min[axis].min(other.min[axis])),
                    max: std::array::from_fn(|axis| self.max[axis].max(other.max[axis])),
                }
            }

            /// Tells whether `other` lies in this box, borders included.
            #[must_use]
            pub fn contains(&self, other: &Self) -> bool {
                (0..3).all(|axis| {
                    self.min[axis] <= other.min[axis] && other.max[axis] <= self.max[axis]
                })
            }

            /// Checks that the box is valid.
            ///
            /// # Errors
            ///
            /// The first NaN among the six numbers (`min` before `max`), else the first axis with
            /// `min > max`.
            pub fn check(&self) -> Result<(), InvalidReason> {
                if (0..3).all(|axis| self.min[axis] <= self.max[axis]) || self.is_empty() {
                    return Ok(());
                }
                let nan = |corner: &[$float; 3]| corner.iter().position(|value| value.is_nan());
                if let Some(axis) = nan(&self.min) {
                    return Err(InvalidReason::NanMin { axis });
                }
                if let Some(axis) = nan(&self.max) {
                    return Err(InvalidReason::NanMax { axis });
                }
                let inverted = (0..3).find(|&axis| self.min[axis] > self.max[axis]);
                let axis = inverted.unwrap_or(0);
                Err(InvalidReason::Inverted {
                    axis,
                    min: self.min[axis].into(),
                    max: self.max[axis].into(),
                })
            }
        }
    };
}

common!(Aabb, f32);
common!(Aabb64, f64);

impl Aabb {
    /// Creates a box from six numbers, `min` before `max`.
    #[must_use]
    pub const fn from_min_max(numbers: [f32; 6]) -> Self {
        let [a, b, c, d, e, f] = numbers;
        Self::new([a, b, c], [d, e, f])
    }

    /// Returns the box with every face moved outward by `margin`. An empty box stays empty.
    #[must_use]
    pub fn loosened(&self, margin: f32) -> Self {
        Self {
            min: self.min.map(|value| value - margin),
            max: self.max.map(|value| value + margin),
        }
    }
}

impl Aabb64 {
    /// Returns the smallest `f32` box that contains this one: `min` rounded down, `max` rounded up.
    #[must_use]
    pub fn outward(&self) -> Aabb {
        if self.is_empty() {
            return Aabb::EMPTY;
        }
        Aabb {
            min: self.min.map(round_down),
            max: self.max.map(|value| -round_down(-value)),
        }
    }
}

/// Returns the greatest `f32` at or below `value`. Rounding to nearest is at most one step off.
fn round_down(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) > value {
        near.next_down()
    } else {
        near
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_and_invalid_boxes_overlap_nothing() {
        let all = Aabb::new([f32::NEG_INFINITY; 3], [f32::INFINITY; 3]);
        let inverted = Aabb::new([0.0, 2.0, 0.0], [1.0, 1.0, 1.0]);
        for rule in [OverlapRule::Closed, OverlapRule::Open] {
            assert!(all.overlaps(&all, rule));
            assert!(!all.overlaps(&Aabb::EMPTY, rule));
            assert!(!Aabb::EMPTY.overlaps(&Aabb::EMPTY, rule));
            assert!(!all.overlaps(&inverted, rule) && !inverted.overlaps(&all, rule));
        }
        assert_eq!(Aabb::EMPTY.check(), Ok(()));
        assert_eq!(Aabb::EMPTY.loosened(1.0), Aabb::EMPTY);
        let reason = InvalidReason::Inverted {
            axis: 1,
            min: 2.0,
            max: 1.0,
        };
        assert_eq!(inverted.check(), Err(reason));
    }

    #[test]
    fn f64_rounds_outward_everywhere() {
        let values = [
            0.0,
            -0.0,
            1.0,
            0.1,
            -0.1,
            1e-60,
            -1e-60,
            1e300,
            -1e300,
            3.5e38,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ];
        for value in values {
            let down = round_down(value);
            let up = -round_down(-value);
            assert!(
                f64::from(down) <= value && value <= f64::from(up),
                "{value}"
            );
            assert!(
                down == up || down.next_up() == up || (down == 0.0 || up == 0.0),
                "{value}"
            );
        }
        assert_eq!(Aabb64::EMPTY.outward(), Aabb::EMPTY);
    }
}
