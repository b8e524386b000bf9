//! The list of the boxes above the level with a block (`High` in `kernels/sap/grid.cuh`): the
//! ground and the walls of a scene. Without it all other boxes look for them in cells.

use crate::Result;
use crate::cuda::abi::State;
use crate::cuda::find::cut::{Cut, NO_BLOCK};
use crate::cuda::find::sample::{Sampled, present};
use crate::cuda::tuning::MAX_HIGH;
use bytemuck::{Pod, Zeroable};
use gpu::{DevicePtr, Grow, Stream, assert_layout};
use std::mem::offset_of;

/// Where the kernels list boxes: `High` there.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct High {
    slots: DevicePtr<u32>,
    count: DevicePtr<u32>,
    main: u32,
    pad: u32,
}

assert_layout!(High, 24: slots 0, count 8, main 16, pad 20);

/// The memory of the list, and whether the boxes arranged have one.
#[derive(Default)]
pub(super) struct HighList {
    slots: Grow<u32>,
    in_use: bool,
}

impl HighList {
    /// Returns what the kernels need to list boxes of this cut, which are few, or to list none.
    /// `state` is the address of counters that are zero.
    pub(super) fn begin(
        &mut self,
        stream: &Stream,
        cut: &Cut,
        are_few: bool,
        state: DevicePtr<State>,
    ) -> Result<High> {
        self.in_use = are_few && cut.main < NO_BLOCK;
        self.slots.reserve(stream, MAX_HIGH)?;
        Ok(High {
            slots: self.ptr(),
            count: state.byte_add(offset_of!(State, high) as u64).cast(),
            main: if self.in_use { cut.main } else { NO_BLOCK },
            pad: 0,
        })
    }

    /// Returns the address of the list; null if there is none.
    pub(super) fn ptr(&self) -> DevicePtr<u32> {
        match self.in_use {
            true => self.slots.device_ptr(),
            false => DevicePtr::NULL,
        }
    }
}

/// Tells whether few of `n` boxes are likely to be above the level with a block, by a sample. One
/// sampled box says nothing: it may be the only one.
pub(super) fn are_few(cut: &Cut, sample: &[Sampled], n: usize) -> bool {
    let is_high = |sampled: &&Sampled| cut.level(&sampled.aabb) as u32 > cut.main;
    let others = present(sample).filter(is_high).count().saturating_sub(1);
    others * n <= 2 * MAX_HIGH * sample.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Aabb;

    #[test]
    fn walls_are_few_and_half_of_all_boxes_are_not() {
        // Boxes in a lattice, some of which are large.
        let sample = |large: usize| -> Vec<Sampled> {
            let one = |i: usize| {
                let low = [i % 13, i / 13 % 13, i / 169].map(|x| x as f32);
                let side = [0.9, 9.0][usize::from(i.is_multiple_of(5) && i / 5 < large)];
                Sampled {
                    aabb: Aabb::new(low, low.map(|x| x + side)),
                    ..Sampled::zeroed()
                }
            };
            (0..2048).map(one).collect()
        };
        let cut = Cut::new(&sample(0), 2048, false).0;
        assert!(cut.main < NO_BLOCK, "{cut:?}");
        let few = |large: usize, n: usize| are_few(&cut, &sample(large), n);
        assert!(few(0, 1_000_000) && few(1, 100_000_000) && few(128, 2048));
        assert!(!few(3, 1_000_000) && !few(300, 2048));
        assert!(are_few(&Cut::zeroed(), &[], 0));
    }
}
