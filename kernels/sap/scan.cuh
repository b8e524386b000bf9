// Exclusive sums of 32-bit counts in 64 bits. `sums[n]` is the total, which `total` gets too.
//
// One block suffices. Its input is one count for a tile of 128 boxes or a block of 1,024 pairs: so
// few that a second level would cost more than it saves (100 M boxes: 96 rounds).
//
// 1,024 threads, 8 counts each a round. Bytes a count: 4 read, 8 written. 7,813 counts, of 10^6
// boxes, take 10 us, of which launching takes 2: a round waits for memory three times.
#pragma once
#include "block/scan.cuh"
#include "types.cuh"

namespace radsweep::sap {

constexpr u32 SCAN_THREADS = 1024;
constexpr u32 SCAN_ITEMS = 8;

extern "C" __global__ void __launch_bounds__(SCAN_THREADS) sap_scan(
    const u32* counts, u64 n, u64* sums, u64* total) {
    wait_for_stream();
    __shared__ u64 warp_sums[WARP];
    u64 before = 0;
    for (u64 round = 0; round < n; round += SCAN_THREADS * SCAN_ITEMS) {
        const u64 first = round + u64(threadIdx.x) * SCAN_ITEMS;
        u32 item[SCAN_ITEMS];
        u64 own = 0;
#pragma unroll
        for (u32 k = 0; k < SCAN_ITEMS; k++) {
            item[k] = first + k < n ? counts[first + k] : 0;
            own += item[k];
        }
        u64 all, sum = before + block_exclusive_sum<SCAN_THREADS / WARP>(own, warp_sums, all);
#pragma unroll
        for (u32 k = 0; k < SCAN_ITEMS; k++) {
            if (first + k < n) sums[first + k] = sum;
            sum += item[k];
        }
        before += all;
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        sums[n] = before;
        if (total) *total = before;
    }
}

}  // namespace radsweep::sap
