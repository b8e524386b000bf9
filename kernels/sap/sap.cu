// The broad phase: boxes in, sorted pairs and their changes out, all on the device.
//
// The plain sweep along one axis (Liu et al. 2010, "Real-time Collision Culling of a Million Bodies on Graphics Processing Units",
// begins from it) with the work cut into equal shares whatever the runs are. Three things are done its own way: every count and
// every sum of work has 64 bits; tests are subtractions whose sign bits are gathered, not comparisons and branches; and hits wait
// on a stack of their warp until enough of them are there to be tested exactly by full warps. And cells of several sizes
// (grid.cuh), which take the place of the columns of the CPU's `Subdivided`.
//
// Phases, in the order of the host's launches (crates/sap/src/cuda/engine.rs), and microseconds of an H200 (132 multiprocessors
// of 4 x 32 lanes at 1.75 GHz, 4.3 TB/s) for the scene `uniform` of 1,000,000 boxes: 1.36 M pairs; 7.0 G candidates of the
// sweep, 8.1 M tests in cells.
//
//   phase                          bytes a box         launch                               predicted   measured
//   1 prepare    prepare.cuh       24 + 24 r, 24 w     a thread a box                              20         36
//   the sweep
//   2 axis       axis.cuh          2,048 boxes         (64, 3) blocks of 256                        8         33
//   3 keys       keys.cuh          24 r, 4 w           a thread a box                               9
//   4 sort       ../sort           index sort of 32-bit keys, 4 passes                             80        136, with 5
//   5 order      order.cuh         28 r, 29 w          a warp a tile of 128 boxes                  35
//     scan       scan.cuh          12 a tile           one block                                    6
//   6 sweep      sweep.cuh         512 a unit          resident blocks of 256                   2,050      2,320
//   cells
//   2 count      grid.cuh          24 r, 8 w, 32       a thread a box                              12         23
//   3 offsets    offsets.cuh       8 a bucket          2,048 buckets a block of 256                 8         12
//   4 place      grid.cuh          32 r, 32, 32 w      a thread a box                              20         26
//   5 sweep      grid_sweep.cuh    32 a test           2, 8 or 32 boxes a warp                     38        112
//   the tree (tree.cuh), where the others would test far more than they find; one pass for each 3 bits of n / 32
//   2 choose     tree.cuh          24 a sample         a warp a segment
//   3 keys       tree.cuh          28 r, 8 w           a thread a box
//   4 sort       ../sort           index sort of 64-bit keys; then permute, 8 r, 4 w
//   5 nodes      tree.cuh          60 r, 33 w          a thread a box, then a warp a node of each level
//   6 sweep      tree.cuh          32 a child          a warp a box
//   all
//   7 order      rows.cuh          44 a pair           a thread a pair; or ../sort and unpack      32         57; 108
//   8 unpack     pairs.cuh         16 a pair           a thread a pair                              8          8
//   9 events     events.cuh        16 a pair, twice    1,024 pairs a block of 256, both lists      20
//
// `Endpoints` has its own phases 2 to 5 (endpoints.cuh). Boxes of meshes are made apart from all this (bounds.cuh).
//
// The sweep: a unit is 128 x 32 tests. Dealing a tile's boxes to four sets by reach leaves 1.11 lane tests a candidate, so
// 7.75 G of them, of 6.7 instructions: 1.62 G warp instructions at 0.92 T a second are 1.75 ms, 2.05 ms at 85% of the issue
// rate. The arithmetic units see 4.0 (additions) and 4.0 (logic, half rate) cycles of those 6.7, the shared memory 0.25 loads.
// It is bound by instructions: 1.2 GB come from L2 meanwhile. At 10,000 boxes (0.3 M lane tests a tile row, 5 us) launches
// and two waits of the host are everything: about 0.15 ms.
//
// Registers and shared memory: sap_sweep 64, 18,432 bytes, 4 blocks of 8 warps a multiprocessor: half of all warps, and the
// filter's independent chains (four sets) hide the latency. sm_75 holds 2 such blocks. It spills 24 bytes (sm_75: 84) outside the
// filter, where pairs are written; the sweeps of cells 64 registers, none (sm_75: 88 to 128 bytes); all others are small and
// spill nothing.
//
// Portable: PTX of compute_75. Denormals count: never compile with -ftz or -use_fast_math.
#include "types.cuh"
#include "patch.cuh"
#include "prepare.cuh"
#include "axis.cuh"
#include "keys.cuh"
#include "order.cuh"
#include "scan.cuh"
#include "offsets.cuh"
#include "accept.cuh"
#include "sweep.cuh"
#include "grid_sweep.cuh"
#include "grid_apart.cuh"
#include "tree.cuh"
#include "apart.cuh"
#include "pairs.cuh"
#include "rows.cuh"
#include "events.cuh"
#include "widen.cuh"
#include "endpoints.cuh"
#include "bounds.cuh"
#include "query.cuh"
