// The counters of an update go to memory of the host, and then the number of the read that waits
// for them. One warp; bytes: 272 read, and 280 written.
//
// Predicted: a copy and a wait by the driver end 5 to 9 us later. Whole updates on an H200
// (2026-12-01, without times, one run with the driver's): 10^4 boxes 32 to 37 us instead of 37 to
// 40, 10^5 47 instead of 53, 10^6 191 instead of 200; by a neighbour list 10^4 19 instead of 28 to
// 33, 10^6 73 and 74 instead of 82 and 85. One to two of these are a second wait at the end, which
// is left out since. The kernel takes 3.3 us alone, of which launching takes 2. What is left of the
// wait are the launches before.
#pragma once
#include "types.cuh"

namespace radsweep::sap {

// `to` has memory for `words` counters, and for the number behind them.
extern "C" __global__ void __launch_bounds__(32) sap_send_counters(
    const u64* counters, u32 words, u64* to, u64 number) {
    wait_for_stream();
    // Past the first-level cache, which may have them as they were before.
    for (u32 i = threadIdx.x; i < words; i += WARP) to[i] = __ldcg(counters + i);
    __syncwarp();
    if (threadIdx.x != 0) return;
    __threadfence_system();
    *const_cast<volatile u64*>(to + words) = number;
}

}  // namespace radsweep::sap
