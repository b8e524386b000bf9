// The broad phase: boxes in, sorted pairs and their changes out, all on the device.
//
// The sweep along one axis begins from Liu et al. 2010, "Real-time Collision Culling of a Million
// Bodies on Graphics Processing Units". Differences:
// - Work is cut into equal shares, whatever the lengths of the runs.
// - Every count and every sum of work has 64 bits.
// - A test is subtractions whose sign bits are gathered, without comparisons and branches.
// - Hits wait on a stack of their warp until full warps can test them exactly.
// - Cells of several sizes (grid.cuh) take the place of the columns of the CPU's `Subdivided`.
//
// Phases, in the order of the host's launches (crates/sap/src/cuda/update.rs, from the keys on
// find/attempt.rs), and microseconds on an H200 (132 multiprocessors of 4 x 32 lanes at 1.75 GHz,
// 4.3 TB/s) for the scene `uniform` of 1,000,000 boxes: 1.36 M pairs; 7.0 G candidates of the
// sweep, 8.1 M tests in cells. The kernels were timed one by one, on 2026-11-21, `prepare` on
// 2026-11-23, `offsets` on 2026-11-26, the sweep of cells on 2026-11-27; gpu-suite.json has the
// stages of the last run.
//
//   phase                      bytes a box      launch                         predicted  measured
//   1 prepare  prepare.cuh     24 + 24 r, 24 w  a thread a box                        20        30
//   the sweep
//   2 axis     axis.cuh        24 a sample      (64, 3) blocks of 256                  8        33
//   3 keys     keys.cuh        24 r, 4 w        a thread a box                         9
//   4 sort     ../sort         index sort of 32-bit keys, 4 passes                    80 136 with 5
//   5 tiles    tiles.cuh       28 r, 29 w       a warp a tile of 128 boxes            35
//     scan     scan.cuh        12 a tile        one block                              6
//   6 sweep    sweep.cuh       512 a unit       resident blocks of 256             2,050     2,320
//   cells
//   2 count    grid.cuh        24 r, 8 w, 32    a thread a box                        12        23
//   3 offsets  offsets.cuh     8 a bucket       2,048 buckets a block of 256           8         8
//   4 place    grid.cuh        32 r, 32, 32 w   a thread a box                        20        26
//              or, from 1.5 M boxes on, 2 to 4 by regions: grid_regions.cuh has its figures
//   5 sweep    grid_sweep.cuh  32 a test        4, 8 or 32 boxes a warp               38        92
//   the tree, where the others would test far more than they find; a pass for 3 bits of n / 32
//   2 choose   tree.cuh        24 a sample      a warp a segment
//   3 keys     tree.cuh        28 r, 8 w        a thread a box
//   4 sort     ../sort         index sort of 64-bit keys; then permute, 8 r, 4 w
//   5 nodes    tree.cuh        60 r, 33 w       a thread a box, then a warp a node of each level
//   6 sweep    tree.cuh        32 a child       a warp a box
//   all
//   7 order    bins.cuh        16 a pair        a warp some hundred pairs             10        22
//              or in graphs bins.cuh, by counts, or rows.cuh                      36        36
//              or a sort (../sort)                                                       108 with 8
//   8 unpack   pairs.cuh       16 a pair        a thread a pair, after a sort          8         8
//   9 events   events.cuh      16 a pair        1,792 of both lists a block of 256    20        34
//  10 send     counters.cuh    552 in all       one warp                               2         3
//
// `Endpoints` has its own phases 2 to 5 (endpoints.cuh). Boxes of meshes are made separately
// (bounds.cuh).
//
// The sweep: a unit is 128 x 32 tests. Dealing a tile's boxes to four sets by reach leaves 1.11
// lane tests a candidate: 7.75 G of 6.7 instructions each. That is 1.62 G warp instructions, which
// take 1.75 ms at 0.92 T a second and 2.05 ms at 85% of the issue rate. Of the 6.7 cycles the
// arithmetic units are busy for 4.0 with additions and 4.0 with logic (half rate); shared memory
// serves 0.25 loads. Instructions are the bound: 1.2 GB come from L2 meanwhile. At 10,000 boxes
// (0.3 M lane tests a tile row, 5 us) launches and the wait of the host take nearly all of the
// time.
//
// Registers and shared memory: sap_sweep has 64 registers and 18,432 bytes, so 4 blocks of 8 warps
// fit a multiprocessor. That is half of all warps; the filter's independent chains (four sets) hide
// the latency. sm_75 holds 2 such blocks. It spills 100 bytes, where pairs are written. The sweeps
// of cells have 64 registers and spill 4 to 48 bytes there (sm_75: 44 to 184). Of the others
// sap_grid_resting (20 and 32 bytes), sap_region_arrange (16) and sap_keep (16) spill.
//
// Each kernel calls `wait_for_stream` (common/ptx.cuh). All but `sap_keep` and `sap_put` do so at
// their beginning: from sm_90 on the next launch begins before this one ends, and waits there.
// Predicted: 1 us of each launch. Measured with both images in one run on an H200 (2026-11-28,
// whole updates without times): 10^4 boxes 38 us instead of 45, 10^5 57 instead of 61, 10^6 196
// instead of 203, so 0.7 to 1 us; as a graph 24 instead of 25 us for 10^4, and no gain from 10^5
// on.
//
// Two images: PTX of compute_75, and of compute_90 for that. Denormals count: never compile with
// -ftz or -use_fast_math.
#include "types.cuh"
#include "patch.cuh"
#include "prepare.cuh"
#include "neighbours.cuh"
#include "axis.cuh"
#include "keys.cuh"
#include "tiles.cuh"
#include "scan.cuh"
#include "offsets.cuh"
#include "accept.cuh"
#include "sweep.cuh"
#include "grid_regions.cuh"
#include "grid_sweep.cuh"
#include "grid_resting.cuh"
#include "tree.cuh"
#include "resting.cuh"
#include "pairs.cuh"
#include "rows.cuh"
#include "events.cuh"
#include "counters.cuh"
#include "widen.cuh"
#include "endpoints.cuh"
#include "bounds.cuh"
#include "query.cuh"
