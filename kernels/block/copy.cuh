// Copies by all threads of a grid.
#pragma once

#include "common/types.cuh"

namespace radsweep {

// Copies n elements, in pieces of 16 bytes where both arrays are aligned to them.
template <class T>
DEVICE void copy_array(T* to, const T* from, u64 n) {
    const u64 thread = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    const u64 threads = u64(gridDim.x) * blockDim.x;
    constexpr u32 EACH = 16 / sizeof(T);
    const bool vectors = (reinterpret_cast<u64>(to) | reinterpret_cast<u64>(from)) % 16 == 0;
    const u64 whole = vectors ? n / EACH : 0;
    for (u64 i = thread; i < whole; i += threads) {
        reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
    }
    for (u64 i = whole * EACH + thread; i < n; i += threads) to[i] = from[i];
}

}  // namespace radsweep
