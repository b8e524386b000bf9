// The boxes that came from all ranks, and the homes near them.
//
// H200, 2026-12-01: 5,000 records take 3.6 to 4.5 us to receive, and 15,000 homes 4.1 to be found
// near them, of which launching takes 2. By the bytes at each kernel they take 0.1: they wait for
// memory. Larger ranks were not timed alone.
#pragma once
#include "cells.cuh"

namespace radsweep::dist {

// Records that came from one rank for one place in the cell.
struct Segment {
    u64 start;  // the index of its first record
    u64 to;     // where that goes in its set
    u64 first;  // the first id of the rank if records have none
    u32 origin, home;
    u32 group, unused;  // whose bounds its boxes are part of
};
ASSERT_LAYOUT(Segment, 40,
    AT(start, 0) AT(to, 8) AT(first, 16) AT(origin, 24) AT(home, 28) AT(group, 32) AT(unused, 36));

constexpr u32 NO_GROUP = ~0u;

// Adds the box of each lane that has a group to its bounds in memory. All lanes take part.
DEVICE void merge_bounds(Bounds* all, const Bounds& box, u32 group) {
    u32 left = __ballot_sync(ALL_LANES, group != NO_GROUP);
    while (left) {
        const u32 one = __shfl_sync(ALL_LANES, group, __ffs(i32(left)) - 1);
        const bool has = group == one;
#pragma unroll
        for (int axis = 0; axis < 3; axis++) {
            const i32 low = warp_min(has ? box.min[axis] : i32(0x7fffffff)),
                      high = warp_max(has ? box.max[axis] : i32(0x80000000));
            if (lane_index() == 0) {
                atomicMin(&all[one].min[axis], low);
                atomicMax(&all[one].max[axis], high);
            }
        }
        left &= ~__ballot_sync(ALL_LANES, has);
    }
}

// Unpacks the records: those of a segment of homes to `homes`, the others to `copies`, and merges
// the bounds of each group.
// A thread a record. Bytes a record: 28 read, or 36 if it has an id, and 40 written.
extern "C" __global__ void __launch_bounds__(THREADS) dist_receive(
    const u32* records, u64 count, u32 words, u32 has_ids, const Segment* segments,
    u32 segment_count, const __grid_constant__ Set homes, const __grid_constant__ Set copies,
    Bounds* bounds) {
    const u64 j = u64(blockIdx.x) * THREADS + threadIdx.x;
    float box[6] = {};
    u32 group = NO_GROUP;
    if (j < count) {
        const u32 after =
            partition_point(0u, segment_count, [&](u32 k) { return segments[k].start <= j; });
        const Segment segment = segments[after - 1];
        const u64 at = segment.to + (j - segment.start);
        const Set& set = segment.home ? homes : copies;
        const u32* record = records + j * words;
#pragma unroll
        for (int word = 0; word < 6; word++) box[word] = __uint_as_float(record[word]);
        store_box(set.boxes, at, box);
        const u32 index = record[6];
        u64 id = segment.first + index;
        record += 7;
        if (has_ids) {
            id = u64(record[1]) << 32 | record[0];
            record += 2;
        }
        set.names[at] = Name{id, segment.origin, index};
        if (set.filters) {
            set.filters[at] = make_uint4(record[0], record[1], record[2], record[3]);
            record += 4;
        }
        if (set.worlds) set.worlds[at] = record[0];
        group = segment.group;
    }
    merge_bounds(bounds, bounds_of(box), group);
}

// The homes of the cell: first the boxes of this rank, then those that came.
struct Homes {
    Frame all;          // with the ids of this rank
    u64 own;            // boxes of this rank
    const Name* names;  // of the others
    u32 rank, unused;
};
ASSERT_LAYOUT(Homes, 72, AT(all, 0) AT(own, 48) AT(names, 56) AT(rank, 64) AT(unused, 68));

DEVICE Name name_of(const Homes& homes, u64 i) {
    if (i < homes.own) return Name{homes.all.ids[i], homes.rank, u32(i)};
    return homes.names[i - homes.own];
}

// Gathers the homes that meet the bounds of a group of what came, in any order. With `cells`, those
// of these boxes whose home is elsewhere are left out. `count` counts all, also those beyond the
// capacity. A thread a home: 24 bytes read; 40 written for each near one, 60 with filters and
// worlds.
extern "C" __global__ void __launch_bounds__(THREADS) dist_near(
    const __grid_constant__ Homes homes, const __grid_constant__ Cells cells, const Bounds* bounds,
    u32 groups, const __grid_constant__ Set near, u64 capacity, u64* count) {
    const u64 i = u64(blockIdx.x) * THREADS + threadIdx.x;
    float box[6] = {};
    bool meets = false;
    if (i < homes.all.n) {
        bool valid;
        const bool takes_part = read_box(homes.all.boxes, i, box, valid);
        const Bounds own = bounds_of(box);
        for (u32 group = 0; group < groups && takes_part && !meets; group++) {
            const Bounds other = bounds[group];
            meets = true;
#pragma unroll
            for (int axis = 0; axis < 3; axis++) {
                meets =
                    meets && own.min[axis] <= other.max[axis] && other.min[axis] <= own.max[axis];
            }
        }
        meets = meets && (cells.columns == 0 || is_home(cells, own));
    }
    const u64 at = warp_append(count, meets);
    if (!meets || at >= capacity) return;
    store_box(near.boxes, at, box);
    near.names[at] = name_of(homes, i);
    if (near.filters) near.filters[at] = homes.all.filters[i];
    if (near.worlds) near.worlds[at] = homes.all.worlds[i];
}

}  // namespace radsweep::dist
