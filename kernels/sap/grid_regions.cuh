// The boxes of a grid (grid.cuh) to their buckets in two steps, for frames whose counts and records
// do not stay in L2: first to regions of space, then each region within itself. A region is a run
// of 2^shift buckets.
//
//   count      boxes by region, in shared memory; bytes a box: 24 read
//   offsets    where regions begin (offsets.cuh)
//   partition  boxes to their regions, in no order: a block ranks its boxes by region and takes
//              room for all of one region by one atomic; bytes a box: 24 read, 32 written
//   arrange    a block a region: its boxes by bucket, counted in shared memory; bytes a box: 32
//              read, 32 written; a bucket: 4 written; lists the few above the main level
//
// What is written at a time is close together, the next records of each region or the records of
// one, so L2 collects whole lines. Where all go to random places, each sector of 32 bytes costs
// memory a line.
//
// 10^7 boxes of `uniform` on an H200, 2026-11-27, in us, at 3.6 to 3.7 TB/s of memory: `count` 65
// (predicted 65 to 80); `partition` 215 to 250 in 4,757 regions (150, which its bytes take; it has
// too few warps to hide its waits); `arrange` 186 (190). In 2,380 regions, as now, the stage `sort`
// takes 476 to 491; at once it takes 972. With 4 * 10^6 boxes it is 205 and 302, with 2 * 10^6 111
// and 131, and with 10^6 62 and 61. Compared: boxes that are read a second time instead of held,
// 250 for `partition`; regions of 8,400 boxes, read twice, 432 for `arrange`.
//
// A region's block is alone with its boxes, so no region may have too many. The host asks for
// regions where a sample says that boxes are spread over them, and learns how many the largest had.
#pragma once
#include "grid.cuh"

namespace radsweep::sap {

constexpr u32 MAX_REGIONS = 8192;
constexpr u32 REGION_THREADS = 512;
constexpr u32 PARTITION_ITEMS = 5;   // boxes of a thread
constexpr u32 LARGE_THREADS = 1024;  // of a block that arranges a large region
constexpr u32 HELD = 9;              // halves of records that a thread holds
constexpr u32 LOADS = 4;             // that a thread waits for together
constexpr u32 REGION_WINDOW = 4096;  // buckets that are counted at a time

// How buckets are divided.
struct Regions {
    u32 count, shift;
};
ASSERT_LAYOUT(Regions, 8, AT(count, 0) AT(shift, 4));

// A partitioned record has a label: its bucket within the region, and above that its level.
constexpr u32 WITHIN_BITS = 27;
DEVICE u32 within(u32 label) { return label & (1u << WITHIN_BITS) - 1; }

// Resident blocks take boxes in turns.
extern "C" __global__ void __launch_bounds__(REGION_THREADS) sap_region_count(
    const Box* stored, const u32* worlds, u32 n, const __grid_constant__ Cut cut, Regions regions,
    u32* counts, State* state) {
    wait_for_stream();
    __shared__ u32 boxes[MAX_REGIONS], levels;
    for (u32 k = threadIdx.x; k < regions.count; k += REGION_THREADS) boxes[k] = 0;
    if (threadIdx.x == 0) levels = 0;
    __syncthreads();
    const u64 step = u64(gridDim.x) * REGION_THREADS;
    const u32 lane = lane_index();
    for (u64 base = u64(blockIdx.x) * REGION_THREADS + threadIdx.x - lane; base < n; base += step) {
        const u64 i = base + lane;
        const Box box = i < n ? load_box(stored + i) : empty_box();
        u32 bucket = NO_BUCKET;
        if (!is_empty(box)) {
            const Home home = home_of(cut, box, worlds ? worlds[i] : 0);
            bucket = home.bucket;
            atomicAdd(&boxes[bucket >> regions.shift], 1u);
            mark_level(&levels, home.level);
        }
        count_near(state, base / WARP, bucket);
    }
    __syncthreads();
    for (u32 k = threadIdx.x; k < regions.count; k += REGION_THREADS) {
        if (boxes[k] > 0) atomicAdd(&counts[k], boxes[k]);
    }
    if (threadIdx.x == 0) add_levels(state, levels);
}

// `ends` has where each region begins, and gets where it ends. `ids` is as for `place`.
extern "C" __global__ void __launch_bounds__(REGION_THREADS, 2) sap_region_partition(
    const Box* stored, const u32* worlds, const u32* ids, u32 n, const __grid_constant__ Cut cut,
    Regions regions, u32* ends, Record* records) {
    wait_for_stream();
    __shared__ u32 at[MAX_REGIONS];
    __shared__ float4 halves[REGION_THREADS][2];
    const u64 first = u64(blockIdx.x) * (REGION_THREADS * PARTITION_ITEMS) + threadIdx.x;
    Box boxes[PARTITION_ITEMS];
#pragma unroll
    for (u32 item = 0; item < PARTITION_ITEMS; item++) {
        const u64 i = first + item * REGION_THREADS;
        boxes[item] = i < n ? load_box(stored + i) : empty_box();
    }
    for (u32 k = threadIdx.x; k < regions.count; k += REGION_THREADS) at[k] = 0;
    __syncthreads();
    u32 labels[PARTITION_ITEMS], slots[PARTITION_ITEMS];  // a slot: the region and the rank there
    constexpr u32 RANK_BITS = 16;
    static_assert(REGION_THREADS * PARTITION_ITEMS < 1u << RANK_BITS, "ranks fit");
#pragma unroll
    for (u32 item = 0; item < PARTITION_ITEMS; item++) {
        slots[item] = NO_BUCKET;
        if (is_empty(boxes[item])) continue;
        const u64 i = first + item * REGION_THREADS;
        const Home home = home_of(cut, boxes[item], worlds ? worlds[i] : 0);
        const u32 region = home.bucket >> regions.shift;
        labels[item] = home.level << WITHIN_BITS | (home.bucket & (1u << regions.shift) - 1);
        slots[item] = region << RANK_BITS | atomicAdd(&at[region], 1u);
    }
    __syncthreads();
    for (u32 base = threadIdx.x; base < regions.count; base += LOADS * REGION_THREADS) {
        u32 begin[LOADS];
#pragma unroll
        for (u32 k = 0; k < LOADS; k++) {
            const u32 region = base + k * REGION_THREADS;
            const u32 here = region < regions.count ? at[region] : 0;
            begin[k] = here > 0 ? atomicAdd(&ends[region], here) : 0;
        }
#pragma unroll
        for (u32 k = 0; k < LOADS; k++) {
            const u32 region = base + k * REGION_THREADS;
            if (region < regions.count) at[region] = begin[k];
        }
    }
    __syncthreads();
#pragma unroll
    for (u32 item = 0; item < PARTITION_ITEMS; item++) {
        const u32 i = u32(first) + item * REGION_THREADS;
        u32 to = NO_BUCKET;
        Record record = {};
        if (slots[item] != NO_BUCKET) {
            to = at[slots[item] >> RANK_BITS] + (slots[item] & (1u << RANK_BITS) - 1);
            record = record_of(boxes[item], ids ? ids[i] : i, labels[item]);
        }
        store_records(halves, record, to, records);
    }
}

// Replaces the counts of a window's buckets by where these begin, the first one at `at`, and writes
// that to `starts`. Returns where the last one ends. By all threads of a block; it begins and ends
// with a barrier.
template <u32 THREADS>
DEVICE u32 begin_buckets(u32* counts, u32 size, u32 at, u32* warp_sums, u32* starts) {
    constexpr u32 WARPS = THREADS / WARP, ROWS = REGION_WINDOW / THREADS;
    const u32 lane = lane_index(), warp = threadIdx.x / WARP, first = warp * ROWS * WARP + lane;
    u32 before[ROWS], own = 0;
    __syncthreads();
    // A warp takes rows of 32 counts, so that it writes whole sectors.
#pragma unroll
    for (u32 row = 0; row < ROWS; row++) {
        const u32 k = first + row * WARP, count = k < size ? counts[k] : 0;
        const u32 up_to = warp_inclusive_sum(count, lane);
        before[row] = own + up_to - count;
        own += __shfl_sync(ALL_LANES, up_to, WARP - 1);
    }
    if (lane == 0) warp_sums[warp] = own;
    __syncthreads();
    u32 end = at;
#pragma unroll
    for (u32 w = 0; w < WARPS; w++) {
        if (w == warp) at = end;
        end += warp_sums[w];
    }
#pragma unroll
    for (u32 row = 0; row < ROWS; row++) {
        const u32 k = first + row * WARP;
        if (k < size) {
            counts[k] = at + before[row];
            starts[k] = at + before[row];
        }
    }
    __syncthreads();
    return end;
}

// A half of a record. Two lanes next to each other share a record, so that whole sectors are read
// and written. The odd lane has the label.
struct Half {
    float4 half;

    DEVICE u32 label() const { return __float_as_uint(half.w); }

    // Loads half `i` of `len`.
    DEVICE void load(const float4* halves, u64 i, u64 len) {
        half = i < len ? halves[i] : make_float4(0, 0, 0, __uint_as_float(NO_BUCKET));
    }

    // Counts the record if its bucket is one of `size` in the window. Returns what was counted
    // before, NO_BUCKET for none.
    DEVICE u32 count(u32* counts, u32 window, u32 size) const {
        const u32 bucket = within(label()) - window;
        return lane_index() % 2 == 1 && bucket < size ? atomicAdd(&counts[bucket], 1u) : NO_BUCKET;
    }

    // Stores the record at the odd lane's `to`, unless that is NO_BUCKET, as it is for even lanes.
    DEVICE void store(u32 to, Record* records, const High& high) {
        const u32 odd = lane_index() % 2, level = label() >> WITHIN_BITS;
        if (to != NO_BUCKET) list_high(high, level, to);
        to = __shfl_sync(ALL_LANES, to, lane_index() | 1);
        if (odd) half.w = __uint_as_float(level);
        if (to != NO_BUCKET) reinterpret_cast<float4*>(records + to)[odd] = half;
    }
};

// Arranges a region by a block. `ends` is what the partition left, and `partitioned` its records.
template <u32 THREADS>
DEVICE void arrange(
    const Record* partitioned, const u32* ends, const Regions& regions, u32 buckets, u32* starts,
    Record* records, const High& high) {
    __shared__ u32 counts[REGION_WINDOW], warp_sums[THREADS / WARP];
    const u32 region = blockIdx.x, first = region << regions.shift;
    const u32 begin = region > 0 ? ends[region - 1] : 0, end = ends[region];
    const u32 size = min(buckets - first, 1u << regions.shift);
    const float4* halves = reinterpret_cast<const float4*>(partitioned + begin);
    const u64 len = 2 * u64(end - begin);
    u32 at = begin;
    if (size <= REGION_WINDOW && len <= HELD * THREADS) {
        // Each record is read once.
        Half held[HELD];
        u32 ranks[HELD];
#pragma unroll
        for (u32 k = 0; k < HELD; k++) held[k].load(halves, k * THREADS + threadIdx.x, len);
        for (u32 k = threadIdx.x; k < size; k += THREADS) counts[k] = 0;
        __syncthreads();
#pragma unroll
        for (u32 k = 0; k < HELD; k++) ranks[k] = held[k].count(counts, 0, size);
        at = begin_buckets<THREADS>(counts, size, at, warp_sums, starts + first);
#pragma unroll
        for (u32 k = 0; k < HELD; k++) {
            const bool counted = ranks[k] != NO_BUCKET;
            held[k].store(
                counted ? counts[within(held[k].label())] + ranks[k] : NO_BUCKET, records, high);
        }
    } else {
        for (u32 window = 0; window < size; window += REGION_WINDOW) {
            const u32 here = min(size - window, REGION_WINDOW);
            for (u32 k = threadIdx.x; k < here; k += THREADS) counts[k] = 0;
            __syncthreads();
            // All lanes of a warp go round as often.
            const u32 lane = lane_index(), warp_first = threadIdx.x - lane;
            Half half[LOADS];
            for (u64 base = warp_first; base < len; base += LOADS * THREADS) {
#pragma unroll
                for (u32 k = 0; k < LOADS; k++)
                    half[k].load(halves, base + lane + k * THREADS, len);
#pragma unroll
                for (u32 k = 0; k < LOADS; k++) half[k].count(counts, window, here);
            }
            at = begin_buckets<THREADS>(counts, here, at, warp_sums, starts + first + window);
            for (u64 base = warp_first; base < len; base += LOADS * THREADS) {
#pragma unroll
                for (u32 k = 0; k < LOADS; k++)
                    half[k].load(halves, base + lane + k * THREADS, len);
#pragma unroll
                for (u32 k = 0; k < LOADS; k++)
                    half[k].store(half[k].count(counts, window, here), records, high);
            }
            __syncthreads();
        }
    }
    if (region == regions.count - 1 && threadIdx.x == 0) starts[buckets] = at;
}

extern "C" __global__ void __launch_bounds__(REGION_THREADS, 2) sap_region_arrange(
    const Record* partitioned, const u32* ends, Regions regions, u32 buckets, u32* starts,
    Record* records, const __grid_constant__ High high) {
    wait_for_stream();
    arrange<REGION_THREADS>(partitioned, ends, regions, buckets, starts, records, high);
}

extern "C" __global__ void __launch_bounds__(LARGE_THREADS) sap_region_arrange_large(
    const Record* partitioned, const u32* ends, Regions regions, u32 buckets, u32* starts,
    Record* records, const __grid_constant__ High high) {
    wait_for_stream();
    arrange<LARGE_THREADS>(partitioned, ends, regions, buckets, starts, records, high);
}

}  // namespace radsweep::sap
