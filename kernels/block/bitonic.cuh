// Batcher's bitonic networks: the merge of a thread's own elements, and the sort of a block's.
#pragma once

#include "common/warp.cuh"

namespace radsweep {

constexpr u32 power_of_two_from(u32 x) {
    u32 power = 1;
    while (power < x) power *= 2;
    return power;
}

// Sorts a bitonic sequence of N elements. `compare(i, j)`, i < j, puts the lesser one at i. The
// network is that of the next power of two; the missing elements would be the greatest and stay.
template <u32 N, u32 DISTANCE = power_of_two_from(N) / 2, class Compare>
DEVICE void bitonic_merge(const Compare& compare) {
#pragma unroll
    for (u32 i = 0; i + DISTANCE < N; i++) {
        if ((i & DISTANCE) == 0) compare(i, i + DISTANCE);
    }
    if constexpr (DISTANCE > 1) bitonic_merge<N, DISTANCE / 2>(compare);
}

// Sorts `size` elements in shared memory, a power of two of at most twice the block's threads. The
// caller has a barrier before it. Steps within 64 elements stay within a warp, without a barrier.
template <class T>
DEVICE void bitonic_sort(T* elements, u32 size) {
    for (u32 length = 2; length <= size; length *= 2) {
        for (u32 step = length / 2; step > 0; step /= 2) {
            if (threadIdx.x < size / 2) {
                const u32 i = 2 * threadIdx.x - (threadIdx.x & (step - 1));
                const T a = elements[i], b = elements[i + step];
                if ((b < a) == ((i & length) == 0)) {
                    elements[i] = b;
                    elements[i + step] = a;
                }
            }
            if (step > WARP || (step == 1 && length > WARP)) __syncthreads();
            else __syncwarp();
        }
    }
    __syncthreads();
}

}  // namespace radsweep
