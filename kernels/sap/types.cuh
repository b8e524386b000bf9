// Words, memory layouts and warp helpers that all kernels here share.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

constexpr u32 WARP = 32;
constexpr u32 ALL_LANES = 0xffffffffu;

// A box as the caller lays it out: 24 bytes, read as three 8-byte words.
struct Box {
    float min[3], max[3];
};

// Counters of one update, zeroed by the host before it. Names and order are those of `State` in Rust.
struct State {
    u64 pairs;          // hits accepted; beyond the capacity too
    u64 work;           // the next unit of the sweep that no warp has taken; the first ones are zeroed when a sweep repeats
    u64 longest;        // pairs of the `a` that has the most
    u64 between;        // tests of boxes against those held apart
    u64 large;          // boxes too large to look those held apart up by rows
    u64 stopped;        // 1 when a sweep was given up: it took more tests than allowed
    u64 tests;          // candidates on the sweep axis
    u64 invalid;        // bad boxes
    u64 first_invalid;  // 2^32 - index of the first bad box; 0 = none
    u64 empty;          // boxes that take no part: empty or invalid; of those held apart none
    u64 changed;        // 1 when a box, filter or world differs from the last update
    u64 still_changed;  // 1 when that is of a box that is, or was, static or asleep
    u64 axis;           // the sweep axis
    u64 axis_tests[3];  // candidates among the sampled boxes, by axis
    u64 axis_blocks;    // blocks that have added theirs
    u64 invalid_b;      // the same for the second of two sets
    u64 first_invalid_b;
    u64 levels;         // of the grid: those that hold a box, one bit each
    u64 placed;         // boxes that a grid holds
    u64 started;        // pairs that the last update did not have
    u64 ended;          // pairs of the last update that are gone
};

// Tests that a sweep may take for each pair found, beyond those it may take anyway. Rust has them as well.
constexpr u64 TESTS_A_PAIR = 32;

__device__ __forceinline__ u32 lane_index() { return threadIdx.x % WARP; }

// Lanes below this one.
__device__ __forceinline__ u32 lanes_below() { return (1u << lane_index()) - 1; }

template <class T>
__device__ __forceinline__ T warp_sum(T value) {
    for (u32 step = WARP / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL_LANES, value, step);
    return value;
}

// Sum over this lane and those below.
template <class T>
__device__ __forceinline__ T warp_scan(T value) {
    for (u32 step = 1; step < WARP; step *= 2) {
        const T below = __shfl_up_sync(ALL_LANES, value, step);
        if (lane_index() >= step) value += below;
    }
    return value;
}

__device__ __forceinline__ float pick(const float* of3, u32 axis) {
    return axis == 0 ? of3[0] : axis == 1 ? of3[1] : of3[2];
}

__device__ __forceinline__ Box load_box(const Box* box) {
    const float2* words = reinterpret_cast<const float2*>(box);
    float2 a = words[0], b = words[1], c = words[2];
    return Box{{a.x, a.y, b.x}, {b.y, c.x, c.y}};
}

__device__ __forceinline__ void store_box(Box* to, const Box& box) {
    float2* words = reinterpret_cast<float2*>(to);
    words[0] = make_float2(box.min[0], box.min[1]);
    words[1] = make_float2(box.min[2], box.max[0]);
    words[2] = make_float2(box.max[1], box.max[2]);
}

// Flags of a filter: boxes of which both have the same one do not pair.
constexpr u32 STATIC_OR_ASLEEP = 3;

constexpr float INFINITE = __builtin_huge_valf();

__device__ __forceinline__ Box empty_box() {
    return Box{{INFINITE, INFINITE, INFINITE}, {-INFINITE, -INFINITE, -INFINITE}};
}

// After `prepare` a box is either in order on all axes or empty.
__device__ __forceinline__ bool is_empty(const Box& box) { return !(box.min[0] <= box.max[0]); }

// Unsigned bits that sort as the float does. Not for NaN; -0.0 has been read as +0.0 by `prepare`.
__device__ __forceinline__ u32 ordered(float value) {
    u32 bits = __float_as_uint(value);
    return bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
}
