// Phase 2: the sweep axis. The axis on which the fewest pairs of a sample overlap: that is the cost of the sweep itself,
// measured, so neither infinite boxes nor outliers nor clusters mislead it. The sample has a box from each of m stretches, m
// of 192 to 2,048, at no fixed place in it as scenes often repeat with some period. The counts are integers: the same boxes
// give the same axis, and without worlds it is the one that the CPU engine takes (crates/sap/src/cpu/plan.rs). With worlds only pairs of one world count. Ties go to the lower axis.
//
// Grid (m / 32, 3) blocks of 256 threads: each compares 32 boxes with all of the sample on one axis, 2 M tests an axis in
// all. 24 KB of shared memory.
#pragma once
#include "types.cuh"

constexpr u32 MOST_SAMPLED = 2048;

extern "C" __global__ void __launch_bounds__(256)
    sap_axis(const Box* stored, const u32* worlds, u32 n, u32 sampled, State* state) {
    __shared__ float low[MOST_SAMPLED], high[MOST_SAMPLED];
    __shared__ u32 world[MOST_SAMPLED];
    const u32 axis = blockIdx.y;
    for (u32 k = threadIdx.x; k < sampled; k += blockDim.x) {
        const u32 start = (u32)((u64)k * n / sampled), end = (u32)((u64)(k + 1) * n / sampled);
        const u32 i = start + (k * 0x9e3779b9u >> 7) % (end - start);
        const Box box = load_box(stored + i);
        world[k] = worlds ? worlds[i] : 0;
        // No comparison with NaN holds, so empty boxes count nowhere.
        const bool empty = is_empty(box);
        low[k] = empty ? __int_as_float(0x7fffffff) : pick(box.min, axis);
        high[k] = empty ? __int_as_float(0x7fffffff) : pick(box.max, axis);
    }
    __syncthreads();

    // A lane has one box; its warp walks through every eighth of the others, each read by all lanes at once.
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
    if (lane_index() == 0 && tests > 0) atomicAdd(&state->axis_tests[axis], (u64)tests);

    // The last block to come has all sums before it.
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(&state->axis_blocks, 1ull) == (u64)gridDim.x * gridDim.y - 1) {
        __threadfence();
        const volatile u64* sums = state->axis_tests;
        u64 best = sums[1] < sums[0] ? 1 : 0;
        if (sums[2] < sums[best]) best = 2;
        state->axis = best;
    }
}
