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
pub(super) const MAX_WORKGROUPS: u32 = 2048;
/// The max number of passes: the digits of 64 bits.
pub(super) const MAX_PASSES: u32 = 8;

/// `Params` in `kernels/wgsl/sort/radix.wgsl`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Params {
    pub capacity: u32,
    pub workgroups: u32,
    tiles_each: u32,
    pass: u32,
    begin: u32,
    end: u32,
    passes: u32,
    keys_to: u32,
    values_to: u32,
    count_at: u32,
    flip: [u32; 2],
    fold: [u32; 2],
    zero: [u32; 2],
    window: [u32; 2],
}

const _: () = {
    assert!(size_of::<Params>() == 72);
    assert!(offset_of!(Params, workgroups) == 4);
    assert!(offset_of!(Params, tiles_each) == 8);
    assert!(offset_of!(Params, pass) == 12);
    assert!(offset_of!(Params, begin) == 16);
    assert!(offset_of!(Params, end) == 20);
    assert!(offset_of!(Params, passes) == 24);
    assert!(offset_of!(Params, keys_to) == 28);
    assert!(offset_of!(Params, values_to) == 32);
    assert!(offset_of!(Params, count_at) == 36);
    assert!(offset_of!(Params, flip) == 40);
    assert!(offset_of!(Params, fold) == 48);
    assert!(offset_of!(Params, zero) == 56);
    assert!(offset_of!(Params, window) == 64);
};

/// Where the last pass that runs writes a list: `TO_SCRATCH` and the other constants of the
/// kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// Scratch memory, from which it is copied, since the output is also an input.
    Scratch,
    Output,
    /// Nobody wants it.
    None,
}

/// Returns the number of workgroups of a pass over this many tiles, and the tiles of each but the
/// last.
pub(super) fn workgroups(tiles: u32) -> [u32; 2] {
    let tiles_each = tiles.div_ceil(MAX_WORKGROUPS).max(1);
    [tiles.div_ceil(tiles_each), tiles_each]
}

impl Params {
    /// Returns the parameters of the first launches, for up to this many keys in this many tiles.
    pub fn new(
        [capacity, tiles]: [u32; 2],
        key: KeyType,
        order: Order,
        window: &Range<u32>,
        [keys_to, values_to]: [Target; 2],
        count_at: u32,
    ) -> Self {
        let masks = KeyMasks::new(key, order, window);
        let [workgroups, tiles_each] = workgroups(tiles);
        Self {
            capacity,
            workgroups,
            tiles_each,
            pass: 0,
            begin: window.start,
            end: window.end,
            // A pass of no bit, which copies the keys, where there is no other.
            passes: passes(window.start, window.end).max(1),
            keys_to: keys_to as u32,
            values_to: values_to as u32,
            count_at,
            flip: words(masks.flip),
            fold: words(masks.fold),
            zero: words(if masks.fold == 0 { 0 } else { masks.fold + 1 }),
            window: words(masks.window),
        }
    }

    /// Tells whether keys are ordered as the numbers that they are stored as.
    pub const fn are_plain(key: KeyType, order: Order) -> bool {
        matches!(
            (key, order),
            (KeyType::U32 | KeyType::U64, Order::Ascending)
        )
    }

    /// Returns the parameters of each pass.
    pub fn passes(self) -> impl ExactSizeIterator<Item = Self> {
        (0..self.passes).map(move |pass| Self { pass, ..self })
    }

    /// Returns the state that a sort of this many keys begins with.
    pub fn state(&self, n: u32) -> State {
        State {
            n,
            begin: self.begin,
            end: self.end,
            capacity: self.capacity,
            ..State::default()
        }
    }
}

/// Returns the number of digits of a window.
const fn passes(begin: u32, end: u32) -> u32 {
    (end - begin).div_ceil(DIGIT_BITS)
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
    begin: u32,
    end: u32,
    unsorted: u32,
    differing: [u32; 2],
    capacity: u32,
    unused: u32,
}

const _: () = {
    assert!(size_of::<State>() == 32);
    assert!(offset_of!(State, unsorted) == 12);
    assert!(offset_of!(State, differing) == 16);
};

/// The name of the sort in reports.
const NAME: &str = "wgpu-radix";

impl State {
    /// Returns the report of the sort that has left this state.
    pub fn report(&self) -> SortReport {
        let differing = u64::from(self.differing[0]) | u64::from(self.differing[1]) << 32;
        let passes = passes(self.begin, self.end);
        let runs = |pass: &u32| {
            let begin = self.begin + pass * DIGIT_BITS;
            let bits = DIGIT_BITS.min(self.end - begin);
            (differing >> begin) & ((1 << bits) - 1) != 0
        };
        let run = (0..passes).filter(runs).count() as u32 * self.unsorted;
        SortReport {
            algorithm: NAME,
            backend: "wgpu",
            n: self.n.min(self.capacity).into(),
            passes_run: run,
            passes_skipped: passes - run,
            early_exit: self.unsorted == 0,
            ..SortReport::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_divide_the_window() {
        let params = |window| {
            let to = [Target::Output; 2];
            Params::new([1, 1], KeyType::U64, Order::Ascending, &window, to, 0)
        };
        assert_eq!(params(3..28).passes().len(), 4);
        assert_eq!(params(3..28).window, [0x0fff_fff8, 0]);
        let empty = params(7..7);
        assert_eq!((empty.passes().len(), empty.window), (1, [0, 0]));
        assert_eq!(empty.state(5).report().passes_skipped, 0);
    }
}
