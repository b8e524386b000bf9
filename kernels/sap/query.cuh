// Queries: the boxes that may be near a box or on a ray, in no order, for the host to test and
// sort. The first few queries after an update come here; for more of them the host builds a tree
// (crates/sap/src/query/tree.rs).
//
// One thread a box. The first entry of `out` is the number of candidates; those beyond the capacity
// are only counted. Bytes a box: 24 read; 32 written for each candidate. 1,000,000 boxes are 24 MB:
// 8 us on an H200, about 35 us with the launches and the copy to the host (2026-11-21).
#pragma once
#include "types.cuh"

namespace radsweep::sap {

struct NearBox {
    u32 index, pad;
    Box box;
};
ASSERT_LAYOUT(NearBox, 32, AT(index, 0) AT(pad, 4) AT(box, 8));

struct Ray {
    double origin[3], step[3], most;
};
ASSERT_LAYOUT(Ray, 56, AT(origin, 0) AT(step, 24) AT(most, 48));

// Appends the boxes of the lanes whose `meets` holds.
DEVICE void take(bool meets, u32 index, const Box& box, NearBox* out, u32 capacity) {
    const u64 slot = warp_append(reinterpret_cast<u64*>(out), meets);
    if (meets && slot < capacity) {
        out[1 + slot].index = index;
        store_box(&out[1 + slot].box, box);
    }
}

// Comparisons are exact; only the rule for touching boxes is left to the host.
extern "C" __global__ void __launch_bounds__(256) sap_query_box(
    const Box* boxes, u32 n, const __grid_constant__ Box query, NearBox* out, u32 capacity) {
    wait_for_stream();
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    Box box = empty_box();
    if (i < n) box = load_box(boxes + i);
    bool meets = !is_empty(box);
    for (u32 k = 0; k < 3; k++) meets &= box.min[k] <= query.max[k] && query.min[k] <= box.max[k];
    take(meets, i, box, out, capacity);
}

// The host's slab test, step by step: subtractions and divisions of doubles are rounded alike.
extern "C" __global__ void __launch_bounds__(256) sap_query_ray(
    const Box* boxes, u32 n, const __grid_constant__ Ray ray, NearBox* out, u32 capacity) {
    wait_for_stream();
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    Box box = empty_box();
    if (i < n) box = load_box(boxes + i);
    bool meets = !is_empty(box);
    double near = 0, far = ray.most;
    for (u32 k = 0; k < 3; k++) {
        const double start = ray.origin[k], step = ray.step[k], min = box.min[k], max = box.max[k];
        if (step == 0) {
            meets &= min <= start && start <= max;
        } else {
            near = fmax(near, ((step > 0 ? min : max) - start) / step);
            far = fmin(far, ((step > 0 ? max : min) - start) / step);
        }
    }
    take(meets && near <= far, i, box, out, capacity);
}

}  // namespace radsweep::sap
