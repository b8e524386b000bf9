//! The constants of the engine on `wgpu`.

/// Tests of one launch. At the 1 to 5 billion tests a second of an integrated GPU a launch takes 50
/// to 270 ms, and systems end what takes some seconds.
pub(super) const PIECE_TESTS: u64 = 1 << 28;

/// Buffers that are too small grow by one part in this many beyond what is needed, so that frames
/// that grow slowly do not grow them each time.
pub(super) const GROWTH_SHARE: u64 = 4;

/// A list of pairs is expected to grow by at most one part in this many from update to update.
pub(super) const EXPECTED_GROWTH_SHARE: u64 = 4;
