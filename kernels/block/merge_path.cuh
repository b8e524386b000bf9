// Merge path: where a diagonal of the merge of two sorted runs A and B cuts them.
//
// O. Green, R. McColl, D. Bader: GPU Merge Path, ICS 2012.
#pragma once

#include "common/search.cuh"

namespace radsweep {

// Returns how many of the first `diagonal` merged elements are A's; ties are A's.
// `b_first(b, a)` tells whether element b of B is less than element a of A.
template <class BFirst>
DEVICE u32 merge_path(u32 a_length, u32 b_length, u32 diagonal, BFirst b_first) {
    const u32 low = diagonal > b_length ? diagonal - b_length : 0, high = min(diagonal, a_length);
    return partition_point(low, high, [&](u32 a) { return !b_first(diagonal - 1 - a, a); });
}

// Returns the same, found by a whole warp, for runs in memory.
template <class BFirst>
DEVICE u32 warp_merge_path(u32 a_length, u32 b_length, u32 diagonal, BFirst b_first) {
    const u32 low = diagonal > b_length ? diagonal - b_length : 0, high = min(diagonal, a_length);
    return warp_partition_point(low, high, [&](u32 a) { return !b_first(diagonal - 1 - a, a); });
}

}  // namespace radsweep
