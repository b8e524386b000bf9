// From counts to where each begins: sums of all counts before, in place, and the sum of all behind the last. One pass: each
// block adds up what the blocks before it have published (Merrill and Garland 2016, "Single-pass Parallel Prefix Scan with
// Decoupled Look-back").
//
// 256 threads, 2,048 counts a block. Bytes a count: 4 read, 4 written.
#pragma once
#include "common/ptx.cuh"
#include "types.cuh"

constexpr u32 OFFSET_THREADS = 256;
constexpr u32 OFFSET_ITEMS = 8;  // counts a thread

// What a block has published: nothing yet, the sum of its own counts, or that of all counts up to its last.
constexpr u64 OWN_SUM = 1ull << 62, FULL_SUM = 2ull << 62, SUM = OWN_SUM - 1;

// The sum of all blocks before `tile`. One warp; `words[k]` is what block k has published.
__device__ __forceinline__ u64 sum_before(const u64* words, u32 tile) {
    u64 sum = 0;
    for (u32 end = tile; end > 0; end -= WARP) {
        const u32 lane = lane_index();
        u64 word = FULL_SUM;
        do {
            if (lane < end) word = radsweep::load_relaxed(reinterpret_cast<const uint64_t*>(words + end - 1 - lane));
        } while (__any_sync(ALL_LANES, word < OWN_SUM));
        const u32 full = __ballot_sync(ALL_LANES, word >= FULL_SUM);
        const u32 last = full ? (u32)__ffs((int)full) - 1 : WARP - 1;
        sum += warp_sum(lane <= last ? word & SUM : 0);
        if (full) break;
    }
    return sum;
}

// There are n counts and room for one more. `words` has one word more than there are blocks, all zero: the first numbers the
// blocks in the order they begin. `most` gets the greatest count if it is more than what is there, `total` the sum, where they
// are wanted.
extern "C" __global__ void __launch_bounds__(OFFSET_THREADS) sap_offsets(u32* counts, u32 n, u64* words, u64* most, u64* total) {
    constexpr u32 WARPS = OFFSET_THREADS / WARP;
    __shared__ u32 sums[WARPS], greatest[WARPS];
    __shared__ u64 before;
    __shared__ u32 tile;
    const u32 warp = threadIdx.x / WARP, lane = lane_index();
    if (threadIdx.x == 0) tile = (u32)atomicAdd(words, 1ull);
    __syncthreads();
    const u64 first = (u64)tile * OFFSET_THREADS * OFFSET_ITEMS + (u64)threadIdx.x * OFFSET_ITEMS;
    u32 count[OFFSET_ITEMS], own = 0, high = 0;
#pragma unroll
    for (u32 k = 0; k < OFFSET_ITEMS; ++k) {
        count[k] = first + k < n ? counts[first + k] : 0;
        own += count[k];
        high = max(high, count[k]);
    }
    const u32 inclusive = warp_scan(own);
    for (u32 step = WARP / 2; step > 0; step /= 2) high = max(high, __shfl_xor_sync(ALL_LANES, high, step));
    if (lane == WARP - 1) sums[warp] = inclusive;
    if (lane == 0) greatest[warp] = high;
    __syncthreads();
    if (warp == 0) {
        u32 all = 0;
        for (u32 w = 0; w < WARPS; ++w) {
            all += sums[w];
            high = max(high, greatest[w]);
        }
        uint64_t* const mine = reinterpret_cast<uint64_t*>(words + 1 + tile);
        if (lane == 0 && tile > 0) radsweep::store_relaxed(mine, OWN_SUM | all);
        const u64 sum = sum_before(words + 1, tile);
        if (lane == 0) {
            radsweep::store_relaxed(mine, FULL_SUM | (sum + all));
            before = sum;
            if (most && high > *most) atomicMax(most, (u64)high);
            if (tile == gridDim.x - 1) {
                counts[n] = (u32)(sum + all);
                if (total) *total = sum + all;
            }
        }
    }
    __syncthreads();
    u32 start = (u32)before + inclusive - own;
    for (u32 w = 0; w < warp; ++w) start += sums[w];
#pragma unroll
    for (u32 k = 0; k < OFFSET_ITEMS; ++k) {
        if (first + k < n) counts[first + k] = start;
        start += count[k];
    }
}
