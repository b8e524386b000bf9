// The neighbours of every body from the sorted pairs (a, b). The pairs (i, b) are a run of the
// list. The pairs (a, i) are a run of the list sorted by b, which a stable sort of the host makes
// between these two kernels. So a body sees its neighbours in ascending order, and its sums are the
// same every time, without atomics.
//
// Bytes a pair: split 8 r, 8 w; the sort by 20 bits 3 x 16 and 4; rows 4 r. A body: 8 r and w for
// each of its two runs. 114,000 pairs: split 4.3 us, rows 4.4, of which launching takes 2 each.
#pragma once
#include "types.cuh"

namespace radsweep::demo {

// Marks where a run of equal `own` begins or ends, in rows that were 0.
DEVICE void mark_run(uint2* rows, u32 own, u32 index, bool begins, bool ends) {
    if (begins) rows[own].x = index;
    if (ends) rows[own].y = index + 1;
}

extern "C" __global__ void __launch_bounds__(256) demo_split(
    const uint2* pairs, u32 m, u32* b_out, u32* a_out, uint2* upper) {
    const u32 i = thread_index();
    if (i >= m) return;
    const uint2 pair = pairs[i];
    b_out[i] = pair.y;
    a_out[i] = pair.x;
    mark_run(
        upper, pair.x, i, i == 0 || pairs[i - 1].x != pair.x,
        i + 1 == m || pairs[i + 1].x != pair.x);
}

extern "C" __global__ void __launch_bounds__(256) demo_rows(
    const u32* b_sorted, u32 m, uint2* lower) {
    const u32 i = thread_index();
    if (i >= m) return;
    const u32 own = b_sorted[i];
    mark_run(lower, own, i, i == 0 || b_sorted[i - 1] != own, i + 1 == m || b_sorted[i + 1] != own);
}

struct Neighbours {
    const uint2* pairs;
    const u32* a_sorted;  // by b
    const uint2* upper;   // of each body, its run in `pairs`
    const uint2* lower;   // and in `a_sorted`

    template <class F>
    DEVICE void for_each(u32 body, F f) const {
        const uint2 low = lower[body], up = upper[body];
        for (u32 k = low.x; k < low.y; k++) f(a_sorted[k]);
        for (u32 k = up.x; k < up.y; k++) f(pairs[k].y);
    }
};
ASSERT_LAYOUT(Neighbours, 32, AT(pairs, 0) AT(a_sorted, 8) AT(upper, 16) AT(lower, 24));

}  // namespace radsweep::demo
