// Phase 7, by groups: pairs in the order of (a, b), of which a radix sort has ordered the top bits
// only. Keys with the same top bits are a group. A warp orders the groups that begin among its
// GROUP_KEYS keys, some groups or a part of one, and needs no other warp:
//
//   bounds  the first group that begins among these keys, and the first that begins behind them
//   count   keys by row, in shared memory: the range of all keys from bound to bound is divided
//           into GROUP_ROWS rows, of about one key each
//   place   the keys' indices to their rows
//   rank    a key's rank in its row is the number of smaller ones there
//
// Where a group is longer than LONGEST_GROUP, nothing is right, and the host sorts by all bits.
//
// Bytes a pair: 8 read and 8 written; keys are read five times, from L1 but once. Rows take 4.6 KB
// of shared memory a warp. Instructions of a thread: 75 a pair predicted, 190 issued, since lanes
// wait for the longest of 32 rows.
//
// H200 on 2026-11-26, 13.7 M pairs of 10^7 boxes: 223 us, where memory alone takes 52, and 435 with
// the sort of two digits, where that of all six and `unpack` take 645. Warps wait for shared memory
// and L1 in turn: a scheduler issues in a third of the cycles. Compared: a block for 3,072 keys,
// with its rows counted in windows, 250 us; a warp for 256 keys in blocks of eight 264; a sort of
// `a` alone, by three digits, and ranks from the keys on both sides, which takes 150 us with 1.4
// pairs a row but 270 with 13 (H100).
#pragma once
#include "types.cuh"

namespace radsweep::sap {

constexpr u32 GROUP_THREADS = 64;
constexpr u32 GROUP_KEYS = 512;  // of a warp
constexpr u32 LONGEST_GROUP = 1024;
constexpr u32 GROUP_ROWS = 512;

struct Groups {
    const u64* keys;  // ordered by `key >> shift`, as many as are counted, at most `capacity`
    u64 capacity;
    State* state;
    uint2* pairs;
    u32 bits;
    u32 shift;
};
ASSERT_LAYOUT(Groups, 40,
    AT(keys, 0) AT(capacity, 8) AT(state, 16) AT(pairs, 24) AT(bits, 32) AT(shift, 36));

// The shared memory of a warp.
struct GroupRows {
    alignas(
        16) u32 ends[GROUP_ROWS];  // the keys of each row, then where it begins, then where it ends
    unsigned short order[GROUP_KEYS + LONGEST_GROUP];
};

// Returns the first key of those from `from` to `to` with which a group begins, or `to`.
DEVICE u64 first_group(const Groups& p, u64 from, u64 to) {
    for (; from < to; from += WARP) {
        const u64 k = from + lane_index();
        const u64 key = k < to ? p.keys[k] : 0;
        u64 last = __shfl_up_sync(ALL_LANES, key, 1);
        if (lane_index() == 0 && k > 0) last = p.keys[k - 1];
        const u32 begins =
            __ballot_sync(ALL_LANES, k < to && (k == 0 || (last ^ key) >> p.shift != 0));
        if (begins != 0) return from + __ffs(int(begins)) - 1;
    }
    return to;
}

extern "C" __global__ void __launch_bounds__(GROUP_THREADS, 20) sap_order_groups(
    const __grid_constant__ Groups p) {
    constexpr u32 EACH = GROUP_ROWS / WARP / 4;
    __shared__ GroupRows shared[GROUP_THREADS / WARP];
    GroupRows& rows = shared[threadIdx.x / WARP];
    const u32 lane = lane_index();
    const u64 n = min(p.capacity, p.state->pairs);
    const u64 first = (u64(blockIdx.x) * blockDim.x + threadIdx.x) / WARP * GROUP_KEYS;
    const u64 behind = min(first + GROUP_KEYS, n), limit = min(behind + LONGEST_GROUP, n);
    if (first >= n) return;
    const u64 from = first_group(p, first, behind);
    if (from == behind) return;
    const u64 to = first_group(p, behind, limit);
    if (to == limit && limit < n) {
        if (lane == 0) p.state->longest = ~0ull;
        return;
    }
    const u64* keys = p.keys + from;
    const u32 count = u32(to - from);
    const u64 least = keys[0] >> p.shift << p.shift;
    const u64 range = (keys[count - 1] >> p.shift << p.shift) - least | (1ull << p.shift) - 1;
    const u32 row_shift = u32(max(64 - __clzll((long long)range) - 9, 0));
    static_assert(GROUP_ROWS == 1 << 9, "a row is the top 9 bits of the range");
    const auto row_of = [&](u64 key) { return u32((key - least) >> row_shift); };

#pragma unroll
    for (u32 k = 0; k < 4 * EACH; k++) rows.ends[k * WARP + lane] = 0;
    __syncwarp();
    for (u32 k = lane; k < count; k += WARP) atomicAdd(&rows.ends[row_of(keys[k])], 1u);
    __syncwarp();
    uint4 each[EACH], *ends = reinterpret_cast<uint4*>(rows.ends) + lane * EACH;
    u32 own = 0;
#pragma unroll
    for (u32 k = 0; k < EACH; k++) {
        each[k] = ends[k];
        own += each[k].x + each[k].y + each[k].z + each[k].w;
    }
    u32 begin = warp_inclusive_sum(own) - own;
#pragma unroll
    for (u32 k = 0; k < EACH; k++) {
        const u32 y = begin + each[k].x, z = y + each[k].y, w = z + each[k].z;
        ends[k] = make_uint4(begin, y, z, w);
        begin = w + each[k].w;
    }
    __syncwarp();
    for (u32 k = lane; k < count; k += WARP)
        rows.order[atomicAdd(&rows.ends[row_of(keys[k])], 1u)] = (unsigned short)k;
    __syncwarp();
    for (u32 k = lane; k < count; k += WARP) {
        const u64 key = keys[rows.order[k]];
        const u32 row = row_of(key), end = rows.ends[row];
        u32 other = row > 0 ? rows.ends[row - 1] : 0, rank = other;
        for (; other < end; other++) rank += keys[rows.order[other]] < key;
        p.pairs[from + rank] = make_uint2(u32(key >> p.bits), u32(key & ((1ull << p.bits) - 1)));
    }
}

}  // namespace radsweep::sap
