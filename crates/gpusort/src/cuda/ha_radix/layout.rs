//! The structs and the scratch memory that host and kernels share. The kernels' side is at the head
//! of `kernels/sort/ha_radix_types.cuh`.

use super::tuning::{Tile, tile_for};
use crate::Result;
use crate::cuda::family::Shape;
use crate::cuda::order::KeyOrder;
use crate::cuda::outcome::SortOutcome;
use bytemuck::{Pod, Zeroable};
use gpu::{DevicePtr, Layout, SliceMut, assert_layout};

/// The arguments of the kernels: `Args` in ha_radix_types.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Args {
    /// Input, output and temporary keys.
    pub keys: [DevicePtr<u8>; 3],
    /// Input, output and temporary values. A null input stands for 0, 1, 2, …
    pub values: [DevicePtr<u8>; 3],
    pub header: DevicePtr<Header>,
    /// The block-sum array, `[digit][part]` (§4.3).
    pub sums: DevicePtr<u32>,
    /// Null, or the device address of the number of keys.
    pub device_count: DevicePtr<u64>,
    pub n: u64,
    pub order: KeyOrder,
    pub flags: u32,
    pub passes: u32,
    /// The number of parts that the tiles are divided among.
    pub parts: u32,
    /// The id of the algorithm for the outcome.
    pub algorithm: u32,
}

assert_layout!(
    Args, 136:
    keys 0, values 24, header 48, sums 56, device_count 64, n 72, order 80, flags 120,
    passes 124, parts 128, algorithm 132,
);

/// The header at the start of scratch memory: `Header` in ha_radix_types.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Header {
    outcome: SortOutcome,
    state: [u32; 4],
    /// The parts taken so far, by the phase that a launch begins with. A pass has two phases.
    next: [u32; 64],
}

assert_layout!(Header, 304: outcome 0, state 32, next 48);

/// Max parts: more than any device runs blocks at once.
pub(super) const MAX_PARTS: u32 = 4096;

/// The properties of a sort that determine its shapes and its scratch memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub n: u64,
    pub key_bytes: usize,
    pub value_bytes: usize,
    /// Bits of a digit.
    pub bits: u32,
    pub tile: Tile,
}

impl Sizes {
    pub fn new(bits: u32, shape: &Shape) -> Self {
        let (key_bytes, value_bytes) = (shape.key_bytes(), shape.value_bytes);
        Self {
            n: shape.n,
            key_bytes,
            value_bytes,
            bits,
            tile: tile_for(bits, key_bytes, value_bytes),
        }
    }

    /// Returns the number of parts for a device that runs `blocks` blocks at once.
    pub fn parts(&self, blocks: u32) -> u32 {
        let tiles = self.n.div_ceil(self.tile.keys().into());
        tiles.clamp(1, blocks.clamp(1, MAX_PARTS).into()) as u32
    }

    pub fn shared_bytes(&self) -> u32 {
        self.tile
            .shared_bytes(self.bits, self.key_bytes, self.value_bytes)
    }
}

/// The regions of a sort's scratch memory.
#[derive(Debug)]
pub(super) struct Regions<'a> {
    pub header: SliceMut<'a, Header>,
    /// The block-sum array, `[digit][part]` (§4.3).
    pub sums: SliceMut<'a, u32>,
    pub keys: SliceMut<'a, u8>,
    pub values: SliceMut<'a, u8>,
}

/// Divides the scratch memory of a sort into its regions, or measures it.
pub(super) fn carve<'a>(layout: &mut Layout<'a>, sizes: &Sizes) -> Result<Regions<'a>> {
    // A size that overflows saturates, and `take` refuses it.
    let n = usize::try_from(sizes.n).unwrap_or(usize::MAX);
    Ok(Regions {
        header: layout.take(1)?,
        sums: layout.take((sizes.parts(MAX_PARTS) as usize) << sizes.bits)?,
        keys: layout.take(n.saturating_mul(sizes.key_bytes))?,
        values: layout.take(n.saturating_mul(sizes.value_bytes))?,
    })
}
