// The memory layouts that all kernels here share.
#pragma once

#include "common/layout.cuh"
#include "common/ptx.cuh"
#include "common/types.cuh"
#include "common/warp.cuh"

namespace radsweep::sap {

// A box as the caller lays it out: 24 bytes, read as three 8-byte words.
struct Box {
    float min[3], max[3];
};
ASSERT_LAYOUT(Box, 24, AT(min, 0) AT(max, 12));

// Counters of one update, which the host zeroes before it. Names and order are those of `State` in
// Rust, which has the outcomes of the sorts behind them.
struct State {
    u64 pairs;            // accepted hits, those beyond the capacity too
    u64 work;             // the next unit to take; the first fields are zeroed when a sweep repeats
    u64 longest;          // pairs of the row or bin that has most; 2^64 - 1 where a bin is too long
    u64 resting_tests;    // tests of boxes against the resting set
    u64 large;            // boxes too large to look up the resting set by rows
    u64 stopped;          // 1 when a sweep was given up because it took more tests than allowed
    u64 tests;            // tests made: of candidates on the sweep axis, in cells, or of the tree
    u64 invalid;          // invalid boxes
    u64 first_invalid;    // 2^32 - index of the first invalid box; 0 = none
    u64 empty;            // boxes that take no part: empty or invalid ones that do not rest
    u64 changed;          // 1 when a box, filter or world differs from the last update
    u64 resting_changed;  // 1 when such a box is, or was, static or asleep
    u64 left;             // HAS_LEFT when a box left its loosened one, or has other labels; IS_WIDE
                          // when one has a wide slack (neighbours.cuh)
    u64 axis;             // the sweep axis
    u64 axis_tests[3];    // candidates among the sampled boxes, by axis
    u64 axis_blocks;      // blocks that have added their candidates
    u64 invalid_b;        // the same for the second of two sets
    u64 first_invalid_b;
    u32 levels;   // of the grid: those that hold a box, a bit each
    u32 high;     // boxes above the level with a block; beyond MAX_HIGH they are not all counted
    u64 placed;   // boxes that a grid holds
    u64 crowded;  // boxes of its region that holds most (grid_regions.cuh)
    u64 near;     // sampled boxes whose bucket is near that of the box before
    u64 started;  // pairs that the last update did not have
    u64 ended;    // pairs of the last update that are missing now
};
ASSERT_LAYOUT(State, 208,
    AT(pairs, 0) AT(work, 8) AT(longest, 16) AT(resting_tests, 24) AT(large, 32) AT(stopped, 40)
    AT(tests, 48) AT(invalid, 56) AT(first_invalid, 64) AT(empty, 72) AT(changed, 80)
    AT(resting_changed, 88) AT(left, 96) AT(axis, 104) AT(axis_tests, 112) AT(axis_blocks, 136)
    AT(invalid_b, 144) AT(first_invalid_b, 152) AT(levels, 160) AT(high, 164)
    AT(placed, 168) AT(crowded, 176)
    AT(near, 184) AT(started, 192) AT(ended, 200));

// The tests that a sweep may take for each pair found, beyond its limit. The host adds them to the
// limit of the boxes, which it passes.
constexpr u64 TESTS_A_PAIR = 32;

DEVICE float pick(const float* of3, u32 axis) {
    return axis == 0 ? of3[0] : axis == 1 ? of3[1] : of3[2];
}

DEVICE Box load_box(const Box* box) {
    const float2* words = reinterpret_cast<const float2*>(box);
    float2 a = words[0], b = words[1], c = words[2];
    return Box{{a.x, a.y, b.x}, {b.y, c.x, c.y}};
}

DEVICE void store_box(Box* to, const Box& box) {
    float2* words = reinterpret_cast<float2*>(to);
    words[0] = make_float2(box.min[0], box.min[1]);
    words[1] = make_float2(box.min[2], box.max[0]);
    words[2] = make_float2(box.max[1], box.max[2]);
}

// Returns the box that stands for stretch k of `count` in a sample of n boxes. It is at no fixed
// offset in the stretch, as scenes often repeat with some period.
DEVICE u32 sampled_box(u32 k, u32 n, u32 count) {
    const u32 start = u32(u64(k) * n / count), end = u32(u64(k + 1) * n / count);
    return start + (k * 0x9e3779b9u >> 7) % (end - start);
}

// Flags of a filter. Two boxes that share one of them do not pair.
constexpr u32 STATIC_OR_ASLEEP = 3;

constexpr float INFINITE = __builtin_huge_valf();

DEVICE Box empty_box() {
    return Box{{INFINITE, INFINITE, INFINITE}, {-INFINITE, -INFINITE, -INFINITE}};
}

// Whether a box is empty. After `prepare` it is either in order on all axes or empty.
DEVICE bool is_empty(const Box& box) { return !(box.min[0] <= box.max[0]); }

// Returns unsigned bits that sort as the float does. Not for NaN; `prepare` has read -0.0 as +0.0.
DEVICE u32 ordered(float value) {
    u32 bits = __float_as_uint(value);
    return bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
}

}  // namespace radsweep::sap
