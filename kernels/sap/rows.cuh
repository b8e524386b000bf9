// Phase 7, by rows: pairs in the order of (a, b) without a sort of their keys. The pairs of one `a`
// are a row, and rows are short.
//
//   count     as pairs are written (emit.cuh): an atomic at its row gives each a slot there
//   offsets   where each row begins (offsets.cuh)
//   scatter   each pair to its row. Bytes a pair: 12 read, a sector of 32 for the row, 8 written
//   rank      a pair's rank is the number of smaller ones in its row: as many comparisons as the
//             row is long, of words that the warp reads together. Bytes a pair: 8 read, 8 written
//
// This is for graphs of up to some 500,000 pairs, which no host watches: any rows are put in order.
// More pairs have counted bins (bins.cuh). A row that is longer than LONGEST_ROW has blocks of its
// own, which order its second indices by bits (block/bit_order.cuh), 73,728 boxes at a time: for so
// many a block reads the row. Other frames have bins whose room a host must watch.
//
// H200, 2026-11-29: a graph takes 24.7 us for 10^4 boxes, 41.4 for 10^5 and would take 230 for 10^6
// (1.36 M pairs); with a sort of the keys 38.8, 58.8 and 270 (2026-11-26). Recorded before one of
// them came to overlap all others it takes 40, 180 and 1340 us. Where one block took the whole row,
// for one part of the boxes after the other, the last was 26.6 ms: a block has few loads on their
// way, so it waits for memory. Recorded again, it sorts: 53, 88 and 307 us.
#pragma once
#include "block/bit_order.cuh"
#include "types.cuh"

namespace radsweep::sap {

constexpr u32 ROWS_THREADS = 256;
constexpr u32 LONGEST_ROW = 256;

struct Rows {
    const u64* found;
    const u32* ranks;  // of each pair found, how many of its row came before
    const u32* rows;   // where each begins
    u64* keys;         // the pairs by row
    uint2* pairs;
    const State* state;
    u64 capacity;
    u32 bits;

    // The number of pairs to put in order.
    DEVICE u64 count() const { return min(capacity, state->pairs); }

    // Writes a key of a row as the pair of its rank.
    DEVICE void rank(u64 key, u32 start, u32 end) const {
        u32 rank = start;
        for (u32 k = start; k < end; k++) rank += keys[k] < key;
        pairs[rank] = make_uint2(u32(key >> bits), u32(key & ((1ull << bits) - 1)));
    }
};
ASSERT_LAYOUT(Rows, 64,
    AT(found, 0) AT(ranks, 8) AT(rows, 16) AT(keys, 24) AT(pairs, 32) AT(state, 40)
    AT(capacity, 48) AT(bits, 56));

// One thread a pair.
extern "C" __global__ void __launch_bounds__(ROWS_THREADS) sap_rows_scatter(
    const __grid_constant__ Rows p) {
    wait_for_stream();
    const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= p.count()) return;
    const u64 key = p.found[i];
    p.keys[p.rows[key >> p.bits] + p.ranks[i]] = key;
}

extern "C" __global__ void __launch_bounds__(ROWS_THREADS) sap_rows_rank(const
                                                                         __grid_constant__ Rows p) {
    wait_for_stream();
    __shared__ BitOrder<ROWS_THREADS, 9> shared;
    const u64 first = u64(blockIdx.x) * ROWS_THREADS, i = first + threadIdx.x, count = p.count();
    if (first >= count) return;
    if (i < count) {
        const u64 key = p.keys[i];
        const u32 a = u32(key >> p.bits), start = p.rows[a], end = p.rows[a + 1];
        if (end - start <= LONGEST_ROW) p.rank(key, start, end);
    }
    // A long row has the blocks whose first key is one of its own: at least one.
    static_assert(LONGEST_ROW >= ROWS_THREADS);
    const u32 a = u32(p.keys[first] >> p.bits), start = p.rows[a], end = p.rows[a + 1];
    if (end - start <= LONGEST_ROW) return;
    const u32 block = (start + ROWS_THREADS - 1) / ROWS_THREADS;
    // Low words: keys are 64 bits wide, little-endian.
    const u32 *const words = reinterpret_cast<const u32*>(p.keys + start),
                     mask = (1ull << p.bits) - 1;
    uint2* const pairs = p.pairs + start;
    shared.order<8>(
        end - start, p.bits, blockIdx.x - block, (end - 1) / ROWS_THREADS + 1 - block,
        [&](u32 k) { return words[2 * k] & mask; },
        [&](u32 rank, u32 b) { pairs[rank] = make_uint2(a, b); });
}

}  // namespace radsweep::sap
