// AABBs from meshes by parallel reduction of min and max (Ha et al. 2009, section 6.1, first step):
// a box for each triangle, or for each object, which is a run of vertices.
//
// The order is that of all bit patterns: -0.0 is below +0.0, and a NaN makes `min` a NaN of
// negative and `max` one of positive sign, as if it were below and above all. So the result does
// not depend on the order of the work, and an invalid box shows what is wrong with its vertices.
//
// Triangles: a thread a triangle. Bytes a triangle: 12 r, 36 r (mostly from L2), 24 w.
//
// Objects: `start` makes empty boxes and checks the offsets. Then every warp takes the same number
// of vertices, whatever the objects are: 256, or what makes one wave of warps. So all warps share
// an object of millions of vertices as evenly as many small ones. While 32 vertices are of one
// object, each lane keeps its own bounds; where objects change, bounds are reduced by segments over
// the warp. The box of an object within 32 vertices is stored. Parts of larger ones are merged by
// atomics on the words of the box: as signed numbers where the value is positive, else as unsigned
// ones, both of which order as the floats do. Bytes a vertex: 12 r; an object: 8 r, 24 w, 24 w.
// H200 on 2026-11-21, 16 M vertices, the host's wait included: one object 0.08 ms, objects of 1,000
// vertices 0.09, of 100 0.16, of 8 0.26 ms; 8 M triangles 0.24 ms.
#pragma once
#include "types.cuh"

namespace radsweep::sap {

// Reports the first invalid one as ~0 - index; 0 = none.
DEVICE void report_invalid(u64* invalid, u64 index) { atomicMax(invalid, ~0ull - index); }

// Bounds as numbers that order as the bits do.
struct Bounds {
    u32 min[3], max[3];

    DEVICE Bounds() {
        for (int axis = 0; axis < 3; axis++) {
            min[axis] = ordered(INFINITE);
            max[axis] = ordered(-INFINITE);
        }
    }

    DEVICE void add(const float* vertex) {
#pragma unroll
        for (int axis = 0; axis < 3; axis++) {
            const float value = vertex[axis];
            const bool nan = value != value;
            min[axis] = ::min(min[axis], nan ? 0 : ordered(value));
            max[axis] = ::max(max[axis], nan ? 0xffffffffu : ordered(value));
        }
    }

    // Adds the bounds of the lane `step` below, where `take`.
    DEVICE void add_below(u32 step, bool take) {
#pragma unroll
        for (int axis = 0; axis < 3; axis++) {
            const u32 low = __shfl_up_sync(ALL_LANES, min[axis], step),
                      high = __shfl_up_sync(ALL_LANES, max[axis], step);
            if (take) {
                min[axis] = ::min(min[axis], low);
                max[axis] = ::max(max[axis], high);
            }
        }
    }

    static DEVICE u32 bits(u32 order) { return order ^ (order >> 31 ? 0x80000000u : 0xffffffffu); }

    // Stores word by word: boxes may lie at any multiple of 4 bytes.
    DEVICE void store(u32* box) const {
#pragma unroll
        for (int axis = 0; axis < 3; axis++) {
            box[axis] = bits(min[axis]);
            box[axis + 3] = bits(max[axis]);
        }
    }

    DEVICE void merge_into(u32* box) const {
#pragma unroll
        for (int axis = 0; axis < 3; axis++) {
            lower(box + axis, bits(min[axis]));
            raise(box + axis + 3, bits(max[axis]));
        }
    }

    // Merges the bounds of all lanes into one box. A lane has a word each, and takes an atomic only
    // if the word changes, as all warps of a large object come here.
    DEVICE void gather_into(u32* box) {
#pragma unroll
        for (int axis = 0; axis < 3; axis++) {
            min[axis] = warp_min(min[axis]);
            max[axis] = warp_max(max[axis]);
        }
        const u32 lane = lane_index();
        if (lane >= 6) return;
        u32 own = min[0];
        if (lane == 1) own = min[1];
        if (lane == 2) own = min[2];
        if (lane == 3) own = max[0];
        if (lane == 4) own = max[1];
        if (lane == 5) own = max[2];
        // A stale value only costs an atomic: a word changes in one direction.
        const u32 now = ordered(__uint_as_float(*(const volatile u32*)(box + lane)));
        if (lane < 3) {
            if (own < now) lower(box + lane, bits(own));
        } else {
            if (own > now) raise(box + lane, bits(own));
        }
    }

    static DEVICE void lower(u32* word, u32 value) {
        if (value >> 31) {
            atomicMax(word, value);
        } else {
            atomicMin((int*)word, int(value));
        }
    }

    static DEVICE void raise(u32* word, u32 value) {
        if (value >> 31) {
            atomicMin(word, value);
        } else {
            atomicMax((int*)word, int(value));
        }
    }
};

// A triangle with an index that is not below `vertex_count` is reported in `invalid` and gets the
// box of its other vertices.
extern "C" __global__ void __launch_bounds__(256) sap_bounds_triangles(
    const float* vertices, u64 vertex_count, const u32* triangles, u32 n, u32* boxes,
    u64* invalid) {
    wait_for_stream();
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Bounds bounds;
#pragma unroll
    for (int corner = 0; corner < 3; corner++) {
        const u32 vertex = triangles[3ull * i + corner];
        if (vertex < vertex_count) {
            bounds.add(vertices + 3ull * vertex);
        } else {
            report_invalid(invalid, i);
        }
    }
    bounds.store(boxes + 6ull * i);
}

// Object o has the vertices offsets[o] to offsets[o + 1]. Offsets must not descend nor exceed
// `vertex_count`; the first one that does is reported.
extern "C" __global__ void __launch_bounds__(256) sap_bounds_start(
    const u32* offsets, u32 objects, u64 vertex_count, u32* boxes, u64* invalid) {
    wait_for_stream();
    const u32 o = blockIdx.x * blockDim.x + threadIdx.x;
    if (o >= objects) return;
    const u32 begin = offsets[o], end = offsets[o + 1ull];
    if (begin > vertex_count) report_invalid(invalid, o);
    if (end < begin || end > vertex_count) report_invalid(invalid, o + 1ull);
    Bounds().store(boxes + 6ull * o);
}

// Returns the last object in [from, to) that begins at or before `vertex`. The one at `from` does.
DEVICE u32 object_of(const u32* offsets, u32 from, u32 to, u32 vertex) {
    while (to - from > 1) {
        const u32 middle = from + (to - from) / 2;
        const bool before = offsets[middle] <= vertex;
        from = before ? middle : from;
        to = before ? to : middle;
    }
    return from;
}

struct Vertex {
    float at[3];
    DEVICE Vertex(const float* vertices, u64 vertex, u64 stop) {
        const bool present = vertex < stop;
#pragma unroll
        for (int axis = 0; axis < 3; axis++)
            at[axis] = present ? vertices[3 * vertex + axis] : 0.0f;
    }
};

// `share` vertices a warp.
extern "C" __global__ void __launch_bounds__(256) sap_bounds_objects(
    const float* vertices, const u32* offsets, u32 objects, u64 share, u32* boxes,
    const u64* invalid) {
    wait_for_stream();
    if (*invalid != 0) return;
    const u64 warp = (u64(blockIdx.x) * blockDim.x + threadIdx.x) / WARP;
    const u64 start = max(warp * share, u64(offsets[0])),
              stop = min((warp + 1) * share, u64(offsets[objects]));
    if (start >= stop) return;
    const u32 lane = lane_index();
    Vertex coming(vertices, start + lane, stop);
    u32 object = object_of(offsets, 0, objects, u32(start));
    u64 next = offsets[object + 1ull];  // where the object ends
    Bounds held;                        // of `object`, by lane
    bool holds = false;
    for (u64 first = start; first < stop; first += WARP) {
        const u64 end = min(first + WARP, stop), vertex = first + lane;
        const Vertex own_vertex = coming;
        coming = Vertex(vertices, vertex + WARP, stop);  // loads meanwhile
        if (next >= end) {
            if (vertex < end) held.add(own_vertex.at);
            holds = true;
            continue;
        }
        if (holds) held.gather_into(boxes + 6ull * object);
        held = Bounds();
        holds = false;

        // Objects change here. Lanes beyond the last vertex belong to the last object and add
        // nothing.
        const u32 last = u32(end - 1);
        u32 beyond = object + 1;
        while (beyond < objects && offsets[beyond] <= last)
            beyond += min(beyond - object, objects - beyond);
        const u32 own = object_of(offsets, object, beyond, min(u32(vertex), last));
        Bounds bounds;
        if (vertex < end) bounds.add(own_vertex.at);
#pragma unroll
        for (u32 step = 1; step < WARP; step *= 2) {
            const bool take = __shfl_up_sync(ALL_LANES, own, step) == own && lane >= step;
            if (!__any_sync(ALL_LANES, take)) break;
            bounds.add_below(step, take);
        }
        const u32 after = __shfl_down_sync(ALL_LANES, own, 1);
        if (lane == WARP - 1 || after != own) {
            if (offsets[own] >= first && offsets[own + 1ull] <= end) {
                bounds.store(boxes + 6ull * own);
            } else {
                bounds.merge_into(boxes + 6ull * own);
            }
        }
        object = __shfl_sync(ALL_LANES, own, WARP - 1);
        next = offsets[object + 1ull];
    }
    if (holds) held.gather_into(boxes + 6ull * object);
}

}  // namespace radsweep::sap
