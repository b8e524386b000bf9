// Batcher's bitonic networks: the merge of a thread's own elements, and the sorts of a warp's and a
// block's.
#pragma once

#include "common/bits.cuh"
#include "common/warp.cuh"

namespace radsweep {

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

// Returns the lesser of two numbers, or the greater.
template <class T>
DEVICE T lesser_or_greater(bool lesser, T a, T b) {
    // One instruction for words, where two would select the result; for wider numbers the reverse.
    if constexpr (sizeof(T) == 4) return lesser ? min(a, b) : max(a, b);
    else return (b < a) == lesser ? b : a;
}

// Sorts the values of a warp, of which value k * 32 + lane is in `values[k]`.
template <bool DESCENDING, u32 N, class T>
DEVICE void warp_bitonic_sort(T (&values)[N]) {
    const u32 lane = lane_index();
#pragma unroll
    for (u32 length = 2; length <= N * WARP; length *= 2) {
#pragma unroll
        for (u32 step = length / 2; step > 0; step /= 2) {
#pragma unroll
            for (u32 k = 0; k < N; k++) {
                const bool own_way = ((k * WARP + lane) & length) == 0;
                if (step < WARP) {
                    const T other = __shfl_xor_sync(ALL_LANES, values[k], step);
                    const bool first = (lane & step) == 0;
                    values[k] =
                        lesser_or_greater((own_way == first) != DESCENDING, values[k], other);
                } else if ((k & (step / WARP)) == 0) {
                    const T a = values[k], b = values[k + step / WARP];
                    values[k] = lesser_or_greater(own_way != DESCENDING, a, b);
                    values[k + step / WARP] = lesser_or_greater(own_way == DESCENDING, a, b);
                }
            }
        }
    }
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
