// Steps 5 to 8 of bucket_sort.cu: from sorted sublists and sorted samples to buckets. Included with KEY_BITS defined.
#pragma once

#include "../common/layout.cuh"

#include <type_traits>

#include "bucket_tile.cuh"
#include "outcome.cuh"

namespace radsweep {

struct Array {
    Key* keys;
    void* values;                      // null: none, or as input 0, 1, 2, ...
};
ASSERT_LAYOUT(Array, 16, AT(keys, 0) AT(values, 8));

// The host's copy: crates/gpusort/src/cuda/bucket_sort/plan.rs.
struct BucketArgs {
    Array sorted;                      // sublists, sorted
    Array buckets;                     // the same keys by bucket
    const Key* samples;                // sorted
    const uint32_t* sample_numbers;    // with them
    Key* splitters;                    // s ordered bits; the first is not used
    uint32_t* splitter_places;         // with them
    uint16_t* locations;               // [sublist][bucket]: where the bucket's keys begin in the sublist
    uint32_t* targets;                 // [sublist][bucket]: where they go
    uint32_t* group_sums;              // [row group][bucket]
    uint32_t* begins;                  // as in Pieces, to be written
    uint32_t* first_tiles;
    uint32_t* piece_of_tile;
    Outcome* outcome;
    uint64_t n;
    uint64_t sample_count;
    KeyOrder order;
    uint32_t sublists, bucket_count;   // m, s
    uint32_t tile;                     // keys of a sublist
    uint32_t spacing;
    uint32_t group_rows, groups;       // of sublists, in step 7
};
ASSERT_LAYOUT(BucketArgs, 200,
    AT(sorted, 0) AT(buckets, 16) AT(samples, 32) AT(sample_numbers, 40) AT(splitters, 48) AT(splitter_places, 56)
    AT(locations, 64) AT(targets, 72) AT(group_sums, 80) AT(begins, 88) AT(first_tiles, 96) AT(piece_of_tile, 104)
    AT(outcome, 112) AT(n, 120) AT(sample_count, 128) AT(order, 136) AT(sublists, 176) AT(bucket_count, 180) AT(tile, 184)
    AT(spacing, 188) AT(group_rows, 192) AT(groups, 196));

__device__ __forceinline__ Key ordered_key(const KeyOrder& order, Key key) {
    const Key ordered = order.fold != 0 ? ordering_of<true>(order)(key) : ordering_of<false>(order)(key);
    return ordered & Key(order.window);
}

// ---- Step 5 ----

__device__ __forceinline__ void splitters(const BucketArgs& args) {
    const uint32_t bucket = blockIdx.x * blockDim.x + threadIdx.x;
    if (bucket >= args.bucket_count) return;
    const uint64_t rank = bucket * args.sample_count / args.bucket_count;
    args.splitters[bucket] = ordered_key(args.order, args.samples[rank]);
    args.splitter_places[bucket] = args.sample_numbers[rank] * args.spacing;
}

// ---- Step 6 ----

__device__ __forceinline__ uint32_t keys_of_sublist(const BucketArgs& args, uint32_t sublist) {
    return uint32_t(min(uint64_t(args.tile), args.n - uint64_t(sublist) * args.tile));
}

__device__ __forceinline__ void index_samples(const BucketArgs& args) {
    extern __shared__ uint4 shared_memory[];
    Key* const keys = reinterpret_cast<Key*>(shared_memory);
    const uint32_t sublist = blockIdx.x, count = keys_of_sublist(args, sublist);
    const Key* const from = args.sorted.keys + uint64_t(sublist) * args.tile;
#pragma unroll 4
    for (uint32_t at = threadIdx.x; at < count; at += TILE_THREADS) keys[at] = ordered_key(args.order, from[at]);
    __syncthreads();

    uint16_t* const locations = args.locations + uint64_t(sublist) * args.bucket_count;
    for (uint32_t bucket = threadIdx.x; bucket < args.bucket_count; bucket += TILE_THREADS) {
        uint32_t low = 0, high = count;
        if (bucket == 0) {
            high = 0;
        } else {
            const Key splitter = args.splitters[bucket];
            const uint32_t place = args.splitter_places[bucket], owner = place / args.tile;
            if (owner == sublist) low = high = place % args.tile;
            // Keys equal to the splitter are before it in the sublists before the splitter's, and behind it in those after.
            while (low < high) {
                const uint32_t middle = (low + high) / 2;
                if (keys[middle] < splitter || (keys[middle] == splitter && sublist < owner)) low = middle + 1;
                else high = middle;
            }
        }
        locations[bucket] = uint16_t(low);
    }
}

// ---- Step 7 ----

constexpr uint32_t COLUMN_THREADS = 256, SCAN_THREADS = 1024;

// What `visit` is called with for each of a thread's rows: the entry, and the keys that the sublist has in the bucket.
template <class Visit>
__device__ __forceinline__ void for_rows(const BucketArgs& args, uint32_t group, uint32_t bucket, Visit visit) {
    const uint32_t until = min((group + 1) * args.group_rows, args.sublists);
#pragma unroll 4
    for (uint32_t sublist = group * args.group_rows; sublist < until; sublist++) {
        const uint64_t entry = uint64_t(sublist) * args.bucket_count + bucket;
        const uint32_t end = bucket + 1 < args.bucket_count ? args.locations[entry + 1] : keys_of_sublist(args, sublist);
        visit(entry, end - args.locations[entry]);
    }
}

__device__ __forceinline__ void column_sums(const BucketArgs& args) {
    const uint32_t bucket = blockIdx.x * COLUMN_THREADS + threadIdx.x;
    if (bucket >= args.bucket_count) return;
    uint32_t sum = 0;
    for_rows(args, blockIdx.y, bucket, [&](uint64_t, uint32_t keys) { sum += keys; });
    args.group_sums[uint64_t(blockIdx.y) * args.bucket_count + bucket] = sum;
}

// One block: where each bucket begins, in keys and in tiles, and each group of rows within it.
__device__ __forceinline__ void scan_columns(const BucketArgs& args, uint32_t tile, uint32_t most_tiles) {
    __shared__ uint64_t warp_sums[SCAN_THREADS / WARP];
    __shared__ uint32_t largest;
    const uint32_t lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    uint64_t before = 0;               // keys of all buckets before, and above them their tiles
    if (threadIdx.x == 0) largest = 0;
    for (uint32_t first = 0; first < args.bucket_count; first += SCAN_THREADS) {
        const uint32_t bucket = first + threadIdx.x;
        const bool inside = bucket < args.bucket_count;
        uint32_t keys = 0;
#pragma unroll 8
        for (uint32_t group = 0; inside && group < args.groups; group++) {
            keys += args.group_sums[uint64_t(group) * args.bucket_count + bucket];
        }
        const uint32_t tiles = uint32_t((uint64_t(keys) + tile - 1) / tile);
        const uint64_t own = uint64_t(tiles) << 32 | keys;
        uint64_t up_to = warp_inclusive_sum(own, lane);
        __syncthreads();
        if (lane == WARP - 1) warp_sums[warp] = up_to;
        atomicMax(&largest, keys);
        __syncthreads();
        uint64_t all = 0;
        for (uint32_t w = 0; w < SCAN_THREADS / WARP; w++) {
            if (w < warp) up_to += warp_sums[w];
            all += warp_sums[w];
        }
        const uint64_t start = before + up_to - own;
        before += all;
        if (!inside) continue;
        uint32_t begin = uint32_t(start);
        const uint32_t first_tile = uint32_t(start >> 32);
        args.begins[bucket] = begin;
        args.first_tiles[bucket] = first_tile;
        for (uint32_t t = 0; t < tiles; t++) args.piece_of_tile[first_tile + t] = bucket;
#pragma unroll 8
        for (uint32_t group = 0; group < args.groups; group++) {
            uint32_t* const sum = args.group_sums + uint64_t(group) * args.bucket_count + bucket;
            const uint32_t of_group = *sum;
            *sum = begin;
            begin += of_group;
        }
    }
    __syncthreads();
    for (uint32_t t = uint32_t(before >> 32) + threadIdx.x; t < most_tiles; t += SCAN_THREADS) args.piece_of_tile[t] = ~0u;
    if (threadIdx.x != 0) return;
    args.begins[args.bucket_count] = uint32_t(before);
    args.first_tiles[args.bucket_count] = uint32_t(before >> 32);
    *args.outcome = Outcome{BUCKET_SORT, 0, 0, 0, args.n, largest};
}

__device__ __forceinline__ void write_targets(const BucketArgs& args) {
    const uint32_t bucket = blockIdx.x * COLUMN_THREADS + threadIdx.x;
    if (bucket >= args.bucket_count) return;
    uint32_t target = args.group_sums[uint64_t(blockIdx.y) * args.bucket_count + bucket];
    for_rows(args, blockIdx.y, bucket, [&](uint64_t entry, uint32_t keys) {
        args.targets[entry] = target;
        target += keys;
    });
}

// ---- Step 8 ----

constexpr uint32_t MAX_BUCKETS = 2048, RELOCATED = 8;  // keys that a thread moves at once

// The first bucket from `bucket` on that ends behind `at`; there is one. Near ones are found in few steps.
__device__ __forceinline__ uint32_t bucket_of(const uint32_t* ends, uint32_t bucket, uint32_t last, uint32_t at) {
    uint32_t step = 1;
    while (bucket + step <= last && ends[bucket + step - 1] <= at) bucket += step, step *= 2;
    uint32_t high = min(bucket + step - 1, last);
    while (bucket < high) {
        const uint32_t middle = (bucket + high) / 2;
        if (ends[middle] <= at) bucket = middle + 1;
        else high = middle;
    }
    return bucket;
}

// A warp moves consecutive keys, a row of it after another; so neighbours write to neighbouring addresses, and the bucket of a
// thread's next key is near the last one's.
template <uint32_t VALUE_BYTES>
__device__ __forceinline__ void relocate(const BucketArgs& args) {
    using Value = typename std::conditional<VALUE_BYTES == 8, uint64_t, uint32_t>::type;
    __shared__ uint32_t ends[MAX_BUCKETS];    // in the sublist
    __shared__ uint32_t shifts[MAX_BUCKETS];  // from the place in the sublist to the one in the buckets
    const uint32_t sublist = blockIdx.x, count = keys_of_sublist(args, sublist), last = args.bucket_count - 1;
    const uint64_t row = uint64_t(sublist) * args.bucket_count, base = uint64_t(sublist) * args.tile;
    for (uint32_t bucket = threadIdx.x; bucket <= last; bucket += TILE_THREADS) {
        const uint32_t location = args.locations[row + bucket];
        if (bucket != 0) ends[bucket - 1] = location;
        shifts[bucket] = args.targets[row + bucket] - location;
    }
    if (threadIdx.x == 0) ends[last] = count;
    __syncthreads();

    const Key* const keys_from = args.sorted.keys + base;
    const Value* const values_from = static_cast<const Value*>(args.sorted.values) + base;
    const uint32_t of_warp = args.tile / TILE_WARPS, first = threadIdx.x / WARP * of_warp, until = min(first + of_warp, count);
    uint32_t bucket = 0;
    for (uint32_t row = first + threadIdx.x % WARP; row < until; row += RELOCATED * WARP) {
        Key keys[RELOCATED];
        Value values[RELOCATED];
#pragma unroll
        for (uint32_t i = 0; i < RELOCATED; i++) {
            const uint32_t at = row + i * WARP;
            if (at >= until) break;
            keys[i] = keys_from[at];
            if (VALUE_BYTES != 0) values[i] = values_from[at];
        }
#pragma unroll
        for (uint32_t i = 0; i < RELOCATED; i++) {
            const uint32_t at = row + i * WARP;
            if (at >= until) break;
            bucket = bucket_of(ends, bucket, last, at);
            const uint32_t to = at + shifts[bucket];
            args.buckets.keys[to] = keys[i];
            if (VALUE_BYTES != 0) static_cast<Value*>(args.buckets.values)[to] = values[i];
        }
    }
}

}  // namespace radsweep
