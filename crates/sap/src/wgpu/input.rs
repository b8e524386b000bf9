//! The input of a search.

use crate::cpu::shared::Scene;
use crate::{OverlapRule, Pair};
use bytemuck::Pod;

/// The boxes of a search, and what decides their pairs.
pub(super) struct Input<'a> {
    /// The boxes of one set, or of two one after the other.
    pub(super) scene: &'a Scene,
    pub(super) excluded: &'a [Pair],
    /// The number of boxes of the first of two sets; 0 for one set.
    pub(super) first_set: usize,
    pub(super) rule: OverlapRule,
    pub(super) axis: usize,
    /// Where the two other axes are cut into columns.
    pub(super) cuts: [Vec<f32>; 2],
}

impl Input<'_> {
    /// Tells whether there are columns.
    pub(super) fn is_cut(&self) -> bool {
        self.cuts.iter().any(|cuts| !cuts.is_empty())
    }
}

/// `ABSENT` in the kernels.
const ABSENT: u32 = u32::MAX;

/// The lists of `tags` in the kernels, in their order. Those that are absent are empty.
pub(super) struct Tags<'a>(pub(super) [&'a [u8]; 6]);

impl<'a> Tags<'a> {
    pub(super) fn new(input: &'a Input<'a>) -> Self {
        fn bytes<T: Pod>(list: Option<&Vec<T>>) -> &[u8] {
            list.map_or(&[], |list| bytemuck::cast_slice(list))
        }
        let scene = input.scene;
        Self([
            bytes(scene.filters.as_ref()),
            bytes(scene.worlds.as_ref()),
            bytes(scene.exact.as_ref()),
            bytemuck::cast_slice(input.excluded),
            bytemuck::cast_slice(&input.cuts[0]),
            bytemuck::cast_slice(&input.cuts[1]),
        ])
    }

    /// Returns where each list begins, in words.
    pub(super) fn starts(&self) -> [u32; 6] {
        let mut words = 0;
        self.0.map(|list| {
            let start = if list.is_empty() { ABSENT } else { words };
            words += (list.len() / size_of::<u32>()) as u32;
            start
        })
    }
}
