//! A node of a tree: eight boxes, which are tested at once.

use crate::cpu::tuning::NODE_TASK;
use crate::threads::Threads;
use crate::try_alloc::{collect, gather};
use crate::{Aabb, Result};
use rayon::prelude::*;

/// Children of a node.
pub(crate) const BRANCH: usize = 8;

/// Up to eight boxes, by axis, so that one test looks at all of them.
#[derive(Clone, Copy)]
pub(crate) struct Node {
    pub(crate) min: [[f32; BRANCH]; 3],
    pub(crate) max: [[f32; BRANCH]; 3],
}

impl Node {
    /// A node of these boxes; lanes without one are empty boxes, and are not to be looked at.
    pub(crate) fn new(boxes: impl Iterator<Item = Aabb>) -> Self {
        let mut node = Self {
            min: [[f32::INFINITY; BRANCH]; 3],
            max: [[f32::NEG_INFINITY; BRANCH]; 3],
        };
        for (lane, b) in boxes.take(BRANCH).enumerate() {
            for axis in 0..3 {
                node.min[axis][lane] = b.min[axis];
                node.max[axis][lane] = b.max[axis];
            }
        }
        node
    }

    pub(crate) fn child(&self, lane: usize) -> Aabb {
        Aabb::new(
            std::array::from_fn(|axis| self.min[axis][lane]),
            std::array::from_fn(|axis| self.max[axis][lane]),
        )
    }

    pub(crate) fn union(&self) -> Aabb {
        let min = |values: &[f32; BRANCH]| values.iter().copied().fold(f32::INFINITY, f32::min);
        let max = |values: &[f32; BRANCH]| values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        Aabb::new(self.min.each_ref().map(min), self.max.each_ref().map(max))
    }
}

/// Makes one of each eight elements.
pub(crate) fn in_nodes<T: Sync, U: Send>(
    list: &[T],
    threads: Threads,
    f: impl Fn(&[T]) -> U + Sync + Send,
) -> Result<Vec<U>> {
    match threads {
        Threads::One => collect(list.chunks(BRANCH).map(f)),
        Threads::All => gather(list.par_chunks(BRANCH).with_min_len(NODE_TASK).map(f)),
    }
}

/// The lanes of a mask, lowest first.
pub(crate) fn lanes(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = (mask != 0).then(|| mask.trailing_zeros() as usize);
        mask &= mask.wrapping_sub(1);
        lane
    })
}
