// From counts to offsets: the exclusive sums of the counts, in place, and their total behind the
// last. One pass, in which each block looks back at the sums of those before it
// (block/look_back.cuh).
//
// 256 threads, 2,048 counts a block. Bytes a count: 4 read, 4 written. Bound by the chain of
// blocks: with shuffles over the warps' sums (`block_exclusive_sum`) before a block publishes its
// own, an H200 takes 17.4 us for 1.1 M counts instead of 11.6 (2026-11-23).
#pragma once
#include "block/look_back.cuh"
#include "block/scan.cuh"
#include "types.cuh"

namespace radsweep::sap {

constexpr u32 OFFSET_THREADS = 256;
constexpr u32 OFFSET_ITEMS = 8;  // of a thread

// There are n counts and memory for one more. `words` has one word more than there are blocks, all
// zero: the first one numbers the blocks in the order in which they begin. `most` is raised to the
// greatest count, and `total` gets the sum; either may be null.
extern "C" __global__ void __launch_bounds__(OFFSET_THREADS) sap_offsets(
    u32* counts, u32 n, u64* words, u64* most, u64* total) {
    constexpr u32 WARPS = OFFSET_THREADS / WARP;
    __shared__ u32 sums[WARPS], greatest[WARPS];
    __shared__ u64 before;
    __shared__ u32 tile;
    const u32 warp = threadIdx.x / WARP, lane = lane_index();
    if (threadIdx.x == 0) tile = u32(atomicAdd(words, 1ull));
    __syncthreads();
    const u64 first = u64(tile) * OFFSET_THREADS * OFFSET_ITEMS + u64(threadIdx.x) * OFFSET_ITEMS;
    u32 count[OFFSET_ITEMS], own = 0, high = 0;
#pragma unroll
    for (u32 k = 0; k < OFFSET_ITEMS; k++) {
        count[k] = first + k < n ? counts[first + k] : 0;
        own += count[k];
        high = max(high, count[k]);
    }
    const u32 up_to = warp_inclusive_sum(own, lane);
    high = warp_max(high);
    if (lane == WARP - 1) sums[warp] = up_to;
    if (lane == 0) greatest[warp] = high;
    __syncthreads();
    if (warp == 0) {
        u32 all = 0;
#pragma unroll
        for (u32 w = 0; w < WARPS; w++) {
            all += sums[w];
            high = max(high, greatest[w]);
        }
        const u64 sum = LookBack<u64>::exchange(words + 1, tile, all);
        if (lane == 0) {
            before = sum;
            if (most && high > *most) atomicMax(most, u64(high));
            if (tile == gridDim.x - 1) {
                counts[n] = u32(sum + all);
                if (total) *total = sum + all;
            }
        }
    }
    __syncthreads();
    u32 start = add_warps_below<WARPS>(u32(before) + up_to - own, sums, warp);
#pragma unroll
    for (u32 k = 0; k < OFFSET_ITEMS; k++) {
        if (first + k < n) counts[first + k] = start;
        start += count[k];
    }
}

}  // namespace radsweep::sap
