// Some boxes of a frame that is else as the last was, with their filters and worlds: 48 bytes read and as many written, one
// thread each. A box that comes twice is the same both times.
#pragma once
#include "types.cuh"

struct Patch {
    u64 box[3];
    u32 filter[4];
    u32 index, world;
};

extern "C" __global__ void __launch_bounds__(256)
sap_patch(const Patch* patches, u64 n, u64* boxes, u32* filters, u32* worlds) {
    const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const Patch p = patches[i];
    const u64 at = p.index;
    for (int word = 0; word < 3; ++word) boxes[3 * at + word] = p.box[word];
    if (filters) {
        for (int word = 0; word < 4; ++word) filters[4 * at + word] = p.filter[word];
    }
    if (worlds) worlds[at] = p.world;
}
