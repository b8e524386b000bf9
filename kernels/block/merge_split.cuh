// Where a diagonal of the merge of two long sorted lists in memory cuts them.
#pragma once

#include "common/search.cuh"

namespace radsweep {

// Returns how many of the first `diagonal` merged elements are of the first list, by a warp.
// `is_of_first(i)` tells it of element i of the first list. Where the lists have much in common
// that is about the share of the first list, so the first look is there: each lane looks at an
// element, NEAR from the next.
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

// How many elements of the first list are before a tile of the merge, and before its end.
struct MergeTile {
    u64 begin, end;
};

// Finds the tile of the merged elements [begin, end), by the first two warps of a block.
// `is_of_first(a, b)` tells whether element a of the first list is before element b of the second.
// A barrier is within.
template <u64 NEAR, class IsOfFirst>
DEVICE MergeTile
block_merge_split(u64 first_length, u64 second_length, u64 begin, u64 end, IsOfFirst is_of_first) {
    __shared__ u64 splits[2];
    const u32 warp = threadIdx.x / WARP;
    if (warp < 2) {
        const u64 diagonal = warp == 0 ? begin : end;
        const u64 split = warp_merge_split<NEAR>(first_length, second_length, diagonal, [&](u64 a) {
            return is_of_first(a, diagonal - 1 - a);
        });
        if (lane_index() == 0) splits[warp] = split;
    }
    __syncthreads();
    return MergeTile{splits[0], splits[1]};
}

}  // namespace radsweep
