//! What host and kernels share: the arguments, the header in scratch memory, and where everything lies in scratch memory.
//! The kernels' side is at the head of `kernels/sort/satish_radix.cu`.

use super::tuning::{SCAN_ITEMS, UNSCANNED_TILES, small_for, tile_for};
use crate::Result;
use crate::cuda::abi::assert_layout;
use crate::cuda::family::{Shape, Task};
use crate::cuda::order::KeyOrder;
use crate::cuda::outcome::SortOutcome;
use crate::cuda::tile::Tile;
use bytemuck::{Pod, Zeroable};
use gpu::{DevicePtr, Layout, SliceMut};

/// `Args` in satish_radix.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Args {
    /// Input, output and temporary keys.
    keys: [DevicePtr<u8>; 3],
    /// The same for values. A null input stands for 0, 1, 2, …
    values: [DevicePtr<u8>; 3],
    header: DevicePtr<Header>,
    table: DevicePtr<u32>,
    varying: DevicePtr<u8>,
    /// Null, or the address of the number of keys.
    device_count: DevicePtr<u64>,
    n: u64,
    order: KeyOrder,
    stride: u32,
    flags: u32,
}

assert_layout!(
    Args, 136:
    keys 0, values 24, header 48, table 56, varying 64, device_count 72, n 80, order 88,
    stride 128, flags 132,
);

/// Flag of [`Args`]: input and output are one buffer.
const IN_PLACE: u32 = 1;
/// Flag of [`Args`]: the sorted keys are not wanted.
const DROP_KEYS: u32 = 2;
/// Flag of [`Args`]: the scan kernel runs.
const SCANNED: u32 = 4;

impl Args {
    pub fn new(task: &Task, sizes: &Sizes, regions: &Regions<'_>) -> Self {
        let flag = |condition: bool, flag: u32| if condition { flag } else { 0 };
        Self {
            keys: [task.keys_in, task.keys_out, regions.keys.device_ptr()],
            values: [task.values_in, task.values_out, regions.values.device_ptr()],
            header: regions.header.device_ptr(),
            table: regions.table.device_ptr(),
            varying: regions.varying.device_ptr(),
            device_count: task.device_count,
            n: task.shape.n,
            order: task.order,
            stride: sizes.stride() as u32,
            flags: flag(task.in_place(), IN_PLACE)
                | flag(task.drop_keys, DROP_KEYS)
                | flag(sizes.scanned(), SCANNED),
        }
    }
}

/// `Header` in satish_radix.cu, at the start of scratch memory.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Header {
    outcome: SortOutcome,
    varying: u64,
}

assert_layout!(
    Header, 40:
    outcome 0, varying 32,
);

/// The sizes that follow from the number of keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    n: u64,
    pub key_bytes: usize,
    pub value_bytes: usize,
    pub tile: Tile,
    /// The block that sorts all keys, where they are few.
    pub small: Option<Tile>,
}

impl Sizes {
    pub fn new(shape: &Shape) -> Self {
        let (key_bytes, value_bytes) = (shape.key_bytes(), shape.value_bytes);
        Self {
            n: shape.n,
            key_bytes,
            value_bytes,
            tile: tile_for(key_bytes, value_bytes),
            small: small_for(shape.n, key_bytes, value_bytes),
        }
    }

    pub fn tiles(&self) -> u64 {
        self.n.div_ceil(self.tile.keys())
    }

    /// Whether the scan kernel runs.
    pub fn scanned(&self) -> bool {
        self.tiles() > UNSCANNED_TILES
    }

    /// Words of a row of the table: room for a count of each tile and the sum of all.
    fn stride(&self) -> u64 {
        (self.tiles() + 1).next_multiple_of(SCAN_ITEMS)
    }
}

/// Scratch memory, carved.
#[derive(Debug)]
pub(super) struct Regions<'a> {
    header: SliceMut<'a, Header>,
    table: SliceMut<'a, u32>,
    varying: SliceMut<'a, u8>,
    keys: SliceMut<'a, u8>,
    values: SliceMut<'a, u8>,
}

/// Carves, or measures, the scratch memory of a sort.
pub(super) fn carve<'a>(layout: &mut Layout<'a>, sizes: &Sizes) -> Result<Regions<'a>> {
    // A size beyond an address saturates, and `take` refuses it.
    let bytes = |count: u64, each: usize| {
        let count = if sizes.small.is_some() { 0 } else { count };
        usize::try_from(count)
            .unwrap_or(usize::MAX)
            .saturating_mul(each)
    };
    let padded = sizes.tiles().saturating_mul(sizes.tile.keys());
    Ok(Regions {
        header: layout.take(1)?,
        table: layout.take(bytes(sizes.stride(), 16))?,
        varying: layout.take(bytes(sizes.tiles(), sizes.key_bytes))?,
        keys: layout.take(bytes(padded, sizes.key_bytes))?,
        values: layout.take(bytes(padded, sizes.value_bytes))?,
    })
}
