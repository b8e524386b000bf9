// Phase 9: what started and what ended, the differences of the new and the last list of pairs
// (block/differences.cuh).
//
// Bytes a pair of each list: 8 read, and 8 written if the other list lacks it. On an H200, boxes
// that walk by 10 % of their size: 13,000 pairs in each list 12 us with the launch that clears the
// words, 1.36 M pairs 34 us, 13.7 M pairs at most 200 us, where the bytes take 55. A block
// waits for three looks of its search and for its look-back, one after the other. When a block took
// the pairs of one list and searched the other, it was 15, 58 and 468.
#pragma once
#include "block/differences.cuh"
#include "types.cuh"

namespace radsweep::sap {

using List = SortedList<uint2>;
ASSERT_LAYOUT(List, 24, AT(items, 0) AT(n, 8) AT(count, 16));
using Changes = Differences<uint2>;
ASSERT_LAYOUT(Changes, 112,
    AT(lists, 0) AT(words, 48) AT(out, 64) AT(capacity, 80) AT(totals, 96));

// A pair as a number in the order of pairs.
struct PairForm {
    using Item = uint2;
    using Code = u64;
    static DEVICE Code code(uint2 pair) { return u64(pair.x) << 32 | pair.y; }
    static DEVICE uint2 item(Code code) { return make_uint2(u32(code >> 32), u32(code)); }
};

extern "C" __global__ void __launch_bounds__(DIFFERENCE_THREADS) sap_differences(
    const __grid_constant__ Changes d) {
    wait_for_stream();
    find_differences<PairForm>(d);
}

}  // namespace radsweep::sap
