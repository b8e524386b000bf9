//! The structs and the scratch memory that host and kernels share. The kernels' side is in
//! `kernels/sort/satish_merge.cu` and `satish_merge.cuh`.

use super::plan::{Level, Plan, Tile};
use super::tuning::SAMPLE;
use crate::Result;
use crate::cuda::order::KeyOrder;
use crate::cuda::outcome::SortOutcome;
use bytemuck::{Pod, Zeroable};
use gpu::{DevicePtr, Layout, SliceMut, assert_layout};

/// The arguments of the kernels: `Args` in satish_merge.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Args {
    pub keys_in: DevicePtr<u8>,
    pub keys_out: DevicePtr<u8>,
    /// Null if the values are the keys' indices.
    pub values_in: DevicePtr<u8>,
    pub values_out: DevicePtr<u8>,
    /// Every [`SAMPLE`]-th key of the runs.
    pub samples: DevicePtr<u8>,
    /// For each piece of a pass, where it begins in each run.
    pub splits: DevicePtr<u8>,
    pub outcome: DevicePtr<SortOutcome>,
    /// Null, or the device address of the number of keys.
    pub device_count: DevicePtr<u64>,
    pub n: u64,
    /// The map from keys to ordered bits, as in [`KeyOrder`].
    pub flip: u64,
    pub fold: u64,
    pub window: u64,
    /// The ordered bits of -0.0 and of +0.0, which compare equal; 0 for integers.
    pub minus_zero: u64,
    pub zero: u64,
    pub level: Level,
    /// The number of passes of the sort.
    pub passes: u32,
    pub flags: u32,
}

assert_layout!(
    Args, 144:
    keys_in 0, keys_out 8, values_in 16, values_out 24, samples 32, splits 40, outcome 48,
    device_count 56, n 64, flip 72, fold 80, window 88, minus_zero 96, zero 104, level 112,
    passes 136, flags 140,
);

/// Flag of [`Args`]: this is the last launch, which turns ordered bits back into keys.
pub(super) const LAST: u32 = 4;

impl Args {
    /// Returns arguments with the order. The caller fills in the buffers.
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

/// Returns whether keys of that many bytes are integers that are compared by all bits.
pub(super) fn plain(order: &KeyOrder, key_bytes: usize) -> bool {
    order.fold == 0 && order.window == u64::MAX >> (64 - 8 * key_bytes)
}

/// The regions of a sort's scratch memory.
#[derive(Debug)]
pub(super) struct Regions<'a> {
    pub outcome: SliceMut<'a, SortOutcome>,
    pub samples: SliceMut<'a, u8>,
    pub splits: SliceMut<'a, u8>,
    pub keys: SliceMut<'a, u8>,
    pub values: SliceMut<'a, u8>,
}

/// Divides the scratch memory of a sort into its regions, or measures it. Records that move in each
/// pass are keys without values.
pub(super) fn carve<'a>(
    layout: &mut Layout<'a>,
    plan: &Plan,
    key_bytes: usize,
    value_bytes: usize,
) -> Result<Regions<'a>> {
    // A size that overflows saturates, and `take` refuses it.
    let n = plan.moved();
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

/// Returns the bytes of shared memory of `tile` and of `pieces`.
pub(super) fn shared_bytes(tile: Tile, key_bytes: usize, value_bytes: usize) -> [u32; 2] {
    // Counts a tag for each item, although some kernels have none.
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
