//! Queries against the boxes of the last update: by an implicit tree of eight branches over boxes in Morton order, or through a list
//! of candidates.

use crate::room::gather;
use crate::{Aabb, OverlapRule, Result};
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

/// The boxes in Morton order of their centres. Level 0 is those boxes; box `i` of level `l + 1` is the union of boxes
/// `8 i .. 8 i + 8` of level `l`; the last level has at most eight.
pub(crate) struct Index {
    order: Vec<u32>,
    levels: Vec<Vec<Aabb>>,
}

impl Index {
    /// Empty and invalid boxes are left out. O(n log n), on all threads.
    pub(crate) fn new(boxes: &[Aabb]) -> Self {
        let held = |i: usize| (0..3).all(|axis| boxes[i].min[axis] <= boxes[i].max[axis]);
        // Queries give no error: the process ends, as where any other memory of theirs is refused.
        let order = morton_order(boxes, held)
            .unwrap_or_else(|_| handle_alloc_error(Layout::for_value(boxes)));
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

/// The boxes that `held` accepts, in Morton order of their centres. O(n log n), on all threads.
pub(crate) fn morton_order(
    boxes: &[Aabb],
    held: impl Fn(usize) -> bool + Sync,
) -> Result<Vec<u32>> {
    let cell = Cells::around(boxes);
    let numbered = boxes.par_iter().enumerate();
    // A frame has at most u32::MAX boxes, so the cast keeps the index. Codes have 63 bits.
    let coded = |(index, b): (usize, &Aabb)| {
        let code = if held(index) { cell.code(b) } else { u64::MAX };
        (code, index as u32)
    };
    let mut coded = gather(numbered.map(coded))?;
    coded.par_sort_unstable();
    let held = coded.partition_point(|&(code, _)| code != u64::MAX);
    gather(coded[..held].par_iter().map(|&(_, index)| index))
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

/// A grid of 2^21 cells a side around the finite centres.
struct Cells {
    low: [f64; 3],
    scale: [f64; 3],
}

impl Cells {
    fn around(boxes: &[Aabb]) -> Self {
        let none = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
        let add = |(mut low, mut high): ([f64; 3], [f64; 3]), b: &Aabb| {
            for (axis, c) in center(b)
                .into_iter()
                .enumerate()
                .filter(|(_, c)| c.is_finite())
            {
                low[axis] = low[axis].min(c);
                high[axis] = high[axis].max(c);
            }
            (low, high)
        };
        let join = |(l, h): ([f64; 3], [f64; 3]), (m, i): ([f64; 3], [f64; 3])| {
            (
                std::array::from_fn(|k| l[k].min(m[k])),
                std::array::from_fn(|k| h[k].max(i[k])),
            )
        };
        let (low, high) = boxes.par_iter().fold(|| none, add).reduce(|| none, join);
        // One scale for all axes keeps cells cubic; a scene without extent has a scale of 0.
        let extent = (0..3)
            .map(|axis| high[axis] - low[axis])
            .fold(0.0, f64::max);
        let scale = if extent > 0.0 {
            f64::from((1_u32 << 21) - 1) / extent
        } else {
            0.0
        };
        Self {
            low,
            scale: [scale; 3],
        }
    }

    /// The Morton code of the centre; casts saturate, and send NaN (the centre of an infinite side) to 0.
    fn code(&self, b: &Aabb) -> u64 {
        let c = center(b);
        (0..3)
            .map(|axis| spread(((c[axis] - self.low[axis]) * self.scale[axis]) as u32) << axis)
            .fold(0, |x, y| x | y)
    }
}

/// Twice the centre, less the factor that the cells take up.
fn center(b: &Aabb) -> [f64; 3] {
    std::array::from_fn(|axis| f64::from(b.min[axis]) + f64::from(b.max[axis]))
}

/// Bit `i` of the low 21 to bit `3 i`.
fn spread(value: u32) -> u64 {
    let mut x = u64::from(value) & 0x1f_ffff;
    x = (x | x << 32) & 0x001f_0000_0000_ffff;
    x = (x | x << 16) & 0x001f_0000_ff00_00ff;
    x = (x | x << 8) & 0x100f_00f0_0f00_f00f;
    x = (x | x << 4) & 0x10c3_0c30_c30c_30c3;
    (x | x << 2) & 0x1249_2492_4924_9249
}
