// Phase 1: raw boxes to stored boxes. Each is checked and brought to one f32 box (swept: the union
// of both; f64: rounded outward). It is loosened by the margin, or stays the stored box if that
// still contains it. Then it is compared with the last update.
//
// A stored box is in order on all axes or empty: invalid boxes are stored as empty ones. -0.0 is
// stored as +0.0, so that later phases may compare bits and subtract.
//
// One thread a box. Bytes a box: 24 read (48 swept or f64), 24 written, 24 of the last update read.
// Without margin and filters, blocks that begin after another has seen a change do not read these:
// 10^6 boxes that all move read 48 bytes for three of four boxes. They took 36 us, and take 29
// (H100, 2026-11-24).
// A block stores that something changed only where it does not read that another has: all stores to
// one word wait for each other. 10^6 boxes that all move took 45 us where every warp stored, and
// take 30 (H200, 2026-11-23). The barrier costs 3 us where one box moves.
#pragma once
#include "types.cuh"

namespace radsweep::sap {

template <class T>
DEVICE bool in_order(const T* min, const T* max) {
    return min[0] <= max[0] && min[1] <= max[1] && min[2] <= max[2];
}

template <class T>
DEVICE bool is_empty_exactly(const T* min, const T* max) {
    const T infinite = INFINITE;
    bool empty = true;
    for (int axis = 0; axis < 3; axis++)
        empty = empty && min[axis] == infinite && max[axis] == -infinite;
    return empty;
}

// The sources. `read` gives the f32 box; it returns false for an invalid one.
struct Plain {
    const Box* boxes;
    DEVICE bool read(u32 i, Box& box) const {
        box = load_box(boxes + i);
        return in_order(box.min, box.max) || is_empty_exactly(box.min, box.max);
    }
};

struct Swept {
    const Box* start;
    const Box* end;
    DEVICE bool read(u32 i, Box& box) const {
        Box other;
        bool first = Plain{start}.read(i, box), second = Plain{end}.read(i, other);
        for (int axis = 0; axis < 3; axis++) {
            box.min[axis] = fminf(box.min[axis], other.min[axis]);
            box.max[axis] = fmaxf(box.max[axis], other.max[axis]);
        }
        return first && second;
    }
};

struct Exact {
    const double* boxes;
    DEVICE bool read(u32 i, Box& box) const {
        const double2* words = reinterpret_cast<const double2*>(boxes + 6ull * i);
        double2 a = words[0], b = words[1], c = words[2];
        double min[3] = {a.x, a.y, b.x}, max[3] = {b.y, c.x, c.y};
        for (int axis = 0; axis < 3; axis++) {
            box.min[axis] = __double2float_rd(min[axis]);
            box.max[axis] = __double2float_ru(max[axis]);
        }
        return in_order(min, max) || is_empty_exactly(min, max);
    }
};

// Memory that the steps after this one find zero, in units of 16 bytes. The threads of a launch
// share it, so that it needs no launch of its own.
struct Clear {
    uint4* units;
    u64 len;
};
ASSERT_LAYOUT(Clear, 16, AT(units, 0) AT(len, 8));

// What all boxes of a launch share.
struct Prepare {
    u32 n;       // boxes in this set
    u32 base;    // the index of the set's first box among the stored ones
    u32 second;  // 1 for the second of two sets
    u32 known;   // boxes of the last update; those from here on are new
    float margin;
    u32 resting;      // 1 when static and sleeping boxes are in the resting set
    const Box* last;  // stored boxes of the last update
    Box* stored;
    Box* given;  // the boxes without margin, for queries; null without margin
    const uint4* filters;
    const uint4* last_filters;
    const u32* worlds;
    const u32* last_worlds;
    State* state;
    Clear clear[3];
};
ASSERT_LAYOUT(Prepare, 136,
    AT(n, 0) AT(base, 4) AT(second, 8) AT(known, 12) AT(margin, 16) AT(resting, 20) AT(last, 24)
    AT(stored, 32) AT(given, 40) AT(filters, 48) AT(last_filters, 56) AT(worlds, 64)
    AT(last_worlds, 72) AT(state, 80) AT(clear, 88));

DEVICE bool same_bits(const Box& a, const Box& b) {
    bool same = true;
    for (int axis = 0; axis < 3; axis++) {
        same = same && __float_as_uint(a.min[axis]) == __float_as_uint(b.min[axis]) &&
               __float_as_uint(a.max[axis]) == __float_as_uint(b.max[axis]);
    }
    return same;
}

// Whether `inner` lies within `outer`. Neither is empty.
DEVICE bool holds(const Box& outer, const Box& inner) {
    bool all = true;
    for (int axis = 0; axis < 3; axis++) {
        all = all && outer.min[axis] <= inner.min[axis] && inner.max[axis] <= outer.max[axis];
    }
    return all;
}

// What a frame without a neighbour list does besides: nothing. With one see neighbours.cuh.
struct Unlisted {
    static constexpr bool LABELS = false;
    // Runs before the first barrier.
    DEVICE void before(u32, bool) {}
    // Looks at a box that is present, and at whether it has its last filter and world.
    DEVICE void look(const Box&, bool) {}
};

template <class Source, class List>
DEVICE void prepare(const Source& source, const Prepare& p, List& list) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    const bool present = i < p.n;
#pragma unroll
    for (u32 k = 0; k < 3; k++) {
        for (u64 at = i; at < p.clear[k].len; at += gridDim.x * blockDim.x)
            p.clear[k].units[at] = make_uint4(0, 0, 0, 0);
    }
    Box box = empty_box();
    bool valid = true, held = false, differs = false, rests = false;
    if (present) valid = source.read(i, box);
    list.before(i, present);
    // Where a block has seen a change, the last boxes tell nothing more. One thread asks for all:
    // reads of one word wait for each other.
    __shared__ bool compares;
    if (threadIdx.x == 0)
        compares = p.margin > 0.0f || p.filters || (List::LABELS && p.worlds) ||
                   load_relaxed(&p.state->changed) == 0;
    __syncthreads();
    if (present) {
        if (!valid) box = empty_box();
        for (int axis = 0; axis < 3; axis++) {
            box.min[axis] += 0.0f;
            box.max[axis] += 0.0f;
        }
        if (p.given) store_box(p.given + i, box);
        const bool old = i < p.known && compares;
        Box last = old ? load_box(p.last + i) : empty_box();
        const bool empty = is_empty(box);
        if (p.margin > 0.0f && !empty) {
            if (!is_empty(last) && holds(last, box)) {
                box = last;
            } else {
                for (int axis = 0; axis < 3; axis++) {
                    box.min[axis] -= p.margin;
                    box.max[axis] += p.margin;
                    box.min[axis] += 0.0f;
                    box.max[axis] += 0.0f;
                }
            }
        }
        store_box(p.stored + p.base + i, box);
        bool same = old && same_bits(box, last), same_labels = true;
        if (old && p.filters) {
            const uint4 a = p.filters[i], b = p.last_filters[i];
            same_labels = a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w;
            rests = ((a.w | b.w) & STATIC_OR_ASLEEP) != 0;
        }
        if (p.worlds && (List::LABELS ? old : same && same_labels))
            same_labels = same_labels && p.worlds[i] == p.last_worlds[i];
        differs = !(same && same_labels);
        held = p.resting && rests;
        list.look(box, same_labels);
    }
    const bool changed = __syncthreads_or(differs),
               resting_changed = p.filters && __syncthreads_or(differs && rests);
    if (threadIdx.x == 0) {
        if (changed && p.state->changed == 0) p.state->changed = 1;
        if (resting_changed && p.state->resting_changed == 0) p.state->resting_changed = 1;
    }
    // Empty boxes are few, so these atomics are rare.
    const u32 empty = __ballot_sync(ALL_LANES, present && is_empty(box));
    if (empty == 0) return;
    const u32 invalid = __ballot_sync(ALL_LANES, present && !valid);
    const u32 swept = __ballot_sync(ALL_LANES, present && is_empty(box) && !held);
    if (lane_index() == 0) {
        if (swept) atomicAdd(&p.state->empty, u64(__popc(swept)));
        if (invalid) {
            const u64 first = i + __ffs(invalid) - 1;
            atomicAdd(p.second ? &p.state->invalid_b : &p.state->invalid, u64(__popc(invalid)));
            atomicMax(
                p.second ? &p.state->first_invalid_b : &p.state->first_invalid,
                (1ull << 32) - first);
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) sap_prepare_plain(const Box* boxes, Prepare p) {
    wait_for_stream();
    Unlisted none;
    prepare(Plain{boxes}, p, none);
}

extern "C" __global__ void __launch_bounds__(256) sap_prepare_swept(
    const Box* start, const Box* end, Prepare p) {
    wait_for_stream();
    Unlisted none;
    prepare(Swept{start, end}, p, none);
}

extern "C" __global__ void __launch_bounds__(256) sap_prepare_exact(
    const double* boxes, Prepare p) {
    wait_for_stream();
    Unlisted none;
    prepare(Exact{boxes}, p, none);
}

}  // namespace radsweep::sap
