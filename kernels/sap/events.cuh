// Phase 9: the differences of two sorted lists of pairs, the new and the last: the pairs of each that the other does not have, in order.
//
// One launch for both, the list by blockIdx.y. A block takes 1,024 pairs of its list. Two warps find where the first and the last of
// them would be in the other list, 32 probes at a time; each warp finds the place of its own first pair between. From there
// both lists are read side by side: most pairs last, so 32 pairs are usually the next 32 of the other list, and only where they are
// not is each searched for, close by. How many pairs the blocks before found is what they have published (offsets.cuh), so what is
// found is written at once: there is no list of marks, and no second pass.
//
// The host need not know how long the new list is: it launches for as many as there is room for, and blocks beyond the list do
// nothing. Nothing is written beyond the room for differences, but all are counted.
//
// 256 threads, 1,024 pairs a block. Bytes a pair of each list: 8 + 8 read; 8 written for each pair found. For 1.36 M pairs in each
// list 45 MB, mostly from L2: 12 us; a block takes about 6 us (7 probes and 4 rounds one after the other, and the look-back), two or
// three blocks after each other on the 8 x 132 places: 15 us. With few pairs 6 us and the launches, of which one fills the words.
#pragma once
#include "offsets.cuh"

constexpr u32 EVENT_THREADS = 256;
constexpr u32 EVENT_ITEMS = 1024;
constexpr u32 EVENT_WARPS = EVENT_THREADS / WARP;
constexpr u32 EVENT_ROUNDS = EVENT_ITEMS / EVENT_THREADS;

// A sorted list: as many pairs as `count` says if it is there, at most `n`.
struct List {
    const uint2* pairs;
    u64 n;
    const u64* count;
    __device__ __forceinline__ u64 len() const { return count ? min(n, *count) : n; }
};

// Two lists, each to be compared with the other; `side` of the names below is that of the list which has the pairs.
struct Differences {
    List lists[2];
    u64* words[2];  // one more than there are blocks for the list, all zero: the first numbers the blocks in the order they begin
    uint2* out[2];
    u64 room[2];
    u64* totals[2];
};

// A pair as a number in its order. None is NO_PAIR.
__device__ __forceinline__ u64 code(uint2 pair) { return (u64)pair.x << 32 | pair.y; }
constexpr u64 NO_PAIR = ~0ull;

// First place in [from, to) of the sorted list whose pair is not below.
__device__ __forceinline__ u64 place_of(const uint2* list, u64 from, u64 to, u64 pair) {
    while (from < to) {
        const u64 middle = from + (to - from) / 2;
        if (code(list[middle]) < pair) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

// The same by a whole warp: each step leaves a part in 33.
__device__ __forceinline__ u64 place_by_warp(const uint2* list, u64 from, u64 to, u64 pair) {
    while (from < to) {
        const u64 step = (to - from + WARP) / (WARP + 1);
        const u64 probe = from + (lane_index() + 1) * step - 1;
        const u32 below = __popc(__ballot_sync(ALL_LANES, probe < to && code(list[probe]) < pair));
        if (below < WARP) to = min(to, from + (below + 1) * step - 1);
        from += below * step;
    }
    return from;
}

extern "C" __global__ void __launch_bounds__(EVENT_THREADS) sap_differences(const __grid_constant__ Differences d) {
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
    if (threadIdx.x == 0) tile = (u32)atomicAdd(d.words[side], 1ull);
    __syncthreads();
    const u64 first = (u64)tile * EVENT_ITEMS, end = min(first + EVENT_ITEMS, n);
    if (warp < 2) {
        const u64 other_n = d.lists[1 - side].len();
        const u64 place = place_by_warp(other, 0, other_n, code(list[warp == 0 ? first : end - 1]));
        // The last pair itself may be in `other`, so its place still counts.
        if (lane == 0) bounds[warp] = warp == 0 ? place : min(place + 1, other_n);
    }
    __syncthreads();
    const u64 own = first + warp * (EVENT_ROUNDS * WARP), to = bounds[1];
    // No pair from here on has a place below `next`.
    u64 next = own < end ? place_by_warp(other, bounds[0], to, code(list[own])) : to;
    u64 pair[EVENT_ROUNDS];
    u32 marked[EVENT_ROUNDS], count = 0;
#pragma unroll
    for (u32 round = 0; round < EVENT_ROUNDS; ++round) {
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
            // The lane has no pair only where no round is left.
            next = __shfl_sync(ALL_LANES, missing ? place : place + 1, WARP - 1);
        }
        marked[round] = __ballot_sync(ALL_LANES, missing);
        count += __popc(marked[round]);
    }
    if (lane == 0) sums[warp] = count;
    __syncthreads();
    if (warp == 0) {
        const u32 all = warp_sum(lane < EVENT_WARPS ? sums[lane] : 0);
        u64* const words = d.words[side] + 1;
        uint64_t* const mine = reinterpret_cast<uint64_t*>(words + tile);
        if (lane == 0 && tile > 0) radsweep::store_relaxed(mine, OWN_SUM | all);
        const u64 sum = sum_before(words, tile);
        if (lane == 0) {
            radsweep::store_relaxed(mine, FULL_SUM | (sum + all));
            before = sum;
            if (tile == tiles - 1) *total = sum + all;
        }
    }
    __syncthreads();
    u64 at = before;
    for (u32 w = 0; w < warp; ++w) at += sums[w];
#pragma unroll
    for (u32 round = 0; round < EVENT_ROUNDS; ++round) {
        const u64 place = at + __popc(marked[round] & lanes_below());
        if ((marked[round] >> lane & 1) && place < d.room[side]) {
            d.out[side][place] = make_uint2((u32)(pair[round] >> 32), (u32)pair[round]);
        }
        at += __popc(marked[round]);
    }
}
