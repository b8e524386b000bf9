// The last block to end, which has the results of all others.
#pragma once

#include "common/types.cuh"

namespace radsweep {

// Returns, to all threads of the block, whether it is the last of `blocks` to come here. It sees
// what the others wrote before. `arrived` was 0 before the first.
DEVICE bool arrives_last(u32* arrived, u32 blocks) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(arrived, 1) == blocks - 1;
    __syncthreads();
    if (last) __threadfence();
    return last;
}

}  // namespace radsweep
