//! What host and kernels share: the arguments, the header, and where everything lies in scratch memory. The kernels' side is
//! at the head of `kernels/sort/ha_radix.cuh`.

use super::tuning::{Tile, tile_for};
use crate::Result;
use crate::cuda::abi::assert_layout;
use crate::cuda::family::Shape;
use crate::cuda::order::KeyOrder;
use crate::cuda::outcome::SortOutcome;
use bytemuck::{Pod, Zeroable};
use gpu::{DevicePtr, Layout, SliceMut};

/// `Args` in ha_radix.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Args {
    /// Input, output and temporary keys.
    pub keys: [DevicePtr<u8>; 3],
    /// The same for values. A null input stands for 0, 1, 2, …
    pub values: [DevicePtr<u8>; 3],
    pub header: DevicePtr<Header>,
    pub sums: DevicePtr<u32>,
    /// Null, or the address of the number of keys.
    pub device_count: DevicePtr<u64>,
    pub n: u64,
    pub order: KeyOrder,
    pub flags: u32,
    pub passes: u32,
    /// Parts that the tiles are shared out to.
    pub parts: u32,
    pub algorithm: u32,
}

assert_layout!(
    Args, 136:
    keys 0, values 24, header 48, sums 56, device_count 64, n 72, order 80, flags 120,
    passes 124, parts 128, algorithm 132,
);

/// Flag of [`Args`]: input and output are one buffer.
pub(super) const IN_PLACE: u32 = 1;
/// Flag of [`Args`]: the sorted keys are not wanted.
pub(super) const DROP_KEYS: u32 = 2;

/// `Header` in ha_radix.cuh, at the start of scratch memory.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Header {
    outcome: SortOutcome,
    state: [u32; 4],
    /// The most phases: two for each pass.
    next: [u32; 64],
}

assert_layout!(
    Header, 304:
    outcome 0, state 32, next 48,
);

/// More parts than any device has blocks at once.
pub(super) const MAX_PARTS: u32 = 4096;

/// The sizes that follow from the number of keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub n: u64,
    pub key_bytes: usize,
    pub value_bytes: usize,
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

    /// Parts for a device that runs `blocks` blocks at once.
    pub fn parts(&self, blocks: u32) -> u32 {
        let tiles = self.n.div_ceil(self.tile.keys().into());
        tiles.clamp(1, blocks.clamp(1, MAX_PARTS).into()) as u32
    }

    pub fn shared_bytes(&self) -> u32 {
        self.tile
            .shared_bytes(self.bits, self.key_bytes, self.value_bytes)
    }
}

/// Scratch memory, carved.
#[derive(Debug)]
pub(super) struct Regions<'a> {
    pub header: SliceMut<'a, Header>,
    /// The block-sum array.
    pub sums: SliceMut<'a, u32>,
    pub keys: SliceMut<'a, u8>,
    pub values: SliceMut<'a, u8>,
}

/// Carves, or measures, the scratch memory of a sort.
pub(super) fn carve<'a>(layout: &mut Layout<'a>, sizes: &Sizes) -> Result<Regions<'a>> {
    // A product beyond an address saturates, and `take` refuses it.
    let n = usize::try_from(sizes.n).unwrap_or(usize::MAX);
    Ok(Regions {
        header: layout.take(1)?,
        sums: layout.take((sizes.parts(MAX_PARTS) as usize) << sizes.bits)?,
        keys: layout.take(n.saturating_mul(sizes.key_bytes))?,
        values: layout.take(n.saturating_mul(sizes.value_bytes))?,
    })
}
