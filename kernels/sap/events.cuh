// Phase 9: the difference of two sorted lists of pairs: those of `list` that `other` does not have, in order.
//
// `sap_missing` marks them, one bit each, and counts them by block; `sap_scan` turns the counts into places;
// `sap_gather` writes. The lists are alike from frame to frame, so the part of `other` that a block of 1,024 needs is
// about as long: two searches by the block find it, and each thread searches in there, in L1.
//
// The host need not know how long the new list is: it launches for as many as there is room for, and blocks beyond the list
// count nothing. Nothing is written beyond the room for differences, but all are counted.
//
// 256 threads, 1,024 pairs a block. Bytes a pair: 8 + 8 read, 1/8 written; then 1/8 and 8 for each pair found.
#pragma once
#include "types.cuh"

constexpr u32 EVENT_THREADS = 256;
constexpr u32 EVENT_ITEMS = 1024;
constexpr u32 EVENT_WORDS = EVENT_ITEMS / WARP;  // words of marks a block

// A sorted list: as many pairs as `count` says if it is there, at most `n`.
struct List {
    const uint2* pairs;
    u64 n;
    const u64* count;
    __device__ __forceinline__ u64 len() const { return count ? min(n, *count) : n; }
};

// A pair as a number in its order.
__device__ __forceinline__ u64 code(uint2 pair) { return (u64)pair.x << 32 | pair.y; }

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

extern "C" __global__ void __launch_bounds__(EVENT_THREADS)
    sap_missing(const __grid_constant__ List of, const __grid_constant__ List from, u32* marks, u32* counts) {
    __shared__ u64 bounds[2];
    __shared__ u32 found[EVENT_THREADS / WARP];
    const uint2 *list = of.pairs, *other = from.pairs;
    const u64 n = of.len(), other_n = from.len();
    const u64 first = (u64)blockIdx.x * EVENT_ITEMS;
    if (first >= n) {
        if (threadIdx.x == 0) counts[blockIdx.x] = 0;
        return;
    }
    if (threadIdx.x < 2) {
        const u64 last = min(first + EVENT_ITEMS, n) - 1;
        // The last pair itself may be in `other`, so its place still counts.
        const u64 place = place_of(other, 0, other_n, code(list[threadIdx.x == 0 ? first : last]));
        bounds[threadIdx.x] = threadIdx.x == 0 ? place : min(place + 1, other_n);
    }
    __syncthreads();
    u32 count = 0;
    for (u32 k = threadIdx.x; k < EVENT_ITEMS; k += EVENT_THREADS) {
        bool missing = false;
        if (first + k < n) {
            const u64 pair = code(list[first + k]);
            const u64 place = place_of(other, bounds[0], bounds[1], pair);
            missing = place == bounds[1] || code(other[place]) != pair;
        }
        const u32 marked = __ballot_sync(ALL_LANES, missing);
        if (lane_index() == 0) marks[(first + k) / WARP] = marked;
        count += __popc(marked);
    }
    if (lane_index() == 0) found[threadIdx.x / WARP] = count;
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 sum = 0;
        for (u32 warp = 0; warp < EVENT_THREADS / WARP; ++warp) sum += found[warp];
        counts[blockIdx.x] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(EVENT_THREADS)
    sap_gather(const __grid_constant__ List of, const u32* marks, const u64* places, uint2* out, u64 room) {
    __shared__ u32 before[EVENT_WORDS];
    const u64 first = (u64)blockIdx.x * EVENT_ITEMS, place = places[blockIdx.x];
    if (place == places[blockIdx.x + 1]) return;
    if (threadIdx.x < EVENT_WORDS) {
        const u32 own = __popc(marks[first / WARP + threadIdx.x]);
        before[threadIdx.x] = (u32)warp_scan(own) - own;
    }
    __syncthreads();
    for (u32 k = threadIdx.x; k < EVENT_ITEMS; k += EVENT_THREADS) {
        const u32 marked = marks[(first + k) / WARP];
        if (marked >> lane_index() & 1) {
            const u64 to = place + before[k / WARP] + __popc(marked & lanes_below());
            if (to < room) out[to] = of.pairs[first + k];
        }
    }
}
