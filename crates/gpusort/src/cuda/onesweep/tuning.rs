//! Tile shapes of Onesweep, the same as in `kernels/sort/onesweep_tuning.cuh`.

use crate::cuda::tile::{Tile, Tiles, tile};

/// Shapes by bytes of a key (4, 8), then of a value (0, 4, 8), within the 64 KiB of shared memory
/// that a block has on Turing.
///
/// Measured on an H200 at 2^28 elements (G/s; 8-byte keys 2^24). Larger tiles are faster, because a
/// tile's counts and look-back cost the same for any size, until registers spill or two blocks no
/// longer share a multiprocessor. u32 keys: 384x20 59.5, 384x24 60.9, 384x28 65.3, **384x32 66.2**,
/// 384x36 63.3, 256x36 66.3, 512x32 60.9, 384x48 63.9. u32 pairs: 384x16 31.4, 384x24 34.6, 384x28
/// 38.1, **384x32 39.1**, 512x24 38.6, 512x28 39.4, 256x32 31.1, 1024x20 35.7.
const TILES: Tiles = [
    [tile(384, 32), tile(384, 32), tile(384, 16)],
    [tile(384, 16), tile(384, 16), tile(384, 16)],
];

/// The shapes for devices whose blocks have [`WIDE_SHARED`] bytes of shared memory.
///
/// Measured as above. u32 + u64 at 2^28: 384x16 26.9, **384x24 29.5**, 512x16 28.8. u64 keys:
/// 384x16 17.4, 384x20 18.1, **384x24 18.7**, 512x16 18.0. u64 + u32: 384x16 12.3, 384x20 12.8,
/// **384x24 13.2**, 512x16 13.2, 512x20 13.0.
const WIDE: Tiles = [
    [tile(384, 32), tile(384, 32), tile(384, 24)],
    [tile(384, 24), tile(384, 24), tile(384, 16)],
];

/// Min bytes of shared memory of a block for the shapes of [`WIDE`].
pub(super) const WIDE_SHARED: u32 = 96 * 1024;

/// Number of tiles whose counts are added up to one look-back word: `GROUP` in onesweep_pass.cuh.
/// Not measured.
pub(super) const GROUP: usize = 8;

/// The shape for up to [`NARROW_LIMIT`] keys of 4 bytes, alone or with values of 4 bytes. At 2^20
/// keys there is at most one tile for each multiprocessor.
///
/// H200, microseconds for 2^20, 2^21, 2^22 and 2^24 pairs of u32: **512x16 62.7, 94, 167**, 534;
/// 384x21 64, 94, 167; 256x32 63, 92, 169; 384x24 64.4, 94, 170, 509; 1024x8 65, 107, 190; 256x16
/// 67, 111, 203; 384x32 69.5, 104, 172, **488**; 512x8 69, 115, 194; 384x16 74, 107, 186, 585;
/// 384x20 75, 106, 194, 558. Keys alone: 512x16 **54.8, 77**, 126, 349; 384x24 55.1, 79, 129, 346;
/// 384x32 59.8, 88, **124, 328**; 384x16 62, 84, 127, 380.
const NARROW: Tile = tile(512, 16);

/// Max keys for the shape [`NARROW`]: at 2^24 the larger tiles are faster.
const NARROW_LIMIT: u64 = 1 << 22;

/// Digits of a pass.
pub(super) const DIGITS: u64 = 256;

/// Shapes of the blocks that each end the sort of the keys of one digit: the same as
/// `ONESWEEP_FINISHES` in onesweep_tuning.cuh. Two blocks share a multiprocessor, with as many keys
/// as their registers hold. Other shapes are not measured.
pub(super) const FINISHES: Tiles = [
    [tile(512, 32), tile(512, 24), tile(512, 24)],
    [tile(512, 24), tile(512, 16), tile(512, 16)],
];

/// Max bits that divide keys into segments: those of two digits.
pub(super) const MAX_SEGMENT_BITS: u32 = 16;

/// The shape of blocks that each sort a segment of keys of 4 bytes. Four of them share a
/// multiprocessor, or three if values have 8 bytes.
///
/// H200, 2^28 `u32` keys, the kernel alone, at an earlier state of it: 512x32 1.39 ms, **256x32
/// 1.06**.
pub(super) const SEGMENT: Tile = tile(256, 32);

/// How many mean segments a block could hold, at least, for keys of 4 and 8 bytes. The sample of
/// keys (onesweep_histogram.cuh) then tells random keys, whose largest segment has up to 1.14 times
/// the mean, from keys that crowd.
pub(super) const MEAN_SEGMENTS: [u64; 2] = [2, 4];

/// Min keys of 4 bytes that are divided into segments.
///
/// H200, ms, and without: 6.4 million keys 0.161 and 0.165, 2^23 keys 0.193 and 0.196; 6.4 million
/// pairs 0.198 and 0.215. Fewer are not measured.
pub(super) const SEGMENTS_FROM: u64 = 6 << 20;

/// Threads of a block that finds segments. Not measured.
pub(super) const SEGMENT_THREADS: u32 = 256;

/// The shapes for keys and values of one size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shapes {
    /// The shape for up to [`NARROW_LIMIT`] keys, if there is one.
    narrow: Option<Tile>,
    /// The shape for more keys.
    pub many: Tile,
}

impl Shapes {
    /// Returns the shapes for keys and values of that many bytes, on a device whose blocks have
    /// `shared_bytes` of shared memory. `large` says that offsets have 64 bits.
    pub fn new(key_bytes: usize, value_bytes: usize, shared_bytes: u32, large: bool) -> Self {
        let wide = shared_bytes >= WIDE_SHARED && !large;
        let of = |tiles| Tile::of(tiles, key_bytes, value_bytes);
        Self {
            narrow: (key_bytes == 4 && value_bytes <= 4 && !large).then_some(NARROW),
            many: of(if wide { &WIDE } else { &TILES }),
        }
    }

    /// Returns the shape for `n` keys, and its index in [`Shapes::both`].
    pub fn at(&self, n: u64) -> (usize, Tile) {
        match self.narrow {
            Some(tile) if n <= NARROW_LIMIT => (0, tile),
            _ => (1, self.many),
        }
    }

    /// Returns both shapes: for few keys, then for many.
    pub fn both(&self) -> [Tile; 2] {
        [self.narrow.unwrap_or(self.many), self.many]
    }

    /// Returns the max number of tiles of a sort of up to `n` keys.
    pub fn max_tiles(&self, n: u64) -> u64 {
        let narrow = self
            .narrow
            .map_or(0, |tile| n.min(NARROW_LIMIT).div_ceil(tile.keys()));
        narrow.max(n.div_ceil(self.many.keys()))
    }
}

impl Tile {
    /// Returns the bytes of the kernel's `Finish::Shared`: 256 counters for each warp and 32 more,
    /// 80 bytes of single variables, the keys and 16 more, and if there are values two bytes a key.
    pub(super) fn finish_shared_bytes(self, key_bytes: usize, value_bytes: usize) -> u32 {
        let keys = self.threads * self.items;
        let origins = if value_bytes == 0 { 8 } else { 2 * keys };
        self.finish_counters() + (keys + 16) * key_bytes as u32 + origins
    }

    /// The same of the kernels for segments of keys of 4 bytes, where values take the place of the
    /// keys.
    pub(super) fn segment_shared_bytes(self, value_bytes: usize) -> u32 {
        let keys = self.threads * self.items;
        let exchange = (4 * (keys + 16)).max(keys * value_bytes as u32);
        self.finish_counters() + exchange + 8
    }

    fn finish_counters(self) -> u32 {
        4 * (self.threads / 32 * 256 + 32) + 80
    }

    /// Returns the bytes of the kernel's `Pass::Shared`: 256 counters for each warp, 256 offsets,
    /// 48 bytes of single variables, and the exchange of the tile's keys or values.
    pub(super) fn pass_shared_bytes(
        self,
        key_bytes: usize,
        value_bytes: usize,
        offset_bytes: usize,
    ) -> u32 {
        let fixed = 256 * offset_bytes + 48;
        self.threads / 32 * 256 * 4
            + fixed as u32
            + self.threads * self.items * key_bytes.max(value_bytes) as u32
    }
}

// The histogram kernel's shape: `HISTOGRAM_THREADS` and `CHUNK` in onesweep_histogram.cuh. H200,
// 3 million u32 keys: 512 threads that read 32 bytes each 19.1 µs, 1024 that read 16 15.7.

/// Threads of a block of the histogram kernel.
pub(super) const HISTOGRAM_THREADS: u32 = 1024;
/// Bytes of keys that such a block reads at once.
pub(super) const HISTOGRAM_CHUNK_BYTES: u64 = 1024 * 16;

/// Bytes of all copies of the counts of a block of the histogram kernel, for few keys and, on
/// devices of [`WIDE_SHARED`], for many. Two blocks share a multiprocessor.
///
/// H200: 2^28 u32 keys 457 and **337** µs. A sort of 2^22 took **122** µs and 127, of 2^23 **196**
/// and 210, but at 2^22 the passes were to blame, which have been mended since. Whether the second
/// would do for few keys too is not measured.
pub(super) const HISTOGRAM_SHARED: [u32; 2] = [32 * 1024, 64 * 1024];
/// Min bytes of keys for the second.
pub(super) const HISTOGRAM_WIDE_BYTES: u64 = 1 << 26;

/// Returns the copies of each count in so many bytes: of 256 for each byte of a key.
pub(super) const fn histogram_copies(key_bytes: usize, shared: u32) -> u32 {
    shared / (key_bytes as u32 * 256 * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fit_their_devices() {
        for (key, value) in [4, 8]
            .into_iter()
            .flat_map(|key| [0, 4, 8].map(|value| (key, value)))
        {
            for (shared, large) in [(64 * 1024, false), (WIDE_SHARED, false), (0, true)] {
                let shapes = Shapes::new(key, value, shared, large);
                for tile in shapes.both() {
                    let bytes = tile.pass_shared_bytes(key, value, if large { 8 } else { 4 });
                    assert!(bytes <= shared.max(64 * 1024), "{tile:?}");
                    assert!(tile.threads >= 256 && tile.threads.is_multiple_of(32));
                    assert!(tile.keys() <= shapes.many.keys());
                }
            }
        }
    }

    /// Scratch memory for some keys must suffice for fewer keys, on any device.
    #[test]
    fn more_keys_never_need_less() {
        for (key, value) in [4, 8]
            .into_iter()
            .flat_map(|key| [0, 4, 8].map(|value| (key, value)))
        {
            let (any, wide) = (
                Shapes::new(key, value, 0, false),
                Shapes::new(key, value, WIDE_SHARED, false),
            );
            let mut max_tiles = 0;
            for n in (0..1 << 26)
                .step_by(99_991)
                .chain([NARROW_LIMIT, NARROW_LIMIT + 1])
            {
                max_tiles = max_tiles
                    .max(n.div_ceil(wide.at(n).1.keys()))
                    .max(n.div_ceil(any.at(n).1.keys()));
                assert!(any.max_tiles(n) >= n.div_ceil(wide.at(n).1.keys()));
            }
            assert!(any.max_tiles(1 << 26) >= max_tiles);
        }
    }
}
