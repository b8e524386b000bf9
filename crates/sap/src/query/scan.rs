//! Answers queries on a device, which looks at all boxes and finds candidates. The host tests them.

use super::node::{BRANCH, Node, lanes};
use super::probe::{Level, Probe};
use super::sieve::Sieve;
use crate::{Aabb, Hit, Result, Shape, try_alloc};

/// A box that a device found to be near, with its index.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct NearBox {
    pub(crate) index: u32,
    pub(crate) pad: u32,
    pub(crate) bounds: Aabb,
}

/// What a device is asked for.
#[derive(Clone, Copy)]
pub(crate) enum Question {
    /// What touches this box.
    Touching(Aabb),
    /// What is on `origin + t * dir`, `0 <= t <= max_t`.
    Along([f32; 3], [f32; 3], f32),
}

impl From<&Shape> for Question {
    fn from(shape: &Shape) -> Self {
        match *shape {
            Shape::Aabb(aabb) => Self::Touching(aabb),
            Shape::Point(point) => Self::Touching(Aabb::new(point, point)),
            Shape::Sphere { center, radius } => Self::Touching(widened(
                &Aabb::new(center, center),
                [-f64::from(radius); 3],
                [f64::from(radius); 3],
            )),
            Shape::Ray { origin, dir, max_t } => Self::Along(origin, dir, max_t),
            Shape::Cast { aabb, dir, max_t } => {
                // A direction of 0 goes nowhere, however long.
                let way = dir.map(|step| match step {
                    0.0 => 0.0,
                    step => f64::from(step) * f64::from(max_t),
                });
                Self::Touching(widened(
                    &aabb,
                    way.map(|way| way.min(0.0)),
                    way.map(|way| way.max(0.0)),
                ))
            }
        }
    }
}

/// A box whose corners are moved, whatever is rounded on the way there.
fn widened(b: &Aabb, below: [f64; 3], above: [f64; 3]) -> Aabb {
    let side = |corner: f32, by: f64, sign: f64| {
        let corner = f64::from(corner);
        let far = corner + by + sign * (corner.abs() + by.abs()) * 1e-12;
        // Infinite numbers cancel.
        let far = if far.is_nan() {
            sign * f64::INFINITY
        } else {
            far
        };
        far as f32
    };
    Aabb::new(
        std::array::from_fn(|axis| side(b.min[axis], below[axis], -1.0).next_down()),
        std::array::from_fn(|axis| side(b.max[axis], above[axis], 1.0).next_up()),
    )
}

/// Returns those boxes that are hits, by distance, then index.
pub(crate) fn hits(near: &[NearBox], probe: &Probe, sieve: Option<&Sieve>) -> Result<Vec<Hit>> {
    let mut hits = Vec::new();
    for some in near.chunks(BRANCH) {
        let node = Node::new(some.iter().map(|near| near.bounds));
        let mut nearest = [0.0; BRANCH];
        let met = probe.meets(&node, Level::Leaf, &mut nearest)
            & u32::MAX >> (u32::BITS as usize - some.len());
        for lane in lanes(met) {
            let index = some[lane].index;
            if sieve.is_none_or(|sieve| sieve.passes(index)) {
                let t = nearest[lane];
                try_alloc::push(&mut hits, Hit { index, t })?;
            }
        }
    }
    hits.sort_unstable_by_key(Hit::rank);
    Ok(hits)
}
