// The order of distinct values by a block, however many they are: it sets a bit for each, and the
// rank of a value is the number of bits set below its own. The block has bits for WINDOW possible
// values, and takes one window after another: for each it reads all values. Blocks can share the
// windows of one order. Ranks ascend as bits do, so a warp that writes by rank writes consecutive
// places.
#pragma once
#include "block/scan.cuh"

namespace radsweep {

// STRIP words of bits are a thread's. It is odd, so that a warp reads 32 banks of shared memory
// where each lane reads a word of its own.
template <u32 THREADS, u32 STRIP>
struct BitOrder {
    static_assert(STRIP % 2 == 1 && THREADS % WARP == 0);
    static constexpr u32 WARPS = THREADS / WARP, WINDOW = THREADS * STRIP * WARP;

    u32 words[THREADS * STRIP];
    u32 ranks[THREADS];  // of the first value of each strip
    u32 sums[WARPS][2];

    // Calls `put` with the rank of each value and the value. `value_of` returns that of a number
    // below `count`, and they are below 2^bits and 2^31. LOADS of them are read at once. Each of
    // `parts` blocks calls it with its own `part`, and takes every window whose number modulo
    // `parts` is that one.
    template <u32 LOADS, class ValueOf, class Put>
    DEVICE void order(u32 count, u32 bits, u32 part, u32 parts, ValueOf value_of, Put put) {
        const u32 lane = lane_index();
        u32 done = 0;  // values up to the end of the window
        for (u64 at = u64(part) * WINDOW; done < count && at >> bits == 0;
             at += u64(parts) * WINDOW) {
            const u32 first = u32(at);
            for (u32 k = threadIdx.x; k < THREADS * STRIP; k += THREADS) words[k] = 0;
            __syncthreads();
            u32 own[2] = {0, 0}, total[2];  // values in the window, and below it
            for (u32 k = threadIdx.x; k < count; k += LOADS * THREADS) {
                u32 values[LOADS];
#pragma unroll
                for (u32 i = 0; i < LOADS; i++)
                    values[i] = k + i * THREADS < count ? value_of(k + i * THREADS) : ~0u;
#pragma unroll
                for (u32 i = 0; i < LOADS; i++) {
                    const u32 bit = values[i] - first;
                    if (bit < WINDOW) atomicOr(words + bit / WARP, 1u << bit % WARP);
                    own[1] += values[i] < first;
                }
            }
            __syncthreads();
            for (u32 k = 0; k < STRIP; k++) own[0] += __popc(words[threadIdx.x * STRIP + k]);
            block_exclusive_sums<WARPS>(own, sums, total);
            const u32 below = total[1];
            done = below + total[0];
            ranks[threadIdx.x] = below + own[0];
            __syncthreads();
            // A warp has strips far from each other, since a few next to each other may have most.
            for (u32 strip = threadIdx.x / WARP; strip < THREADS; strip += WARPS) {
                u32 rank = ranks[strip];
                const u32 end = strip + 1 < THREADS ? ranks[strip + 1] : done;
                for (u32 k = strip * STRIP; rank < end; k++) {
                    const u32 word = words[k];
                    if (word >> lane & 1)
                        put(rank + __popc(word & lanes_below()), first + k * WARP + lane);
                    rank += __popc(word);
                }
            }
            __syncthreads();
        }
    }
};

}  // namespace radsweep
