// Four-way radix sort: least-significant-digit radix sort by 2-bit digits that ends as soon as the
// keys are in order.
//
// L. Ha, J. Krueger, C. T. Silva: Fast Four-Way Parallel Radix Sorting on GPUs, Computer Graphics
// Forum 28 (8), 2009.
//
// The digit's width is a parameter, as in the paper (section 5): eight-way is 3 bits. Compiled with
// KEY_BITS (32, 64). Keys keep their own bits in memory; common/radix_key.cuh makes digits of them.
// The launches, always in this order, without the host waiting:
//
//   start      one block: clears the header; order check on the leading sqrt(n) keys (section 4.2,
//              algorithm 3)
//   sort       all passes (algorithm 1) in one launch; the tiles are divided among as many parts as
//              blocks run at once. A pass:
//     count    the rest of the order check, if the lead was in order; four-way counting, each
//              part's counts to the block-sum array [digit][part] (section 4.3). The last block to
//              end: if all keys are in order, the sort ends; else one exclusive prefix sum over the
//              array (section 4.4)
//     map      four-way prefix sum over the tile and in-block shuffle (sections 4.3, 4.6;
//              algorithms 2, 5, 6), then position and mapping in one step, coalesced (sections 4.5,
//              4.6; algorithm 4). The last block to end: the order check on the leading sqrt(n)
//              keys for the next pass
//   copy       to the output, if the passes ended early with the keys elsewhere
//
// A single tile is sorted by one block on chip, the passes and their order checks alike
// (Sort::sort_tile).
//
// Implicit counting: a thread's counters share one word, of 8 bits each (eight-way: 4), and so are
// counted by one addition a key; a tile's have 16 bits, two a word, and the sums over the threads
// are one prefix sum over these words by shuffles.
//
// Bytes a key of B bytes with a value of V bytes: 3 B + 2 V a pass (B to count, 2 (B + V) to map).
// Four-way over u32: 192, pairs 320; eight-way (11 passes): 132 and 220. Keys in order: B, and 2 (B
// + V) for the copy unless in place.
//
// Instructions a key and pass, predicted for 16 keys a thread: 7 to count; 26 to map (5 for digit
// and counter, 4 for the prefix sum, 9 to place and put, 8 to write).
//
// Measured on one H200 on 2026-11-21 (copy 4.05 to 4.09 TB/s in the same runs), 2^26 uniform u32
// keys, milliseconds and G keys/s, and the time that the bytes above take at 4.25 TB/s over the
// time measured:
//
//   four-way   keys 3.90 (17.2, 78 %: count 79 us, map 173 us a pass)   pairs 6.12 (11.0, 83 %)
//              with u64 values 8.60 (7.8)
//   eight-way  keys 2.93 (22.9, 71 %)                                   pairs 4.33 (15.5, 80 %)
//   keys in order, in place: 0.083, 76 % of the time that reading them once takes; one launch more
//   ends at once
//
// These figures are without the hints to the cache (__ldcs, __stcs), which gain 7 % of a count and
// 5 % of a map of keys alone; docs/benchmarks.md has the rates with them. What bounds the map of
// keys alone is neither bytes (73 % of a copy's rate) nor registers (80 and 96 a thread are equally
// fast).
//
// Departures from the paper:
//  - The shuffled tile is not written and read again between count and map, but shuffled in the
//    map: 3 B instead of 4 B a pass.
//  - The check of the rest of the keys is done on the keys that count has read: no bytes of its
//    own.
//  - A block takes a part of many tiles, one after another, so the block-sum array is small
//    whatever n, one block scans it in two microseconds, and the next tile's keys are read while a
//    tile is written. Parts are taken in the order of the phases by an atomic counter; a block that
//    waits for a phase waits for parts that running blocks have.
//  - Keys are counted in registers, 12 or 16 a thread with 16-byte loads; the trees of algorithms 5
//    and 6 are shuffles.
//  - Mapping takes the tile's keys in order and does not align each cluster to a warp (algorithm
//    4): where memory has sectors instead of strict rules of coalescing, alignment gains 3 % of a
//    map for pairs and costs 9 % for keys alone, 28 % for eight-way keys.
//  - Buffers alternate so that the last pass writes the output. An index sort generates its values
//    in the first pass.

#include "ha_radix.cuh"

namespace radsweep::ha_radix {

// Tile shapes: X(bits of a digit, bytes of a value, threads, keys a thread, blocks a multiprocessor
// to leave registers for). The host's copy is in crates/gpusort/src/cuda/ha_radix/tuning.rs; the
// shape is part of a kernel's name, so the two cannot differ unnoticed. Shared memory stays within
// 64 KiB, all that Turing has.
#if KEY_BITS == 32
#define HA_TILES(X)     \
    X(2, 0, 128, 16, 5) \
    X(2, 4, 256, 16, 2) \
    X(2, 8, 256, 12, 2) X(3, 0, 128, 12, 6) X(3, 4, 256, 12, 2) X(3, 8, 256, 12, 2)
#else
#define HA_TILES(X)     \
    X(2, 0, 256, 12, 3) \
    X(2, 4, 256, 12, 2) \
    X(2, 8, 256, 8, 2) X(3, 0, 256, 12, 3) X(3, 4, 256, 12, 2) X(3, 8, 256, 8, 2)
#endif

#define START(KIND, FLOAT)                                                               \
    extern "C" __global__ void __launch_bounds__(256) ha_start_##KIND(const Args args) { \
        start<FLOAT>(args);                                                              \
    }
START(integer, false)
START(float, true)

#define SORT(KIND, FLOAT, BITS, VALUE_BYTES, THREADS, ITEMS, BLOCKS)      \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)         \
    ha_sort_##BITS##_##KIND##_##VALUE_BYTES##_##THREADS##x##ITEMS(        \
        const Args args, const u32 first, const u32 end) {                \
        sort<BITS, FLOAT, VALUE_BYTES, THREADS, ITEMS>(args, first, end); \
    }
#define SORTS(BITS, VALUE_BYTES, THREADS, ITEMS, BLOCKS)            \
    SORT(integer, false, BITS, VALUE_BYTES, THREADS, ITEMS, BLOCKS) \
    SORT(float, true, BITS, VALUE_BYTES, THREADS, ITEMS, BLOCKS)
HA_TILES(SORTS)

#define COPY(VALUE_BYTES)                                                                      \
    extern "C" __global__ void __launch_bounds__(256) ha_copy_##VALUE_BYTES(const Args args) { \
        copy<VALUE_BYTES>(args);                                                               \
    }
COPY(0)
COPY(4)
COPY(8)

}  // namespace radsweep::ha_radix
