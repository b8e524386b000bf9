// Batcher's odd-even merge sort of a thread's own elements, in Knuth's form for any number of them
// (The Art of Computer Programming 3, 5.2.2, algorithm M).
#pragma once

#include "common/types.cuh"

namespace radsweep {

// Calls `compare(i, j)`, i < j, for each comparator of the network over N elements; it puts the
// lesser one at i. Runs of RUN become runs of 2 RUN by comparators at distances RUN, RUN / 2, ...
// 1.
template <u32 N, u32 RUN = 1, u32 DISTANCE = RUN, class Compare>
DEVICE void odd_even_merge_sort(const Compare& compare) {
    constexpr u32 FIRST = DISTANCE % RUN;
#pragma unroll
    for (u32 i = FIRST; i + DISTANCE < N; i++) {
        const bool compared = (i - FIRST) / DISTANCE % 2 == 0;
        if (compared && i / (2 * RUN) == (i + DISTANCE) / (2 * RUN)) compare(i, i + DISTANCE);
    }
    if constexpr (DISTANCE > 1) odd_even_merge_sort<N, RUN, DISTANCE / 2>(compare);
    else if constexpr (2 * RUN < N) odd_even_merge_sort<N, 2 * RUN, 2 * RUN>(compare);
}

}  // namespace radsweep
