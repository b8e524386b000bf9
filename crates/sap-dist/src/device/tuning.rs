//! What was tuned for ranks on devices, or chosen without a measurement.

use std::time::Duration;

/// The least number of boxes for each one that is brought by another rank than its home, so that
/// every rank searches all boxes that it brings: if many are elsewhere, they would be searched
/// twice. Not measured.
pub(super) const MIN_BOXES_PER_AWAY: u64 = 16;
/// The groups of ranks that send to a cell: eight, as a cell of a plane has neighbours. Not
/// measured.
pub(super) const GROUPS: usize = 8;
/// The max boxes of two sets that are swept without a plan. On two H200s, with 2.5 million boxes of
/// a rank that move far and 13,000 copies, an update takes 1.17 ms with a sweep and 2.96 with a
/// planned search. Where boxes move little the sweep takes 0.1 ms more (`bench_devices`).
pub(super) const MAX_UNPLANNED: usize = 1 << 17;
/// Blocks of a multiprocessor that survey the boxes and write the records: as many as the largest
/// devices hold at once. Not measured.
pub(super) const BLOCKS: u32 = 8;

/// A piece of a sort has at least this many bytes on average, unless a rank has fewer: a round
/// costs all ranks some gathers. At an earlier state a sort of 2^26 keys on each of two H200s took
/// 1.29 ms, and 1.73 with pieces of 16 MiB.
pub(super) const MIN_PIECE_BYTES: u64 = 64 << 20;
/// The max pieces of a rank. What is done with the last one overlaps with nothing, so it should be
/// a small part. At an earlier state a sort of 2^28 keys on each of two H200s took 4.1 ms, with 16
/// pieces 4.3, and with 32, 4.7.
pub(super) const MAX_PIECES: u64 = 8;

/// From this many keys of 32 bits of all ranks on they are sorted by segments. On two H200s a sort
/// of 2^24 in all takes 0.36 ms, with values of 4 bytes 0.51; by merges 0.39 and 0.54. Fewer are
/// not measured.
pub(super) const MIN_SEGMENTED: u64 = 1 << 24;
/// The keys of a segment on average, if the bits allow it: so many, or up to twice as many. Not
/// measured.
pub(super) const MEAN_SEGMENT: u64 = 2048;
/// After a sort by segments was in vain, so many of that type are not tried so. Not measured.
pub(super) const NOT_TRIED: u32 = 15;
/// Threads of the blocks that sort a segment, and keys of a thread: the first shape that the
/// largest segment fits is taken. At an earlier state a sort of 2^24 keys on each of two H200s took
/// 0.55 ms, without the least shape 0.64.
pub(super) const SEGMENT_SHAPES: [(u32, u32); 3] = [(256, 32), (512, 24), (1024, 24)];

/// The bytes that are copied between the device and messages at once. Not measured.
pub(super) const STAGING: usize = 16 << 20;
/// The time for which a wait for NCCL asks without a pause. No measurement is behind these two: an
/// exchange of some megabytes takes less than the first, and the second is small beside it.
pub(super) const EAGER: Duration = Duration::from_millis(2);
pub(super) const PAUSE: Duration = Duration::from_micros(50);
