// Prefix sums over the threads of a block, in two parts: within warps by shuffles, then over the
// sums of the warps, which meet in shared memory.
#pragma once

#include "common/warp.cuh"

namespace radsweep {

// Returns the sum over the threads before this one, and in `total` that of all. One barrier is
// within; the caller has another before `warp_sums` is used again.
template <u32 WARPS, class T>
DEVICE T block_exclusive_sum(T own, T* warp_sums, T& total) {
    static_assert(WARPS <= WARP, "a lane adds up a warp");
    const u32 lane = lane_index(), warp = threadIdx.x / WARP;
    const T up_to = warp_inclusive_sum(own, lane);
    if (lane == WARP - 1) warp_sums[warp] = up_to;
    __syncthreads();
    T sums = lane < WARPS ? warp_sums[lane] : 0;
#pragma unroll
    for (u32 step = 1; step < WARPS; step *= 2) {
        const T below = __shfl_up_sync(ALL_LANES, sums, step);
        if (lane >= step) sums += below;
    }
    total = __shfl_sync(ALL_LANES, sums, WARPS - 1);
    const T before = __shfl_sync(ALL_LANES, sums, (warp - 1) % WARP);
    return (warp == 0 ? 0 : before) + up_to - own;
}

// Adds the sums of the warps below `warp`, of which there are less than WARPS.
template <u32 WARPS, class T, class Sum>
DEVICE T add_warps_below(T sum, const Sum* warp_sums, u32 warp) {
#pragma unroll
    for (u32 w = 0; w + 1 < WARPS; w++) {
        if (w < warp) sum += warp_sums[w];
    }
    return sum;
}

}  // namespace radsweep
