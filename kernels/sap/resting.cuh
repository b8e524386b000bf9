// The resting set: static and sleeping boxes that are unchanged for some frames. They have a grid
// of their own, which is made once, and the pairs among them (a static box and a sleeping one) are
// a list. A frame sorts and tests the other boxes only, and looks those up in that grid
// (grid_resting.cuh).
//
// Of 10^6 boxes split_count takes 7.2 us and split 8.3 (predicted 4 and 5 by their bytes, and 2 to
// launch). A frame in which 10,000 of them are active takes 47 us, of which 27 read and check all
// boxes.
//
// Once, when the set is made:
//   split_count    the boxes that do not rest, by block; bytes a box: 16 read
//   split          the indices of both kinds, in order, from the scanned counts; bytes a box:
//                  16 read, 4 written
// Each frame:
//   gather_boxes   the boxes that do not rest, next to each other; bytes a box: 4 + 24 read, 24
//                  written
//   translate      indices in the order of the sweep to those in the frame; bytes a box: 4 + 4
//                  read, 4 written
//   add_pairs      the pairs of the resting set; bytes a pair: 8 read, 8 written, or 4 to its bin
#pragma once
#include "block/scan.cuh"
#include "emit.cuh"
#include "types.cuh"

namespace radsweep::sap {

constexpr u32 SPLIT_THREADS = 256;

DEVICE bool is_active(const uint4* filters, u32 i, u32 n) {
    return i < n && (filters[i].w & STATIC_OR_ASLEEP) == 0;
}

extern "C" __global__ void __launch_bounds__(SPLIT_THREADS) sap_split_count(
    const uint4* filters, u32 n, u32* counts) {
    wait_for_stream();
    const int count =
        __syncthreads_count(is_active(filters, blockIdx.x * SPLIT_THREADS + threadIdx.x, n));
    if (threadIdx.x == 0) counts[blockIdx.x] = u32(count);
}

extern "C" __global__ void __launch_bounds__(SPLIT_THREADS) sap_split(
    const uint4* filters, u32 n, const u64* before, u32* active, u32* resting) {
    wait_for_stream();
    __shared__ u32 counts[SPLIT_THREADS / WARP];
    const u32 i = blockIdx.x * SPLIT_THREADS + threadIdx.x, warp = threadIdx.x / WARP;
    const bool own = is_active(filters, i, n);
    const u32 mask = __ballot_sync(ALL_LANES, own);
    if (lane_index() == 0) counts[warp] = __popc(mask);
    __syncthreads();
    u32 slot = u32(before[blockIdx.x]) + __popc(mask & lanes_below());
    slot = add_warps_below<SPLIT_THREADS / WARP>(slot, counts, warp);
    if (i >= n) return;
    if (own) {
        active[slot] = i;
    } else {
        resting[i - slot] = i;
    }
}

extern "C" __global__ void __launch_bounds__(256) sap_gather_boxes(
    const Box* stored, const u32* worlds, const u32* ids, u32 n, Box* boxes, u32* box_worlds) {
    wait_for_stream();
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n) return;
    const u32 i = ids[k];
    store_box(boxes + k, load_box(stored + i));
    if (worlds) box_worlds[k] = worlds[i];
}

extern "C" __global__ void __launch_bounds__(256) sap_translate(const u32* ids, u32 n, u32* index) {
    wait_for_stream();
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < n) index[k] = ids[index[k]];
}

// Writes the first of the frame's pairs, before any is found.
extern "C" __global__ void __launch_bounds__(256) sap_add_pairs(
    const u64* resting, u64 n, const __grid_constant__ Keys to, State* state) {
    wait_for_stream();
    const u64 k = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (k == 0) state->pairs = n;
    if (k < n) to.put(k, resting[k]);
}

}  // namespace radsweep::sap
