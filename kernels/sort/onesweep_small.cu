// Onesweep for small inputs: the whole sort in one launch, by a grid whose blocks are resident at
// once. The smallest are sorted by onesweep_block.cu.
//
// Up to about a million keys a sort is bounded by latencies: on an H200 (2026-11-21) each further
// launch of a stream costs 4 us (of the host's time), a grid-wide barrier 1.0 to 1.3 us, a trip to
// the level-two cache 0.13 us, and a pass of onesweep.cu over 2^18 keys, which reads and writes
// them all, little more. So keys stay in registers and shared memory where they can, digits are
// counted when their turn comes, and the keys of a grid change blocks once.
//
//   one grid       at most as many blocks as run at once, a tile a block
//     1  load the tile, warp-striped; compare neighbours (order check), collect the bits in which
//        keys differ, the lowest and the highest key; barrier of the grid, whose counter is
//        CUDA's, so that no memory need be cleared before and one launch suffices; now all blocks
//        know these
//     2  parts: a pass by up to 256 equal parts of the range between the two, instead of by a
//        digit. Each block counts its tile, publishes the counts, ranks, reads all tiles' counts,
//        writes its tile out part by part; barrier
//     3  each block loads its share of the parts (as many for each if they are even, else those
//        that begin in its tile), and sorts them: for each digit in which some of its keys differ,
//        steps 2 to 4 of a pass of onesweep.cu, on chip
//   or, where the keys are so uneven that some block's parts would not fit it, or differ in one
//   digit only:
//     2' for each digit in which some keys differ, the same pass by that digit; barrier; each block
//        loads the tile that is now its own
//
// The top bits of published counts tell whether they are new, so no barrier is needed there. Passes
// by digits write to the output and to a temporary buffer in turns, so that none overwrites what a
// slow block still reads. As every block has its tile on chip before any writes, a sort in place
// needs no copy.
//
// Cycles of a block of a grid over 2^14 (256 threads, 1 row) and 2^18 pairs (512 threads, 4 to 6
// rows) on an H200, by clock64, in a version that kept the tile in registers, was unrolled for 16
// rows, and had its own first barrier after a memset: load and look 2000, 2700; first barrier 2600,
// 4900; the pass by parts, with the scatter, 5200, 9600; barrier 2500, 3200; load and look 1800,
// 2100; each pass on chip 2100, 3400, of which sums over the digits 900, 1050 and ranking 250 a
// row. The straight-line code of more rows cost more than it saved: 2 us for 10 rows at any size,
// as the instructions are fetched for one use; hence the loops over rows here.

#include "onesweep_small.cuh"

namespace radsweep::onesweep_small {

template <bool FLOAT, u32 VALUE_BYTES>
DEVICE void sort_small(const Args& args) {
    extern __shared__ uint4 shared_memory[];
    using ThisSmall = Small<FLOAT, VALUE_BYTES>;
    const u32 n = u32(key_count(args));
    ThisSmall(args, *reinterpret_cast<typename ThisSmall::Shared*>(shared_memory), n).sort();
}

#define SMALL(KIND, FLOAT, VALUE_BYTES)                                                            \
    extern "C" __global__ void                                                                     \
        __launch_bounds__(MAX_THREADS, 1) onesweep_small_##KIND##_##VALUE_BYTES(const Args args) { \
        sort_small<FLOAT, VALUE_BYTES>(args);                                                      \
    }
#define SMALLS(VALUE_BYTES)            \
    SMALL(integer, false, VALUE_BYTES) \
    SMALL(float, true, VALUE_BYTES)
SMALLS(0)
SMALLS(4)
SMALLS(8)

}  // namespace radsweep::onesweep_small
