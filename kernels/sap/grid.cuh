// A grid of cells of several sizes: the boxes in the order of a hash of their cells.
//
// Coordinates are cut into whole numbers, `floor((x - origin) * inverse)`, by axis. The cell of a
// coordinate at level L is that number over 2^L, rounded down. Each step is monotone, rounding and
// saturation included, and all that follows is integer arithmetic. So nothing depends on how exact
// the steps are:
//
//   - a box is at the lowest level in use at which it touches at most two cells on every axis;
//   - where two boxes overlap, on every axis the `min` of one lies in the other; so the cell of
//     that `min` is one of the (at most two) cells that the other touches.
//
// Level 30 is always in use, and there the whole space has two cells an axis: boxes of any size
// have a level, infinite ones too. A box is stored once, by the cell of its `min`: there are no
// copies, and no pair needs a rule by which it is reported once. (Sweeping columns, the other way
// to cut space, takes 1.8 copies a box in the scene `uniform`, sorted by 4 digits.)
//
// Buckets. A row is all cells of one level (and world) along x. Cells next to each other on x are
// next to each other in memory. The main level, where most boxes are, has a bucket for each cell of
// a block of space, if there are not many more cells than boxes. What lies outside goes to the
// outermost cells, which is monotone too. Rows of all other levels, and of the main level where it
// has no block, are hashed: the hash is added to the cell's index on x, modulo a power of two of at
// least twice as many buckets as boxes. Where two such rows share a bucket, boxes are tested in
// vain; a pair counts only if the cell looked for is the cell of the box.
//
// Steps, by launch:
//   count    the bucket of each box, and by an atomic its rank there; bytes a box: 24 read, 8
//            written, a sector of 32 changed
//   offsets  where buckets begin (offsets.cuh); bytes a bucket: 4 read, 4 written
//   place    boxes to their slots; bytes a box: 24 + 8 read, a sector of 32 for its bucket, 32
//            written
// Both may take the boxes in the order of the last frame's slots: then buckets and slots of threads
// next to each other are, too, and what is read at random are the boxes. This pays where they do
// not stay in L2: with 10^7 boxes that move by 10 % of their size `count` takes 286 to 308 us
// instead of 328, and `place` 368 to 389 instead of 606 (H200, 2026-11-26). Predicted were 220 and
// 250. The count tells of sampled blocks how many boxes are near the one before.
//
// This is a counting sort of keys of log2(4 n) bits in one pass. Ranks are in no order, so neither
// are the boxes of a bucket; the pairs are put in order later.
#pragma once
#include "types.cuh"

namespace radsweep::sap {

// How the space is cut. Names and order are those of `Cut` in Rust.
struct Cut {
    float origin[3];
    float inverse[3];  // cells of level 0 in a unit of length
    u32 levels;        // those in use, a bit each; bit 30 is set
    u32 main;          // the level with a block; 32 = none
    int low[3];        // the first cell of the block by axis
    u32 size[3];       // its cells by axis
    u32 hashed;        // the first bucket of hashed rows
    u32 mask;          // buckets of hashed rows - 1
};
ASSERT_LAYOUT(Cut, 64,
    AT(origin, 0) AT(inverse, 12) AT(levels, 24) AT(main, 28) AT(low, 32) AT(size, 44)
    AT(hashed, 56) AT(mask, 60));

constexpr u32 GRID_THREADS = 256;
constexpr u32 NO_BUCKET = 0xffffffffu;

// A stored box: min x, y, z, max x; max y, z, index, level.
struct Record {
    float4 low, high;
};
ASSERT_LAYOUT(Record, 32, AT(low, 0) AT(high, 16));

DEVICE Record record_of(const Box& box, u32 index, u32 level) {
    return Record{
        make_float4(box.min[0], box.min[1], box.min[2], box.max[0]),
        make_float4(box.max[1], box.max[2], __uint_as_float(index), __uint_as_float(level))};
}

DEVICE int cell(const Cut& cut, u32 axis, float x) {
    constexpr int FAR = 1 << 30;
    return max(min(__float2int_rd((x - cut.origin[axis]) * cut.inverse[axis]), FAR - 1), -FAR);
}

// The cells of level 0 that a box touches.
struct Cells {
    int low[3], high[3];
};

DEVICE Cells cells(const Cut& cut, const Box& box) {
    Cells c;
#pragma unroll
    for (u32 axis = 0; axis < 3; axis++) {
        c.low[axis] = cell(cut, axis, box.min[axis]);
        c.high[axis] = cell(cut, axis, box.max[axis]);
    }
    return c;
}

// Returns the lowest level at which an interval touches at most two cells. With 2^(L-1) < distance
// <= 2^L it is L or L - 1.
DEVICE u32 level_of(int low, int high) {
    const u32 distance = u32(high) - u32(low);
    if (distance <= 1) return 0;
    const u32 level = 32 - __clz(int(distance - 1));
    return (high >> (level - 1)) - (low >> (level - 1)) <= 1 ? level - 1 : level;
}

DEVICE u32 level_of(const Cut& cut, const Cells& c) {
    const u32 least =
        max(level_of(c.low[0], c.high[0]),
            max(level_of(c.low[1], c.high[1]), level_of(c.low[2], c.high[2])));
    return least + __ffs(int(cut.levels >> least)) - 1;
}

// The cells of one level that a box touches: on x from `x` to `last`, and whether it touches the
// next one on y and on z.
struct AtLevel {
    int x, last, y, z;
    bool up_y, up_z;
};

DEVICE int at_level(const Cut& cut, u32 axis, int cell, u32 level) {
    const int at = cell >> level;
    return level == cut.main ? max(min(at, cut.low[axis] + int(cut.size[axis]) - 1), cut.low[axis])
                             : at;
}

DEVICE AtLevel at_level(const Cut& cut, const Cells& c, u32 level) {
    AtLevel to;
    to.x = at_level(cut, 0, c.low[0], level);
    to.last = at_level(cut, 0, c.high[0], level);
    to.y = at_level(cut, 1, c.low[1], level);
    to.z = at_level(cut, 2, c.low[2], level);
    to.up_y = at_level(cut, 1, c.high[1], level) > to.y;
    to.up_z = at_level(cut, 2, c.high[2], level) > to.z;
    return to;
}

// Whether there may be boxes in a row.
DEVICE bool is_row(const Cut& cut, u32 level, int y, int z) {
    return level != cut.main ||
           (u32(y - cut.low[1]) < cut.size[1] && u32(z - cut.low[2]) < cut.size[2]);
}

DEVICE u32 hash(u32 level, int y, int z, u32 world) {
    u32 h = u32(y) * 0x9e3779b1u + u32(z) * 0x85ebca77u + level * 0x27d4eb2fu + world * 0xc2b2ae3du;
    h = (h ^ h >> 15) * 0x2c1b3c6du;
    h = (h ^ h >> 12) * 0x297a2d39u;
    return h ^ h >> 15;
}

// Returns the bucket of a cell of a row for which `is_row` holds.
DEVICE u32 bucket_of(const Cut& cut, u32 level, int x, int y, int z, u32 world) {
    if (level == cut.main) {
        return (u32(z - cut.low[2]) * cut.size[1] + u32(y - cut.low[1])) * cut.size[0] +
               u32(x - cut.low[0]);
    }
    return cut.hashed + (hash(level, y, z, world) + u32(x) & cut.mask);
}

constexpr u32 NEAR_SAMPLE = 64;  // of as many blocks one is sampled
constexpr u32 NEAR = 64;         // buckets

// One thread a box, of which `order` has the indices, or null.
extern "C" __global__ void __launch_bounds__(GRID_THREADS) sap_grid_count(
    const Box* stored, const u32* order, const u32* worlds, u32 n, const __grid_constant__ Cut cut,
    u32* counts, uint2* slots, State* state) {
    __shared__ u32 levels;
    if (threadIdx.x == 0) levels = 0;
    __syncthreads();
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    const bool present = k < n;
    const u32 i = present && order ? order[k] : k;
    u32 bucket = NO_BUCKET;
    const Box box = present ? load_box(stored + i) : empty_box();
    if (!is_empty(box)) {
        const Cells c = cells(cut, box);
        const u32 level = level_of(cut, c);
        bucket = bucket_of(
            cut, level, at_level(cut, 0, c.low[0], level), at_level(cut, 1, c.low[1], level),
            at_level(cut, 2, c.low[2], level), worlds ? worlds[i] : 0);
        if (!(levels >> level & 1)) atomicOr(&levels, 1u << level);
    }
    // One atomic for all lanes with the same bucket.
    const u32 peers = __match_any_sync(ALL_LANES, bucket) & __ballot_sync(ALL_LANES, present);
    const u32 leader = __ffs(int(peers | 1u << 31)) - 1;
    u32 rank = 0;
    if (lane_index() == leader && present) {
        const u32 boxes = __popc(peers);
        rank = bucket != NO_BUCKET ? atomicAdd(&counts[bucket], boxes)
                                   : u32(atomicAdd(&state->unplaced, u64(boxes)));
    }
    rank = __shfl_sync(ALL_LANES, rank, leader) + __popc(peers & lanes_below());
    if (present) slots[k] = make_uint2(bucket, rank);
    if (blockIdx.x % NEAR_SAMPLE == 0) {
        const u32 last = __shfl_up_sync(ALL_LANES, bucket, 1);
        const u32 near = __ballot_sync(ALL_LANES, present && bucket - last + NEAR <= 2 * NEAR);
        if (lane_index() == 0) atomicAdd(&state->near, u64(__popc(near)));
    }
    __syncthreads();
    if (threadIdx.x == 0 && (levels & ~u32(state->levels))) atomicOr(&state->levels, u64(levels));
}

// Two lanes write a record's halves next to each other, so that whole sectors are written. `ids`
// has the boxes' indices in the frame where these are some of its boxes only; else it is null.
// `order` is as for the count, `next` gets that of the next frame unless it is null: boxes that are
// not placed come last.
extern "C" __global__ void __launch_bounds__(GRID_THREADS) sap_grid_place(
    const Box* stored, const u32* order, const u32* ids, u32 n, const __grid_constant__ Cut cut,
    const uint2* slots, const u32* starts, Record* records, u32* next, const State* state) {
    __shared__ float4 halves[GRID_THREADS][2];
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x, lane = lane_index();
    const u32 i = k < n && order ? order[k] : k;
    const uint2 slot = k < n ? slots[k] : make_uint2(NO_BUCKET, 0);
    const bool placed = slot.x != NO_BUCKET;
    u32 to_slot = 0;
    if (next && k < n) next[placed ? starts[slot.x] + slot.y : u32(state->placed) + slot.y] = i;
    if (placed) {
        to_slot = starts[slot.x] + slot.y;
        const Box box = load_box(stored + i);
        const u32 level = level_of(cut, cells(cut, box));
        const Record record = record_of(box, ids ? ids[i] : i, level);
        halves[threadIdx.x][0] = record.low;
        halves[threadIdx.x][1] = record.high;
    }
    __syncwarp();
    const u32 any = __ballot_sync(ALL_LANES, placed);
#pragma unroll
    for (u32 round = 0; round < 2; round++) {
        const u32 from = round * (WARP / 2) + lane / 2;
        const u32 to = __shfl_sync(ALL_LANES, to_slot, from);
        if (any >> from & 1)
            reinterpret_cast<float4*>(records + to)[lane % 2] =
                halves[threadIdx.x - lane + from][lane % 2];
    }
}

// A box for the plan. The order is that of `Sampled` in Rust, where `box` is `aabb`.
struct Sampled {
    Box box;
    u32 world, pad;
};
ASSERT_LAYOUT(Sampled, 32, AT(box, 0) AT(world, 24) AT(pad, 28));

// Writes a sample of `count` boxes (`sampled_box`).
extern "C" __global__ void __launch_bounds__(GRID_THREADS) sap_sample(
    const Box* stored, const u32* worlds, u32 n, u32 count, Sampled* sample) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= count) return;
    const u32 i = sampled_box(k, n, count);
    store_box(&sample[k].box, load_box(stored + i));
    sample[k].world = worlds ? worlds[i] : 0;
}

}  // namespace radsweep::sap
