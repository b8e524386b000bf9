// L. Ha, J. Krueger, C. Silva, "Fast Four-Way Parallel Radix Sorting on GPUs", Computer Graphics
// Forum 28(8), 2009, section 6.1 "Broad-phase collision detection", as the strategy `Endpoints`. In
// place of phases 2 to 5 of the sweep (sap.cu):
//
//   a  Every box gives two records, its min and its max on x, each with the index of the box and a
//      bit that tells which.
//   b  The records are sorted by value; a min comes before a max of the same value, or after it
//      under the open rule.
//   c  A parallel scan over the bits numbers the boxes in order of their min. The number of mins
//      before the max of a box ends its run: the boxes whose min lies between its two records, the
//      paper's "out of order indices". As only mins are counted, each candidate pair is found once.
//   d  The candidates go through y and z.
//
// Departures from the paper:
// - A record is its index among the 2 n keys, 4 bytes that the index sort makes by itself. Which
//   end it is, and of which box, follows from the index: all mins are in the first half, or in the
//   second under the open rule. The sort is stable, so this is also the order of equal values,
//   without a bit in the key.
// - The overlap list of x is a range of positions for each box and is never written: `uniform`, n =
//   1 M, has 7 G candidates, 56 GB.
// - y and z are compared while the list is walked, by the sweep (sweep.cuh) in equal shares of 128
//   x 32 tests: one box whose records enclose all others keeps no thread waiting. Sorting the
//   remaining pairs once more for each axis would not shorten the list.
// - With worlds the key has 64 bits, world above value, so that no run leaves its world.
// - Empty boxes have the greatest key in both records and come last.
//
//   phase        bytes a box                                  launch
//   keys         24 r, 8 w (16 with worlds)                   a thread a box
//   sort         index sort of 2 n keys of 32 bits (64)
//   count        8 r                                          2,048 records a block of 256
//   scan         12 for 1,024 boxes                           one block (scan.cuh)
//   rank         8 r, 4 w in order, 4 w anywhere              2,048 records a block of 256
//   order        4 + 24 + 4 r (two from anywhere), 29 w       a warp a tile of 128 boxes
//   sweep        as there
//
// Predicted from the bytes for 10^6 boxes on an H200, and measured by the profiler (2026-11-30):
// keys 7 and 9.5 us, count 2 and 4.7, rank 10 and 20, order 29 and 40. keys and count are one wave
// of blocks, so the latency of a load adds to them. rank and order wait for sectors anywhere, 2.4
// and 5.2 million of L2: they issue in 15 % of the cycles.
//
// H200 on 2026-11-21, `uniform`, ms of an update and of its sort stage (b, c, order), and in
// parentheses those of `Sweep`: n = 10,000 0.18, 0.051 (0.19, 0.043); 100,000 0.27, 0.064 (0.30,
// 0.052); 1,000,000 2.79, 0.174 (2.79, 0.136). There is no axis to choose, which gains 0.01 to 0.03
// ms. Where x has more candidates than another axis the sweep takes longer.
#pragma once
#include "block/scan.cuh"
#include "tiles.cuh"
#include "types.cuh"

namespace radsweep::sap {

constexpr u32 RECORD_THREADS = 256;
constexpr u32 RECORD_ROUNDS = 8;  // of a thread; those of a warp are next to each other
constexpr u32 RECORD_TILE = RECORD_THREADS * RECORD_ROUNDS;

// Phase a. `keys` has n slots for the records that come first among equals, then n for the others.
template <class Key, class Make>
DEVICE void endpoint_keys(const Box* stored, u32 n, u32 open, Key* keys, Key last, Make make) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const Box box = load_box(stored + i);
    const bool empty = is_empty(box);
    const Key min = empty ? last : make(i, ordered(box.min[0])),
              max = empty ? last : make(i, ordered(box.max[0]));
    keys[i] = open ? max : min;
    keys[u64(n) + i] = open ? min : max;
}

extern "C" __global__ void __launch_bounds__(256) sap_endpoint_keys(
    const Box* stored, u32 n, u32 open, u32* keys) {
    wait_for_stream();
    endpoint_keys(stored, n, open, keys, 0xffffffffu, [](u32, u32 value) { return value; });
}

// `last_world` is the greatest world in use.
extern "C" __global__ void __launch_bounds__(256) sap_endpoint_keys_worlds(
    const Box* stored, u32 n, u32 open, const u32* worlds, u32 last_world, u64* keys) {
    wait_for_stream();
    endpoint_keys(
        stored, n, open, keys, u64(last_world) << 32 | 0xffffffffu,
        [=](u32 i, u32 value) { return u64(worlds[i]) << 32 | value; });
}

// The records of a warp, and which of them are mins.
struct Records {
    u32 record[RECORD_ROUNDS];
    u32 mins[RECORD_ROUNDS];
    u32 count;

    DEVICE Records(const u32* records, u32 n, u32 open) {
        const u64 all = 2ull * n, warp = (u64(blockIdx.x) * RECORD_THREADS + threadIdx.x) / WARP;
        count = 0;
#pragma unroll
        for (u32 k = 0; k < RECORD_ROUNDS; k++) {
            const u64 at = (warp * RECORD_ROUNDS + k) * WARP + lane_index();
            record[k] = at < all ? records[at] : NONE;
        }
#pragma unroll
        for (u32 k = 0; k < RECORD_ROUNDS; k++) {
            mins[k] = __ballot_sync(ALL_LANES, record[k] != NONE && (record[k] < n) != (open != 0));
            count += __popc(mins[k]);
        }
    }

    static constexpr u32 NONE = 0xffffffffu;  // above all indices: n is below 2^31
};

// Phase c, first half: the mins among each 2,048 records.
extern "C" __global__ void __launch_bounds__(RECORD_THREADS) sap_endpoint_count(
    const u32* records, u32 n, u32 open, u32* counts) {
    wait_for_stream();
    __shared__ u32 of_warp[RECORD_THREADS / WARP];
    const Records own(records, n, open);
    if (lane_index() == 0) of_warp[threadIdx.x / WARP] = own.count;
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 sum = 0;
        for (u32 warp = 0; warp < RECORD_THREADS / WARP; warp++) sum += of_warp[warp];
        counts[blockIdx.x] = sum;
    }
}

// Phase c, second half: boxes in order of their min, and by box how many mins come before its max.
// `before` has the sums of the `counts` before each.
extern "C" __global__ void __launch_bounds__(RECORD_THREADS) sap_endpoint_rank(
    const u32* records, u32 n, u32 open, const u64* before, u32* index, u32* until) {
    wait_for_stream();
    __shared__ u32 of_warp[RECORD_THREADS / WARP];
    const Records own(records, n, open);
    if (lane_index() == 0) of_warp[threadIdx.x / WARP] = own.count;
    __syncthreads();
    u32 rank = add_warps_below<RECORD_THREADS / WARP>(
        u32(before[blockIdx.x]), of_warp, threadIdx.x / WARP);
#pragma unroll
    for (u32 k = 0; k < RECORD_ROUNDS; k++) {
        const u32 record = own.record[k], box = record < n ? record : record - n;
        const u32 mins_before = rank + __popc(own.mins[k] & lanes_below());
        if (own.mins[k] >> lane_index() & 1) {
            index[mins_before] = box;
        } else if (record != Records::NONE) {
            until[box] = mins_before;
        }
        rank += __popc(own.mins[k]);
    }
}

// The runs are known.
struct Ranked {
    const u32* until;
    DEVICE u32 end(u32, u32 box, float, u32) const { return until[box]; }
};

extern "C" __global__ void __launch_bounds__(128) sap_endpoint_order(
    const u32* until, const u32* index, const Box* stored, u32 n, u32 tiles, u32 may_rest,
    State* state, Sorted out) {
    wait_for_stream();
    order(Ranked{until}, Ordered{index, stored, n, tiles}, may_rest, state, out);
}

}  // namespace radsweep::sap
