// What started and what ended: the pairs of one sorted list that another lacks.
#pragma once
#include "border.cuh"

namespace radsweep::dist {

DEVICE bool is_before(const Pair& one, const Pair& other) {
    return one.a < other.a || (one.a == other.a && one.b < other.b);
}

// Without `before` it counts those of each block; with the sums of these counts it writes them, in
// order. Two warps find the part of the other list that a block needs. 1,024 pairs a block. Bytes a
// pair and launch: 16 read of each list; 16 written a pair that is lacking.
extern "C" __global__ void __launch_bounds__(THREADS) dist_missing(
    const Pair* these, u64 n, const Pair* those, u64 m, const u64* before, u32* counts, Pair* out) {
    __shared__ u64 part[2];
    __shared__ u32 sums[THREADS / WARP];
    const u64 from = u64(blockIdx.x) * ITEMS, to = min(from + ITEMS, n);
    const u32 warp = threadIdx.x / WARP;
    if (warp < 2) {
        const Pair border = these[warp == 0 ? from : to - 1];
        const u64 at =
            warp_partition_point(u64(0), m, [&](u64 k) { return is_before(those[k], border); });
        if (lane_index() == 0) part[warp] = at;
    }
    __syncthreads();
    u64 at = before ? before[blockIdx.x] : 0;
    for (u32 round = 0; round < ROUNDS; round++) {
        const u64 i = from + round * THREADS + threadIdx.x;
        Pair own{};
        bool missing = false;
        if (i < to) {
            own = these[i];
            const u64 k =
                partition_point(part[0], part[1], [&](u64 k) { return is_before(those[k], own); });
            missing = k == m || is_before(own, those[k]);
        }
        u32 total;
        const u64 place = at + block_exclusive_sum<THREADS / WARP>(u32(missing), sums, total);
        if (before && missing) out[place] = own;
        at += total;
        __syncthreads();
    }
    if (!before && threadIdx.x == 0) counts[blockIdx.x] = u32(at);
}

}  // namespace radsweep::dist
