//! The shapes and limits of Bucket Sort. Comments name the constants of the kernels.

/// Threads of a block that sorts a tile: `TILE_THREADS` in bucket_tile.cuh. Not measured.
pub(super) const TILE_THREADS: u32 = 512;

/// Keys of each thread, by bytes of a key (4, 8), then for plain and indexed tiles: `PLAIN_ITEMS`,
/// `INDEXED_ITEMS` in bucket_tile.cuh. The largest odd numbers that fit the 64 KiB of shared memory
/// that a block has on Turing.
pub(super) const ITEMS: [[u32; 2]; 2] = [[31, 15], [15, 11]];

/// Bytes of an element on chip, in the same order: the key, and in indexed tiles its index, which
/// takes 4 bytes beside keys of 4 and 2 bytes beside keys of 8.
pub(super) const ELEMENT_BYTES: [[u32; 2]; 2] = [[4, 8], [8, 10]];

/// Max buckets: `MAX_BUCKETS` in bucket_divide.cuh. Not measured.
pub(super) const MAX_BUCKETS: u64 = 2048;

/// Max keys from one sample to the next. With more, bucket sizes differ more; with fewer, there are
/// more samples to sort. Not measured.
pub(super) const MAX_SPACING: u64 = 64;

/// Min keys from one sample to the next, unless buckets have [`PART_LEVELS`]. Closer samples cost
/// more time in step 4 than they save; larger buckets are the better way. Its figures are not
/// recorded.
pub(super) const MIN_SPACING: u64 = 32;

/// Min keys from one sample to the next if buckets have [`PART_LEVELS`], because larger ones could
/// not be split into parts. Not measured.
pub(super) const MIN_SPACING_OF_PARTS: u64 = 8;

/// An average bucket has up to two to this power tiles if it is to be split into parts. The largest
/// bucket has at most twice as many. Not measured.
pub(super) const PART_LEVELS: u32 = 4;

/// Max sorted tiles of a bucket that is split into parts: `MAX_RUNS` in bucket_sort.cu. Each is a
/// lane of a warp, which fixes it.
pub(super) const MAX_RUNS: u64 = 32;

/// How full the tiles of an average bucket are, in percent. The rest is for larger buckets.
/// Not measured.
pub(super) const FILL: u64 = 92;

/// Max groups of sublists whose bucket sizes step 7 adds up separately. Not measured.
pub(super) const MAX_GROUPS: u64 = 128;
