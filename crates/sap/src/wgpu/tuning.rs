//! The constants of the engine on `wgpu`.

use radsweep_kernels::wgsl::WORKGROUP;

/// Tests of one launch. At the 1 to 5 billion tests a second of an integrated GPU a launch takes 50
/// to 270 ms, and systems end what takes some seconds. The rate is an estimate.
pub(super) const PIECE_TESTS: u64 = 1 << 28;

/// Buffers that are too small grow by one part in this many beyond what is needed, so that frames
/// that grow slowly do not grow them each time. Not measured.
pub(super) const GROWTH_SHARE: u64 = 4;

/// A list of pairs is expected to grow by at most one part in this many from update to update.
/// Not measured.
pub(super) const EXPECTED_GROWTH_SHARE: u64 = 4;

/// The max number of frames that follow one plan where the boxes stay on the device. A plan takes
/// the host a wait and up to a millisecond. Not measured.
pub(super) const PLAN_FRAMES: u32 = 16;

/// A plan is kept while the number of boxes differs by at most one part in this many. Not measured.
pub(super) const PLAN_SIZE_SHARE: usize = 8;

/// A plan is kept while a frame has at most this many times the tests of its first. Not measured.
pub(super) const MAX_TEST_GROWTH: u64 = 2;

/// The copies of boxes in columns are expected to grow by at most one part in this many from update
/// to update: memory for more is sorted with them. Not measured.
pub(super) const COPY_GROWTH_SHARE: u64 = 32;

/// A new plan is expected to make at most one part in this many more copies and tests than the
/// last. Not measured.
pub(super) const NEW_PLAN_SHARE: u64 = 2;

/// Copies, tests or pairs that a frame may have beyond the expected share. Not measured.
pub(super) const FREE_GROWTH: u64 = 256;

/// Cells for a copy of a box, at most: the fewer, the more tests are made in vain. Not
/// measured.
pub(super) const CELLS_A_COPY: u64 = 1;

/// The max number of cells: 16 MiB of counters. Not measured.
pub(super) const MAX_CELLS: u64 = 1 << 22;

/// A plan is followed in cells while they have at most this many times the tests of a sort. Not
/// measured.
pub(super) const MAX_CELL_TESTS: u64 = 2;

/// The threads of a launch that makes few tests: half of those that an H200 runs at once. Not
/// measured.
pub(super) const FULL_THREADS: u32 = 1 << 17;

/// The tests of such a thread, at least: it searches for the first of them. Not measured.
pub(super) const MIN_THREAD_TESTS: u32 = 8;

/// The elements of a block of cells or rows, at least: four for each thread. Not measured.
pub(super) const MIN_BLOCK: u64 = 4 * WORKGROUP as u64;

/// The number of batches that a bind group is kept without being used. Two scenes and three lists
/// take turns. Not measured.
pub(super) const KEPT_BATCHES: u64 = 8;
