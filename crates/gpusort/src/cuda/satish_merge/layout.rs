//! What host and kernels share: the arguments and where things lie in scratch memory. The kernels' side is in
//! `kernels/sort/satish_merge.cu` and `satish_merge.cuh`.

use super::plan::{Level, Plan, SAMPLE, Tile};
use crate::Result;
use crate::cuda::abi::assert_layout;
use crate::cuda::order::KeyOrder;
use crate::cuda::outcome::SortOutcome;
use bytemuck::{Pod, Zeroable};
use gpu::{DevicePtr, Layout, SliceMut};

/// `Args` in satish_merge.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Args {
    pub keys_in: DevicePtr<u8>,
    pub keys_out: DevicePtr<u8>,
    /// Null: the values are the keys' places.
    pub values_in: DevicePtr<u8>,
    pub values_out: DevicePtr<u8>,
    pub samples: DevicePtr<u8>,
    pub splits: DevicePtr<u8>,
    pub outcome: DevicePtr<SortOutcome>,
    pub device_count: DevicePtr<u64>,
    pub n: u64,
    pub flip: u64,
    pub fold: u64,
    pub window: u64,
    pub minus_zero: u64,
    pub zero: u64,
    pub level: Level,
    pub passes: u32,
    pub flags: u32,
}

assert_layout!(
    Args, 144:
    keys_in 0, keys_out 8, values_in 16, values_out 24, samples 32, splits 40, outcome 48,
    device_count 56, n 64, flip 72, fold 80, window 88, minus_zero 96, zero 104, level 112,
    passes 136, flags 140,
);

/// Flag of [`Args`]: the keys go out as they came in.
pub(super) const LAST: u32 = 1;
/// Flag of [`Args`]: the sorted keys are not wanted.
pub(super) const DROP_KEYS: u32 = 2;

impl Args {
    /// The arguments for the order; buffers are still to be filled in.
    pub fn new(order: &KeyOrder) -> Self {
        let float = order.fold != 0;
        Self {
            flip: order.flip,
            fold: order.fold,
            window: order.window,
            minus_zero: if float { !order.flip } else { 0 },
            zero: if float { order.flip } else { 0 },
            ..Self::zeroed()
        }
    }
}

/// Whether keys of that many bytes are integers that are compared by all their bits.
pub(super) fn plain(order: &KeyOrder, key_bytes: usize) -> bool {
    order.fold == 0 && order.window == u64::MAX >> (64 - 8 * key_bytes)
}

/// Scratch memory, carved.
#[derive(Debug)]
pub(super) struct Regions<'a> {
    pub outcome: SliceMut<'a, SortOutcome>,
    pub samples: SliceMut<'a, u8>,
    pub splits: SliceMut<'a, u8>,
    pub keys: SliceMut<'a, u8>,
    pub values: SliceMut<'a, u8>,
}

/// Carves, or measures, the scratch memory of a sort.
pub(super) fn carve<'a>(
    layout: &mut Layout<'a>,
    plan: &Plan,
    key_bytes: usize,
    value_bytes: usize,
) -> Result<Regions<'a>> {
    // One tile needs nothing but the outcome. A size beyond an address saturates, and `take` refuses it.
    let n = if plan.levels.is_empty() { 0 } else { plan.n };
    let bytes = |count: u64, each: usize| {
        usize::try_from(count.saturating_mul(each as u64)).unwrap_or(usize::MAX)
    };
    Ok(Regions {
        outcome: layout.take(1)?,
        samples: layout.take(bytes(n.div_ceil(SAMPLE), key_bytes))?,
        splits: layout.take(bytes(plan.splits(), 1))?,
        keys: layout.take(bytes(n, key_bytes))?,
        values: layout.take(bytes(n, value_bytes))?,
    })
}

/// Bytes of shared memory: of the tile's kernel and of the pieces'.
pub(super) fn shared_bytes(tile: Tile, key_bytes: usize, value_bytes: usize) -> [u32; 2] {
    // Items with a tag, whether this kernel has tags or not.
    let items = (tile.items() + 1) * (key_bytes as u32 + 4);
    let staged = tile.items() * value_bytes as u32;
    let bytes = items.max(staged);
    [bytes, bytes + tile.piece_bytes()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::satish_merge::plan::tile_for;
    #[test]
    fn tiles_fit_the_oldest_device() {
        for key in [4, 8] {
            for value in [0, 4, 8] {
                let [tile, piece] = shared_bytes(tile_for(key), key, value);
                assert!(tile <= 64 * 1024 && piece <= 64 * 1024, "{key} {value}");
            }
        }
    }
}
