// Phase 7, by rows: pairs in the order of (a, b) without a sort of their keys. The pairs of one `a`
// are a row, and rows are short.
//
//   count     as pairs are written (emit.cuh): an atomic at its row gives each a slot there
//   offsets   where each row begins (offsets.cuh)
//   scatter   each pair to its row. Bytes a pair: 12 read, a sector of 32 for the row, 8 written
//   rank      a pair's rank is the number of smaller ones in its row: as many comparisons as the
//             row is long, of words that the warp reads together. Bytes a pair: 8 read, 8 written
//
// A radix sort of the packed keys reads and writes 16 bytes a pair in each of 5 passes (10^6
// boxes). Ranking a row of length k takes k^2 comparisons. So these kernels do nothing where a row
// is longer than LONGEST_ROW, and the host sorts by keys.
//
// H200 on 2026-11-21, 1.36 M pairs of 10^6 boxes: the sort and `unpack` take 108 us, these kernels
// 57. With 13.7 M pairs of 10^7 boxes rows and pairs do not stay in L2, and take 1,050 us: so many
// are ordered by groups (groups.cuh).
#pragma once
#include "types.cuh"

namespace radsweep::sap {

constexpr u32 ROWS_THREADS = 256;
constexpr u32 LONGEST_ROW = 256;

// One thread a pair, of which there are `state->pairs` at most.
extern "C" __global__ void __launch_bounds__(ROWS_THREADS) sap_rows_scatter(
    const u64* found, const u32* ranks, u64 capacity, const State* state, u32 bits, const u32* rows,
    u64* keys) {
    const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= min(capacity, state->pairs) || state->longest > LONGEST_ROW) return;
    const u64 key = found[i];
    keys[rows[key >> bits] + ranks[i]] = key;
}

extern "C" __global__ void __launch_bounds__(ROWS_THREADS) sap_rows_rank(
    const u64* keys, u64 capacity, const State* state, u32 bits, const u32* rows, uint2* pairs) {
    const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= min(capacity, state->pairs) || state->longest > LONGEST_ROW) return;
    const u64 key = keys[i];
    const u32 a = u32(key >> bits), start = rows[a], end = rows[a + 1];
    u32 rank = start;
    for (u32 k = start; k < end; k++) rank += keys[k] < key;
    pairs[rank] = make_uint2(a, u32(key & ((1ull << bits) - 1)));
}

}  // namespace radsweep::sap
