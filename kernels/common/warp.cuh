// What the lanes of a warp do together. All 32 must take part.
#pragma once

#include "common/types.cuh"

namespace radsweep {

constexpr u32 WARP = 32;
constexpr u32 ALL_LANES = 0xffffffffu;

DEVICE u32 lane_index() { return threadIdx.x % WARP; }

// The lanes below this one, a bit each.
DEVICE u32 lanes_below() { return (1u << lane_index()) - 1; }

// Returns the sum of `value` over this lane and those below it, in each group of LANES lanes.
// `lane` is the lane's index in its group.
template <u32 LANES = WARP, class T>
DEVICE T warp_inclusive_sum(T value, u32 lane = lane_index() % LANES) {
    static_assert(LANES <= WARP && (LANES & (LANES - 1)) == 0, "groups fill a warp");
#pragma unroll
    for (u32 step = 1; step < LANES; step *= 2) {
        const T below = __shfl_up_sync(ALL_LANES, value, step, LANES);
        if (lane >= step) value += below;
    }
    return value;
}

// Adds the number of lanes that have something to a counter in memory. Returns the sum of the
// counter and the lanes before this one that have something, which is the slot of what it has.
DEVICE u64 warp_append(u64* count, bool has) {
    const u32 lanes = __ballot_sync(ALL_LANES, has);
    if (lanes == 0) return 0;
    u64 first = 0;
    if (lane_index() == 0) first = atomicAdd(count, u64(__popc(lanes)));
    return __shfl_sync(ALL_LANES, first, 0) + __popc(lanes & lanes_below());
}

// Combines the values of all lanes. Every lane gets the result.
template <class T, class Combine>
DEVICE T warp_reduce(T value, Combine combine) {
#pragma unroll
    for (u32 step = WARP / 2; step > 0; step /= 2) {
        value = combine(value, __shfl_xor_sync(ALL_LANES, value, step));
    }
    return value;
}

template <class T>
DEVICE T warp_sum(T value) {
    return warp_reduce(value, [](T a, T b) { return a + b; });
}
template <class T>
DEVICE T warp_or(T value) {
    return warp_reduce(value, [](T a, T b) { return a | b; });
}
template <class T>
DEVICE T warp_min(T value) {
    return warp_reduce(value, [](T a, T b) { return min(a, b); });
}
template <class T>
DEVICE T warp_max(T value) {
    return warp_reduce(value, [](T a, T b) { return max(a, b); });
}

}  // namespace radsweep
