// The part of CUDA's header of this name that the kernels use.
#pragma once

namespace cooperative_groups {

// All blocks of a cooperative launch.
struct grid_group {
    using arrival_token = unsigned;

    arrival_token barrier_arrive() const {
        if (emu_self->block->arrived == nullptr) emu_fail("a barrier of the grid in a launch that is not cooperative");
        __syncthreads();
        return threadIdx.x == 0 ? __atomic_fetch_add(emu_self->block->arrived, 1, __ATOMIC_ACQ_REL) : 0;
    }
    void barrier_wait(arrival_token&& before) const {
        const unsigned blocks = gridDim.x * gridDim.y, all = (before / blocks + 1) * blocks;
        while (threadIdx.x == 0 && radsweep::load_acquire(emu_self->block->arrived) < all) {}
        __syncthreads();
    }
    void sync() const { barrier_wait(barrier_arrive()); }
};
static inline grid_group this_grid() { return {}; }

}  // namespace cooperative_groups
