// Onesweep: least-significant-digit radix sort, 8-bit digits, each pass reading and writing every
// key once.
//
// A. Adinets, D. Merrill: Onesweep: A Faster Least Significant Digit Radix Sort for GPUs, 2022,
// arXiv 2206.01784.
//
// Compiled with KEY_BITS (32, 64) and OFFSET_BITS (32: at most 2^30 - 1 keys; 64: any number). Keys
// keep their own bits in memory; common/radix_key.cuh makes digits of them. The launches, always in
// this order, without the host waiting:
//
//   memset        only for so many keys that segments may be sorted: of the sample's counters
//   memset        only if blocks cannot wait for each other: replaces step 1 of the next kernel
//   adaptive.cu   only with the hint that the input is nearly sorted
//   histogram     (as many blocks as run at once) x 1024 threads, 16-byte loads
//     1  clear header, bins and look-back words; the grid's barrier for it is waited for after step
//        2
//     2  count all digits of all passes in one read of the keys; compare neighbours (order check)
//     3  by the last block to end: exclusive sums of the counts, and the plan (which passes run,
//        between which buffers; or only that of the highest digit, and finish; or those of the two
//        highest digits, segments and finish)
//   two passes    only for so many keys: as below, by the two highest digits
//   segments      after these: where the keys of each highest bits begin. A segment too large for a
//                 block has the passes by all digits run instead of finish
//   pass          one block a tile, once per digit; a pass that the plan leaves out ends at once.
//                 Of keys that are in order the first one copies
//     1  take the next tile; load the tile's keys, warp-striped
//     2  count the digits per warp; publish the tile's counts, and the last tile of a group of
//        eight those of the group
//     3  exclusive sums over digits, then over warps within a digit: where each warp's first key of
//        a digit goes in the tile
//     4  rank each key among its warp's (match_digit) and put it at its offset in the tile; a
//        thread that has a value keeps the offset
//     5  look back: add up the counts of the tiles before in the group, then of the groups before;
//        the last tile of a group publishes the sum including the group's
//     6  load the values; write the keys out, digit by digit in consecutive addresses, and keep
//        each one's digit
//     7  put the values at the offsets of their keys in the same memory, and write them out by the
//        digits
//   finish        one block a digit, or a segment, up to a number of keys of each; ends at once if
//                 not planned
//     1  sort all keys of one highest digit, or segment, in shared memory (onesweep_finish.cuh)
//   copy_back     only for sorts in place: when passes left the result in the temporary buffer
//
// Bytes a key of B bytes with a value of V bytes, P passes run: B for the histogram and 2 P (B + V)
// for the passes, and about 6 KiB a tile and pass of look-back words (1 written, 3.5 read in the
// group, the rest of groups), mostly in L2. Four passes over u32: 36, pairs 68. Two and segments:
// 28 and 52.
//
// Instructions a key and pass, counted in the SASS for sm_90 (u32 keys, at that time 20 a thread):
// 5 to load and count, 41 to rank and put (28 of them match_digit), 9 to write, about 12 more for
// the tile's sums and its look-back; 27 in the histogram kernel for all four digits. Wavefronts of
// shared memory for 32 random keys: about 17 in a pass (four accesses of 3.4 each, the rest in
// order), 8 in the histogram.
//
// Departures from the paper:
//  - The keys' order is checked (Ha, Krüger, Silva 2009, §4.2) once, in the histogram kernel.
//    Passes whose digit all keys share are left out. The plan alternates buffers so that the result
//    lands in the caller's whatever the number of passes.
//  - Up to 2 to 4 million keys, if a block can hold those of any one highest digit, that digit
//    comes first, and a block sorts the keys of each: two moves of a key instead of four, or of
//    eight. More keys are divided by the two highest digits: three moves instead of four, or of
//    eight.
//  - Tiles are looked back over in groups, so that the chain of tiles that wait for each other is
//    an eighth as long.
//  - The values follow the keys through the same shared memory, so that a thread never holds both
//    and a tile is larger.
//  - The histogram's kernel clears what passes need, instead of a memset, which saves a launch:
//    4 us where the host is behind.
//  - A tile's counts are published before its keys are ranked, so that the ranking hides the
//    look-back's latency.
//  - The look-back words need no clearing between passes: the top state bit alternates meaning each
//    pass that runs, so what the last one left as "inclusive" reads as "nothing yet".
//  - Several predecessors are read at once in the look-back.
//  - An index sort generates its values in its first pass; none are read.
//
// Passes that begin while the one before ends (`griddepcontrol`, 2026-11-29) were 0 to 3 % faster
// from 3 million keys on, but slower where a multiprocessor has few tiles, since those begun
// early are spread unevenly: 1.5 million keys 70 -> 79 us, 2^20 keys of 64 bits 118 -> 140.

#include "block/copy.cuh"
#include "onesweep_finish.cuh"
#include "onesweep_histogram.cuh"
#include "onesweep_pass.cuh"
#include "onesweep_tuning.cuh"

namespace radsweep::onesweep {

template <u32 VALUE_BYTES>
DEVICE void copy_back(const Args& args) {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    if (args.header->copy_back != COPY_BACK) return;
    const u64 n = key_count(args);
    copy_array(args.keys[OUTPUT], args.keys[TEMP], n);
    if (VALUE_BYTES != 0)
        copy_array(
            static_cast<Value*>(args.values[OUTPUT]), static_cast<const Value*>(args.values[TEMP]),
            n);
}

// ---- Entry points. A name carries the shape, so that host and device cannot disagree ----

#define HISTOGRAM(KIND, FLOAT, COPIES)                                             \
    extern "C" __global__ void                                                     \
        __launch_bounds__(HISTOGRAM_THREADS) onesweep_histogram_##KIND##_##COPIES( \
            const Args args, u32* const memory) {                                  \
        histogram<FLOAT, COPIES>(args, {memory});                                  \
    }
#define HISTOGRAMS(COPIES)            \
    HISTOGRAM(integer, false, COPIES) \
    HISTOGRAM(float, true, COPIES)
HISTOGRAMS(4)
HISTOGRAMS(8)
#if KEY_BITS == 32
HISTOGRAMS(16)
#endif

#define PASS(KIND, FLOAT, VALUE_BYTES, THREADS, ITEMS, BLOCKS)                                    \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                 \
    onesweep_pass_##KIND##_##VALUE_BYTES##_##THREADS##x##ITEMS(const Args args, const u32 pass) { \
        run_pass<FLOAT, VALUE_BYTES, THREADS, ITEMS>(args, pass);                                 \
    }
#define PASSES(VALUE_BYTES, THREADS, ITEMS, BLOCKS)           \
    PASS(integer, false, VALUE_BYTES, THREADS, ITEMS, BLOCKS) \
    PASS(float, true, VALUE_BYTES, THREADS, ITEMS, BLOCKS)
ONESWEEP_TILES(PASSES)

#define FIND_SEGMENTS(KIND, FLOAT)                                                     \
    extern "C" __global__ void                                                         \
        __launch_bounds__(SEGMENT_THREADS) onesweep_segments_##KIND(const Args args) { \
        find_segments<FLOAT>(args);                                                    \
    }
FIND_SEGMENTS(integer, false)
FIND_SEGMENTS(float, true)

#define FINISH_KERNEL(NAME, SEGMENT, KIND, FLOAT, VALUE_BYTES, THREADS, ITEMS, BLOCKS) \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                      \
    onesweep_##NAME##_##KIND##_##VALUE_BYTES##_##THREADS##x##ITEMS(const Args args) {  \
        finish<FLOAT, VALUE_BYTES, THREADS, ITEMS, SEGMENT>(args);                     \
    }
#define FINISHES(VALUE_BYTES, THREADS, ITEMS)                                    \
    FINISH_KERNEL(finish, false, integer, false, VALUE_BYTES, THREADS, ITEMS, 2) \
    FINISH_KERNEL(finish, false, float, true, VALUE_BYTES, THREADS, ITEMS, 2)
ONESWEEP_FINISHES(FINISHES)
#define INTEGER_SEGMENTS(VALUE_BYTES, THREADS, ITEMS) \
    FINISH_KERNEL(segment, true, integer, false, VALUE_BYTES, THREADS, ITEMS, 4)
#define FLOAT_SEGMENTS(VALUE_BYTES, THREADS, ITEMS) \
    FINISH_KERNEL(segment, true, float, true, VALUE_BYTES, THREADS, ITEMS, 4)
ONESWEEP_SEGMENTS(INTEGER_SEGMENTS, FLOAT_SEGMENTS)

#define COPY_BACK(VALUE_BYTES)                                                     \
    extern "C" __global__ void                                                     \
        __launch_bounds__(256) onesweep_copy_back_##VALUE_BYTES(const Args args) { \
        copy_back<VALUE_BYTES>(args);                                              \
    }
COPY_BACK(0)
COPY_BACK(4)
COPY_BACK(8)

}  // namespace radsweep::onesweep
