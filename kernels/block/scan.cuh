// Prefix sums over the threads of a block, in two parts: within warps by shuffles, then over the
// sums of the warps, which meet in shared memory.
#pragma once

#include "common/bits.cuh"
#include "common/warp.cuh"

namespace radsweep {

// Replaces each of a thread's N values by the sum over the threads before it, and returns those of
// all threads in `totals`. One barrier is within; the caller has another before `warp_sums`, at
// least N sums for each warp, is used again.
template <u32 WARPS, u32 N, u32 STRIDE, class T>
DEVICE void block_exclusive_sums(T (&values)[N], T (*warp_sums)[STRIDE], T (&totals)[N]) {
    static_assert(WARPS <= WARP && N <= STRIDE, "a lane adds up a warp");
    const u32 lane = lane_index(), warp = threadIdx.x / WARP;
    T up_to[N];
#pragma unroll
    for (u32 k = 0; k < N; k++) {
        up_to[k] = warp_inclusive_sum(values[k], lane);
        if (lane == WARP - 1) warp_sums[warp][k] = up_to[k];
    }
    __syncthreads();
#pragma unroll
    for (u32 k = 0; k < N; k++) {
        // The lanes behind the first group have zeros.
        const T sums = warp_inclusive_sum<power_of_two_from(WARPS)>(
            lane < WARPS ? warp_sums[lane][k] : T(0), lane);
        totals[k] = __shfl_sync(ALL_LANES, sums, WARPS - 1);
        const T before = __shfl_sync(ALL_LANES, sums, (warp - 1) % WARP);
        values[k] = (warp == 0 ? 0 : before) + up_to[k] - values[k];
    }
}

// Returns the sum over the threads before this one, and in `total` that of all, as above.
template <u32 WARPS, class T>
DEVICE T block_exclusive_sum(T own, T* warp_sums, T& total) {
    T values[1] = {own}, totals[1];
    block_exclusive_sums<WARPS>(values, reinterpret_cast<T(*)[1]>(warp_sums), totals);
    total = totals[0];
    return values[0];
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
