// Phase 2: the sweep axis, on which the fewest pairs of a sample overlap. That measures the cost of
// the sweep itself, so neither infinite boxes nor outliers nor clusters mislead it. Ties go to the
// lower axis.
//
// The sample has one box from each of m stretches of the boxes, m from 192 to 2,048
// (`sampled_box`). The counts are integers, so the same boxes give the same axis. Without worlds it
// is the axis that the CPU engine takes (crates/sap/src/cpu/full/plan.rs). With worlds only pairs
// of one world count.
//
// A grid of (m / 32, 3) blocks of 256 threads: each block compares 32 boxes with the whole sample
// on one axis, 2 M tests an axis in all. 24 KB of shared memory. 8.3 M instructions of warps, 9 us
// of all multiprocessors; measured 34. There are too few warps: 192 blocks fill 18 % of the places,
// and each thread makes 256 tests one after another. It runs where the sweep is chosen, which takes
// milliseconds.
#pragma once
#include "types.cuh"

namespace radsweep::sap {

constexpr u32 MAX_SAMPLED = 2048;

extern "C" __global__ void __launch_bounds__(256) sap_axis(
    const Box* stored, const u32* worlds, u32 n, u32 sampled, State* state) {
    wait_for_stream();
    __shared__ float low[MAX_SAMPLED], high[MAX_SAMPLED];
    __shared__ u32 world[MAX_SAMPLED];
    const u32 axis = blockIdx.y;
    for (u32 k = threadIdx.x; k < sampled; k += blockDim.x) {
        const u32 i = sampled_box(k, n, sampled);
        const Box box = load_box(stored + i);
        world[k] = worlds ? worlds[i] : 0;
        // Empty boxes count nowhere, as no comparison with NaN holds.
        const bool empty = is_empty(box);
        low[k] = empty ? __int_as_float(0x7fffffff) : pick(box.min, axis);
        high[k] = empty ? __int_as_float(0x7fffffff) : pick(box.max, axis);
    }
    __syncthreads();

    // A lane has one box. Its warp walks through every eighth of the others; all lanes read the
    // same one.
    const u32 i = blockIdx.x * WARP + lane_index();
    u32 tests = 0;
    if (i < sampled) {
        const float min_i = low[i], max_i = high[i];
        const u32 world_i = world[i];
        for (u32 j = threadIdx.x / WARP; j < sampled; j += 256 / WARP) {
            tests += j > i && world[j] == world_i && min_i <= high[j] && low[j] <= max_i;
        }
    }
    tests = warp_sum(tests);
    if (lane_index() == 0 && tests > 0) atomicAdd(&state->axis_tests[axis], u64(tests));

    // The last block to arrive sees the sums of all.
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 &&
        atomicAdd(&state->axis_blocks, 1ull) == u64(gridDim.x) * gridDim.y - 1) {
        __threadfence();
        const volatile u64* sums = state->axis_tests;
        u64 best = sums[1] < sums[0] ? 1 : 0;
        if (sums[2] < sums[best]) best = 2;
        state->axis = best;
    }
}

}  // namespace radsweep::sap
