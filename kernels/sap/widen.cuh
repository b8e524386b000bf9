// Converts f32 boxes to f64, for one of two sets whose other set is tested in f64. One thread a
// coordinate. Bytes: 4 read, 8 written. Not timed: by these bytes 10^6 boxes take 17 us.
#pragma once
#include "types.cuh"

namespace radsweep::sap {

extern "C" __global__ void __launch_bounds__(256) sap_widen(
    const float* stored, u64 numbers, double* exact) {
    wait_for_stream();
    const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < numbers) exact[i] = stored[i];
}

}  // namespace radsweep::sap
