// Phase 3: sort keys. A key is `min` on the sweep axis, as unsigned bits of the same order. With
// worlds the world stands above it, so that no sweep leaves its world. Empty boxes get the greatest
// key: they come last and no sweep reaches them.
//
// One thread a box. Bytes a box: 24 read (all sectors are touched), 4 or 8 written. 10^6 boxes:
// predicted 6.5 us by these bytes, measured 8.9, of which launching takes 2.
#pragma once
#include "types.cuh"

namespace radsweep::sap {

extern "C" __global__ void __launch_bounds__(256) sap_keys(
    const Box* stored, u32 n, const State* state, u32* keys) {
    wait_for_stream();
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const Box box = load_box(stored + i);
    keys[i] = is_empty(box) ? 0xffffffffu : ordered(pick(box.min, u32(state->axis)));
}

// `last_world` is the greatest world in use. Empty boxes come after all its boxes, whose low halves
// are below 2^32 - 1.
extern "C" __global__ void __launch_bounds__(256) sap_keys_worlds(
    const Box* stored, u32 n, const State* state, const u32* worlds, u32 last_world, u64* keys) {
    wait_for_stream();
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const Box box = load_box(stored + i);
    const u64 low = ordered(pick(box.min, u32(state->axis)));
    keys[i] = is_empty(box) ? u64(last_world) << 32 | 0xffffffffu : u64(worlds[i]) << 32 | low;
}

}  // namespace radsweep::sap
