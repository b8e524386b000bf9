//! The structs and the scratch memory that host and kernels share. The kernels' side is in
//! `kernels/sort/onesweep_types.cuh`.

use super::small_tuning::{LIMIT, MIN_TILE};
use super::tuning::{DIGITS, FINISHES, GROUP, MAX_SEGMENT_BITS, MEAN_SEGMENTS, SEGMENT, Shapes};
use crate::Result;
use crate::cuda::adaptive;
use crate::cuda::family::Shape;
use crate::cuda::order::KeyOrder;
use crate::cuda::outcome::SortOutcome;
use crate::cuda::tile::Tile;
use bytemuck::{Pod, Zeroable};
use gpu::{DeviceInfo, DevicePtr, Layout, SliceMut, assert_layout};

/// Max keys of the images with 32-bit offsets, because two bits of a look-back word are its state.
const SMALL_LIMIT: u64 = (1 << 30) - 1;

/// The arguments of the kernels: `Args` in onesweep_types.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Args {
    /// The input, output and temporary keys.
    pub keys: [DevicePtr<u8>; 3],
    /// The input, output and temporary values. A null input stands for 0, 1, 2, …
    pub values: [DevicePtr<u8>; 3],
    /// Bytes of the header, bins and look-back words, which follow each other in memory.
    pub control_bytes: u64,
    pub header: DevicePtr<Header>,
    pub bins: DevicePtr<u8>,
    pub own: DevicePtr<u8>,
    pub groups: DevicePtr<u8>,
    /// Null, or the device address of the number of keys.
    pub device_count: DevicePtr<u64>,
    pub n: u64,
    pub order: KeyOrder,
    order_again: KeyOrder,
    pub flags: u32,
    minus_one: u32,
    /// Max keys that a block of onesweep_finish.cuh sorts; 0 if it is not launched.
    pub finish_keys: u32,
    /// The bits of [`Sizes::segment_bits`].
    pub segment_bits: u32,
    pub stall_tile: u32,
    pub stall_cycles: u32,
    pub segments: DevicePtr<u8>,
    /// One key of so many is sampled, a power of two.
    pub sample: u32,
    padding: u32,
}

assert_layout!(
    Args, 224:
    keys 0, values 24, control_bytes 48, header 56, bins 64, own 72, groups 80, device_count 88,
    n 96, order 104, order_again 144, flags 184, minus_one 188, finish_keys 192,
    segment_bits 196, stall_tile 200, stall_cycles 204, segments 208, sample 216, padding 220,
);

/// Flag of [`Args`]: a kernel of adaptive.cu was launched before.
pub(super) const NEARLY_SORTED: u32 = 4;
/// Flag of [`Args`]: header, bins and look-back words are 0 already. Without it the blocks of the
/// histogram run at once and set them to 0.
pub(super) const CLEARED: u32 = 8;

impl Args {
    /// Returns arguments with order, window and number of keys. The caller fills in the buffers.
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

/// The header at the start of scratch memory: `Header` in onesweep_types.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
pub(super) struct Header {
    pub outcome: SortOutcome,
    pub unsorted: u32,
    pub finished: u32,
    pub copy_back: u32,
    pub finish: u32,
    /// For each digit.
    pub next_tile: [u32; 8],
    pub state: [u32; 8],
    pub too_large: u32,
    padding: [u32; 3],
}

assert_layout!(
    Header, 128:
    outcome 0, unsorted 32, finished 36, copy_back 40, finish 44, next_tile 48, state 80,
    too_large 112, padding 116,
);

/// The properties of a sort that determine its shapes and its scratch memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub n: u64,
    pub key_bytes: usize,
    pub value_bytes: usize,
    pub shapes: Shapes,
    /// Whether offsets have 64 bits.
    pub large: bool,
}

impl Sizes {
    /// Returns the sizes for any device: with the smallest tiles, which need the most memory.
    pub fn new(shape: &Shape) -> Self {
        Self::with_shared(shape, 0)
    }

    /// Returns the sizes for one device.
    pub fn on(shape: &Shape, device: &DeviceInfo) -> Self {
        Self::with_shared(shape, device.shared_per_block_optin)
    }

    fn with_shared(shape: &Shape, shared_bytes: u32) -> Self {
        let (n, key_bytes, value_bytes) = (shape.n, shape.key_bytes(), shape.value_bytes);
        let large = shape.large || n > SMALL_LIMIT;
        Self {
            n,
            key_bytes,
            value_bytes,
            shapes: Shapes::new(key_bytes, value_bytes, shared_bytes, large),
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

    /// Returns the number of highest bits that divide keys into segments, each of which a block
    /// sorts; 0 if there are too many keys.
    pub fn segment_bits(&self) -> u32 {
        match self.wanted_segment_bits() {
            bits if bits <= MAX_SEGMENT_BITS && !self.large => bits,
            _ => 0,
        }
    }

    /// Returns the shape of the blocks that each sort a segment.
    pub fn segment_tile(&self) -> Tile {
        if self.key_bytes == 4 {
            SEGMENT
        } else {
            Tile::of(&FINISHES, self.key_bytes, self.value_bytes)
        }
    }

    /// Returns the most keys of a segment. A word of 32 bits has room for those of a key that its
    /// segment leaves and for where the key was.
    pub fn max_segment(&self) -> u64 {
        let keys = self.segment_tile().keys();
        if self.key_bytes == 8 || self.value_bytes == 0 {
            return keys;
        }
        keys.min(1 << self.segment_bits())
    }

    /// Returns of how many keys one is sampled: of fewer where segments are large, of whose size
    /// chance then tells less.
    pub fn sample(&self) -> u32 {
        let large = self.n >> self.segment_bits() > self.max_segment() / 4;
        if large { 64 } else { 256 }
    }

    fn wanted_segment_bits(&self) -> u32 {
        let bits_of = |count: u64| count.next_power_of_two().ilog2();
        let mean = self.segment_tile().keys() / MEAN_SEGMENTS[self.key_bytes / 8];
        let bits = bits_of(self.n.div_ceil(mean).max(DIGITS));
        if self.key_bytes == 8 || self.value_bytes == 0 {
            return bits;
        }
        bits.max((bits_of(self.n) + 1).div_ceil(2))
    }

    /// Returns the bytes of a word for each segment, and one more. They do not shrink where there
    /// are too many keys: memory for some keys suffices for fewer.
    fn segment_bytes(&self) -> usize {
        match self.wanted_segment_bits() {
            0 => 0,
            bits => ((1 << bits.min(MAX_SEGMENT_BITS)) + 1) * self.offset_bytes(),
        }
    }

    pub fn shared_bytes(&self) -> u32 {
        self.tile()
            .pass_shared_bytes(self.key_bytes, self.value_bytes, self.offset_bytes())
    }
}

/// The regions of a sort's scratch memory.
#[derive(Debug)]
pub(super) struct Regions<'a> {
    /// Header, bins, and the counts of tiles and groups, which are set to 0 before each sort; or
    /// the header and counts of a small sort.
    pub control: SliceMut<'a, u8>,
    /// Bytes of `control` that a sort of several launches uses.
    pub control_bytes: u64,
    /// The offsets of the bins and of the counts of tiles and groups in `control`, in bytes.
    pub bins: u64,
    pub own: u64,
    pub groups: u64,
    /// A word for each segment, and one more.
    pub segments: SliceMut<'a, u8>,
    pub keys: SliceMut<'a, u8>,
    pub values: SliceMut<'a, u8>,
    /// The records of the windows of nearly sorted input.
    pub windows: SliceMut<'a, u8>,
}

/// Bytes reserved for a header. That of the two passes before segments is behind the first:
/// `NEXT_HEADER` in onesweep_types.cuh.
pub(in crate::cuda) const HEADER_BYTES: usize = 256;

/// Bytes reserved for `Header` in onesweep_small_types.cuh.
const SMALL_HEADER_BYTES: usize = 256;
/// Bytes of a block's scratch memory in a small sort: `Seen` in onesweep_small_types.cuh, and twice
/// 256 counts of 16 bits.
const SMALL_BLOCK_BYTES: usize = 32 + 1024;
/// Max blocks of a small sort for one array.
pub(super) const MAX_SMALL_BLOCKS: u64 = 256;

/// Returns the bytes of scratch memory for the headers and counts of a small sort, on any device.
fn small_scratch_bytes(n: u64) -> usize {
    let blocks = if n <= LIMIT {
        n.div_ceil(MIN_TILE).min(MAX_SMALL_BLOCKS)
    } else {
        0
    };
    SMALL_HEADER_BYTES + SMALL_BLOCK_BYTES * blocks as usize
}

/// Divides the scratch memory of a sort into its regions, or measures it.
pub(super) fn carve<'a>(layout: &mut Layout<'a>, sizes: &Sizes) -> Result<Regions<'a>> {
    // A size that overflows saturates, and `take` refuses it.
    let n = usize::try_from(sizes.n).unwrap_or(usize::MAX);
    let digits = 256 * sizes.offset_bytes();
    let bins_end = 2 * HEADER_BYTES + sizes.key_bytes * digits;
    let tiles = usize::try_from(sizes.shapes.max_tiles(sizes.n)).unwrap_or(usize::MAX);
    let own_end = tiles.saturating_mul(digits).saturating_add(bins_end);
    let control_bytes = tiles
        .div_ceil(GROUP)
        .saturating_mul(digits)
        .saturating_add(own_end);
    Ok(Regions {
        control: layout.take(control_bytes.max(small_scratch_bytes(sizes.n)))?,
        control_bytes: control_bytes as u64,
        bins: 2 * HEADER_BYTES as u64,
        own: bins_end as u64,
        groups: own_end as u64,
        segments: layout.take(sizes.segment_bytes())?,
        keys: layout.take(n.saturating_mul(sizes.key_bytes))?,
        values: layout.take(n.saturating_mul(sizes.value_bytes))?,
        windows: layout.take(adaptive::scratch_bytes(sizes.n, sizes.key_bytes))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::family::measured;

    /// Around the max of keys that are divided into segments, and of 32-bit offsets.
    #[test]
    fn more_keys_need_no_less_memory() {
        let payloads = [4, 8]
            .into_iter()
            .flat_map(|key| [0, 4, 8].map(|value| (key, value)));
        for (key_bytes, value_bytes) in payloads {
            for limit in [1 << 27, 3 << 26, 1 << 28, SMALL_LIMIT] {
                let bytes = |n| {
                    let large = n > SMALL_LIMIT;
                    let sizes = Sizes {
                        n,
                        key_bytes,
                        value_bytes,
                        shapes: Shapes::new(key_bytes, value_bytes, 0, large),
                        large,
                    };
                    let bits = sizes.segment_bits();
                    let bytes = measured(|layout| carve(layout, &sizes));
                    (bits, bytes.expect("no overflow"))
                };
                let (few, many) = (bytes(limit), bytes(limit + 1));
                let what = (key_bytes, value_bytes, limit);
                assert!(few.1 <= many.1, "{what:?}: {few:?} {many:?}");
                let last = match what {
                    (4, ..) => 1 << 28,
                    (_, 0, _) => 3 << 26,
                    _ => 1 << 27,
                };
                assert!(limit != last || (few.0, many.0) == (16, 0), "{what:?}");
            }
        }
    }

    #[test]
    fn the_header_fits() {
        assert!(size_of::<Header>() <= HEADER_BYTES);
    }
}
