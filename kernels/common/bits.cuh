// Arithmetic of powers of two.
#pragma once

#include "common/types.cuh"

namespace radsweep {

// Returns the least power of two that is not below `x`.
__host__ __device__ constexpr u32 power_of_two_from(u32 x) {
    u32 power = 1;
    while (power < x) power *= 2;
    return power;
}

}  // namespace radsweep
