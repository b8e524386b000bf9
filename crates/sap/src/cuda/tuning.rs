//! The tuning constants of the CUDA engine, with the measurement behind each, on an H200 unless the
//! line says otherwise. Without one the line says what bounds the constant, and that it is not
//! measured. None changes a result.
//!
//! Launch shapes and sizes that a kernel fixes are beside the launch, with the kernel's name for
//! them.

use crate::Pair;
use crate::policy::Limits;
use std::time::Duration;

// ---- Upload and download ----

/// Bytes of the staging memory that uploads pass through: pinned, which is scarce, and several
/// [`STAGED_PIECE`]s, so that one is filled while another is copied. Not measured.
pub(super) const STAGING: usize = 32 << 20;
/// Bytes of a piece, which is filled by several threads and then copied. Not measured.
pub(super) const STAGED_PIECE: usize = 4 << 20;
/// Bytes that a thread copies to a piece: a 16th of it. Not measured.
pub(super) const COPY_SHARE: usize = 256 << 10;
/// Max bytes that the caller copies alone. To wake threads took up to 0.5 ms beside an H200, for
/// 324 kB, where the frame takes 0.22 (falling chairs).
pub(super) const COPY_ALONE: usize = 1 << 20;
/// Max pairs that are downloaded to pinned memory: 1 GiB of them, since such memory is scarce. Not
/// measured.
pub(super) const MAX_PINNED: usize = (1 << 30) / size_of::<Pair>();
/// Min pairs of pinned memory for a list: 512 KiB of them. Each time it grows it takes 0.5 ms or
/// more.
pub(super) const MIN_PINNED: usize = 64 << 10;
/// The longest that the host looks at the memory that counters are sent to, before it waits as the
/// driver does. Of longer frames the microseconds saved are not seen. Not measured.
pub(super) const MAX_SPIN: Duration = Duration::from_millis(2);
/// Min boxes of a frame of which only the changed ones are uploaded. Below, the upload of all takes
/// no longer than the copies on the device that are needed instead. Its figures are not recorded.
pub(super) const MIN_PATCHED: usize = 16 * 1024;
/// The changed boxes may be one in this many at most: a changed box takes 48 bytes of upload, any
/// other 24 without filter and world. Not measured.
pub(super) const MAX_PATCH_SHARE: usize = 4;

// ---- Boxes of meshes ----

/// Min vertices that a warp takes: 8 rounds of 32. Not measured.
pub(super) const MESH_SHARE: usize = 256;
/// Warps of a multiprocessor: as many as it can hold. More would take turns.
pub(super) const MESH_WARPS: usize = 64;

// ---- The resting set ----

/// The frames for which static and sleeping boxes must be unchanged, and how long a resting set
/// must last. Not measured.
pub(super) const RESTING_LIMITS: Limits = Limits {
    min_quiet_frames: 2,
    max_quiet_frames: 64,
    worth: 4,
};
/// Min boxes of a resting set: the launches that it takes are some 10 us, what 30,000 boxes take to
/// sort and sweep.
pub(super) const MIN_RESTING: usize = 1 << 15;
/// Resting boxes must be at least one in this many of all. Not measured.
pub(super) const MIN_RESTING_SHARE: usize = 4;
/// The first capacity for pairs among them: 8 KiB. It grows to at least the count.
pub(super) const FIRST_RESTING_PAIRS: usize = 1024;

// ---- The neighbour list ----

/// Min boxes of a neighbour list. Below, launches and waits take nearly all of the time. 10,000
/// boxes that walk by 1 % take 31 to 38 us by a list, 95 to 110 searched (H200, 2026-11-26).
pub(super) const MIN_LISTED: usize = 4096;
/// Sampled boxes whose motion decides about a list. Not measured.
pub(super) const MOTION_SAMPLE: usize = 512;
/// The first capacity for candidates, for each box. It grows to at least the count.
pub(super) const FIRST_CANDIDATES: usize = 4;
/// The units of slacks and depths in the least margin: a byte tells of depths up to eight margins.
/// Not measured.
pub(super) const UNITS: f32 = 32.0;
/// The least and the most units in a length of 1: 254 of them are a finite length, and they are
/// finite themselves.
pub(super) const UNIT_LIMITS: [f32; 2] = [1e-36, 1e30];
// Not measured here.
pub(super) use crate::cpu::tuning::{LIST_LIMITS, MAX_MARGIN, STEPS, STEPS_FACTOR};
/// The cost model, in ps. The cost of a box in a frame that is searched, without reading boxes:
/// 10^6 uniform boxes take 330 us with 1.36 pairs each and 550 with 5, 10^7 take 3,300 (H100,
/// 2026-11-25, `bench_sweep`, as the figures below).
pub(super) const SEARCHED_BOX_PS: f64 = 250.0;
/// The cost of a pair in a frame that is searched ([`SEARCHED_BOX_PS`]).
pub(super) const SEARCHED_PAIR_PS: f64 = 60.0;
/// The cost of a box in a frame that tests the candidates of a list: 10^6 boxes take 21 to 27 us to
/// be checked (H200 and H100, 2026-11-26).
pub(super) const LIST_BOX_PS: f64 = 25.0;
/// The cost of a candidate in such a frame: 2.3 M of 10^6 boxes took 42 to 48 us, 24 M of 10^7
/// boxes 420 ([`LIST_BOX_PS`]). Since 2026-11-28 it is about 15. Margins chosen by that
/// were not measured.
pub(super) const CANDIDATE_PS: f64 = 20.0;
/// The cost of a box when a list is built: the frames that build one of 3.2 M candidates take 830
/// us, of which two tests of the list and the wait of the host are 380 (H100, 2026-11-25).
pub(super) const BUILT_BOX_PS: f64 = 250.0;
/// The cost of a candidate when a list is built ([`BUILT_BOX_PS`]). To measure how deep its boxes
/// overlap takes 10 of it.
pub(super) const BUILT_CANDIDATE_PS: f64 = 70.0;
/// A list is expected to take at most this share of the time of a search. Not measured.
pub(super) const MAX_LIST_SHARE: f64 = 0.8;
/// The numbers of steps among which a new list chooses. Not measured.
pub(super) const PLANNED_STEPS: [f64; 7] = [4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0];
/// The step of boxes that have just moved less: this quantile of all steps. Not measured.
pub(super) const STEPS_QUANTILE: f64 = 0.9;
/// The min margin, in typical sizes: candidates are 1.1 times the pairs.
pub(super) const MIN_MARGIN: f64 = 1.0 / 64.0;
/// No box of the sample may leave before it has made this many steps. Not measured.
pub(super) const MIN_STEPS: f64 = 4.0;
/// A list is replaced when its candidates that are no pairs have cost this many times what building
/// it cost. Not measured.
pub(super) const MAX_IN_VAIN: f64 = 4.0;

// ---- The sweep or cells ----

/// The cost model, in ms: fixed, per box, per test, per pair, without putting pairs in order, which
/// costs the same for both. Tests are candidates of the sweep. Fitted to an H200's times on
/// 2026-11-22 of `uniform` (10,000 and 1,000,000 boxes) and of meshes with up to 95 million pairs,
/// which the sweep finds scattered: 31 to 65 ps each.
pub(super) const SWEEP_MS: [f64; 4] = [0.08, 1.3e-7, 3.4e-10, 3.2e-8];
/// The same of cells ([`SWEEP_MS`]). Tests include [`ROW_COST`].
pub(super) const CELLS_MS: [f64; 4] = [0.03, 6.5e-8, 3.4e-9, 1e-8];
/// `Auto` takes the sweep if its expected time is less than this share of that of cells, while no
/// frame has told how many tests these take: where boxes crowd, the sample says less of cells than
/// of intervals, up to twice as many tests as there are (the meshes above).
pub(super) const MAX_SWEEP_SHARE: f64 = 0.5;
/// Once a frame has told, it changes over if the other one's expected time is less than this share
/// of its own. Not measured.
pub(super) const STAY_SHARE: f64 = 0.9;
/// Boxes that a cut is made from. Not measured.
pub(super) const CUT_SAMPLE: usize = 2048;
/// A plan is made again, and a wait for a finder ends, when the number of boxes changes by this
/// factor. Not measured.
pub(super) const OTHER_COUNT: f64 = 1.25;
/// A cut is made again when a box needs this much more tests to find its pairs. Not measured.
pub(super) const MORE_WORK: f64 = 1.5;
/// A thread makes the new cut in 1 to 2 ms beside an H200. It is taken once searches have taken as
/// long, by the cost model above, of which each counts as [`SEARCH_MS`] at least.
pub(super) const PLAN_MS: f64 = 2.0;
/// See [`PLAN_MS`]: that of falling chairs, with the host's part.
pub(super) const SEARCH_MS: f64 = 0.25;

// ---- Cells: what a warp takes ----

/// A warp should have at least this many units, so that all end at about the same time. These four
/// numbers give each scene of a table of 13 its fastest width (`find/width.rs`).
pub(super) const MIN_UNITS: f64 = 5.0;
/// Units of at most this many tests are wide all the same: narrow ones cost more.
pub(super) const FEW_TESTS: f64 = 1000.0;
/// Units of more tests are narrow, whatever there is to do.
pub(super) const MANY_TESTS: f64 = 6000.0;
/// Boxes above the level with a block that have a list: `MAX_HIGH` of the kernels. Of 10^6 boxes in
/// a room of six walls, all others looked for them in cells, 126 us; by the list it takes 101, and
/// 91 without walls. With 1,000 boxes of 16 cells it takes 248 us in cells and 329 by a list of
/// them, so 0.24 us for each, and a list pays up to some 145 (H200, 2026-11-30, `bench_sweep
/// --scenes`).
pub(super) const MAX_HIGH: usize = 128;
/// There is at least one unit for this many of the warps that the device can hold.
pub(super) const WARPS_A_UNIT: f64 = 8.0;
/// A warp takes 8 boxes to test against the resting set where there are at least this many, else 2.
/// Not measured.
pub(super) const MIN_FOR_8: usize = 1 << 15;

// ---- The cut of space into cells ----

/// Min hashed buckets: 4 KiB of counts. Not measured.
pub(super) const MIN_BUCKETS: usize = 1024;
/// Max counts of one kind that the first kernel of a frame clears, in units of 16 bytes: 1 MiB.
/// Beyond, a fill of their own clears them just before they are used. With uniform boxes a graph
/// takes 27 instead of 28 us for 10,000, 42 instead of 44 for 100,000, but 235 instead of 231 for
/// 1,000,000, whose 8 MiB the first kernel has to write (H200, 2026-11-27).
pub(super) const MAX_CLEARED: u64 = 1 << 16;
/// Max buckets of one kind: their numbers have 32 bits, with both kinds.
pub(super) const MAX_BUCKETS: usize = 1 << 30;
/// Max cells of a block for each box: 12 bytes of counts a box. Not measured.
pub(super) const CELLS_A_BOX: u64 = 3;
/// Quantiles of the sides that are tried. Not measured.
pub(super) const QUANTILES: [f64; 8] = [1.0, 0.99, 0.96, 0.9, 0.75, 0.5, 0.25, 0.1];
/// Cells are a little larger than the quantile, so that boxes a little larger than those of the
/// sample fit too. Not measured.
pub(super) const CELL_SLACK: f64 = 1.0 + 1.0 / 64.0;
/// At each end of an axis one cell in this many may be far away, if its distance is more than that
/// of all others. As many boxes in one outermost cell cost no more tests than all others, up to
/// some millions. Not measured.
pub(super) const FAR_SHARE: usize = 512;
/// Cost of looking a row up, in tests (both wait for L2; a row for two entries, one after the other
/// with its boxes). Not measured.
pub(super) const ROW_COST: f64 = 4.0;
/// Rows that a box looks up on its own level: 3.6 in `uniform` of a million boxes
/// (`kernels/sap/grid_sweep.cuh`).
pub(super) const OWN_ROWS: f64 = 3.6;
/// Rows that it looks up on each higher level, of 9 at most. Not measured.
pub(super) const HIGHER_ROWS: f64 = 5.0;
/// Cells whose boxes it is tested against on its own level: 8.1 tests a box in `uniform` of a
/// million boxes.
pub(super) const OWN_CELLS: f64 = 8.2;
/// Cells on each higher level, of 27 at most. Not measured.
pub(super) const HIGHER_CELLS: f64 = 12.0;
/// Min pairs of the sample from which a probability is estimated: with 16 the standard error is a
/// quarter.
pub(super) const MIN_SAMPLED_PAIRS: u64 = 16;

/// Min boxes that go to regions before their cells: the counts and records of fewer stay in the
/// device's cache (the stage `sort`, by regions and at once: 62 and 61 us for 1,000,000 boxes, 111
/// and 131 for 2,000,000, 205 and 302 for 4,000,000; H200, 2026-11-27).
pub(super) const MIN_DIVIDED: usize = 1_500_000;
/// About the min boxes of a region, in the mean; it has up to twice as many, as its cells are a
/// power of two. With 2,048 the times by regions are 67, 125 and 231 us.
pub(super) const REGION_BOXES: usize = 1024;
/// Up to this many regions have about [`REGION_BOXES`] boxes each, and more of them
/// [`REGION_BOXES_OF_MANY`]: each further region costs every block of the partition a look. With an
/// earlier, slower partition 10,000,000 boxes in 2,380 regions took 586 us, in 4,757 regions 605.
pub(super) const MANY_REGIONS: usize = 4096;
/// As [`REGION_BOXES`], where there are many regions. A block holds 4,608 boxes. Regions of more
/// boxes, or of more than 4,096 cells, are read twice, so there are more regions where these would
/// have so many cells, up to 8,192: 20,000,000 boxes take 0.95 ms in 4,981 regions, 1.10 to 1.15 in
/// half as many, and 2.37 at once (H200, 2026-11-28).
pub(super) const REGION_BOXES_OF_MANY: usize = 4096;
/// Boxes of a region, as a multiple of the mean, beyond which all go to their cells at once. Not
/// measured.
pub(super) const CROWDED: u64 = 8;
/// Boxes of a sample in one region from which they tell of a crowd: fewer may be chance.
/// Not measured.
pub(super) const MIN_CROWD: u64 = 16;
/// The share of boxes that are near the one before, in the order in which they are given, beyond
/// which they go to their cells at once (10,000,000 boxes in the order of their cells: 367 us at
/// once, 411 by an earlier form of the regions).
pub(super) const NEAR_SHARE: f64 = 0.5;

// ---- The bound of tests, and the tree ----

/// Tests per box that cells may take, beside those for pairs (`TESTS_A_PAIR` of the kernels). A
/// million boxes then lose 1.8 ms at most, by [`CELLS_MS`]. The scenes of `docs/benchmarks.md` take
/// up to 360 without the pairs, and cells are good at those.
pub(super) const TESTS_A_BOX: u64 = 512;
/// Tests of the sweep that count as one in cells: `SWEPT_A_TEST` of the kernels. By [`SWEEP_MS`]
/// and [`CELLS_MS`] 10 cost as much, so the bound of a sweep is the looser one.
pub(super) const SWEPT_A_TEST: u64 = 16;
/// Frames that the tree finds before the chosen finder is tried again. They double with each try in
/// vain. A try costs as much as several frames, so it is one frame in 16 at first.
pub(super) const MIN_TREE_WAIT: u32 = 16;
/// The most that [`MIN_TREE_WAIT`] doubles to. Not measured.
pub(super) const MAX_TREE_WAIT: u32 = 1024;

// ---- Order, events, chunks, queries ----

/// The capacity for pairs grows ahead of need where less than one part in this many is left. It
/// takes four frames. Not measured.
pub(super) const NEARLY_FULL: usize = 4;
/// The mean pairs of a bin: at most this, and at least half, where there are many. The first bins
/// of boxes in random order have twice the mean. With 150 the order of 1,400,000 pairs takes 29
/// instead of 23 us (H100, 2026-11-28).
pub(super) const MEAN_BIN: usize = 400;
/// Bins that fewer pairs are divided into, so that many warps have one.
pub(super) const FEW_BINS: usize = 1024;
/// As [`MEAN_BIN`], where there are few pairs, or bins are narrow.
pub(super) const MIN_MEAN_BIN: usize = 48;
/// Pairs of the longest bin from which bins become narrower in the next frame. With 2,048 a frame
/// of the cloth's faces and edges takes 405 and 670 us, with 4,096 376 and 578, with 6,000 366 and
/// 545 (before entries of a bin were compared by fours, 2026-11-28).
pub(super) const LONG_BIN: u64 = 6000;
/// Pairs of the longest bin beyond which it is huge: four fifths of `LONGEST_LONG_BIN` of the
/// kernels, so that it may grow.
pub(super) const LONGEST_LONG_BIN: u64 = 8166;
/// Pairs are sorted where a huge bin has more than one in this many of them, since one block orders
/// it: estimated at 0.15 to 0.45 ns a pair of the bin, where a sort takes 0.047 for each of all.
pub(super) const HUGE_BIN_SHARE: u64 = 16;
/// Bins that a block looks at to order long ones. Not measured.
pub(super) const LONG_BIN_SHARE: u32 = 8;
/// A block looks at more, up to one for each lane of a warp, where there would be more blocks than
/// this: four times as many as an H200 runs at once. Not measured.
pub(super) const MANY_LONG_BLOCKS: u32 = 2048;
/// The most frames that are sorted after one whose bins had no room, twice as many each time. Not
/// measured.
pub(super) const MAX_BINS_WAIT: u32 = 64;
/// Frames after which bins have lasted, and the next failure counts as the first. Not measured.
pub(super) const LASTING_BINS: u32 = 64;
/// Max length of a row that a graph puts in order as it is recorded: `LONGEST_ROW` of the kernels.
/// H200: a frame in which a box overlaps all of 10^4, 10^5 and 10^6 takes 40, 180 and 1340 us by
/// rows, and 53, 88 and 307 with a sort. Many rows of some hundred pairs were not measured.
pub(super) const MAX_ROW: u64 = 256;
/// Max pairs that a graph puts in order by rows, and not by counted bins. Whole graphs of 10^5,
/// 3 * 10^5 and 10^6 uniform boxes (0.13, 0.41 and 1.36 million pairs) take 41.6, 82 and 230 us by
/// rows, 45.7, 85 and 209 by bins (H200, 2026-11-30).
pub(super) const MAX_ROWS_PAIRS: usize = 1 << 19;
/// Max pairs of a counted bin as a graph is recorded: three quarters of `LONGEST_COUNTED` of the
/// kernels, so that it may grow. Beyond, bins are narrower, or pairs sorted. Not measured.
pub(super) const LONG_COUNTED_BIN: u64 = 3072;
/// Max product of the boxes and of the keys that a counted bin may have. If one box comes to
/// overlap all others, its bin takes time by that product: 1.4 ms for 10^6 boxes with 2^28 keys a
/// bin, 42 for 10^7 with 2^31 (H200, 2026-11-30).
pub(super) const MAX_FILLED_BIN: u64 = 1 << 50;
/// The first capacity of each list of events, as a share of the pairs: few of them change. It grows
/// to at least the count. Ranks on devices use it too. Not measured.
pub(super) const CHANGED_SHARE: usize = 16;
/// Max pairs of a chunk, 32 MiB of them, however many are asked for. Not measured.
pub(super) const MAX_CHUNK: usize = 4 << 20;
/// Max pairs of a group, 4 GiB of them and their copy, however much memory there is. A group costs
/// a sweep.
pub(super) const MAX_GROUP: u64 = 1 << 28;
/// Queries after an update that the device answers by looking at all boxes. For 1,000,000 boxes, 16
/// are estimated at 0.6 ms, and the download of the boxes and the tree at 50 ms. Not measured.
pub(crate) const MAX_SCANS: u32 = 16;
/// The capacity for candidates of a query: 512 KiB. Not measured.
pub(super) const QUERY_CAPACITY: usize = 16 * 1024;
/// How many are copied with their count: copying 8 KiB adds no measurable time.
pub(super) const QUERY_FIRST: usize = 255;
