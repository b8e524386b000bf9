// Boxes held apart: static and sleeping ones that have been as they are for some frames. They stand in a grid of their own, which
// is made once, and the pairs among them (a static box and a sleeping one) are a list; so a frame sorts and tests the others only,
// and those against the grid (grid_apart.cuh).
//
// Once, when they are set apart:
//   split_count    the boxes that are not, by block; bytes a box: 16 read
//   split          the numbers of both kinds, in order, after the counts were scanned; bytes a box: 16 read, 4 written
// Each frame:
//   gather_boxes   the boxes not held, next to each other; bytes a box: 4 + 24 read, 24 written
//   number         places in the order of the sweep to numbers in the frame; bytes a box: 4 + 4 read, 4 written
//   seed           the pairs held; bytes a pair: 8 read, 8 written, 8 more to count its row
#pragma once
#include "emit.cuh"
#include "types.cuh"

constexpr u32 SPLIT_THREADS = 256;

__device__ __forceinline__ bool moves(const uint4* filters, u32 i, u32 n) { return i < n && (filters[i].w & STATIC_OR_ASLEEP) == 0; }

extern "C" __global__ void __launch_bounds__(SPLIT_THREADS) sap_split_count(const uint4* filters, u32 n, u32* counts) {
    const int count = __syncthreads_count(moves(filters, blockIdx.x * SPLIT_THREADS + threadIdx.x, n));
    if (threadIdx.x == 0) counts[blockIdx.x] = (u32)count;
}

extern "C" __global__ void __launch_bounds__(SPLIT_THREADS)
    sap_split(const uint4* filters, u32 n, const u64* before, u32* moving, u32* held) {
    __shared__ u32 counts[SPLIT_THREADS / WARP];
    const u32 i = blockIdx.x * SPLIT_THREADS + threadIdx.x, warp = threadIdx.x / WARP;
    const bool free = moves(filters, i, n);
    const u32 mask = __ballot_sync(ALL_LANES, free);
    if (lane_index() == 0) counts[warp] = __popc(mask);
    __syncthreads();
    u32 place = (u32)before[blockIdx.x] + __popc(mask & lanes_below());
    for (u32 w = 0; w < warp; ++w) place += counts[w];
    if (i >= n) return;
    if (free) {
        moving[place] = i;
    } else {
        held[i - place] = i;
    }
}

extern "C" __global__ void __launch_bounds__(256)
    sap_gather_boxes(const Box* stored, const u32* worlds, const u32* ids, u32 n, Box* boxes, u32* box_worlds) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n) return;
    const u32 i = ids[k];
    store_box(boxes + k, load_box(stored + i));
    if (worlds) box_worlds[k] = worlds[i];
}

extern "C" __global__ void __launch_bounds__(256) sap_number(const u32* ids, u32 n, u32* index) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < n) index[k] = ids[index[k]];
}

// The first of the frame's pairs: none has been found yet.
extern "C" __global__ void __launch_bounds__(256)
    sap_seed(const u64* held, u64 n, const __grid_constant__ Keys to, State* state) {
    const u64 k = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (k == 0) state->pairs = n;
    if (k >= min(n, to.capacity)) return;
    const u64 key = held[k];
    to.keys[k] = key;
    if (to.rows) to.ranks[k] = atomicAdd(&to.rows[key >> to.bits], 1u);
}
