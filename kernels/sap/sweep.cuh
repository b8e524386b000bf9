// Phase 6: the sweep. Every box against the boxes it sweeps, on the two other axes. Hits are tested
// exactly, accepted and written (emit.cuh).
//
// Work. A unit is one tile of 128 boxes against one chunk of 32. Warps of a grid that fills the
// device take shares of consecutive units off a counter until none is left. So work is even
// whatever the lengths of the runs: one box that sweeps everything gives its tile many units, which
// many warps share. Unit counts and sums have 64 bits.
//
// Filter. A lane has four boxes i. The chunk lies in shared memory; all lanes read the same box j
// at once, 16 bytes for four tests. Two boxes do not overlap on an axis when
//     max_i - min_j  or  max_j - min_i
// is negative. The sign bits of the four subtractions on two axes are or-ed, and the results and-ed
// over 8 boxes j. Subtractions run at twice the rate of comparisons, and gradual underflow makes
// the sign exact (x - y is 0 for x == y only; there is no -0.0 here). Infinity less infinity would
// be a NaN of any sign. So a min of +infinity is taken as the greatest finite number and a max of
// -infinity as the least (`finite_ends`): 4 instructions for 128 tests of a lane, 0.03 a test. A
// test takes 6 instructions, and there is no branch before 8 x 128 tests are done. The filter may
// keep too much: boxes beyond `end`, up to 31 positions more than the set reaches; touching boxes
// under the open rule; ends at infinity that only seem to touch. It never drops a pair.
//
// Queue. A lane whose 8 tests left something pushes (i, first j) on its warp's stack in shared
// memory. Whenever 32 entries wait, the warp pops four: 8 lanes each, one test a lane, now with
// everything: the run of i, IEEE comparisons, the rule, `accept`. So a rare hit costs its warp
// little, and a dense scene still tests 32 pairs at once.
//
// Launch: 256 threads, as many blocks as are resident; 18 KB of shared memory. Bytes a unit: 512
// read (L1 or L2), 16 a box once a share. Instructions a test: 6.7 (4 subtractions, 2 logic, 0.25
// load, 0.4 loop, vote and stack).
#pragma once
#include "accept.cuh"
#include "common/search.cuh"
#include "emit.cuh"
#include "tiles.cuh"
#include "types.cuh"

namespace radsweep::sap {

constexpr u32 SWEEP_WARPS = 8;
constexpr u32 GROUP = 8;             // boxes j between two votes
constexpr u32 ITEMS = WARP / GROUP;  // stack entries that a warp tests at once
constexpr u32 STACK_FULL = WARP;     // a push adds at most 32
constexpr u64 SWEPT_A_TEST = 16;     // tests here that count as one in cells; 10 take as long
constexpr u32 SHARES = 8;  // of a warp, about: more make it more even, fewer need fewer searches

// The shared memory of a warp.
struct WarpShared {
    float4 chunk[CHUNK];
    WarpOut out;
    uint2 stack[STACK_FULL + WARP];
};

struct SweepInput {
    Sorted sorted;
    const u32* index;  // the box at each position
    u32 tiles;
    State* state;
    Accept accept;
    u64 limit;  // of tests, beside those allowed for pairs; 2^64 - 1 = none
};
ASSERT_LAYOUT(SweepInput, 152,
    AT(sorted, 0) AT(index, 56) AT(tiles, 64) AT(state, 72) AT(accept, 80) AT(limit, 144));

// Returns the tile of unit `unit`: the last one whose first unit is not above it.
DEVICE u32 find_tile(const u64* first_unit, u32 tiles, u64 unit) {
    return warp_partition_point(0u, tiles, [&](u32 tile) { return first_unit[tile] <= unit; }) - 1;
}

// The boxes of a lane, by set.
struct Held {
    float min_y[SETS], max_y[SETS], min_z[SETS], max_z[SETS];
    u32 slots;
    DEVICE u32 offset(u32 set) const { return slots >> 8 * set & 0xff; }
};

// Returns min, max, min, max, moved outward: no min is +infinity and no max -infinity.
DEVICE float4 finite_ends(const float4& sides) {
    constexpr float GREATEST = 3.402823466e38f;
    return make_float4(
        fminf(sides.x, GREATEST), fmaxf(sides.y, -GREATEST), fminf(sides.z, GREATEST),
        fmaxf(sides.w, -GREATEST));
}

// Tests the first ACTIVE sets against 8 boxes: none[s] keeps its sign bit if no box overlaps that
// of set s in y and z. On the diagonal, where the chunk lies in the tile itself, only boxes at
// later offsets count; `first` is the offset of the first of the 8.
template <u32 ACTIVE, bool DIAGONAL>
DEVICE void filter(const float4* group, const Held& held, u32 first, int (&none)[SETS]) {
#pragma unroll
    for (u32 k = 0; k < GROUP; k++) {
        const float4 j = group[k];
#pragma unroll
        for (u32 s = 0; s < ACTIVE; s++) {
            int apart = __float_as_int(held.max_y[s] - j.x) | __float_as_int(j.y - held.min_y[s]) |
                        __float_as_int(held.max_z[s] - j.z) | __float_as_int(j.w - held.min_z[s]);
            if (DIAGONAL) apart |= int(first + k) - 1 - int(held.offset(s));
            none[s] &= apart;
        }
    }
}

template <class Output>
struct Warp {
    const SweepInput& in;
    WarpShared& shared;
    Emitter<Output> emitter;
    u32 waiting = 0;  // on the stack

    DEVICE Warp(const SweepInput& in, const Output& output, WarpShared& shared)
        : in(in), shared(shared), emitter(output, &in.state->pairs, shared.out) {}

    DEVICE void push(const int (&none)[SETS], const Held& held, u32 tile_start, u32 first_j) {
#pragma unroll
        for (u32 s = 0; s < SETS; s++) {
            const u32 hits = __ballot_sync(ALL_LANES, none[s] >= 0);
            if (hits == 0) continue;
            if (none[s] >= 0) {
                shared.stack[waiting + __popc(hits & lanes_below())] =
                    make_uint2(tile_start + held.offset(s), first_j);
            }
            waiting += __popc(hits);
            __syncwarp();
            while (waiting >= STACK_FULL) pop();
        }
    }

    // Tests the top entries of the stack.
    DEVICE void pop() {
        const u32 take = min(waiting, ITEMS), item = lane_index() / GROUP;
        waiting -= take;
        bool hit = item < take;
        u32 a = 0, b = 0;
        if (hit) {
            const uint2 entry = shared.stack[waiting + item];
            const u32 i = entry.x, j = entry.y + lane_index() % GROUP;
            const Sorted& sorted = in.sorted;
            hit = j > i && j < sorted.end[i];
            if (hit) {
                const float4 box_i = sorted.sides[i], box_j = sorted.sides[j];
                if (in.accept.open) {
                    hit = box_i.x < box_j.y && box_j.x < box_i.y && box_i.z < box_j.w &&
                          box_j.z < box_i.w && sorted.span[i].x < sorted.span[j].y;
                } else {
                    hit = box_i.x <= box_j.y && box_j.x <= box_i.y && box_i.z <= box_j.w &&
                          box_j.z <= box_i.w;
                }
            }
            hit = hit && accept(in.accept, in.index[i], in.index[j], a, b);
        }
        __syncwarp();
        emitter.take(hit, a, b);
    }

    // Sweeps units `from` to `to` of a tile: its chunks of those numbers.
    DEVICE void sweep_tile(u32 tile, u32 from, u32 to) {
        const Sorted& sorted = in.sorted;
        const u32 start = tile * TILE, lane = lane_index();
        Held held;
        held.slots = sorted.slots[tile * WARP + lane];
#pragma unroll
        for (u32 s = 0; s < SETS; s++) {
            const float4 sides = finite_ends(sorted.sides[start + held.offset(s)]);
            held.min_y[s] = sides.x;
            held.max_y[s] = sides.y;
            held.min_z[s] = sides.z;
            held.max_z[s] = sides.w;
        }
        const uint4 reach = sorted.reach[tile];
        const float4* chunk = sorted.sides + start + lane;
        float4 next = chunk[u64(from) * CHUNK];
        for (u32 c = from; c < to; c++) {
            __syncwarp();
            shared.chunk[lane] = finite_ends(next);
            __syncwarp();
            if (c + 1 < to) next = chunk[u64(c + 1) * CHUNK];  // loads while this one is tested
            const u32 active = c < CHUNKS_IN_TILE
                                   ? 0
                                   : (reach.x > c) + (reach.y > c) + (reach.z > c) + (reach.w > c);
#pragma unroll 1
            for (u32 first = 0; first < CHUNK; first += GROUP) {
                const float4* group = shared.chunk + first;
                int none[SETS] = {-1, -1, -1, -1};
                switch (active) {
                    case 4: filter<4, false>(group, held, 0, none); break;
                    case 3: filter<3, false>(group, held, 0, none); break;
                    case 2: filter<2, false>(group, held, 0, none); break;
                    case 1: filter<1, false>(group, held, 0, none); break;
                    default: filter<4, true>(group, held, c * CHUNK + first, none); break;
                }
                if (__any_sync(ALL_LANES, (none[0] & none[1] & none[2] & none[3]) >= 0)) {
                    push(none, held, start, start + c * CHUNK + first);
                }
            }
        }
    }

    // Whether all warps together have taken more tests than allowed. A test here costs a part of
    // one in cells (grid_sweep.cuh).
    DEVICE bool stopped(u64 unit) {
        const u64 tests = unit * (TILE * CHUNK);
        if (tests <= in.limit) return false;
        emitter.flush();
        const u64 pairs =
            __shfl_sync(ALL_LANES, *const_cast<const volatile u64*>(&in.state->pairs), 0);
        if ((tests - in.limit) / (SWEPT_A_TEST * TESTS_A_PAIR) <= pairs) return false;
        if (lane_index() == 0) in.state->stopped = 1;
        return true;
    }

    DEVICE void run() {
        const u64* first_unit = in.sorted.first_unit;
        const u64 units = first_unit[in.tiles];
        const u64 warps = u64(gridDim.x) * SWEEP_WARPS;
        // All shares at once are at most an eighth of the limit, so that little is tested beyond
        // it.
        const u64 share =
            max(min(units / (warps * SHARES), in.limit / (8 * warps * (TILE * CHUNK))), 1ull);
        for (;;) {
            u64 unit = 0;
            if (lane_index() == 0) unit = atomicAdd(&in.state->work, share);
            unit = __shfl_sync(ALL_LANES, unit, 0);
            if (unit >= units || stopped(unit)) break;
            const u64 stop = min(unit + share, units);
            while (unit < stop) {
                const u32 tile = find_tile(first_unit, in.tiles, unit);
                const u64 begin = first_unit[tile], end = min(first_unit[tile + 1], stop);
                sweep_tile(tile, u32(unit - begin), u32(end - begin));
                unit = end;
            }
        }
        while (waiting > 0) pop();
        emitter.flush();
    }
};

template <class Output>
DEVICE void sweep(const SweepInput& in, const Output& output) {
    __shared__ WarpShared shared[SWEEP_WARPS];
    Warp<Output>(in, output, shared[threadIdx.x / WARP]).run();
}

extern "C" __global__ void __launch_bounds__(SWEEP_WARPS* WARP, 4) sap_sweep(
    const __grid_constant__ SweepInput in, const __grid_constant__ Keys keys) {
    wait_for_stream();
    sweep(in, keys);
}

// Only counts the pairs of each `a`, to cut them into chunks.
extern "C" __global__ void __launch_bounds__(SWEEP_WARPS* WARP, 4) sap_sweep_count(
    const __grid_constant__ SweepInput in, const __grid_constant__ Counts counts) {
    wait_for_stream();
    sweep(in, counts);
}

}  // namespace radsweep::sap
