// What started and what ended: the differences of the new and the last list of pairs
// (block/differences.cuh).
//
// Bytes a pair of each list: 16 read, and 16 written if the other list lacks it. With 13.7 M pairs
// in each list, of which 7 % change, 310 us on an H200, where the bytes take 110: a block waits for
// its search, its pairs and the blocks before it, and 48 registers allow 5 blocks. Pairs packed
// into 64 bits in shared memory, where ids have 32, took 280.
#pragma once
#include "block/differences.cuh"
#include "receive.cuh"

namespace radsweep::dist {

using List = SortedList<Pair>;
ASSERT_LAYOUT(List, 24, AT(items, 0) AT(n, 8) AT(count, 16));
using Changes = Differences<Pair>;
ASSERT_LAYOUT(Changes, 112,
    AT(lists, 0) AT(words, 48) AT(out, 64) AT(capacity, 80) AT(totals, 96));

// A pair as a number in the order of pairs.
struct PairForm {
    using Item = Pair;
    using Code = unsigned __int128;
    static DEVICE Code code(const Pair& pair) { return Code(pair.a) << 64 | pair.b; }
    static DEVICE Pair item(Code code) { return Pair{u64(code >> 64), u64(code)}; }
};

extern "C" __global__ void __launch_bounds__(DIFFERENCE_THREADS, 5) dist_differences(
    const __grid_constant__ Changes d) {
    find_differences<PairForm>(d);
}

// Gathers the events of boxes `a` that are not among `count` boxes of a rank, in any order. A
// thread an event.
extern "C" __global__ void __launch_bounds__(THREADS) dist_moved(
    const Pair* events, u64 n, const __grid_constant__ Ids ids, u64 count, Pair* moved,
    u64* moved_count) {
    const u64 i = u64(blockIdx.x) * THREADS + threadIdx.x;
    Pair event{};
    bool lacks = false;
    if (i < n) {
        event = events[i];
        const u64 at = partition_point(u64(0), count, [&](u64 k) { return ids[k] < event.a; });
        lacks = at == count || ids[at] != event.a;
    }
    const u64 at = warp_append(moved_count, lacks);
    if (lacks) moved[at] = event;
}

}  // namespace radsweep::dist
