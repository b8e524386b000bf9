// Steps 5 to 8 of bucket_sort.cu: from sorted sublists and sorted samples to buckets. Included with
// KEY_BITS defined.
#pragma once

#include "block/scan.cuh"
#include "bucket_tile.cuh"
#include "common/layout.cuh"
#include "common/search.cuh"
#include "common/sort_args.cuh"
#include "outcome.cuh"

namespace radsweep::bucket_sort {

struct Array {
    Key* keys;
    void* values;  // null: none, or as input 0, 1, 2, ...
};
ASSERT_LAYOUT(Array, 16, AT(keys, 0) AT(values, 8));

// The host's copy: crates/gpusort/src/cuda/bucket_sort/plan.rs.
struct BucketArgs {
    Array sorted;               // sublists, sorted
    Array buckets;              // the same keys by bucket
    const Key* samples;         // sorted
    const u32* sample_numbers;  // with them
    Key* splitters;             // s ordered bits; the first is not used
    u32* splitter_places;       // with them
    u16* locations;             // [sublist][bucket]: where the bucket's keys begin in the sublist
    u32* targets;               // [sublist][bucket]: where they go
    u32* group_sums;            // [row group][bucket]
    u32* begins;                // as in Pieces, to be written
    u32* first_tiles;
    u32* piece_of_tile;
    Outcome* outcome;
    u64 n;
    u64 sample_count;
    KeyOrder order;
    u32 sublists, bucket_count;  // m, s
    u32 tile;                    // keys of a sublist
    u32 spacing;
    u32 group_rows, groups;  // of sublists, in step 7
};
ASSERT_LAYOUT(BucketArgs, 200,
    AT(sorted, 0) AT(buckets, 16) AT(samples, 32) AT(sample_numbers, 40) AT(splitters, 48)
    AT(splitter_places, 56) AT(locations, 64) AT(targets, 72) AT(group_sums, 80) AT(begins, 88)
    AT(first_tiles, 96) AT(piece_of_tile, 104) AT(outcome, 112) AT(n, 120) AT(sample_count, 128)
    AT(order, 136) AT(sublists, 176) AT(bucket_count, 180) AT(tile, 184) AT(spacing, 188)
    AT(group_rows, 192) AT(groups, 196));

DEVICE Key ordered_key(const KeyOrder& order, Key key) {
    const Key ordered =
        order.fold != 0 ? ordering_of<true>(order)(key) : ordering_of<false>(order)(key);
    return ordered & Key(order.window);
}

// ---- Step 5 ----

DEVICE void splitters(const BucketArgs& args) {
    const u32 bucket = blockIdx.x * blockDim.x + threadIdx.x;
    if (bucket >= args.bucket_count) return;
    const u64 rank = bucket * args.sample_count / args.bucket_count;
    args.splitters[bucket] = ordered_key(args.order, args.samples[rank]);
    args.splitter_places[bucket] = args.sample_numbers[rank] * args.spacing;
}

// ---- Step 6 ----

DEVICE u32 keys_of_sublist(const BucketArgs& args, u32 sublist) {
    return u32(min(u64(args.tile), args.n - u64(sublist) * args.tile));
}

DEVICE void index_samples(const BucketArgs& args) {
    extern __shared__ uint4 shared_memory[];
    Key* const keys = reinterpret_cast<Key*>(shared_memory);
    const u32 sublist = blockIdx.x, count = keys_of_sublist(args, sublist);
    const Key* const from = args.sorted.keys + u64(sublist) * args.tile;
#pragma unroll 4
    for (u32 at = threadIdx.x; at < count; at += TILE_THREADS)
        keys[at] = ordered_key(args.order, from[at]);
    __syncthreads();

    u16* const locations = args.locations + u64(sublist) * args.bucket_count;
    for (u32 bucket = threadIdx.x; bucket < args.bucket_count; bucket += TILE_THREADS) {
        u32 low = 0;
        if (bucket != 0) {
            const Key splitter = args.splitters[bucket];
            const u32 index = args.splitter_places[bucket], owner = index / args.tile;
            // Keys equal to the splitter are before it in the sublists before the splitter's, and
            // behind it in those after.
            if (owner == sublist) low = index % args.tile;
            else
                low = partition_point(0u, count, [&](u32 at) {
                    return keys[at] < splitter || (keys[at] == splitter && sublist < owner);
                });
        }
        locations[bucket] = u16(low);
    }
}

// ---- Step 7 ----

constexpr u32 COLUMN_THREADS = 256, SCAN_THREADS = 1024;

// Calls `visit` for each of a thread's rows with the entry and the number of the sublist's keys in
// the bucket.
template <class Visit>
DEVICE void for_rows(const BucketArgs& args, u32 group, u32 bucket, Visit visit) {
    const u32 until = min((group + 1) * args.group_rows, args.sublists);
#pragma unroll 4
    for (u32 sublist = group * args.group_rows; sublist < until; sublist++) {
        const u64 entry = u64(sublist) * args.bucket_count + bucket;
        const u32 end = bucket + 1 < args.bucket_count ? args.locations[entry + 1]
                                                       : keys_of_sublist(args, sublist);
        visit(entry, end - args.locations[entry]);
    }
}

DEVICE void column_sums(const BucketArgs& args) {
    const u32 bucket = blockIdx.x * COLUMN_THREADS + threadIdx.x;
    if (bucket >= args.bucket_count) return;
    u32 sum = 0;
    for_rows(args, blockIdx.y, bucket, [&](u64, u32 keys) { sum += keys; });
    args.group_sums[u64(blockIdx.y) * args.bucket_count + bucket] = sum;
}

// By one block: finds where each bucket begins, in keys and in tiles, and each group of rows within
// it.
DEVICE void scan_columns(const BucketArgs& args, u32 tile, u32 max_tiles) {
    __shared__ u64 warp_sums[SCAN_THREADS / WARP];
    __shared__ u32 largest;
    u64 before = 0;  // keys of all buckets before, and above them their tiles
    if (threadIdx.x == 0) largest = 0;
    for (u32 first = 0; first < args.bucket_count; first += SCAN_THREADS) {
        const u32 bucket = first + threadIdx.x;
        const bool inside = bucket < args.bucket_count;
        u32 keys = 0;
#pragma unroll 8
        for (u32 group = 0; inside && group < args.groups; group++) {
            keys += args.group_sums[u64(group) * args.bucket_count + bucket];
        }
        const u32 tiles = u32((u64(keys) + tile - 1) / tile);
        const u64 own = u64(tiles) << 32 | keys;
        __syncthreads();
        atomicMax(&largest, keys);
        u64 all;
        const u64 start = before + block_exclusive_sum<SCAN_THREADS / WARP>(own, warp_sums, all);
        before += all;
        if (!inside) continue;
        u32 begin = u32(start);
        const u32 first_tile = u32(start >> 32);
        args.begins[bucket] = begin;
        args.first_tiles[bucket] = first_tile;
        for (u32 t = 0; t < tiles; t++) args.piece_of_tile[first_tile + t] = bucket;
#pragma unroll 8
        for (u32 group = 0; group < args.groups; group++) {
            u32* const sum = args.group_sums + u64(group) * args.bucket_count + bucket;
            const u32 of_group = *sum;
            *sum = begin;
            begin += of_group;
        }
    }
    __syncthreads();
    for (u32 t = u32(before >> 32) + threadIdx.x; t < max_tiles; t += SCAN_THREADS)
        args.piece_of_tile[t] = ~0u;
    if (threadIdx.x != 0) return;
    args.begins[args.bucket_count] = u32(before);
    args.first_tiles[args.bucket_count] = u32(before >> 32);
    *args.outcome = Outcome{BUCKET_SORT, 0, 0, 0, args.n, largest};
}

DEVICE void write_targets(const BucketArgs& args) {
    const u32 bucket = blockIdx.x * COLUMN_THREADS + threadIdx.x;
    if (bucket >= args.bucket_count) return;
    u32 target = args.group_sums[u64(blockIdx.y) * args.bucket_count + bucket];
    for_rows(args, blockIdx.y, bucket, [&](u64 entry, u32 keys) {
        args.targets[entry] = target;
        target += keys;
    });
}

// ---- Step 8 ----

constexpr u32 MAX_BUCKETS = 2048, RELOCATED = 8;  // keys that a thread moves at once

// Returns the first bucket from `bucket` on that ends behind `at`; there is one. Near ones are
// found in few steps.
DEVICE u32 bucket_of(const u32* ends, u32 bucket, u32 last, u32 at) {
    u32 step = 1;
    while (bucket + step <= last && ends[bucket + step - 1] <= at) bucket += step, step *= 2;
    return partition_point(
        bucket, min(bucket + step - 1, last), [&](u32 b) { return ends[b] <= at; });
}

// A warp moves consecutive keys, a row of it after another; so neighbours write to neighbouring
// addresses, and the bucket of a thread's next key is near the last one's.
template <u32 VALUE_BYTES>
DEVICE void relocate(const BucketArgs& args) {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    __shared__ u32 ends[MAX_BUCKETS];    // in the sublist
    __shared__ u32 shifts[MAX_BUCKETS];  // from the index in the sublist to the one in the buckets
    const u32 sublist = blockIdx.x, count = keys_of_sublist(args, sublist),
              last = args.bucket_count - 1;
    const u64 row = u64(sublist) * args.bucket_count, base = u64(sublist) * args.tile;
    for (u32 bucket = threadIdx.x; bucket <= last; bucket += TILE_THREADS) {
        const u32 location = args.locations[row + bucket];
        if (bucket != 0) ends[bucket - 1] = location;
        shifts[bucket] = args.targets[row + bucket] - location;
    }
    if (threadIdx.x == 0) ends[last] = count;
    __syncthreads();

    const Key* const keys_from = args.sorted.keys + base;
    const Value* const values_from = static_cast<const Value*>(args.sorted.values) + base;
    const u32 of_warp = args.tile / TILE_WARPS, first = threadIdx.x / WARP * of_warp,
              until = min(first + of_warp, count);
    u32 bucket = 0;
    for (u32 row = first + threadIdx.x % WARP; row < until; row += RELOCATED * WARP) {
        Key keys[RELOCATED];
        Value values[RELOCATED];
#pragma unroll
        for (u32 i = 0; i < RELOCATED; i++) {
            const u32 at = row + i * WARP;
            if (at >= until) break;
            keys[i] = keys_from[at];
            if (VALUE_BYTES != 0) values[i] = values_from[at];
        }
#pragma unroll
        for (u32 i = 0; i < RELOCATED; i++) {
            const u32 at = row + i * WARP;
            if (at >= until) break;
            bucket = bucket_of(ends, bucket, last, at);
            const u32 to = at + shifts[bucket];
            args.buckets.keys[to] = keys[i];
            if (VALUE_BYTES != 0) static_cast<Value*>(args.buckets.values)[to] = values[i];
        }
    }
}

}  // namespace radsweep::bucket_sort
