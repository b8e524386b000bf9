//! What the host and the kernels share: the parameters of a launch, and the state of a sort.

use crate::key_masks::KeyMasks;
use crate::{KeyType, Order, SortReport};
use bytemuck::{Pod, Zeroable};
use std::mem::offset_of;
use std::ops::Range;

/// The number of bits of a digit.
pub(super) const DIGIT_BITS: u32 = 8;
/// The number of values of a digit.
pub(super) const RADIX: u32 = 1 << DIGIT_BITS;
/// The max number of workgroups of a pass.
const MAX_WORKGROUPS: u32 = 2048;
/// The max number of passes: the digits of 64 bits.
const MAX_PASSES: usize = 8;

/// `Params` in `kernels/wgsl/sort/radix.wgsl`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Params {
    pub n: u32,
    pub tiles: u32,
    flip: [u32; 2],
    fold: [u32; 2],
    zero: [u32; 2],
    window: [u32; 2],
    begin: u32,
    end: u32,
    pass: u32,
    passes: u32,
    pub workgroups: u32,
    tiles_each: u32,
}

const _: () = {
    assert!(size_of::<Params>() == 64);
    assert!(offset_of!(Params, tiles) == 4);
    assert!(offset_of!(Params, flip) == 8);
    assert!(offset_of!(Params, fold) == 16);
    assert!(offset_of!(Params, zero) == 24);
    assert!(offset_of!(Params, window) == 32);
    assert!(offset_of!(Params, begin) == 40);
    assert!(offset_of!(Params, end) == 44);
    assert!(offset_of!(Params, pass) == 48);
    assert!(offset_of!(Params, passes) == 52);
    assert!(offset_of!(Params, workgroups) == 56);
    assert!(offset_of!(Params, tiles_each) == 60);
};

/// Returns the number of workgroups of a pass over so many tiles, and the tiles of each but the
/// last.
pub(super) fn workgroups(tiles: u32) -> [u32; 2] {
    let tiles_each = tiles.div_ceil(MAX_WORKGROUPS).max(1);
    [tiles.div_ceil(tiles_each), tiles_each]
}

impl Params {
    /// Returns the parameters of the launches that take the whole window.
    pub fn new([n, tiles]: [u32; 2], key: KeyType, order: Order, window: &Range<u32>) -> Self {
        let masks = KeyMasks::new(key, order, window);
        let [workgroups, tiles_each] = workgroups(tiles);
        Self {
            n,
            tiles,
            workgroups,
            tiles_each,
            flip: words(masks.flip),
            fold: words(masks.fold),
            zero: words(if masks.fold == 0 { 0 } else { masks.fold + 1 }),
            window: words(masks.window),
            begin: window.start,
            end: window.end,
            pass: 0,
            passes: (window.end - window.start).div_ceil(DIGIT_BITS),
        }
    }

    /// Returns the parameters of each pass.
    pub fn passes(self) -> impl ExactSizeIterator<Item = Self> {
        (0..self.passes).map(move |pass| {
            let begin = self.begin + pass * DIGIT_BITS;
            Self {
                begin,
                end: self.end.min(begin + DIGIT_BITS),
                pass,
                ..self
            }
        })
    }
}

fn words(bits: u64) -> [u32; 2] {
    [bits as u32, (bits >> 32) as u32]
}

/// The state of a sort on the device, which ends as its outcome: the constants of
/// `kernels/wgsl/sort/radix.wgsl` are its offsets in words.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
pub(super) struct State {
    n: u32,
    passes: u32,
    passes_run: u32,
    unsorted: u32,
    differing: [u32; 2],
    sorted_half: u32,
    unused: u32,
    passes_of: [[u32; 2]; MAX_PASSES],
}

const _: () = {
    assert!(size_of::<State>() == 96);
    assert!(offset_of!(State, passes) == 4);
    assert!(offset_of!(State, passes_run) == 8);
    assert!(offset_of!(State, unsorted) == 12);
    assert!(offset_of!(State, differing) == 16);
    assert!(offset_of!(State, sorted_half) == 24);
    assert!(offset_of!(State, passes_of) == 32);
};

/// The name of the sort in reports.
const NAME: &str = "wgpu-radix";

impl State {
    /// Returns the report of the sort that has left this state.
    pub fn report(&self, stages: Vec<(&'static str, f64)>) -> SortReport {
        SortReport {
            algorithm: NAME,
            backend: "wgpu",
            n: self.n.into(),
            passes_run: self.passes_run,
            passes_skipped: self.passes.saturating_sub(self.passes_run),
            early_exit: self.unsorted == 0,
            total_ms: stages.iter().map(|stage| stage.1).sum(),
            stages,
            ..SortReport::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_divide_the_window() {
        let params = Params::new([1, 1], KeyType::U64, Order::Ascending, &(3..28));
        let ranges: Vec<_> = params.passes().map(|pass| pass.begin..pass.end).collect();
        assert_eq!(ranges, [3..11, 11..19, 19..27, 27..28]);
        assert_eq!(params.window, [0x0fff_fff8, 0]);
        let empty = Params::new([1, 1], KeyType::U32, Order::Ascending, &(7..7));
        assert_eq!((empty.passes, empty.window), (0, [0, 0]));
    }
}
