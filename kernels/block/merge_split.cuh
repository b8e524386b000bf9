// Where a diagonal of the merge of two long sorted lists in memory cuts them.
#pragma once

#include "common/search.cuh"

namespace radsweep {

// Returns how many of the first `diagonal` merged elements are of the first list, by a warp.
// `is_of_first(i)` tells it of element i of the first list. Where the lists have much in common
// that is about the share of the first list, so the first look is there: at a place for each lane,
// NEAR elements apart.
template <u64 NEAR, class IsOfFirst>
DEVICE u64
warp_merge_split(u64 first_length, u64 second_length, u64 diagonal, IsOfFirst is_of_first) {
    u64 low = diagonal > second_length ? diagonal - second_length : 0,
        high = min(diagonal, first_length);
    const u64 n = first_length + second_length;
    const u64 share = u64(double(diagonal) * double(first_length) / double(n));
    const u64 from = max(low, share - min(share, u64(WARP * NEAR / 2))),
              at = from + lane_index() * NEAR;
    const u32 before = __popc(__ballot_sync(ALL_LANES, at < high && is_of_first(at)));
    if (before < WARP) high = min(high, from + before * NEAR);
    if (before > 0) low = from + (before - 1) * NEAR + 1;
    return warp_partition_point(low, high, is_of_first);
}

}  // namespace radsweep
