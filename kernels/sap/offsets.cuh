// From counts to offsets: the exclusive sums of the counts, in place, and their total behind the
// last. One pass, in which each block looks back at the sums of those before it
// (block/look_back.cuh).
//
// 256 threads, 2,048 counts a block. Bytes a count: 4 read, 4 written. With shuffles over the
// warps' sums (`block_exclusive_sum`) before a block publishes its own, an H200 took 17.4 us for
// 1.1 M counts instead of 11.6 (2026-11-23). A thread took eight counts next to each other then, so
// that each store of a warp wrote a part of 32 sectors; by rows, which fill sectors, 10^6 counts
// take 8.1 us instead of 15.9 (alone, 2026-11-26). Looks at 128 or 256 words at a time, instead of
// 32, change nothing.
#pragma once
#include "block/look_back.cuh"
#include "block/scan.cuh"
#include "types.cuh"

namespace radsweep::sap {

constexpr u32 OFFSET_THREADS = 256;
constexpr u32 OFFSET_ITEMS = 8;  // of a thread

// There are n counts and memory for one offset more. `words` has one word more than there are
// blocks, all zero: the first one numbers the blocks in the order in which they begin. `most` is
// raised to the greatest count, and `total` gets the sum; either may be null.
template <class Count>
DEVICE void offsets(Count count_of, u32* starts, u32 n, u64* words, u64* most, u64* total) {
    constexpr u32 WARPS = OFFSET_THREADS / WARP;
    __shared__ u32 sums[WARPS], greatest[WARPS];
    __shared__ u64 before;
    __shared__ u32 tile;
    const u32 warp = threadIdx.x / WARP, lane = lane_index();
    if (threadIdx.x == 0) tile = u32(atomicAdd(words, 1ull));
    __syncthreads();
    // A warp takes rows of 32 counts, so that it reads and writes whole sectors.
    const u64 first = (u64(tile) * WARPS + warp) * OFFSET_ITEMS * WARP + lane;
    u32 start[OFFSET_ITEMS], own = 0, high = 0;
#pragma unroll
    for (u32 k = 0; k < OFFSET_ITEMS; k++) {
        const u64 at = first + k * WARP;
        start[k] = at < n ? count_of(at) : 0;
    }
#pragma unroll
    for (u32 k = 0; k < OFFSET_ITEMS; k++) {
        const u32 count = start[k], up_to = warp_inclusive_sum(count, lane);
        start[k] = own + up_to - count;
        own += __shfl_sync(ALL_LANES, up_to, WARP - 1);
        high = max(high, count);
    }
    high = warp_max(high);
    if (lane == 0) {
        sums[warp] = own;
        greatest[warp] = high;
    }
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
                starts[n] = u32(sum + all);
                if (total) *total = sum + all;
            }
        }
    }
    __syncthreads();
    const u32 below = add_warps_below<WARPS>(u32(before), sums, warp);
#pragma unroll
    for (u32 k = 0; k < OFFSET_ITEMS; k++) {
        const u64 at = first + k * WARP;
        if (at < n) starts[at] = below + start[k];
    }
}

extern "C" __global__ void __launch_bounds__(OFFSET_THREADS) sap_offsets(
    u32* counts, u32 n, u64* words, u64* most, u64* total) {
    wait_for_stream();
    offsets([&](u64 k) { return counts[k]; }, counts, n, words, most, total);
}

}  // namespace radsweep::sap
