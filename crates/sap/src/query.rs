//! Queries against the boxes of the last update: by an implicit tree of eight branches over boxes in
//! the order of [`packing`], or through a list of candidates.

use crate::packing;
use crate::{Aabb, OverlapRule};
use rayon::prelude::*;
use std::alloc::{Layout, handle_alloc_error};

/// Children of a node.
const BRANCH: usize = 8;

/// A box that a ray meets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RayHit {
    /// The index of the box.
    pub index: u32,
    /// Where the ray enters it, in lengths of the direction; 0 when it starts inside.
    pub t: f32,
}

/// The boxes in the order of [`packing`]. Level 0 is those boxes; box `i` of level `l + 1` is the union of boxes
/// `8 i .. 8 i + 8` of level `l`; the last level has at most eight.
pub(crate) struct Index {
    order: Vec<u32>,
    levels: Vec<Vec<Aabb>>,
}

impl Index {
    /// Empty and invalid boxes are left out. O(n log n), on all threads.
    pub(crate) fn new(boxes: &[Aabb]) -> Self {
        let scene = packing::Scene {
            boxes,
            ..packing::Scene::default()
        };
        // Queries give no error: the process ends, as where any other memory of theirs is refused.
        let (mut order, held) =
            packing::order(scene).unwrap_or_else(|_| handle_alloc_error(Layout::for_value(boxes)));
        order.truncate(held);
        let mut level: Vec<Aabb> = order
            .par_iter()
            .map(|&index| boxes[index as usize])
            .collect();
        let mut levels = Vec::new();
        while level.len() > BRANCH {
            let union = |group: &[Aabb]| group.iter().fold(Aabb::EMPTY, |all, b| all.merged(b));
            let above = level.par_chunks(BRANCH).map(union).collect();
            levels.push(std::mem::replace(&mut level, above));
        }
        levels.push(level);
        Self { order, levels }
    }
}

/// Boxes that can be asked for.
pub(crate) trait Boxes {
    /// Calls `found` with every box that `meets` accepts; `meets` must accept a union when it accepts a part.
    fn visit(&self, meets: impl Fn(&Aabb) -> bool, found: impl FnMut(u32, &Aabb));

    fn indices(&self, meets: impl Fn(&Aabb) -> bool) -> Vec<u32> {
        let mut indices = Vec::new();
        self.visit(meets, |index, _| indices.push(index));
        indices.sort_unstable();
        indices
    }

    fn overlapping(&self, query: &Aabb, rule: OverlapRule) -> Vec<u32> {
        self.indices(|b| b.overlaps(query, rule))
    }

    fn within(&self, center: [f32; 3], radius: f32, rule: OverlapRule) -> Vec<u32> {
        if radius.is_nan() || radius < 0.0 || center.iter().any(|value| value.is_nan()) {
            return Vec::new();
        }
        let limit = f64::from(radius) * f64::from(radius);
        self.indices(|b| {
            let distance: f64 = (0..3).map(|axis| gap(b, axis, center[axis]).powi(2)).sum();
            match rule {
                OverlapRule::Closed => distance <= limit,
                OverlapRule::Open => distance < limit,
            }
        })
    }

    fn along(&self, origin: [f32; 3], dir: [f32; 3], max_t: f32) -> Vec<RayHit> {
        let finite = origin.iter().chain(&dir).all(|value| value.is_finite());
        if !finite || max_t.is_nan() || max_t < 0.0 {
            return Vec::new();
        }
        let mut hits = Vec::new();
        let enter = |b: &Aabb| entry(b, origin, dir, max_t);
        self.visit(
            |b| enter(b).is_some(),
            |index, b| hits.extend(enter(b).map(|t| RayHit { index, t: t as f32 })),
        );
        hits.sort_unstable_by(|x, y| x.t.total_cmp(&y.t).then(x.index.cmp(&y.index)));
        hits
    }
}

impl Boxes for Index {
    fn visit(&self, meets: impl Fn(&Aabb) -> bool, mut found: impl FnMut(u32, &Aabb)) {
        let mut stack = vec![(self.levels.len() - 1, 0)];
        while let Some((level, start)) = stack.pop() {
            let boxes = &self.levels[level];
            for (i, b) in boxes
                .iter()
                .enumerate()
                .skip(start)
                .take(BRANCH)
                .filter(|(_, b)| meets(b))
            {
                match level.checked_sub(1) {
                    Some(below) => stack.push((below, i * BRANCH)),
                    None => found(self.order[i], b),
                }
            }
        }
    }
}

/// A box that a device found to be near, with its index.
#[cfg(cuda)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct Candidate {
    pub(crate) index: u32,
    pub(crate) pad: u32,
    pub(crate) bounds: Aabb,
}

/// At least the boxes that a query meets.
#[cfg(cuda)]
impl Boxes for Vec<Candidate> {
    fn visit(&self, meets: impl Fn(&Aabb) -> bool, mut found: impl FnMut(u32, &Aabb)) {
        for candidate in self.iter().filter(|candidate| meets(&candidate.bounds)) {
            found(candidate.index, &candidate.bounds);
        }
    }
}

/// A box that touches everything within `radius` of `center`, whatever is rounded.
#[cfg(cuda)]
pub(crate) fn around(center: [f32; 3], radius: f32) -> Aabb {
    let radius = f64::from(radius);
    let side = |c: f32, sign: f64| {
        let c = f64::from(c);
        let far = c + sign * (radius + (c.abs() + radius) * 1e-12);
        // Infinite numbers cancel.
        let far = if far.is_nan() {
            sign * f64::INFINITY
        } else {
            far
        };
        far as f32
    };
    Aabb::new(
        center.map(|c| side(c, -1.0).next_down()),
        center.map(|c| side(c, 1.0).next_up()),
    )
}

/// How far `value` lies outside the box on an axis.
fn gap(b: &Aabb, axis: usize, value: f32) -> f64 {
    if value < b.min[axis] {
        f64::from(b.min[axis]) - f64::from(value)
    } else if value > b.max[axis] {
        f64::from(value) - f64::from(b.max[axis])
    } else {
        0.0
    }
}

/// Where a ray enters a box: the slab test, in `f64`, so that no `f32` input overflows. Each step is monotone in the
/// bounds, so a union is entered no later than its parts.
fn entry(b: &Aabb, origin: [f32; 3], dir: [f32; 3], max_t: f32) -> Option<f64> {
    let (mut near, mut far) = (0.0_f64, f64::from(max_t));
    for axis in 0..3 {
        let (start, step) = (f64::from(origin[axis]), f64::from(dir[axis]));
        let (min, max) = (f64::from(b.min[axis]), f64::from(b.max[axis]));
        if step == 0.0 {
            if start < min || start > max {
                return None;
            }
            continue;
        }
        let (first, last) = if step > 0.0 { (min, max) } else { (max, min) };
        near = near.max((first - start) / step);
        far = far.min((last - start) / step);
    }
    (near <= far && near <= f64::from(f32::MAX)).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Cubes about as far from each other as they are large.
    fn cubes(n: usize) -> Vec<Aabb> {
        let mut state = 7_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32
        };
        let side = (n as f32).cbrt();
        let mut cube = || {
            let min = [(); 3].map(|()| side * next());
            Aabb::new(min, min.map(|low| low + 0.5))
        };
        (0..n).map(|_| cube()).collect()
    }

    /// The mean number of boxes and unions that small queries look at.
    fn looks(boxes: &[Aabb]) -> u64 {
        let index = Index::new(boxes);
        let looks = Cell::new(0);
        for k in 0..100 {
            let query = Aabb::new([0.2 * k as f32; 3], [0.2 * k as f32 + 1.0; 3]);
            let meets = |b: &Aabb| {
                looks.set(looks.get() + 1);
                b.overlaps(&query, OverlapRule::Closed)
            };
            let mut found = Vec::new();
            index.visit(meets, |i, _| found.push(i));
            found.sort_unstable();
            let overlaps = |&i: &u32| boxes[i as usize].overlaps(&query, OverlapRule::Closed);
            let expected: Vec<u32> = (0..boxes.len() as u32).filter(overlaps).collect();
            assert_eq!(found, expected);
        }
        looks.get() / 100
    }

    #[test]
    fn one_far_box_leaves_queries_as_they_were() {
        let boxes = cubes(20_000);
        let before = looks(&boxes);
        assert!(before < 400, "{before} looks a query");
        let far = [
            Aabb::new([f32::MIN, -1.0, f32::MIN], [f32::MAX, 0.0, f32::MAX]),
            Aabb::new([f32::NEG_INFINITY; 3], [f32::INFINITY; 3]),
            Aabb::new([0.0, -1e8, 0.0], [1.0, -1e8, 1.0]),
            Aabb::new([1e30; 3], [1e30; 3]),
            Aabb::new([f32::MAX; 3], [f32::INFINITY; 3]),
        ];
        for one in far {
            for place in [0, 777, 19_999] {
                let mut boxes = boxes.clone();
                boxes[place] = one;
                let after = looks(&boxes);
                assert!(
                    after < before + before / 4 + 16,
                    "{one:?}: {before} to {after}"
                );
            }
        }
    }

    #[test]
    fn scales_that_differ_are_told_apart() {
        // Two heaps of 10,000, each a point to the other; and sizes over eight decades.
        let mut boxes = cubes(10_000);
        let far = boxes.clone();
        boxes.extend(far.iter().map(|b| {
            let move_far = |side: [f32; 3]| side.map(|value| 1e-3 * value - 1e9);
            Aabb::new(move_far(b.min), move_far(b.max))
        }));
        let looked = looks(&boxes);
        assert!(looked < 500, "{looked} looks a query");
        let mut boxes = cubes(20_000);
        for (k, b) in boxes.iter_mut().enumerate() {
            let scale = 10_f32.powi(k as i32 % 9 - 6);
            *b = Aabb::new(b.min, std::array::from_fn(|axis| b.min[axis] + scale));
        }
        let found = boxes.iter().filter(|b| b.max[0] - b.min[0] > 1.0).count() as u64;
        let looked = looks(&boxes);
        assert!(
            looked < 2 * found,
            "{looked} looks a query, {found} large boxes"
        );
    }
}
