// Phase 8: sorted keys a * 2^bits + b to pairs of 32-bit indices, `a` before `b` in memory.
//
// One thread a slot of the list, of which `count` are taken at most. Bytes a pair: 8 read, 8
// written. 1.36 M pairs in 2 M slots: predicted 5 us and 2 to launch, measured 12; threads of empty
// slots cost the rest.
#pragma once
#include "types.cuh"

namespace radsweep::sap {

extern "C" __global__ void __launch_bounds__(256) sap_unpack(
    const u64* keys, u64 n, const u64* count, u32 bits, uint2* pairs) {
    wait_for_stream();
    const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= min(n, *count)) return;
    const u64 key = keys[i];
    pairs[i] = make_uint2(u32(key >> bits), u32(key & ((1ull << bits) - 1)));
}

}  // namespace radsweep::sap
