// Warp-wide pieces: matching of digits, scans, words shared between blocks. Every lane of the warp must take part.
#pragma once

#include <stdint.h>

#include "ptx.cuh"

namespace radsweep {

constexpr uint32_t WARP = 32;
constexpr uint32_t ALL_LANES = 0xffffffffu;

// Sum of `value` over this lane and those below it.
template <class T>
__device__ __forceinline__ T warp_inclusive_sum(T value, uint32_t lane) {
#pragma unroll
    for (uint32_t step = 1; step < WARP; step *= 2) {
        const T below = __shfl_up_sync(ALL_LANES, value, step);
        if (lane >= step) value += below;
    }
    return value;
}

}  // namespace radsweep
