// Phase 5: boxes in sorted order, how far each sweeps, and the work list.
//
// A position is an index in the sorted order. A tile is 128 consecutive positions: the boxes that a
// warp of the sweep has in registers, four a lane. A chunk is 32 positions, which the warp compares
// them with at once. The box at position i sweeps the positions (i, end): those that begin on the
// axis before it ends. `end` is found by binary search in the keys. The sum of all these runs is
// the number of candidates.
//
// Within a tile the boxes are dealt to four sets of 32 by how far they sweep, longest first, so
// that the sweep drops whole sets as it proceeds. With lengths spread evenly over 0.4 to 1.0, tests
// beyond a box's own end fall from 43% to 11%.
//
// One warp a tile. Bytes a box: 4 + 24 read (the box from anywhere), 16 + 8 + 4 + 1 written. About
// 20 + log2(n) loads of keys, near each other within a warp and so mostly from L1, and 450
// instructions a lane to deal the sets. 10^6 boxes: predicted 35 us, measured 63. Boxes come from
// anywhere: 340 MB of sectors from L2, where 61 are needed, for which 83 % of all warps wait.
#pragma once
#include "block/bitonic.cuh"
#include "common/search.cuh"
#include "types.cuh"

namespace radsweep::sap {

constexpr u32 CHUNK = 32;
constexpr u32 SETS = 4;
constexpr u32 TILE = SETS * WARP;
constexpr u32 CHUNKS_IN_TILE = TILE / CHUNK;

// Boxes in sorted order. All arrays are padded to whole tiles.
struct Sorted {
    float4* sides;  // min, max, min, max on the two axes that are not swept
    float2* span;   // min, max on the sweep axis
    u32* end;       // one past the last position swept
    u32* slots;    // by tile and lane: offsets in the tile of its boxes in sets 0 to 3, a byte each
    uint4* reach;  // by tile: chunks from its first to the last that each set sweeps; descending
    u32* units;    // by tile: chunks to sweep = reach.x
    u64* first_unit;  // by tile: sum of `units` before it; one more entry holds them all
};
ASSERT_LAYOUT(Sorted, 56,
    AT(sides, 0) AT(span, 8) AT(end, 16) AT(slots, 24) AT(reach, 32) AT(units, 40)
    AT(first_unit, 48));

// Returns the first position in [from, to) whose key is above `key`, or not below it when `open`.
template <class Key>
DEVICE u32 search(const Key* keys, u32 from, u32 to, Key key, bool open) {
    return partition_point(from, to, [&](u32 k) { return open ? keys[k] < key : keys[k] <= key; });
}

DEVICE u32 upper_key(u32, float max) { return ordered(max); }
DEVICE u64 upper_key(u64 own, float max) { return (own >> 32 << 32) | ordered(max); }

// Finds where the run of the box at position i < live ends, by search in the sorted keys.
// `Endpoints` knows it already (endpoints.cuh).
template <class Key>
struct Searched {
    const Key* keys;
    u32 open;
    DEVICE u32 end(u32 i, u32, float max, u32 live) const {
        return search(keys, i + 1, live, upper_key(keys[i], max), open != 0);
    }
};

// The boxes, and their order.
struct Ordered {
    const u32* index;
    const Box* stored;
    u32 n, tiles;
};

template <class Runs>
DEVICE void order(
    const Runs& runs, const Ordered& in, u32 may_rest, State* state, const Sorted& out) {
    const u32 tile = (blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    const u32 lane = lane_index();
    if (tile >= in.tiles) return;
    // Nothing moved since the last update, whose result is valid: there is nothing to sweep. The
    // host's name for `may_rest` is `may_skip`.
    if (may_rest && state->changed == 0) {
        if (lane == 0) out.units[tile] = 0;
        return;
    }
    const u32 axis = u32(state->axis), side = axis == 0 ? 1 : 0, other_side = axis == 2 ? 1 : 2;
    const u32 live = in.n - u32(state->empty);
    const u32 start = tile * TILE;

    // A value to deal by: the chunks to sweep above the offset in the tile. More chunks than 25
    // bits can count are taken as all.
    constexpr u32 MAX_CHUNKS = (1u << 25) - 1;
    u32 value[SETS];
    u64 candidates = 0;
#pragma unroll
    for (u32 k = 0; k < SETS; k++) {
        const u32 offset = k * WARP + lane, i = start + offset;
        const u32 own = i < in.n ? in.index[i] : 0;
        const Box box = i < in.n ? load_box(in.stored + own) : empty_box();
        out.sides[i] = make_float4(
            pick(box.min, side), pick(box.max, side), pick(box.min, other_side),
            pick(box.max, other_side));
        const float max = pick(box.max, axis);
        out.span[i] = make_float2(pick(box.min, axis), max);
        u32 end = 0;
        if (i < live) end = runs.end(i, own, max, live);
        out.end[i] = end;
        u32 chunks = 0;
        if (end > i + 1) {
            candidates += end - i - 1;
            chunks = min((end - 1) / CHUNK + 1 - start / CHUNK, MAX_CHUNKS);
        }
        value[k] = chunks * TILE | offset;
    }
    candidates = warp_sum(candidates);
    if (lane == 0 && candidates > 0) atomicAdd(&state->tests, candidates);

    warp_bitonic_sort<true>(value);
    u32 slots = 0, reach[SETS];
#pragma unroll
    for (u32 k = 0; k < SETS; k++) {
        slots |= value[k] % TILE << 8 * k;
        reach[k] = __shfl_sync(ALL_LANES, value[k] / TILE, 0);
        if (reach[k] == MAX_CHUNKS) reach[k] = (live - 1) / CHUNK + 1 - start / CHUNK;
    }
    out.slots[tile * WARP + lane] = slots;
    if (lane == 0) {
        out.reach[tile] = make_uint4(reach[0], reach[1], reach[2], reach[3]);
        out.units[tile] = reach[0];
    }
}

extern "C" __global__ void __launch_bounds__(128) sap_order(
    const u32* keys, const u32* index, const Box* stored, u32 n, u32 tiles, u32 open, u32 may_rest,
    State* state, Sorted out) {
    wait_for_stream();
    order(Searched<u32>{keys, open}, Ordered{index, stored, n, tiles}, may_rest, state, out);
}

extern "C" __global__ void __launch_bounds__(128) sap_order_worlds(
    const u64* keys, const u32* index, const Box* stored, u32 n, u32 tiles, u32 open, u32 may_rest,
    State* state, Sorted out) {
    wait_for_stream();
    order(Searched<u64>{keys, open}, Ordered{index, stored, n, tiles}, may_rest, state, out);
}

}  // namespace radsweep::sap
