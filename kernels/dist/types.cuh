// The memory layouts that all kernels here share. The host's: crates/sap-dist/src/device/abi.rs.
#pragma once

#include "common/layout.cuh"
#include "common/search.cuh"
#include "common/types.cuh"
#include "common/warp.cuh"

namespace radsweep::dist {

constexpr u32 THREADS = 256;

// A box by integers that order as its coordinates do; the host has the same (`layout.rs`).
struct Bounds {
    i32 min[3], max[3];
};
ASSERT_LAYOUT(Bounds, 24, AT(min, 0) AT(max, 12));

// The ids of the boxes of a rank, ascending: `each`, or where that is null those from `first` on.
struct Ids {
    const u64* each;
    u64 first;
    DEVICE u64 operator[](u64 i) const { return each ? each[i] : first + i; }
};
ASSERT_LAYOUT(Ids, 16, AT(each, 0) AT(first, 8));

// The boxes of this rank. Filters and worlds may be null. A box lies at any multiple of 4 bytes.
struct Frame {
    const float* boxes;
    const uint4* filters;
    const u32* worlds;
    Ids ids;
    u64 n;
};
ASSERT_LAYOUT(Frame, 48, AT(boxes, 0) AT(filters, 8) AT(worlds, 16) AT(ids, 24) AT(n, 40));

// Who a box is: its id, the rank that brought it, and its index there.
struct Name {
    u64 id;
    u32 origin, index;
};
ASSERT_LAYOUT(Name, 16, AT(id, 0) AT(origin, 8) AT(index, 12));

// Some boxes. Names, filters and worlds may be null.
struct Set {
    float* boxes;
    Name* names;
    uint4* filters;
    u32* worlds;
};
ASSERT_LAYOUT(Set, 32, AT(boxes, 0) AT(names, 8) AT(filters, 16) AT(worlds, 24));

// The cells of all ranks: slabs of one axis, here columns, each cut into rows of another. No
// columns: no cells are known yet.
struct Cells {
    u32 axes[2];
    u32 columns, rank;  // `rank` is this one
    const i32* cuts;    // columns - 1 of the first axis
    const u32* first;   // the rank of the first row of each column; at the end the number of ranks
    const i32* rows;    // the cuts of column c from index first[c] - c on
};
ASSERT_LAYOUT(Cells, 40,
    AT(axes, 0) AT(columns, 8) AT(rank, 12) AT(cuts, 16) AT(first, 24) AT(rows, 32));

// Where a box is in a cell: whether its `min` is in it on both axes, on the first, on the second,
// or on neither.
enum Place : u32 { HOME, FIRST, SECOND, NEITHER, PLACES };

// A pair on its way to the rank that owns it: the index of box `a` there, and the id of box `b`.
struct Found {
    u64 b;
    u32 a, owner;
};
ASSERT_LAYOUT(Found, 16, AT(b, 0) AT(a, 8) AT(owner, 12));

// A pair of an engine, by indices.
struct Indices {
    u32 a, b;
};
ASSERT_LAYOUT(Indices, 8, AT(a, 0) AT(b, 4));

// A pair of the result, by ids.
struct Pair {
    u64 a, b;
};
ASSERT_LAYOUT(Pair, 16, AT(a, 0) AT(b, 8));

// Whether boxes were found that have the same id, and the complement of the smallest such id.
struct Twice {
    u64 found, id;
    DEVICE void add(u64 one) {
        found = 1;
        atomicMax(&id, ~one);
    }
};
ASSERT_LAYOUT(Twice, 16, AT(found, 0) AT(id, 8));

// -0.0 and +0.0 are the same.
DEVICE i32 ordered(float value) {
    const u32 bits = __float_as_uint(value);
    return i32(bits >> 31 ? 0x80000000u - bits : bits);
}

// Reads box i. Returns whether it takes part: it is neither invalid nor empty. `valid` tells
// whether it is valid.
DEVICE bool read_box(const float* boxes, u64 i, float (&box)[6], bool& valid) {
#pragma unroll
    for (int word = 0; word < 6; word++) box[word] = boxes[6 * i + word];
    constexpr float INFINITE = __builtin_huge_valf();
    bool in_order = true, empty = true;
#pragma unroll
    for (int axis = 0; axis < 3; axis++) {
        in_order = in_order && box[axis] <= box[axis + 3];
        empty = empty && box[axis] == INFINITE && box[axis + 3] == -INFINITE;
    }
    valid = in_order || empty;
    return in_order;
}

DEVICE Bounds bounds_of(const float (&box)[6]) {
    Bounds bounds;
#pragma unroll
    for (int axis = 0; axis < 3; axis++) {
        bounds.min[axis] = ordered(box[axis]);
        bounds.max[axis] = ordered(box[axis + 3]);
    }
    return bounds;
}

DEVICE void store_box(float* boxes, u64 i, const float (&box)[6]) {
#pragma unroll
    for (int word = 0; word < 6; word++) boxes[6 * i + word] = box[word];
}

DEVICE void store_empty(float* boxes, u64 i) {
    constexpr float INFINITE = __builtin_huge_valf();
#pragma unroll
    for (int word = 0; word < 6; word++) boxes[6 * i + word] = word < 3 ? INFINITE : -INFINITE;
}

}  // namespace radsweep::dist
