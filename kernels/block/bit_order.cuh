// The order of distinct values by a block, however many they are: it sets a bit for each, and the
// rank of a value is the number of bits set below its own. The block has bits for WINDOW possible
// values, and takes one window after another: for each it reads all values. Ranks ascend as bits
// do, so a warp that writes by rank writes consecutive places.
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
    u32 sums[WARPS];

    // Calls `put` with the rank of each value and the value. `value_of` returns that of a number
    // below `count`, and they are below 2^bits and 2^31. LOADS of them are read at once.
    template <u32 LOADS, class ValueOf, class Put>
    DEVICE void order(u32 count, u32 bits, ValueOf value_of, Put put) {
        const u32 lane = lane_index();
        for (u32 first = 0, done = 0; done < count && first >> bits == 0; first += WINDOW) {
            for (u32 k = threadIdx.x; k < THREADS * STRIP; k += THREADS) words[k] = 0;
            __syncthreads();
            for (u32 k = threadIdx.x; k < count; k += LOADS * THREADS) {
                u32 at[LOADS];
#pragma unroll
                for (u32 i = 0; i < LOADS; i++)
                    at[i] = k + i * THREADS < count ? value_of(k + i * THREADS) - first : ~0u;
#pragma unroll
                for (u32 i = 0; i < LOADS; i++) {
                    if (at[i] < WINDOW) atomicOr(words + at[i] / WARP, 1u << at[i] % WARP);
                }
            }
            __syncthreads();
            u32 own = 0, total;
            for (u32 k = 0; k < STRIP; k++) own += __popc(words[threadIdx.x * STRIP + k]);
            ranks[threadIdx.x] = block_exclusive_sum<WARPS>(own, sums, total);
            __syncthreads();
            // A warp has strips far from each other, since a few next to each other may have most.
            for (u32 strip = threadIdx.x / WARP; strip < THREADS; strip += WARPS) {
                u32 rank = ranks[strip];
                const u32 end = strip + 1 < THREADS ? ranks[strip + 1] : total;
                for (u32 k = strip * STRIP; rank < end; k++) {
                    const u32 word = words[k];
                    if (word >> lane & 1)
                        put(done + rank + __popc(word & lanes_below()), first + k * WARP + lane);
                    rank += __popc(word);
                }
            }
            done += total;
            __syncthreads();
        }
    }
};

}  // namespace radsweep
