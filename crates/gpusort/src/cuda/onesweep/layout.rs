//! What host and kernels share: the arguments, the header in scratch memory, and where everything lies in scratch memory.
//! The kernels' side is in `kernels/sort/onesweep_types.cuh`.

use super::small_tuning::{LEAST_TILE, LIMIT};
use super::tuning::{GROUP, Shapes};
use crate::Result;
use crate::cuda::abi::assert_layout;
use crate::cuda::adaptive;
use crate::cuda::family::Shape;
use crate::cuda::order::KeyOrder;
use crate::cuda::outcome::SortOutcome;
use crate::cuda::tile::Tile;
use bytemuck::{Pod, Zeroable};
use gpu::{DeviceInfo, DevicePtr, Layout, SliceMut};

/// The most arrays that one launch sorts side by side.
pub(super) const MAX_ARRAYS: usize = 3;

/// The most keys that the images with 32-bit offsets take: two bits of a look-back word are its state.
const SMALL_LIMIT: u64 = (1 << 30) - 1;

/// `Args` in onesweep_types.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Args {
    /// Each array's input, output and temporary keys.
    pub keys: [[DevicePtr<u8>; 3]; MAX_ARRAYS],
    /// The same for values. A null input stands for 0, 1, 2, …
    pub values: [[DevicePtr<u8>; 3]; MAX_ARRAYS],
    /// Bytes of an array's header, bins and look-back words, which lie one behind the other.
    pub stride: u64,
    pub header: DevicePtr<Header>,
    pub bins: DevicePtr<u8>,
    pub own: DevicePtr<u8>,
    pub groups: DevicePtr<u8>,
    /// Null, or the address of the number of keys.
    pub device_count: DevicePtr<u64>,
    pub n: u64,
    pub order: KeyOrder,
    order_again: KeyOrder,
    pub flags: u32,
    minus_one: u32,
    pub stall_tile: u32,
    pub stall_cycles: u32,
}

assert_layout!(
    Args, 296:
    keys 0, values 72, stride 144, header 152, bins 160, own 168, groups 176, device_count 184,
    n 192, order 200, order_again 240, flags 280, minus_one 284, stall_tile 288,
    stall_cycles 292,
);

/// Flag of [`Args`]: input and output are one buffer.
pub(super) const IN_PLACE: u32 = 1;
/// Flag of [`Args`]: the sorted keys are not wanted.
pub(super) const DROP_KEYS: u32 = 2;
/// Flag of [`Args`]: a kernel of adaptive.cu ran before.
pub(super) const NEARLY_SORTED: u32 = 4;
/// Flag of [`Args`]: header, bins and look-back words are 0; else the histogram's blocks run at once and set them.
pub(super) const CLEARED: u32 = 8;

impl Args {
    /// The arguments for the order and window; buffers are still to be filled in.
    pub fn new(order: KeyOrder, n: u64) -> Self {
        Self {
            n,
            order,
            order_again: order,
            minus_one: u32::MAX,
            stall_tile: u32::MAX,
            ..Self::zeroed()
        }
    }
}

/// `Header` in onesweep_types.cuh, at the start of scratch memory.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
pub(super) struct Header {
    pub outcome: SortOutcome,
    pub unsorted: u32,
    pub finished: u32,
    pub copy_back: u32,
    pub unused: u32,
    pub next_tile: [u32; 8],
    pub state: [u32; 8],
}

assert_layout!(
    Header, 112:
    outcome 0, unsorted 32, finished 36, copy_back 40, unused 44, next_tile 48, state 80,
);

/// The sizes that follow from the number of keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub n: u64,
    pub key_bytes: usize,
    pub value_bytes: usize,
    pub shapes: Shapes,
    /// Whether offsets take 64 bits.
    pub large: bool,
}

impl Sizes {
    /// For any device: the narrowest shapes, and so the most memory.
    pub fn new(shape: &Shape) -> Self {
        Self::with_shared(shape, 0)
    }

    /// For that device.
    pub fn on(shape: &Shape, device: &DeviceInfo) -> Self {
        Self::with_shared(shape, device.shared_per_block_optin)
    }

    fn with_shared(shape: &Shape, most: u32) -> Self {
        let (n, key_bytes, value_bytes) = (shape.n, shape.key_bytes(), shape.value_bytes);
        let large = shape.large || n > SMALL_LIMIT;
        Self {
            n,
            key_bytes,
            value_bytes,
            shapes: Shapes::new(key_bytes, value_bytes, most, large),
            large,
        }
    }

    pub fn offset_bytes(&self) -> usize {
        if self.large { 8 } else { 4 }
    }

    pub fn tile(&self) -> Tile {
        self.shapes.at(self.n).1
    }

    pub fn tiles(&self) -> u64 {
        self.n.div_ceil(self.tile().keys())
    }

    pub fn shared_bytes(&self) -> u32 {
        self.tile()
            .pass_shared_bytes(self.key_bytes, self.value_bytes, self.offset_bytes())
    }
}

/// Scratch memory, carved.
#[derive(Debug)]
pub(super) struct Regions<'a> {
    /// Header, bins, and the counts of tiles and groups, set to 0 before each sort; or what `small.rs` keeps there.
    pub control: SliceMut<'a, u8>,
    /// Bytes of it that steps of their own use, and where the bins and the counts begin in it.
    pub stride: u64,
    pub bins: u64,
    pub own: u64,
    pub groups: u64,
    pub keys: SliceMut<'a, u8>,
    pub values: SliceMut<'a, u8>,
    /// For nearly sorted input.
    pub windows: SliceMut<'a, u8>,
}

/// Bytes of the header's place.
pub(in crate::cuda) const HEADER_BYTES: usize = 256;

/// `Header` in onesweep_small_types.cuh.
const SMALL_HEADER_BYTES: usize = 256;
/// What a block of a small sort keeps in scratch memory: `Seen` in onesweep_small_types.cuh, and twice 256 counts of 16 bits.
const SMALL_BLOCK_BYTES: usize = 32 + 1024;
/// The most blocks of a small sort for one array.
pub(super) const MAX_SMALL_BLOCKS: u64 = 256;

/// Bytes of scratch memory for a small sort's headers and counts, on whatever device.
fn small_scratch_bytes(n: u64) -> usize {
    let blocks = if n <= LIMIT {
        n.div_ceil(LEAST_TILE).min(MAX_SMALL_BLOCKS)
    } else {
        0
    };
    SMALL_HEADER_BYTES + SMALL_BLOCK_BYTES * blocks as usize
}

/// Carves, or measures, the scratch memory of a sort.
pub(super) fn carve<'a>(layout: &mut Layout<'a>, sizes: &Sizes) -> Result<Regions<'a>> {
    // A product beyond an address saturates, and `take` refuses it.
    let n = usize::try_from(sizes.n).unwrap_or(usize::MAX);
    let digits = 256 * sizes.offset_bytes();
    let bins_end = HEADER_BYTES + sizes.key_bytes * digits;
    let tiles = usize::try_from(sizes.shapes.most_tiles(sizes.n)).unwrap_or(usize::MAX);
    let own_end = tiles.saturating_mul(digits).saturating_add(bins_end);
    let stride = tiles
        .div_ceil(GROUP)
        .saturating_mul(digits)
        .saturating_add(own_end);
    Ok(Regions {
        control: layout.take(stride.max(small_scratch_bytes(sizes.n)))?,
        stride: stride as u64,
        bins: HEADER_BYTES as u64,
        own: bins_end as u64,
        groups: own_end as u64,
        keys: layout.take(n.saturating_mul(sizes.key_bytes))?,
        values: layout.take(n.saturating_mul(sizes.value_bytes))?,
        windows: layout.take(adaptive::scratch_bytes(sizes.n, sizes.key_bytes))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_fits() {
        assert!(size_of::<Header>() <= HEADER_BYTES);
    }
}
