//! The CPU engine's constants, with the measurement behind each (2-core AMD EPYC with AVX2 unless
//! said).

/// Records that one task sweeps. The longest run is n tests of about 0.3 ns, so a task of 64 runs
/// stays below 20 ms at n = 10^6, and stealing tasks keeps threads even whatever the runs.
pub(super) const SWEEP_TASK: usize = 64;

/// Records of a column that one thread sorts and sweeps: at most 8 million tests, about 2 ms.
pub(super) const LARGE_COLUMN: usize = 4096;

/// The sum of the squares of groups' sizes, for each of their members, up to which insertion sorts
/// them: 4 comparisons each, about 5 ns.
pub(super) const MAX_SQUARES: u64 = 16;

/// Boxes (or records) that one task validates, gathers or writes: large enough to hide the task,
/// small against L2.
pub(super) const STREAM_TASK: usize = 4096;

/// Pairs in one block of results: 256 KiB, so that blocks are ordered and freed one by one.
pub(super) const PAIR_BLOCK: usize = 32 * 1024;

/// Pairs that a task reserves at first, so that small scenes stay small.
pub(super) const FIRST_BLOCK: usize = 256;

/// Pairs of one bucket when they are put in order: 8 Ki pairs (64 KiB) sort within L2.
pub(super) const PAIR_BUCKET: u64 = 8 * 1024;

/// Pairs of one box from which, and below which, the rank of each is counted instead of sorted.
pub(super) const INSERTED_ROW: usize = 8;
/// See [`INSERTED_ROW`].
pub(super) const COUNTED_ROW: usize = 160;

/// Pairs of a group of a longer row, were they spread evenly.
pub(super) const GROUP: usize = 32;

/// Pairs for each box below which all rows of a bucket are sorted by one insertion sort: 5 ns a
/// pair less.
pub(super) const SPARSE: usize = 4;

/// Boxes up to which a frame is swept on the thread that asks, without a pool; below
/// [`MIN_RESTING`]. Microseconds of a frame of uniform boxes that all move, before and after, on a
/// machine that was doing other work too: 16 to 3 with 10 boxes, 32 to 18 with 100, 58 to 42 with
/// 300, 156 to 135 with 1,000, 235 to 214 with 1,500, 327 to 310 with 2,000. From about there on
/// two threads pay where both are idle.
pub(super) const SMALL_FRAME: usize = 1000;

/// Pairs up to which nobody asks how much memory there is: 8 MiB, 32 with the lists beside.
pub(super) const CARED_PAIRS: u64 = 1024 * 1024;

/// Bytes that a box may take beside its pairs while a frame is swept: its record, its key and what
/// they are sorted in.
pub(super) const BOX_BYTES: u64 = 128;

/// Pairs below which one sort on one thread beats partitioning.
pub(super) const FEW_PAIRS: usize = 16 * 1024;

/// Candidates that `Endpoints` takes from y to z at once: 32 KiB, so the list stays in L1.
pub(super) const OVERLAP_BLOCK: usize = 4096;

/// Pairs that chunked delivery holds at once: the min (32 MiB), and that for each box.
pub(super) const ROUND_PAIRS: u64 = 4 * 1024 * 1024;
pub(super) const ROUND_PAIRS_PER_BOX: u64 = 4;

/// Chunked delivery tests all rows against all when one in this many pairs overlaps: a row test
/// costs 0.25 ns, ordering a pair 10 ns.
pub(super) const DENSE: u64 = 40;

/// Columns of a box up to which it is not asked whether it is cheaper on its own.
pub(super) const FEW_COPIES: u64 = 16;

/// Copies for each box, on average, that columns may take: 8 copies are 320 bytes.
pub(super) const MAX_COPIES: u64 = 8;

/// Pairs that one task of dense rows may find, a single longer row apart: 512 KiB, read again while
/// still in cache.
pub(super) const DENSE_TASK_PAIRS: usize = 64 * 1024;

/// The min number of boxes left out of an incremental update, and the max share of a frame that may
/// have changed. Time of both threads with 10^5 uniform boxes: 1.0 ms with a hundredth changed
/// (listed; 1.7 compared), 6.5 with a tenth, 14 with a quarter, 11 swept in full.
pub(super) const MIN_RESTING: u64 = 1024;
/// See [`MIN_RESTING`].
pub(super) const MAX_CHANGED: f64 = 1.0 / 6.0;

/// Boxes that are looked at to tell whether many have changed.
pub(super) const SAMPLE: usize = 128;

/// Frames of few changes before the tree is built, and the max where trees did not last. Building
/// one takes about as long as a frame.
pub(super) const MIN_QUIET_FRAMES: u32 = 2;
/// See [`MIN_QUIET_FRAMES`].
pub(super) const MAX_QUIET_FRAMES: u32 = 1024;

/// The part of a tree's leaves that is free for boxes to come: one in this many.
pub(super) const FREE_SLOTS: usize = 16;

/// What a frame costs in tests of two boxes, as the tree makes them: for each box in a frame that
/// is swept or of a new tree, and for each box looked for in the tree beside its tests of nodes.
pub(super) const SWEPT_COST: u64 = 100;
/// See [`SWEPT_COST`].
pub(super) const MEET_COST: u64 = 120;

/// What a sweep may cost, in tests of about 0.3 ns, before the tree takes its place: for each box
/// half of what the tree costs, so that what is tested in vain leaves both together below twice
/// what parry's tree costs (1.8; with all that the tree costs, 1,300, it was 2.6), and for each
/// pair what that costs.
pub(super) const BOX_BUDGET: i64 = 700;
/// See [`BOX_BUDGET`].
pub(super) const PAIR_BUDGET: i64 = 30;
/// What an overlap costs that filters drop, in tests: 7 to 9 ns.
pub(super) const DROPPED_COST: u64 = 25;

/// Boxes that one task looks for in a tree, of about 0.3 us each.
pub(super) const MEET_TASK: usize = 256;

/// Boxes that go down the tree together, and the nodes up to which that is worth it: a third less
/// than one by one.
pub(super) const MEET_GROUP: usize = 8;
/// See [`MEET_GROUP`].
pub(super) const MAX_NODES: usize = 32;
