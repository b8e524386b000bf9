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
//            written; lists the few above the main level
// Both go to random places. Where these do not stay in L2, boxes go to regions of space first
// (grid_regions.cuh).
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

// Where a box is stored.
struct Home {
    u32 bucket, level;
};

DEVICE Home home_of(const Cut& cut, const Box& box, u32 world) {
    const Cells c = cells(cut, box);
    const u32 level = level_of(cut, c);
    return Home{
        bucket_of(
            cut, level, at_level(cut, 0, c.low[0], level), at_level(cut, 1, c.low[1], level),
            at_level(cut, 2, c.low[2], level), world),
        level};
}

constexpr u32 NEAR_SAMPLE = 64;  // of as many warps one is sampled
constexpr u32 NEAR = 64;         // buckets

// Counts the boxes of a warp whose bucket is near that of the box before. `number` is the warp's.
DEVICE void count_near(State* state, u64 number, u32 bucket) {
    if (number % NEAR_SAMPLE != 0) return;
    const u32 last = __shfl_up_sync(ALL_LANES, bucket, 1);
    const u32 near =
        __ballot_sync(ALL_LANES, bucket != NO_BUCKET && bucket - last + NEAR <= 2 * NEAR);
    if (lane_index() == 0) atomicAdd(&state->near, u64(__popc(near)));
}

// Marks the level of a box as in use, in shared memory, which is zero before the first.
DEVICE void mark_level(u32* levels, u32 level) {
    if (!(*levels >> level & 1)) atomicOr(levels, 1u << level);
}

// By one thread of a block, after a barrier.
DEVICE void add_levels(State* state, u32 levels) {
    if (levels & ~state->levels) atomicOr(&state->levels, levels);
}

// Boxes above the level with a block are few in most scenes: the ground, walls. While they are no
// more than this, they have a list, and a warp without such a box does not look for them in cells.
// Where no level has a block, or the host expects many, there is no list and nothing is counted.
constexpr u32 MAX_HIGH = 128;

struct High {
    u32* slots;  // of their records, in no order
    u32* count;
    u32 main, pad;  // as in the cut; 32 = no list
};
ASSERT_LAYOUT(High, 24, AT(slots, 0) AT(count, 8) AT(main, 16) AT(pad, 20));

// Lists the slot of a record of this level, if it is above that with a block.
DEVICE void list_high(const High& to, u32 level, u32 slot) {
    // Once there are too many, they do not wait for each other any more.
    if (level <= to.main || load_relaxed(to.count) > MAX_HIGH) return;
    const u32 at = atomicAdd(to.count, 1u);
    if (at < MAX_HIGH) to.slots[at] = slot;
}

// One thread a box.
extern "C" __global__ void __launch_bounds__(GRID_THREADS) sap_grid_count(
    const Box* stored, const u32* worlds, u32 n, const __grid_constant__ Cut cut, u32* counts,
    uint2* slots, State* state) {
    wait_for_stream();
    __shared__ u32 levels;
    if (threadIdx.x == 0) levels = 0;
    __syncthreads();
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    u32 bucket = NO_BUCKET;
    const Box box = i < n ? load_box(stored + i) : empty_box();
    if (!is_empty(box)) {
        const Home home = home_of(cut, box, worlds ? worlds[i] : 0);
        bucket = home.bucket;
        mark_level(&levels, home.level);
    }
    // One atomic for all lanes with the same bucket.
    const u32 peers = __match_any_sync(ALL_LANES, bucket), leader = __ffs(int(peers)) - 1;
    u32 rank = 0;
    if (lane_index() == leader && bucket != NO_BUCKET)
        rank = atomicAdd(&counts[bucket], u32(__popc(peers)));
    rank = __shfl_sync(ALL_LANES, rank, leader) + __popc(peers & lanes_below());
    if (i < n) slots[i] = make_uint2(bucket, rank);
    count_near(state, i / WARP, bucket);
    __syncthreads();
    if (threadIdx.x == 0) add_levels(state, levels);
}

// Stores the records of a warp's lanes, each at `to` unless that is NO_BUCKET. Two lanes write a
// record's halves next to each other, so that whole sectors are written. `halves` is memory of the
// block. (With exchanges between lanes instead, `place` took 47 us more for 10^7 boxes.)
DEVICE void store_records(float4 (*halves)[2], const Record& record, u32 to, Record* records) {
    const u32 lane = lane_index();
    halves[threadIdx.x][0] = record.low;
    halves[threadIdx.x][1] = record.high;
    __syncwarp();
#pragma unroll
    for (u32 round = 0; round < 2; round++) {
        const u32 from = round * (WARP / 2) + lane / 2;
        const u32 slot = __shfl_sync(ALL_LANES, to, from);
        if (slot != NO_BUCKET)
            reinterpret_cast<float4*>(records + slot)[lane % 2] =
                halves[threadIdx.x - lane + from][lane % 2];
    }
    __syncwarp();
}

// `ids` has the boxes' indices in the frame where these are some of its boxes only; else it is
// null.
extern "C" __global__ void __launch_bounds__(GRID_THREADS) sap_grid_place(
    const Box* stored, const u32* ids, u32 n, const __grid_constant__ Cut cut, const uint2* slots,
    const u32* starts, Record* records, const __grid_constant__ High high) {
    wait_for_stream();
    __shared__ float4 halves[GRID_THREADS][2];
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    const uint2 slot = i < n ? slots[i] : make_uint2(NO_BUCKET, 0);
    u32 to = NO_BUCKET;
    Record record = {};
    if (slot.x != NO_BUCKET) {
        to = starts[slot.x] + slot.y;
        const Box box = load_box(stored + i);
        const u32 level = level_of(cut, cells(cut, box));
        record = record_of(box, ids ? ids[i] : i, level);
        list_high(high, level, to);
    }
    store_records(halves, record, to, records);
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
    wait_for_stream();
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= count) return;
    const u32 i = sampled_box(k, n, count);
    store_box(&sample[k].box, load_box(stored + i));
    sample[k].world = worlds ? worlds[i] : 0;
}

}  // namespace radsweep::sap
