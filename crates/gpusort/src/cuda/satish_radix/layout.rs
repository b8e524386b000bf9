//! The structs and the scratch memory that host and kernels share. The kernels' side is at the head
//! of `kernels/sort/satish_radix.cuh`.

use super::tuning::{SCAN_ITEMS, UNSCANNED_TILES, small_for, tile_for};
use crate::Result;
use crate::cuda::family::{Shape, Task};
use crate::cuda::order::KeyOrder;
use crate::cuda::outcome::SortOutcome;
use crate::cuda::tile::Tile;
use bytemuck::{Pod, Zeroable};
use gpu::{DevicePtr, Layout, SliceMut, assert_layout};

/// The arguments of the kernels: `Args` in satish_radix.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Args {
    /// Input, output and temporary keys.
    keys: [DevicePtr<u8>; 3],
    /// Input, output and temporary values. A null input stands for 0, 1, 2, …
    values: [DevicePtr<u8>; 3],
    header: DevicePtr<Header>,
    /// The table of counts, `[digit][tile]` (the paper's Figure 2).
    table: DevicePtr<u32>,
    /// For each tile, the bits in which its keys differ from the first key of all.
    varying: DevicePtr<u8>,
    /// Null, or the device address of the number of keys.
    device_count: DevicePtr<u64>,
    n: u64,
    order: KeyOrder,
    /// Words of a row of the table.
    stride: u32,
    flags: u32,
}

assert_layout!(
    Args, 136:
    keys 0, values 24, header 48, table 56, varying 64, device_count 72, n 80, order 88,
    stride 128, flags 132,
);

/// Flag of [`Args`]: the scan kernel runs (step 3).
const SCANNED: u32 = 4;

impl Args {
    pub fn new(task: &Task, sizes: &Sizes, regions: &Regions<'_>) -> Self {
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
            flags: task.flags() | if sizes.scanned() { SCANNED } else { 0 },
        }
    }
}

/// The header at the start of scratch memory: `Header` in satish_radix.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Header {
    outcome: SortOutcome,
    /// The bits of the window in which keys differ.
    varying: u64,
}

assert_layout!(Header, 40: outcome 0, varying 32);

/// The properties of a sort that determine its shapes and its scratch memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    n: u64,
    pub key_bytes: usize,
    pub value_bytes: usize,
    pub tile: Tile,
    /// The shape of the one block that sorts all keys, if they are few.
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

    /// Returns whether the scan kernel runs (step 3).
    pub fn scanned(&self) -> bool {
        self.tiles() > UNSCANNED_TILES
    }

    /// Returns the words of a row of the table: a count of each tile, and the sum of all.
    fn stride(&self) -> u64 {
        (self.tiles() + 1).next_multiple_of(SCAN_ITEMS)
    }
}

/// The regions of a sort's scratch memory.
#[derive(Debug)]
pub(super) struct Regions<'a> {
    header: SliceMut<'a, Header>,
    table: SliceMut<'a, u32>,
    varying: SliceMut<'a, u8>,
    keys: SliceMut<'a, u8>,
    values: SliceMut<'a, u8>,
}

/// Divides the scratch memory of a sort into its regions, or measures it.
pub(super) fn carve<'a>(layout: &mut Layout<'a>, sizes: &Sizes) -> Result<Regions<'a>> {
    // A size that overflows saturates, and `take` refuses it.
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
