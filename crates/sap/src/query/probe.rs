//! The test of a shape against eight boxes at once.

use super::node::{BRANCH, Node, lanes};
use crate::{Aabb, OverlapRule, Shape};

/// What decides whether a shape meets a box. It meets a union of boxes where it meets one of them,
/// and no later.
#[derive(Clone, Copy)]
pub(crate) enum Probe {
    Touch(Aabb, OverlapRule),
    Near {
        center: [f64; 3],
        /// The square of the radius.
        limit: f64,
        rule: OverlapRule,
    },
    Along(Path),
}

/// The way of a ray, or of a box.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    min: [f64; 3],
    max: [f64; 3],
    step: [f64; 3],
    inverse: [f64; 3],
    max_t: f64,
}

/// What a product with a reciprocal may be off by, and much more, as a part of it: quotients of
/// `f64` have an error of 1e-16.
const SLACK: f64 = 1e-14;

#[cfg(test)]
thread_local! {
    /// How many boxes and unions this thread has looked at.
    pub(crate) static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// What the boxes of a node are.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Level {
    /// Boxes of the frame.
    Leaf,
    /// The bounds of nodes.
    Inner,
}

impl Probe {
    /// None for a shape that meets nothing, wherever boxes are.
    pub(crate) fn new(shape: &Shape, rule: OverlapRule) -> Option<Self> {
        match *shape {
            Shape::Aabb(aabb) => Self::touch(aabb, rule),
            Shape::Point(point) => Self::touch(Aabb::new(point, point), rule),
            Shape::Sphere { center, radius } => {
                let is_valid = radius >= 0.0 && !center.iter().any(|value| value.is_nan());
                is_valid.then(|| Self::Near {
                    center: center.map(f64::from),
                    limit: f64::from(radius) * f64::from(radius),
                    rule,
                })
            }
            Shape::Ray { origin, dir, max_t } => {
                Self::along(&Aabb::new(origin, origin), dir, max_t)
            }
            Shape::Cast { aabb, dir, max_t } => Self::along(&aabb, dir, max_t),
        }
    }

    fn touch(aabb: Aabb, rule: OverlapRule) -> Option<Self> {
        let is_valid = (0..3).all(|axis| aabb.min[axis] <= aabb.max[axis]);
        is_valid.then_some(Self::Touch(aabb, rule))
    }

    fn along(aabb: &Aabb, dir: [f32; 3], max_t: f32) -> Option<Self> {
        let mut numbers = aabb.min.iter().chain(&aabb.max).chain(&dir);
        let is_valid = numbers.all(|value| value.is_finite())
            && (0..3).all(|axis| aabb.min[axis] <= aabb.max[axis])
            && max_t >= 0.0;
        is_valid.then(|| {
            Self::Along(Path {
                min: aabb.min.map(f64::from),
                max: aabb.max.map(f64::from),
                step: dir.map(f64::from),
                inverse: dir.map(|step| 1.0 / f64::from(step)),
                max_t: f64::from(max_t),
            })
        })
    }

    /// Returns which boxes of a node may be met, a bit for each; at a leaf exactly those that are
    /// met. Writes a lower bound of the distance of each, at a leaf its distance.
    #[inline]
    pub(crate) fn meets(&self, node: &Node, level: Level, nearest: &mut [f32; BRANCH]) -> u32 {
        #[cfg(test)]
        LOOKS.set(LOOKS.get() + BRANCH as u64);
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has what the function is compiled for.
            return unsafe { self.meets_avx2(node, level, nearest) };
        }
        self.meets_any(node, level, nearest)
    }

    /// Does the same as `meets_any` with wider instructions, which give the same bits.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn meets_avx2(&self, node: &Node, level: Level, nearest: &mut [f32; BRANCH]) -> u32 {
        self.meets_any(node, level, nearest)
    }

    #[inline(always)]
    fn meets_any(&self, node: &Node, level: Level, nearest: &mut [f32; BRANCH]) -> u32 {
        match self {
            Self::Touch(aabb, OverlapRule::Closed) => touching(node, |axis, min, max| {
                (min <= aabb.max[axis]) & (aabb.min[axis] <= max)
            }),
            Self::Touch(aabb, OverlapRule::Open) => touching(node, |axis, min, max| {
                (min < aabb.max[axis]) & (aabb.min[axis] < max)
            }),
            Self::Near {
                center,
                limit,
                rule,
            } => {
                let squares = squares(node, center);
                let near = mask(|lane| match rule {
                    OverlapRule::Closed => squares[lane] <= *limit,
                    OverlapRule::Open => squares[lane] < *limit,
                });
                for lane in lanes(near) {
                    nearest[lane] = squares[lane].sqrt() as f32;
                }
                near
            }
            Self::Along(path) => {
                let mut near = path.meets(node, nearest);
                if level == Level::Inner {
                    return near;
                }
                for lane in lanes(near) {
                    match path.enters(&node.child(lane)) {
                        Some(t) => nearest[lane] = t,
                        None => near &= !(1 << lane),
                    }
                }
                near
            }
        }
    }
}

#[inline(always)]
fn mask(of: impl Fn(usize) -> bool) -> u32 {
    (0..BRANCH).fold(0, |mask, lane| mask | u32::from(of(lane)) << lane)
}

#[inline(always)]
fn touching(node: &Node, overlaps: impl Fn(usize, f32, f32) -> bool) -> u32 {
    let on = |axis: usize| mask(|lane| overlaps(axis, node.min[axis][lane], node.max[axis][lane]));
    on(0) & on(1) & on(2)
}

/// The squares of the distances from a point.
#[inline(always)]
fn squares(node: &Node, point: &[f64; 3]) -> [f64; BRANCH] {
    let mut squares = [0.0; BRANCH];
    for (axis, value) in point.iter().enumerate() {
        for (lane, square) in squares.iter_mut().enumerate() {
            let min = f64::from(node.min[axis][lane]);
            let max = f64::from(node.max[axis][lane]);
            // Equal infinities are no distance apart: comparisons with NaN are false.
            let below = if min > *value { min - value } else { 0.0 };
            let above = if *value > max { value - max } else { below };
            *square += above * above;
        }
    }
    squares
}

impl Path {
    /// Returns which boxes may be entered, and from where on: quotients are taken as products,
    /// within [`SLACK`].
    #[inline(always)]
    fn meets(&self, node: &Node, nearest: &mut [f32; BRANCH]) -> u32 {
        let mut near = [0.0_f64; BRANCH];
        let mut far = [self.max_t; BRANCH];
        let mut beside = 0;
        for axis in 0..3 {
            let (from, to) = (self.min[axis], self.max[axis]);
            let (mins, maxs) = (&node.min[axis], &node.max[axis]);
            if self.step[axis] == 0.0 {
                beside |=
                    mask(|lane| (to < f64::from(mins[lane])) | (from > f64::from(maxs[lane])));
                continue;
            }
            let inverse = self.inverse[axis];
            let is_forward = inverse > 0.0;
            let (firsts, lasts) = if is_forward {
                (mins, maxs)
            } else {
                (maxs, mins)
            };
            let (front, back) = if is_forward { (to, from) } else { (from, to) };
            for lane in 0..BRANCH {
                let first = (f64::from(firsts[lane]) - front) * inverse;
                let last = (f64::from(lasts[lane]) - back) * inverse;
                near[lane] = if first > near[lane] {
                    first
                } else {
                    near[lane]
                };
                far[lane] = if last < far[lane] { last } else { far[lane] };
            }
        }
        for (to, near) in nearest.iter_mut().zip(near) {
            *to = (near * (1.0 - SLACK)) as f32;
        }
        let within = mask(|lane| near[lane] <= far[lane] + SLACK * (near[lane] + far[lane].abs()));
        within & !beside
    }

    /// Where it enters a box: the slab test, in `f64`, so that no `f32` input overflows. Each step
    /// is monotone in the bounds, so a union is entered no later than its parts.
    fn enters(&self, b: &Aabb) -> Option<f32> {
        let (mut near, mut far) = (0.0_f64, self.max_t);
        for axis in 0..3 {
            let (from, to, step) = (self.min[axis], self.max[axis], self.step[axis]);
            let (min, max) = (f64::from(b.min[axis]), f64::from(b.max[axis]));
            if step == 0.0 {
                if to < min || from > max {
                    return None;
                }
            } else if step > 0.0 {
                near = near.max((min - to) / step);
                far = far.min((max - from) / step);
            } else {
                near = near.max((max - from) / step);
                far = far.min((min - to) / step);
            }
        }
        // Zeros have one sign, so that the bits of distances are in their order.
        (near <= far && near <= f64::from(f32::MAX)).then_some(near as f32 + 0.0)
    }
}
