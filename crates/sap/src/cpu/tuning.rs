//! The tuning constants of the CPU engine, with the measurement behind each. Measured on a 2-core
//! AMD EPYC with AVX2 unless said otherwise. A *test* is one box against another in a sweep: about
//! 0.3 ns of one thread, the unit of all costs here. A *test of a tree* is one of a node or of
//! a box in it, the unit of the costs of incremental updates.
//!
//! Where nothing was measured, the line says so, and what bounds the constant.

use crate::policy::Limits;

// ---- Tasks and memory ----

/// Boxes, records, leaves or pairs that one task checks, gathers, sorts or writes, and up to which
/// one thread does so without a task: large enough to hide the cost of the task, small against L2.
/// Not measured.
pub(super) const STREAM_TASK: usize = 4096;

/// Max boxes in a frame that is swept on the caller's thread, without a pool. Incremental updates
/// begin above it, with [`MIN_RESTING`] boxes at rest. Microseconds of a frame of uniform boxes
/// that all move, with and without a pool, on a busy machine where a second thread helps little: 16
/// and 3 with 10 boxes, 32 and 18 with 100, 58 and 42 with 300, 156 and 135 with 1,000, 327 and 310
/// with 2,000. The difference is two changes of threads, 20 us, a seventh of a frame of 1,000.
pub(super) const SMALL_FRAME: usize = 1000;

/// Max boxes in a frame that is swept on the caller's thread, but for its parallel steps, where the
/// pool has several threads; with one thread it is [`STREAM_TASK`]. Microseconds of a frame that
/// follows another program's turn, on the pool of two threads and on the caller's: 82 and 52 with
/// 2,029 boxes of 4 pairs, 173 and 113 with 1,281 of 4,268, 262 and 184 with 1,900 of 6,222, 163
/// and 190 with 2,029 of 6,199.
pub(super) const MEDIUM_FRAME: usize = 2048;

/// Max boxes that one thread reads, in 13 us; two changes of threads take 15 to 20. Where the pool
/// has one thread, a frame of so many stays on the caller's thread while there is a kept tree.
pub(super) const READ_HERE: usize = 2 * STREAM_TASK;

/// Max boxes of a neighbour list that is updated on the caller's thread: with 3,000, waking the
/// pool took 60 of 100 us. Larger lists have parallel steps.
pub(super) const SMALL_LIST: usize = STREAM_TASK;

/// Number of entries ahead that a gather in index order prefetches. Gathering 10^6 boxes on two
/// threads takes 27 ms without prefetching, 8 ms with it.
pub(super) const PREFETCH_DISTANCE: usize = 16;

/// A list that has to grow from one frame to the next gets 1 / `GROWTH` more than it needs. Where
/// towers slowly fall apart, and each frame has a few more copies of boxes than the last, the
/// `sort` stage of 10^5 boxes takes 0.5 ms instead of 1.8.
pub(crate) const GROWTH: usize = 32;
/// The max of that: 256 KiB of pairs, little against what the limit on memory leaves free. It
/// bounds memory only: the same towers take 7 ms at best with 0, 4 Ki, 32 Ki, and without a max.
pub(crate) const MAX_GROWTH: usize = 32 * 1024;

/// Max pairs that are stored before the available memory is queried: 8 MiB, 32 MiB with all lists.
/// The first call, and a call after an update with more than half as many pairs, queries it before
/// the search, unless the frame cannot have more pairs. Not measured.
pub(super) const UNCHECKED_PAIRS: u64 = 1024 * 1024;

/// A first search may store one part in this many of the limit, or one in this many more pairs than
/// the last call had. Not measured.
pub(super) const FIRST_SHARE: u64 = 4;

/// Bytes that a box takes during a sweep: its record, its key and the memory of their sort. Added
/// up, not measured.
pub(super) const BOX_BYTES: u64 = 128;

/// Min vertices that one task reduces: 192 KiB of them, so that the cost of the task is hidden. Not
/// measured.
pub(crate) const MESH_TASK: usize = 16 * 1024;

// ---- The plan: costs in tests ----

/// A record of `Sweep`, which is sorted by its key and gathered: about 33 ns.
pub(super) const RECORD_COST: f64 = 110.0;
/// A box of `Subdivided`, whose columns are found and counted: about 15 ns.
pub(super) const COLUMN_BOX_COST: f64 = 50.0;
/// A copy of a box in a column, which is written and sorted: about 40 ns.
pub(super) const COPY_COST: f64 = 130.0;
/// Milliseconds of one thread for a test.
pub(super) const TEST_MS: f64 = 3e-7;
/// The costs on `wgpu` of a record, a box in columns, a copy and a column. A GPU makes tests faster
/// than it sorts: an H200 (2026-11-23) 50 a nanosecond, and it takes some 0.3 ns to make, sort and
/// arrange a copy.
#[cfg(feature = "wgpu")]
pub(super) const WGPU_COSTS: [f64; 4] = [10.0, 4.0, 16.0, 0.0];

/// Sizes of the sample: the min, the max, and the boxes of the frame for each sampled one. Larger
/// frames are worth a better estimate: 2,048 boxes stand for 2 million pairs. Not measured.
pub(super) const MIN_PLAN_SAMPLE: usize = 192;
/// The max of that sample ([`MIN_PLAN_SAMPLE`]).
pub(crate) const MAX_PLAN_SAMPLE: usize = 2048;
/// The boxes of a frame for each of that sample ([`MIN_PLAN_SAMPLE`]).
pub(super) const BOXES_PER_SAMPLED: usize = 128;
/// Sampled candidates that rate columns, for each box of the sample. Not measured.
pub(super) const RATED_PER_SAMPLED: usize = 8;

/// `Auto` sweeps without rating columns below this many tests for each box, plus this many for the
/// frame. That is what rating costs: 9 ns a box and 60 us.
pub(super) const RATING_TESTS_PER_BOX: f64 = 30.0;
/// The tests for the frame ([`RATING_TESTS_PER_BOX`]).
pub(super) const RATING_TESTS: f64 = 2e5;
/// Min boxes for which columns along all axes are rated, not only along the axis of the fewest
/// candidates. Not measured.
pub(super) const RATE_ALL_AXES: usize = 80_000;

/// Max frames that follow one plan while boxes move by less than their size. With a plan for each
/// frame, the `bounds` stage takes 0.73 ms of one thread with 10^5 uniform boxes, 76 us with 6,000;
/// without, 0.15 ms and 9 us. The number itself is not measured: a plan costs a tenth of a frame.
pub(super) const PLANNED_FRAMES: u32 = 16;

/// Max parts of an axis. 256 x 256 columns serve 10^7 boxes, and their write positions stay in
/// cache. Not measured.
pub(super) const MAX_PARTS: f64 = 256.0;
/// Min boxes for each column. Uniform boxes have a hundred in the best columns, and empty columns
/// cost time too. Not measured.
pub(super) const MIN_PER_COLUMN: f64 = 16.0;
/// Width of the best columns of uniform boxes, in typical boxes side by side. Its figures are not
/// recorded.
pub(super) const COLUMN_WIDTH: f64 = 4.0;
/// A cut is moved if that divides the number of boxes that reach over it by more than this. A
/// smaller gain is as likely an accident of the sample. In towers of 100 unit cubes a cube apart,
/// 10^5 boxes that all walk take 2.9 ms instead of 4.1, with a ninth of the tests; in uniform boxes
/// nothing changes.
pub(super) const CROSSING_GAIN: usize = 4;
/// Min sampled boxes that reach over an even cut that is moved. Without it, one layer of 10^5 boxes
/// takes three times the tests. See [`CROSSING_GAIN`].
pub(super) const MIN_CROSSING: usize = 8;
/// The cost of a column: its counters, and the start of a sort and a sweep. It bounds the number of
/// columns where gaps leave few tests. Where all boxes walk by 10 %, 10^5 in towers take 3.3 ms at
/// best with 0 to 200, 4.3 with 800 or 3,200, and 10^4 uniform ones 0.53 ms with 0 to 800, 0.62
/// with 3,200. Uniform boxes and a layer of 10^5 get the same columns with all of these.
pub(super) const COLUMN_COST: f64 = 200.0;
/// Narrower and wider columns are rated until they cost so many times the best ones, and at most so
/// many widths, each root two times the last. Not measured.
pub(super) const WORSE_COLUMNS: f64 = 1.1;
/// The max number of those widths ([`WORSE_COLUMNS`]).
pub(super) const RATED_WIDTHS: i32 = 20;
/// Steps of the table that finds a column, for each cut. Not measured.
pub(super) const STEPS_PER_CUT: usize = 8;
/// Max copies of one box that the rating of columns counts. A box of more may be oversized. Not
/// measured.
pub(super) const MAX_CHARGED_COPIES: u64 = 64;

/// Frames that use the tree after one whose sweep exceeded its budget: at first, and the max. Such
/// a sweep has wasted half the cost of a tree. Not measured.
pub(super) const MIN_TREE_FRAMES: u32 = 4;
/// The max of those frames ([`MIN_TREE_FRAMES`]).
pub(super) const MAX_TREE_FRAMES: u32 = 256;

// ---- The sweep ----

/// Records that one task sweeps. The longest run is n tests, so a task of 64 runs stays below 20 ms
/// at n = 10^6, and stealing tasks keeps threads even whatever the runs. Not measured.
pub(super) const SWEEP_TASK: usize = 64;

/// Max records of a column that one thread sorts and sweeps: at most 8 million tests, about 2 ms.
/// The limit is not measured.
pub(super) const LARGE_COLUMN: usize = 4096;

/// Insertion sorts groups while the sum of the squares of their sizes is at most this many times
/// the number of their members: 4 comparisons for each, about 5 ns. The limit is not measured.
pub(super) const MAX_SQUARES: u64 = 16;

/// Min copies of a box for which a sweep against all boxes is considered instead. Not measured.
pub(super) const MIN_OVERSIZED_COPIES: u64 = 16;

/// Max copies for each box, on average, that columns may take: 8 copies are 256 bytes. Not
/// measured.
pub(super) const MAX_MEAN_COPIES: u64 = 8;
/// Copies that the columns of any frame may take in addition: 32 MB. Not measured.
pub(super) const FREE_COPIES: u64 = 1_000_000;

/// Candidates that `Endpoints` takes from y to z at once: 32 KiB, so the list stays in L1. Not
/// measured.
pub(super) const OVERLAP_BLOCK: usize = 4096;

/// What a sweep may cost before the tree takes over, for each box. It is half of what the tree
/// costs, so that a sweep that is given up and the tree take less than twice the time of parry's
/// tree (1.8 times; 2.6 times with a budget of 1,300, all that the tree costs).
pub(super) const BOX_BUDGET: i64 = 700;
/// What a sweep may cost in addition for each pair: the cost of a pair, 9 ns.
pub(super) const PAIR_BUDGET: i64 = 30;
/// The cost of an overlap that filters drop: 7 to 9 ns.
pub(super) const DROPPED_COST: u64 = 25;

// ---- The kept tree ----

/// Min boxes of a kept tree. Microseconds of one thread for uniform boxes of 1.3 pairs that move by
/// 20 %, all against all and by the tree: 3.7 and 2.5 with 64, 7.6 and 4.3 with 150, 16 and 8.5
/// with 300, 30 and 15 with 480. Below, asking whether boxes are near their places costs too much.
pub(super) const MIN_KEPT_FRAME: usize = 48;

/// Pairs of nodes of 64 boxes that one task joins. Not measured.
pub(super) const JOIN_TASK: usize = 32;

/// A box is large, and in a leaf of large ones, beyond this many times the typical size. Not
/// measured.
pub(super) const LARGE_BOX: f32 = 8.0;
/// Sampled boxes whose median is the typical size. Not measured.
pub(super) const SIZE_SAMPLE: usize = 63;

/// The tree is due after one frame of boxes near where they were. A tree that served fewer than 8
/// frames for each frame of waiting doubles the next wait, up to 256. Not measured.
pub(super) const KEPT_LIMITS: Limits = Limits {
    min_quiet_frames: 1,
    max_quiet_frames: 256,
    worth: 8,
};

/// The costs of a frame by the tree, in tests of two boxes, of one thread: of a box, which is read
/// and written to its leaf, 5.4 ns; of two tests in nodes, 0.9 ns (0.5 ns in 8,041 boxes of few
/// pairs, 1.6 ns in 10^5 uniform ones: 0.6 of what nested loops took, by the ratio of both on
/// another machine); of a pair, 3 ns.
pub(super) const KEPT_BOX_COST: u64 = 18;
/// The cost of two tests in nodes ([`KEPT_BOX_COST`]).
pub(super) const JOINED_COST: u64 = 3;
/// The cost of a pair ([`KEPT_BOX_COST`]).
pub(super) const KEPT_PAIR_COST: u64 = 10;
/// What is added to the expected cost of a frame by the tree when a neighbour list is compared with
/// it. With more, more small scenes get a list. Microseconds of one thread for boxes that move by a
/// tenth: with 100 in clusters 6.7 with 0, 4.1 with 4,000 to 20,000; with 300 uniform ones 19 with
/// 0 to 8,000, 20 with 12,000, 25 with 20,000.
pub(super) const KEPT_FRAME_COST: u64 = 8000;
/// The tests in nodes that a tree is expected to take, for each box and for each pair. A box takes
/// 22 where it has hardly a pair, 29 with 1.3 pairs and 33 with 5 in a plane, 53 with 3.5.
pub(super) const JOINED_TESTS: [u64; 2] = [20, 3];
/// What a frame by a tree may be expected to cost, in frames by a plan: building it costs several
/// of these. Not measured.
pub(super) const MAX_KEPT_COST: f32 = 0.8;
/// The cost of building the tree for each box, in tests in nodes: 100 to 130 ns.
pub(super) const HALVED_COST: u64 = 150;

// ---- Pairs and their order ----

/// Pairs in one block of results: 256 KiB, so that blocks are ordered and freed one by one. Not
/// measured.
pub(super) const PAIR_BLOCK: usize = 32 * 1024;

/// Pairs that a task reserves at first, so that small scenes stay small. Not measured.
pub(super) const FIRST_BLOCK: usize = 256;

/// Pairs of a sorted list that one task compares: 512 KiB. Not measured.
pub(super) const PAIR_TASK: usize = 64 * 1024;

/// Min pairs of a part of a list that several threads splice: 128 KiB. It bounds what parts write
/// over each other. Not measured.
pub(super) const SPLICE_PART: usize = 16 * 1024;
/// Max parts for each thread, so that parts that take longer hold up no others. Not measured.
pub(super) const SPLICE_TASKS: usize = 4;

/// The pairs of a neighbour list are spliced where fewer than one in this many differ from the last
/// ones; else all are written again. Both cost about the same: in a cloth that walks by 1 %, the
/// `order` stage takes 6.5 ms with 4, 5.2 to 5.4 with 8 to 32; by 0.05 %, 3.5 ms with 4 to 64, 4.1
/// if nothing is spliced. With 10^5 uniform boxes it takes 0.11 to 0.15 ms with any.
pub(super) const SPLICED_SHARE: usize = 16;

/// Pairs of two sorted lists that are compared at once where the lists agree. Not measured.
pub(super) const COMPARED_BLOCK: usize = 8;

/// Max pairs for which one sort on one thread beats partitioning. Its figures are not recorded.
pub(super) const SERIAL_PAIRS: usize = 16 * 1024;

/// Pairs in one bucket of a partition: 8 Ki pairs (64 KiB) sort within L2. Not measured.
pub(super) const PAIR_BUCKET: u64 = 8 * 1024;

/// Max threads, and boxes, for which pairs are counted and written by row rather than by bucket, if
/// there are at least [`SPARSE_ROWS`] for each box: one pass less. Of one thread the `order` stage
/// of 4.5 M pairs takes 61 ms instead of 69, of 770,000 pairs 7.0 instead of 10.2, of 133,000 1.3
/// instead of 2.0, of 30,000 0.29 instead of 0.43; of two threads 35 and 37, 3.5 and 6.2, 0.84 and
/// 1.04, 0.15 and 0.21; of 1.9 M pairs of 250,000 boxes in random order, 26 and 30 of one. More
/// threads are not measured: one thread sums the counts of all, each of which is to fit in L2.
pub(super) const MAX_ROW_THREADS: usize = 4;
/// Those boxes ([`MAX_ROW_THREADS`]).
pub(super) const MAX_ROW_BOXES: usize = 1 << 18;

/// A bucket of more pairs is sorted on all threads. Not measured.
pub(super) const LARGE_BUCKET: u64 = 64 * PAIR_BUCKET;

/// Max number of buckets, so that the write positions of one block stay in cache. Not measured.
pub(super) const MAX_BUCKETS: u64 = 4096;

/// Min pairs of one box whose ranks are counted; fewer are sorted by insertion. Not measured.
pub(super) const MIN_COUNTED_ROW: usize = 8;
/// Min pairs of one box that are divided into groups; the ranks of fewer are counted. Not measured.
pub(super) const MIN_GROUPED_ROW: usize = 160;

/// Mean number of pairs in such a group. Not measured.
pub(super) const ROW_GROUP: usize = 32;

/// Below this many pairs for each box, all rows of a bucket are sorted by one insertion sort: 5 ns
/// a pair less.
pub(super) const SPARSE_ROWS: usize = 4;

// ---- Chunks ----

/// Pairs that chunked delivery holds at once: at least this many (32 MiB), and this many for each
/// box. Not measured.
pub(crate) const MIN_ROUND_PAIRS: u64 = 4 * 1024 * 1024;
/// Those pairs for each box ([`MIN_ROUND_PAIRS`]).
pub(crate) const ROUND_PAIRS_PER_BOX: u64 = 4;

/// Chunked delivery tests every box against all others if more than one in this many of those tests
/// finds a pair: such a test costs 0.25 ns, ordering a pair 10 ns.
pub(super) const DENSE_SHARE: u64 = 40;

/// Max pairs that one task of dense rows may find, unless a single row has more: 512 KiB, read
/// again while still in cache. Not measured.
pub(super) const DENSE_TASK_PAIRS: usize = 64 * 1024;

/// The rows of the first round of chunks find this part of the limit if all rows have the mean
/// number of pairs. A round that found too much is repeated with rows for [`RETRY_FILL`], and each
/// next one aims at [`ROUND_FILL`] with at most [`MAX_ROUND_GROWTH`] times as many rows. Not
/// measured.
pub(super) const FIRST_FILL: f64 = 1.0 / 3.0;
/// The part of the limit that a repeated round finds ([`FIRST_FILL`]).
pub(super) const RETRY_FILL: f64 = 0.8;
/// The part of the limit that other rounds find ([`FIRST_FILL`]).
pub(super) const ROUND_FILL: f64 = 0.7;
/// The max growth of a round in rows ([`FIRST_FILL`]).
pub(super) const MAX_ROUND_GROWTH: f64 = 2.0;

// ---- Incremental updates ----

/// The min number of unchanged boxes for an incremental update, and the max share of a frame that
/// may have changed. Milliseconds of two threads with 10^5 uniform boxes: 1.0 with a hundredth
/// changed (listed; 1.7 compared), 6.5 with a tenth, 14 with a quarter, 11 for a full update. The
/// min is not measured.
pub(super) const MIN_RESTING: u64 = 1024;
/// The max share of boxes that may have changed ([`MIN_RESTING`]).
pub(super) const MAX_CHANGED: f64 = 1.0 / 6.0;

/// Boxes of a sample that tells whether too many have changed, before all are compared. Not
/// measured.
pub(super) const COMPARED_SAMPLE: usize = 128;

/// The tree is due after two quiet frames, and one that did not serve a frame for each frame waited
/// doubles the wait, up to 1,024. Building one takes about as long as a frame. Not measured.
pub(super) const TREE_LIMITS: Limits = Limits {
    min_quiet_frames: 2,
    max_quiet_frames: 1024,
    worth: 1,
};

/// One slot of a tree in this many is free for boxes that are added. Not measured.
pub(super) const FREE_SLOTS: usize = 16;

/// The cost of a full update, or of building a tree, for each box; in tests of a tree. Its figures
/// are not recorded.
pub(super) const FULL_COST: u64 = 100;
/// The cost of a search for one box beside its tests; in tests of a tree. Its figures are not
/// recorded.
pub(super) const SEARCH_COST: u64 = 120;
/// Tests of a box count as excess beyond this many times those of the first search. Not measured.
pub(super) const EXPECTED_TESTS: u64 = 2;

/// Boxes that one task searches a tree for, about 0.3 us each. Not measured.
pub(super) const SEARCH_TASK: usize = 256;

/// Boxes that go down the tree at the same time. A search with 16 or 32 takes as long.
pub(super) const SEARCH_GROUP: usize = 8;
/// The boxes of a group go down as one if the slots of the first and the last differ by at most
/// this, and while they touch at most [`MAX_GROUP_NODES`] nodes. A search for all of 10^4 to 10^5
/// boxes takes 5 to 9 % less by it; one for every hundredth box, whose groups have 700 slots, would
/// take 8 % more. Values between are not measured.
pub(super) const MAX_GROUP_SLOTS: u32 = 128;
/// The max nodes that a group touches as one ([`MAX_GROUP_SLOTS`]). Not measured.
pub(super) const MAX_GROUP_NODES: usize = 32;
/// Max nodes that are tested before any of those below them, whose memory is then asked for. Not
/// measured.
pub(super) const OPEN_NODES: usize = 64;

/// A box that jumped is looked for in all that lies between, up to as many tests as there are
/// boxes. This is the max for each changed box; one that did not jump takes about 300. With 1,000
/// of 10^5 uniform boxes listed, an update takes 0.52 ms this way and 0.73 the other way where 3 of
/// them jump (300 tests each), 0.71 and 0.78 where 10 do, 1.2 and 1.0 where 30 do, 2.6 and 1.2
/// where 100 do.
pub(super) const MAX_JUMP_TESTS: usize = 1024;

// ---- The order of boxes in a tree (`packing.rs`) ----

/// Max boxes of the sample that is split, and the boxes for each of the sample. A sampled box takes
/// 0.4 us, ordering a box 0.1. The sizes themselves are not measured.
pub(crate) const PACKING_SAMPLE: usize = 2048;
/// The boxes for each of that sample ([`PACKING_SAMPLE`]).
pub(crate) const PER_SAMPLED: usize = 16;
/// Min sampled boxes in a part, on average. Not measured.
pub(crate) const MIN_GROUP: usize = 4;
/// Max boxes of one code that are not sorted further. Not measured.
pub(crate) const MAX_TIED: usize = 32;
/// Max boxes that the caller's thread orders alone. Not measured.
pub(crate) const SERIAL_PACKING: usize = 4096;

// ---- Queries ----

/// Max boxes for which one thread builds the tree, which takes about as long as the others take to
/// wake. Not measured.
pub(crate) const SERIAL_TREE: usize = 4096;
/// Nodes that one task makes. Not measured.
pub(crate) const NODE_TASK: usize = 512;

// ---- The neighbour list, and small frames ----

/// Max boxes in a frame that is tested all against all instead of swept. Microseconds of one thread
/// for a frame of uniform boxes that all move by 20 %, swept and all against all: with 1.3 pairs
/// each 24 and 20 with 300 boxes, 40 and 35 with 480, 53 and 52 with 640, 88 and 97 with 1,000;
/// with 0.1 pairs each 12 and 11 with 300, 18 and 20 with 480.
pub(super) const MAX_BRUTE_FRAME: usize = 480;

/// Sampled boxes over which the bytes of coarse bounds are spread. Not measured.
pub(super) const COARSE_SAMPLE: usize = 64;
/// So many mean deviations on each side of their mean: uniform boxes have two. Not measured.
pub(super) const COARSE_DEVIATIONS: f64 = 2.4;

/// Boxes up to which the boxes that left are tested against all others; beyond, a tree is searched.
/// Not measured.
pub(super) const MAX_LEFT_BRUTE: usize = SMALL_FRAME;

/// The max share of boxes that may leave their loosened ones in a frame. Not measured.
pub(super) const MAX_LEFT: f64 = 0.25;
/// As few boxes may always have left. Not measured.
pub(super) const FEW_LEFT: usize = 16;

/// A list is due after one frame of little motion. A list that served fewer than 4 frames for each
/// frame of waiting doubles the next wait, up to 256. Not measured.
pub(crate) const LIST_LIMITS: Limits = Limits {
    min_quiet_frames: 1,
    max_quiet_frames: 256,
    worth: 4,
};

/// Candidates of a new block, and the max: 8 KiB, so that an insertion moves 4 KiB. Not measured.
pub(super) const NEW_BLOCK: usize = 512;
/// The max candidates of a block ([`NEW_BLOCK`]).
pub(super) const FULL_BLOCK: usize = 1024;

/// Candidates that are tested at once, and number of those ahead whose second boxes are prefetched;
/// at most the bits of a mask. 10^6 boxes that walk by 1 % take 22 ms with 8, 18 with 16, 16 with
/// 32; 10^5 take the same with 16 and 32.
pub(super) const CANDIDATE_GROUP: usize = 32;

/// Min boxes of a list whose candidates are tested only when they are due. With 36,000 to 70,000
/// that walk by 1 % a frame takes the same with and without, and after a peer's turn, with cold
/// caches, 0.53 instead of 0.63 ms with 36,000.
pub(super) const TIMED_LIST: usize = LARGE_LIST;
/// The ticks in the step of half the boxes of a sample. With 8 ticks the longest wait is 10 frames,
/// and by the ninth two thirds of the candidates of 10^5 boxes were due at once; with 3 a fifth is
/// due in each frame.
pub(super) const STEP_TICKS: f32 = 3.0;
/// The share of due candidates beyond which all are tested and no times are kept for a while. With
/// 22 %, the `sweep` stage of 10^5 boxes takes 0.83 instead of 0.99 ms; with half to two thirds, in
/// the motion `game`, 1.97 instead of 1.71; with all, in `mixed-sizes`, 10.1 instead of 6.8.
pub(super) const MAX_DUE: f64 = 0.4;
/// The frames by whose mean that is judged: so many that one in which all are due does not decide.
/// Not measured.
pub(super) const DUE_FRAMES: u32 = 8;
/// The frames until times are kept again after that, and the max: each failure doubles them. Not
/// measured.
pub(super) const DUE_WAITS: [u32; 2] = [64, 1024];
/// Boxes whose moves are measured before those of them that left are found: both read them, the
/// second time from L1. Not measured.
pub(super) const MOVES_AT_ONCE: usize = 512;

/// A block drops stale candidates once one in this many is new: about as many are stale by then.
/// Not measured.
pub(super) const STALE_SHARE: usize = 8;

/// The max number of candidates, for each box and each pair of the last frame. Not measured.
pub(super) const MAX_CANDIDATES: u64 = 8;

/// The cost of a full update for each box beside its tests, in tests of two boxes: 25 to 60 ns in
/// one sweep, 45 to 75 ns in columns.
pub(super) const FULL_BOX_COSTS: [u64; 2] = [200, 220];
/// The cost of a full update for each pair, which is ordered: 14 ns of one thread where boxes have
/// 50 pairs each, as in a cloth.
pub(super) const FULL_PAIR_COST: u64 = 40;
/// The cost of a frame that is tested all against all, with its order: that of each box, and how
/// many pairs of boxes cost as much as a test. Microseconds of one thread: 1.9 with 30 boxes, 5.2
/// with 100, 10.3 with 200, 16 with 300, 29.5 with 480. With a cost of 50 and no more pairs than
/// tests, which is half of what 100 boxes take, these got no list: 5.6 instead of 2.6 where they
/// move by a tenth.
pub(super) const BRUTE_BOX_COST: u64 = 165;
/// The pairs of boxes that cost as much as a test there ([`BRUTE_BOX_COST`]).
pub(super) const BRUTE_PAIRS: u64 = 5;

/// Min boxes of a list that does not stay in the cache of one processor. Not measured.
pub(super) const LARGE_LIST: usize = 32 * 1024;
/// Min boxes of a list that does not stay in any cache. Not measured.
pub(super) const HUGE_LIST: usize = 512 * 1024;

/// The costs of an update by the list, in tests of two boxes: of a box, 12 ns of one thread; of a
/// candidate, 1.2 ns in a small list, 1.7 ns in a large one, 7 ns in one beyond all caches; of a
/// box that left, beside the tests that find its candidates, 300 ns if it is tested against all
/// others, 0.9 us if a tree is searched, 1.8 us in a large one. Where boxes walk by 1 %, the mean
/// of 10^5 is 1.3 ms of one thread where a box that left costs 1,000 candidates, as here, 1.55 ms
/// where it costs 670, 1.65 ms where it costs 330; that of 1,000 is 8.6 us where it costs 190, 10.2
/// where it costs 300.
pub(super) const LIST_BOX_COST: u64 = 40;
/// The cost of a candidate of small, large and huge lists ([`LIST_BOX_COST`]).
pub(super) const CANDIDATE_COSTS: [f32; 3] = [5.0, 6.0, 24.0];
/// The cost of a box that left, without a tree, with one, and with a large one ([`LIST_BOX_COST`]).
pub(super) const LEFT_COSTS: [f32; 3] = [1000.0, 3000.0, 6000.0];
/// What a new list may cost by the model, in full updates: building it costs several of these. Not
/// measured.
pub(super) const MAX_MODELLED_COST: f32 = 0.8;
/// Candidates whose list, 32 MB, does not stay in any cache, and what each costs in addition. With
/// 9.5 million in a cloth, one takes 5.7 ns.
pub(super) const LONG_LIST: f32 = 4e6;
/// That cost ([`LONG_LIST`]). With [`CANDIDATE_COSTS`], 3.9 of the 5.7 ns count.
pub(super) const LONG_LIST_COST: f32 = 7.0;
/// What each candidate of a box that left adds to that: 48 ns, most of it for the order of the
/// list. In a cloth of 49 pairs for each box, a box that left takes 10 us.
pub(super) const LEFT_CANDIDATE_COST: f32 = 160.0;

/// The cost of a box that left beside the tests that find its candidates and what these add: 0.2 us
/// in 20,000 boxes that have hardly any. It decides whether to go on with a list; [`LEFT_COSTS`]
/// decides how wide margins are.
pub(super) const LEAVING_COST: f32 = 600.0;
/// Sampled boxes whose candidates are counted among all others before a list is built, where the
/// kept tree is its rival. Building a list takes ten times as long. Not measured.
pub(super) const CANDIDATE_SAMPLE: usize = 16;
/// A list ends once it has cost more than this many frames by the kept tree, in so many frames in a
/// row. Of 8,041 boxes of a washer that walk by a tenth, one in 25 leaves its margin in each frame,
/// which takes 520 us by the list and 170 by the tree.
pub(super) const MAX_STEADY_COST: f32 = 1.25;
/// Those frames in a row ([`MAX_STEADY_COST`]). Not measured.
pub(super) const MAX_SLOW_FRAMES: u32 = 3;

/// What a list may cost beyond full updates before it is dropped, in full updates. Measured when
/// boxes that waited for their turn had no margins, so that all left once: if a fifth of 3,000
/// boxes moves in each frame, a frame took 60 us with 12, 540 us with 8 (back to back). Where lists
/// do not pay, because a third walks by 3 %, the mean of 60 frames was 9.5, 9.2 and 9.8 with 6, 12
/// and 24.
pub(super) const MAX_EXCESS: u64 = 12;

/// What candidates that are no pairs may cost before a list is rebuilt with smaller margins, in
/// full updates: about what that costs. 10^5 boxes in towers that move by up to 2.5 % take 2.3 ms
/// on average with 1, 2.5 with 2, 2.6 with 4, 3.3 with 8, 5.4 if none is rebuilt; uniform boxes
/// the same with all.
pub(super) const MAX_IN_VAIN: u64 = 2;

/// The min and the max number of steps by which boxes are loosened. For a walk of 1 %, 12 to 24
/// steps are best from 1,000 to 10^6 boxes with one or two pairs each: a frame of 10^5 takes 2.9 ms
/// with 8, 1.9 with 16 or 24, 2.5 with 32. The limits themselves are not measured.
pub(crate) const STEPS: [f32; 2] = [2.0, 64.0];
/// The min and the max factor by which that number changes at once. Not measured.
pub(crate) const STEPS_FACTOR: [f32; 2] = [0.7, 1.5];
/// The numbers of steps among which a new list chooses by a model of the costs. Not measured.
pub(super) const MODELLED_STEPS: [f32; 8] = [2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0];
/// Margins have shrunk once the number of steps is below this part of that of the list. Not
/// measured.
pub(super) const SHRUNK: f32 = 0.8;

/// The max margin, in sizes of the box. Not measured.
pub(crate) const MAX_MARGIN: f32 = 0.4;

/// The number of steps changes once one box in this many was loosened by the last one, once useless
/// candidates have cost as much as that many boxes that leave, or after [`STEPS_PERIOD`] frames.
/// Not measured.
pub(super) const LOOSENED_SHARE: usize = 4;
/// The frames after which it changes in any case ([`LOOSENED_SHARE`]).
pub(super) const STEPS_PERIOD: u32 = 256;

/// Frames within which a box that left must leave again to count as moving. Not measured.
pub(super) const MOVING_FRAMES: u32 = 8;

/// Sampled boxes that decide whether a scene moves little, or boxes overlap their last places. Not
/// measured.
pub(super) const MOTION_SAMPLE: usize = 64;
/// One of so many sampled boxes may do otherwise than nearly all. Not measured.
pub(super) const OTHER_SHARE: usize = 8;

/// A scene moves little if nearly all boxes move by at most one part in so many of their size. For
/// small and large lists: with 100,000 boxes that walk by up to a tenth, a list takes 2 to 3 times
/// as long as full updates, and building it 9 times as long. With 10,000 that walk by up to a
/// fifth, a frame takes 0.53 ms on average with 8, 0.9 with 4.
pub(super) const MIN_SIZE_IN_STEPS: [f32; 2] = [8.0, 24.0];
