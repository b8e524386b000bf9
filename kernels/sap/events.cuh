// Phase 9: the differences between two sorted lists of pairs, the new and the last: the pairs of
// each list that the other one does not have, in order.
//
// One launch compares both; blockIdx.y selects the list. A block takes 1,024 pairs of its list. Two
// warps find where the first and the last of them would be in the other list, 32 probes at a time;
// then each warp finds its own first pair between. From there both lists are read side by side.
// Most pairs last, so 32 pairs are usually the next 32 of the other list; only where they are not
// is each one searched for, close by. A block learns by look-back (block/look_back.cuh) how many
// pairs the blocks before it found, so its own are written at once: there is no list of marks, and
// no second pass.
//
// The host need not know the length of the new list: it launches for the capacity, and blocks
// beyond the list do nothing. Nothing is written beyond the capacity for differences, but all are
// counted.
//
// 256 threads, 1,024 pairs a block. Bytes a pair of each list: 8 + 8 read; 8 written for each pair
// found. For 1.36 M pairs in each list 45 MB, mostly from L2: 12 us on an H200. A block takes about
// 6 us (7 probes and 4 rounds one after the other, and the look-back), and each multiprocessor runs
// two or three after one another: 15 us. With few pairs it takes 6 us and the launches, one of
// which clears the words.
#pragma once
#include "block/look_back.cuh"
#include "block/scan.cuh"
#include "common/search.cuh"
#include "types.cuh"

namespace radsweep::sap {

constexpr u32 EVENT_THREADS = 256;
constexpr u32 EVENT_ITEMS = 1024;
constexpr u32 EVENT_WARPS = EVENT_THREADS / WARP;
constexpr u32 EVENT_ROUNDS = EVENT_ITEMS / EVENT_THREADS;

// A sorted list: as many pairs as `count` says, or `n` where that is null; `n` at most.
struct List {
    const uint2* pairs;
    u64 n;
    const u64* count;
    DEVICE u64 len() const { return count ? min(n, *count) : n; }
};
ASSERT_LAYOUT(List, 24, AT(pairs, 0) AT(n, 8) AT(count, 16));

// Two lists, each to be compared with the other. `side` in the names below is the list that has the
// pairs.
struct Differences {
    List lists[2];
    u64* words[2];  // one more than the list has blocks, all zero: the first numbers the blocks
    uint2* out[2];
    u64 capacity[2];
    u64* totals[2];
};
ASSERT_LAYOUT(Differences, 112,
    AT(lists, 0) AT(words, 48) AT(out, 64) AT(capacity, 80) AT(totals, 96));

// Returns a pair as a number in the order of pairs. No pair is NO_PAIR.
DEVICE u64 code(uint2 pair) { return u64(pair.x) << 32 | pair.y; }
constexpr u64 NO_PAIR = ~0ull;

// Returns the first index in [from, to) of the sorted list whose pair is not below `pair`.
DEVICE u64 place_of(const uint2* list, u64 from, u64 to, u64 pair) {
    return partition_point(from, to, [&](u64 k) { return code(list[k]) < pair; });
}

// The same by a whole warp.
DEVICE u64 place_by_warp(const uint2* list, u64 from, u64 to, u64 pair) {
    return warp_partition_point(from, to, [&](u64 k) { return code(list[k]) < pair; });
}

extern "C" __global__ void __launch_bounds__(EVENT_THREADS) sap_differences(
    const __grid_constant__ Differences d) {
    __shared__ u64 bounds[2], before;
    __shared__ u32 sums[EVENT_WARPS], tile;
    const u32 side = blockIdx.y, warp = threadIdx.x / WARP, lane = lane_index();
    const uint2 *list = d.lists[side].pairs, *other = d.lists[1 - side].pairs;
    const u64 n = d.lists[side].len(), tiles = (n + EVENT_ITEMS - 1) / EVENT_ITEMS;
    u64* const total = d.totals[side];
    if (blockIdx.x >= tiles) {
        if (n == 0 && blockIdx.x == 0 && threadIdx.x == 0) *total = 0;
        return;
    }
    // As many blocks as there are tiles come here.
    if (threadIdx.x == 0) tile = u32(atomicAdd(d.words[side], 1ull));
    __syncthreads();
    const u64 first = u64(tile) * EVENT_ITEMS, end = min(first + EVENT_ITEMS, n);
    if (warp < 2) {
        const u64 other_n = d.lists[1 - side].len();
        const u64 place = place_by_warp(other, 0, other_n, code(list[warp == 0 ? first : end - 1]));
        // The last pair itself may be in `other`, so its index still counts.
        if (lane == 0) bounds[warp] = warp == 0 ? place : min(place + 1, other_n);
    }
    __syncthreads();
    const u64 own = first + warp * (EVENT_ROUNDS * WARP), to = bounds[1];
    // No pair from here on is below index `next`.
    u64 next = own < end ? place_by_warp(other, bounds[0], to, code(list[own])) : to;
    u64 pair[EVENT_ROUNDS];
    u32 marked[EVENT_ROUNDS], count = 0;
#pragma unroll
    for (u32 round = 0; round < EVENT_ROUNDS; round++) {
        const u64 k = own + round * WARP + lane;
        pair[round] = k < end ? code(list[k]) : NO_PAIR;
        const u64 same = next + lane < to ? code(other[next + lane]) : NO_PAIR;
        bool missing = false;
        if (__all_sync(ALL_LANES, k >= end || pair[round] == same)) {
            next += WARP;
        } else {
            u64 place = to;
            if (k < end) {
                const u64 close = min(next + 2 * WARP, to);
                const bool beyond = close > next && code(other[close - 1]) < pair[round];
                place = place_of(other, beyond ? close : next, beyond ? to : close, pair[round]);
                missing = place == to || code(other[place]) != pair[round];
            }
            // A lane has no pair only if no round is left.
            next = __shfl_sync(ALL_LANES, missing ? place : place + 1, WARP - 1);
        }
        marked[round] = __ballot_sync(ALL_LANES, missing);
        count += __popc(marked[round]);
    }
    if (lane == 0) sums[warp] = count;
    __syncthreads();
    if (warp == 0) {
        const u32 all = warp_sum(lane < EVENT_WARPS ? sums[lane] : 0);
        const u64 sum = LookBack<u64>::exchange(d.words[side] + 1, tile, all);
        if (lane == 0) {
            before = sum;
            if (tile == tiles - 1) *total = sum + all;
        }
    }
    __syncthreads();
    u64 at = add_warps_below<EVENT_WARPS>(before, sums, warp);
#pragma unroll
    for (u32 round = 0; round < EVENT_ROUNDS; round++) {
        const u64 place = at + __popc(marked[round] & lanes_below());
        if ((marked[round] >> lane & 1) && place < d.capacity[side]) {
            d.out[side][place] = make_uint2(u32(pair[round] >> 32), u32(pair[round]));
        }
        at += __popc(marked[round]);
    }
}

}  // namespace radsweep::sap
