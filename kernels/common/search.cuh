// Binary search.
#pragma once

#include "common/warp.cuh"

namespace radsweep {

// Returns the first index in [low, high) for which `before` is false; it is true for all before
// that one. Indices of 32 bits are below 2^31.
template <class Index, class Before>
DEVICE Index partition_point(Index low, Index high, Before before) {
    while (low < high) {
        const Index middle = (low + high) / 2;
        if (before(middle)) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Returns the same, found by a whole warp. It looks at 32 indices at once, so that each step leaves
// a part in 32.
template <class Index, class Before>
DEVICE Index warp_partition_point(Index low, Index high, Before before) {
    while (low < high) {
        const Index step = (high - low) / WARP + 1, at = low + lane_index() * step + step - 1;
        // Beyond the end of the indices `at` wraps around.
        const bool inside = at >= low && at < high;
        low += __popc(__ballot_sync(ALL_LANES, inside && before(at))) * step;
        high = low + min(high - low, step - 1);
    }
    return low;
}

}  // namespace radsweep
