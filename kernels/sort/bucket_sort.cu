// GPU Bucket Sort: deterministic sample sort.
//
// F. Dehne, H. Zaboli: Deterministic Sample Sort For GPUs, 2010, arXiv 1002.4464; Parallel Sorting
// for GPUs, 2017.
//
// Compiled with KEY_BITS (32, 64). The steps are those of the paper's Algorithm 1, with m sublists
// of a tile's keys, s buckets, and k >= s samples of each sublist. Launched in this order, always
// the same for a number of keys, without the host waiting:
//
//   tile_sort     one block a sublist
//     1  split: the input in sublists of one tile
//     2  local sort of each on chip (bucket_tile.cuh)
//     3  local sampling, as the sorted sublist is written: every SPACING-th key
//   tile_sort, merge (once a level)
//     4  all samples sorted, by (key, index): tiles on chip, then runs of tiles in pairs
//   splitters
//     5  s equidistant global samples
//   index         one block a sublist
//     6  where the global samples fall in each sublist, by binary search on chip
//   column_sums, scan, targets
//     7  prefix sum over the bucket sizes, column by column: sums of groups of rows, one block over
//        these, and back down the rows
//   relocate      one block a sublist
//     8  every key of a sublist to its slot in its bucket
//   tile_sort     one block for each tile of a bucket
//     9  each bucket sorted: on chip, which is all for a bucket of one tile; else the tiles' keys
//        are sampled again
//   split         one block a bucket of several tiles: steps 4 to 7 among its sorted tiles, on chip
//   merge_part    one block a part, which fits a tile: its pieces of the sorted tiles read and
//                 merged on chip
//   merge         instead of these two, once a level, where buckets may have more than 32 tiles
//
// Bucket sizes. Indices are those in the sorted sublists, one behind the other. Every SPACING-th is
// that of a sample, and keys compare by (ordered bits, index), so that no two are equal. A bucket
// has at most C = ceil(samples / s) samples, and in each sublist at most the keys of their sections
// and SPACING - 1 before the first of them, so at most (C + m) SPACING - m keys; the host chooses
// SPACING such that this is at most 2 n / s (plan.rs). It holds for every input; all keys equal
// give n / s. The order of equal keys is that of their indices, so the sort is stable.
//
// Bytes a key of B bytes with a value of V bytes: 2 (B + V) each for local sort, relocation, bucket
// sort and, where buckets have several tiles, their parts; B for the indexing. Keys u32 at 2^26:
// 36, at 4.28 TB/s 0.56 ms.
//
// Arithmetic instructions a key, predicted for u32: 13 for the network in registers, and 9 levels
// of merging of 5 for the network, 3 to choose an address and 2 for the search: about 110 for each
// of the two sorts on chip. They run at half rate: 64 a multiprocessor and cycle, so at most 120 G
// keys/s. Measured on an H200: 84 G/s for the local sort with two blocks a multiprocessor, 96 with
// three. The whole sort of 2^26 uniform keys, with three, in ms: local sort 0.72, samples 0.29,
// indexing 0.17, prefix sum 0.05, relocation 0.25, bucket sort 1.39; in all 2.84, 23.6 G keys/s
// (docs/papers.md, steps).
//
// Departures from the paper:
//  - The local sort is not bitonic through shared memory (bucket_tile.cuh). It needs only an order
//    on keys, as there.
//  - Tiles fill the 64 KiB of shared memory that a block has on Turing instead of 8 KiB: fewer
//    sublists, so fewer samples.
//  - Samples carry their indices (key, index); the paper is silent on equal keys, which break its
//    bound.
//  - k is above s where the host can afford it, which brings the largest bucket down from 2 n / s
//    to n / s + n / k.
//  - The samples are an index sort of keys whose index follows from their number; s is chosen by n,
//    for buckets of few tiles.
//  - All splitters are searched at once, not by halves: lanes that read one address share the
//    access today.
//  - Larger buckets than a tile are not sorted by a bitonic sort in global memory, but by the
//    paper's steps once more: a few sorted tiles sampled closely give parts that certainly fit a
//    tile, so that each key is read and written once more. The device decides by the size of a
//    bucket what is done with it.

#include "block/load.cuh"
#include "bucket_divide.cuh"
#include "bucket_tile.cuh"
#include "outcome.cuh"

namespace radsweep::bucket_sort {

// ---- Shared with the host: crates/gpusort/src/cuda/bucket_sort/ ----

// SortArgs::flags: ordered bits in the window tell the key: integers in their full width.
constexpr u32 EXACT = 4;

// An array in pieces that are sorted separately: the buckets. Without `begins` there is one piece.
struct Pieces {
    const u32* begins;       // one more than there are pieces
    const u32* first_tiles;  // the same, in tiles
    const u32* piece_of_tile;
};

struct SortArgs {
    Array from;   // what tile_sort reads; a merge reads and writes `to`
    Array to[2];  // 0: where the result goes; runs alternate
    Pieces pieces;
    Key* samples;         // null, or where step 3 writes
    Outcome* outcome;     // null, or where a sort that needs no further step leaves it
    u32* bucket_of_part;  // null where runs are merged in pairs; ~0 for no part
    u16* part_starts;     // [part][run]: where the part begins in the run
    u64 n;
    KeyOrder order;
    u32 spacing;      // keys from sample to sample; divides a tile
    u32 levels;       // of merging, where there is one piece
    u32 value_bytes;  // 0, 4, 8
    u32 flags;
    u32 bucket_count;
    u32 unused;
};
ASSERT_LAYOUT(SortArgs, 176,
    AT(from, 0) AT(to, 16) AT(pieces.begins, 48) AT(pieces.first_tiles, 56)
    AT(pieces.piece_of_tile, 64) AT(samples, 72) AT(outcome, 80) AT(bucket_of_part, 88)
    AT(part_starts, 96) AT(n, 104) AT(order, 112) AT(spacing, 152) AT(levels, 156)
    AT(value_bytes, 160) AT(flags, 164) AT(bucket_count, 168) AT(unused, 172));

DEVICE u32 levels_of(u64 tiles) { return tiles <= 1 ? 0 : 32 - __clz(u32(tiles - 1)); }

// A block's tile of a piece.
template <u32 KEYS>
struct TileRange {
    u32 begin, size;  // of the piece
    u32 tile;         // within the piece
    u32 levels;       // of merging that the piece needs
    u32 count;        // keys in the tile

    DEVICE bool find(const SortArgs& args, u32 block) {
        begin = 0, size = u32(args.n), tile = block, levels = args.levels;
        if (args.pieces.begins != nullptr) {
            const u32 piece = args.pieces.piece_of_tile[block];
            if (piece == ~0u) return false;
            begin = args.pieces.begins[piece];
            size = args.pieces.begins[piece + 1] - begin;
            tile = block - args.pieces.first_tiles[piece];
            levels = levels_of((u64(size) + KEYS - 1) / KEYS);
        }
        count = min(KEYS, size - tile * KEYS);
        return true;
    }
    DEVICE u32 base() const { return begin + tile * KEYS; }
};

// Where the `count` elements of a tile go: in `to` from `base` on.
struct Target {
    const Array& to;
    u64 base;
    u32 count;
    bool with_keys;
};

// Writes a tile. `source` maps an offset in it to the index in `from`. Sorts in place: a thread's
// keys, then its values, are all read before any are written.
template <class Tile, class Source>
DEVICE void write_tile(
    const SortArgs& args, const Tile& tile, const Array& from, const Target& target,
    Source source) {
    const Array& to = target.to;
    const u64 base = target.base;
    const u32 count = target.count;
    constexpr u32 ITEMS = Tile::ITEMS;
    const bool exact = !Tile::INDEXED || args.flags & EXACT;
    if (target.with_keys) {
        Key keys[ITEMS];
        for_items_in_turn<ITEMS, TILE_THREADS>(threadIdx.x, count, [&](u32 i, u32 at) {
            keys[i] =
                exact ? tile.ordered(at) ^ Key(args.order.flip) : from.keys[source(tile.index(at))];
        });
        if (!exact) __syncthreads();
        for_items_in_turn<ITEMS, TILE_THREADS>(
            threadIdx.x, count, [&](u32 i, u32 at) { to.keys[base + at] = keys[i]; });
    }
    if (!Tile::INDEXED || args.value_bytes == 0) return;
    const auto move_values = [&](auto* values_to, const auto* values_from) {
        std::remove_pointer_t<decltype(values_to)> values[ITEMS];
        for_items_in_turn<ITEMS, TILE_THREADS>(threadIdx.x, count, [&](u32 i, u32 at) {
            const u64 index = source(tile.index(at));
            values[i] = values_from == nullptr ? index : values_from[index];
        });
        __syncthreads();
        for_items_in_turn<ITEMS, TILE_THREADS>(
            threadIdx.x, count, [&](u32 i, u32 at) { values_to[base + at] = values[i]; });
    };
    if (args.value_bytes == 4)
        move_values(static_cast<u32*>(to.values), static_cast<const u32*>(from.values));
    else move_values(static_cast<u64*>(to.values), static_cast<const u64*>(from.values));
}

// ---- Steps 1 to 3; the first part of steps 4 and 9 ----

template <bool INDEXED>
DEVICE void tile_sort(const SortArgs& args) {
    extern __shared__ uint4 shared_memory[];
    using ThisTile = Tile<INDEXED>;
    const ThisTile tile{*reinterpret_cast<typename ThisTile::Shared*>(shared_memory)};
    constexpr u32 ITEMS = ThisTile::ITEMS;

    // Step 1.
    TileRange<ThisTile::KEYS> range;
    if (!range.find(args, blockIdx.x)) return;
    const u32 base = range.base(), count = range.count;
    Key keys[ITEMS];
    for_items<ITEMS, TILE_THREADS>(threadIdx.x, count, [&](u32 i, u32 at) {
        keys[i] = ordered_key(args.order, args.from.keys[base + at]);
    });
    tile.put_all(keys, count);

    // Step 2.
    tile.sort(count);

    // Step 3. Before the tile is written: in place the keys are unchanged until then.
    const bool exact = !INDEXED || args.flags & EXACT;
    if (args.samples != nullptr) {
        for (u32 at = threadIdx.x * args.spacing; at < count; at += TILE_THREADS * args.spacing) {
            args.samples[blockIdx.x * (ThisTile::KEYS / args.spacing) + at / args.spacing] =
                exact ? tile.ordered(at) ^ Key(args.order.flip)
                      : args.from.keys[base + tile.index(at)];
        }
    }
    if (!exact) __syncthreads();
    const u32 to = args.bucket_of_part != nullptr ? range.levels != 0 : range.levels & 1;
    const bool with_keys = !(args.flags & DROP_KEYS) || range.levels != 0;
    write_tile(args, tile, args.from, Target{args.to[to], base, count, with_keys}, [&](u32 of) {
        return base + of;
    });
    if (args.outcome != nullptr && blockIdx.x == 0 && threadIdx.x == 0)
        *args.outcome = Outcome{BUCKET_SORT, 0, 0, 0, args.n, args.n};
}

// ---- Steps 4 and 9: runs of sorted tiles merged in pairs ----

template <bool INDEXED>
DEVICE void merge(const SortArgs& args, u32 level) {
    extern __shared__ uint4 shared_memory[];
    using ThisTile = Tile<INDEXED>;
    const ThisTile tile{*reinterpret_cast<typename ThisTile::Shared*>(shared_memory)};
    constexpr u32 ITEMS = ThisTile::ITEMS, KEYS = ThisTile::KEYS;

    TileRange<KEYS> range;
    if (!range.find(args, blockIdx.x) || level >= range.levels) return;
    const Array from = args.to[(range.levels - level) & 1],
                to = args.to[(range.levels - level - 1) & 1];
    const u64 run = u64(KEYS) << level, pair = range.tile * u64(KEYS) / (2 * run) * (2 * run);
    const u32 first_size = u32(min(u64(run), range.size - pair));
    const u32 second_size = u32(min(u64(run), range.size - pair - first_size));
    const u32 diagonal = u32(range.tile * u64(KEYS) - pair), count = range.count;
    const u32 first = range.begin + u32(pair), second = first + first_size;

    const u32 warp = threadIdx.x / WARP;
    if (warp < 2) {
        const auto second_less = [&](u32 b, u32 a) {
            return ordered_key(args.order, from.keys[second + b]) <
                   ordered_key(args.order, from.keys[first + a]);
        };
        const u32 from_first =
            warp_merge_path(first_size, second_size, diagonal + warp * count, second_less);
        if (threadIdx.x % WARP == 0) tile.shared.splits[warp] = from_first;
    }
    __syncthreads();
    const u32 from_first = tile.shared.splits[0], of_first = tile.shared.splits[1] - from_first;
    const u32 from_second = second + (diagonal - from_first) - of_first;
    const auto source = [&](u32 at) {
        return at < of_first ? first + from_first + at : from_second + at;
    };

    Key keys[ITEMS];
    for_items<ITEMS, TILE_THREADS>(threadIdx.x, count, [&](u32 i, u32 at) {
        keys[i] = ordered_key(args.order, from.keys[source(at)]);
    });
    tile.put_all(keys, count);
    __syncthreads();
    tile.template merge<true>(0, of_first, KEYS, threadIdx.x * ITEMS < count);
    const bool with_keys = !(args.flags & DROP_KEYS) || level + 1 != range.levels;
    write_tile(args, tile, from, Target{to, range.base(), count, with_keys}, source);
}

// ---- Step 9 of buckets of several tiles: steps 3 to 8 among their sorted tiles (runs) ----

constexpr u32 MAX_RUNS = WARP;

struct Bucket {
    u32 begin, size, runs, first_tile;
    u32 first_part, max_parts;  // capacity for its parts

    DEVICE Bucket(const SortArgs& args, u32 bucket) {
        begin = args.pieces.begins[bucket], size = args.pieces.begins[bucket + 1] - begin;
        first_tile = args.pieces.first_tiles[bucket],
        runs = args.pieces.first_tiles[bucket + 1] - first_tile;
        first_part = 2 * first_tile + bucket, max_parts = 2 * runs + 1;
    }
};

// One block a bucket: sorts the samples of its runs on chip, takes equidistant ones, and finds
// these in each run.
template <bool INDEXED>
DEVICE void split_bucket(const SortArgs& args) {
    extern __shared__ uint4 shared_memory[];
    using Samples = Tile<true>;
    const Samples tile{*reinterpret_cast<Samples::Shared*>(shared_memory)};
    constexpr u32 KEYS = Tile<INDEXED>::KEYS, ITEMS = Tile<INDEXED>::ITEMS;
    const Bucket bucket(args, blockIdx.x);
    const u32 runs = bucket.runs, spacing = args.spacing, of_run = KEYS / spacing;
    u32 parts = 0;
    if (runs > 1) {
        const u32 count =
            (runs - 1) * of_run + (bucket.size - (runs - 1) * KEYS + spacing - 1) / spacing;
        const Key* const samples = args.samples + bucket.first_tile * of_run;
        for (u32 at = threadIdx.x; at < Samples::KEYS; at += TILE_THREADS) {
            tile.put(at, at < count ? ordered_key(args.order, samples[at]) : Key(0), at < count);
        }
        tile.sort(count);

        // A part of that many samples has at most (samples + runs) * spacing - runs keys; each
        // run's are padded to whole threads.
        const u32 of_part = (KEYS - runs * (ITEMS - 1) + runs) / spacing - runs;
        parts = (count + of_part - 1) / of_part;
        for (u32 entry = threadIdx.x; entry < parts * runs; entry += TILE_THREADS) {
            const u32 part = entry / runs, run = entry % runs;
            u32 low = 0;
            if (part != 0) {
                const u32 rank = part * count / parts, number = tile.index(rank),
                          owner = number / of_run;
                const Key splitter = tile.ordered(rank);
                const Key* const keys = args.to[1].keys + bucket.begin + run * KEYS;
                const auto before = [&](u32 at) {
                    const Key key = ordered_key(args.order, keys[at]);
                    return key < splitter || (key == splitter && run < owner);
                };
                if (run == owner) low = number % of_run * spacing;
                else low = partition_point(0u, min(KEYS, bucket.size - run * KEYS), before);
            }
            args.part_starts[(bucket.first_part + part) * MAX_RUNS + run] = u16(low);
        }
    }
    for (u32 part = threadIdx.x; part < bucket.max_parts; part += TILE_THREADS) {
        args.bucket_of_part[bucket.first_part + part] = part < parts ? blockIdx.x : ~0u;
    }
}

// One block a part: its piece of each run is read to the tile, and these are merged in pairs.
template <bool INDEXED>
DEVICE void merge_part(const SortArgs& args) {
    extern __shared__ uint4 shared_memory[];
    using ThisTile = Tile<INDEXED>;
    const ThisTile tile{*reinterpret_cast<typename ThisTile::Shared*>(shared_memory)};
    constexpr u32 ITEMS = ThisTile::ITEMS, KEYS = ThisTile::KEYS;
    __shared__ u32 starts[MAX_RUNS + 1];  // of the pieces in the tile, each padded to whole threads
    __shared__ u32 shifts[MAX_RUNS];      // from there to `from`
    __shared__ u32 ends[MAX_RUNS];        // without the padding
    __shared__ u32 sums[2];  // keys of the parts before in the bucket; keys of the part

    const u32 part = blockIdx.x;
    if (part >= 2 * args.pieces.first_tiles[args.bucket_count] + args.bucket_count) return;
    const u32 number = args.bucket_of_part[part];
    if (number == ~0u) return;
    const Bucket bucket(args, number);
    const u32 runs = bucket.runs;
    if (threadIdx.x < WARP) {
        const u32 run = threadIdx.x;
        const bool last = part + 1 == bucket.first_part + bucket.max_parts ||
                          args.bucket_of_part[part + 1] == ~0u;
        u32 begin = 0, end = 0;
        if (run < runs) {
            begin = args.part_starts[part * MAX_RUNS + run];
            end = last ? min(KEYS, bucket.size - run * KEYS)
                       : args.part_starts[(part + 1) * MAX_RUNS + run];
        }
        const u32 count = end - begin, padded = (count + ITEMS - 1) / ITEMS * ITEMS;
        const u32 start = warp_inclusive_sum(padded, run) - padded;
        starts[run] = start;
        shifts[run] = bucket.begin + run * KEYS + begin - start;
        ends[run] = start + count;
        const u32 before = warp_inclusive_sum(begin, run), keys = warp_inclusive_sum(count, run);
        if (run == WARP - 1) {
            starts[MAX_RUNS] = start + padded;
            sums[0] = before;
            sums[1] = keys;
        }
    }
    __syncthreads();

    const Array from = args.to[1];
    Key keys[ITEMS];
    u32 there = 0;  // a bit for each key
    u32 run_of_key = 0;
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        const u32 at = threadIdx.x + i * TILE_THREADS;
        while (run_of_key + 1 < runs && at >= starts[run_of_key + 1]) run_of_key++;
        if (at < ends[run_of_key]) {
            keys[i] = ordered_key(args.order, from.keys[shifts[run_of_key] + at]);
            there |= 1u << i;
        }
    }
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++)
        tile.put(threadIdx.x + i * TILE_THREADS, keys[i], there >> i & 1);
    __syncthreads();

    // Returns the piece that an offset of the tile belongs to.
    const auto run_at = [&](u32 at) {
        u32 run = 0;
#pragma unroll
        for (u32 step = MAX_RUNS / 2; step != 0; step /= 2) {
            if (starts[run + step] <= at) run += step;
        }
        return run;
    };
    const u32 own = threadIdx.x * ITEMS, run = run_at(own);
    const bool active = own < starts[MAX_RUNS];
    for (u32 width = 1; width < runs; width *= 2) {
        const u32 pair = run & ~(2 * width - 1);
        const u32 first = active ? starts[pair] : own, middle = active ? starts[pair + width] : own;
        const u32 end = active ? starts[pair + 2 * width] : own;
        tile.template merge<true>(first, middle, end, active);
    }
    write_tile(
        args, tile, from,
        Target{args.to[0], bucket.begin + sums[0], sums[1], !(args.flags & DROP_KEYS)},
        [&](u32 at) { return shifts[run_at(at)] + at; });
}

// ---- Entry points. A name carries the shape, so that host and device cannot disagree ----

// Blocks that share a multiprocessor, which bounds a thread's registers: SORT_BLOCKS of tile_sort,
// and so on.
#define TILES(KIND, INDEXED, EACH, SORT_BLOCKS, MERGE_BLOCKS, PART_BLOCKS)                         \
    static_assert(Tile<INDEXED>::ITEMS == EACH, "the shape in the name");                          \
    extern "C" __global__ void                                                                     \
        __launch_bounds__(TILE_THREADS, SORT_BLOCKS) bucket_tile_sort_##KIND##_512x##EACH(         \
            const SortArgs args) {                                                                 \
        tile_sort<INDEXED>(args);                                                                  \
    }                                                                                              \
    extern "C" __global__ void                                                                     \
        __launch_bounds__(TILE_THREADS, MERGE_BLOCKS) bucket_merge_##KIND##_512x##EACH(            \
            const SortArgs args, const u32 level) {                                                \
        merge<INDEXED>(args, level);                                                               \
    }                                                                                              \
    extern "C" __global__ void                                                                     \
        __launch_bounds__(TILE_THREADS, 2) bucket_split_##KIND##_512x##EACH(const SortArgs args) { \
        split_bucket<INDEXED>(args);                                                               \
    }                                                                                              \
    extern "C" __global__ void                                                                     \
        __launch_bounds__(TILE_THREADS, PART_BLOCKS) bucket_merge_part_##KIND##_512x##EACH(        \
            const SortArgs args) {                                                                 \
        merge_part<INDEXED>(args);                                                                 \
    }
// On an H200, alone: three blocks sort the tiles of 2^26 u32 keys in 0.70 ms in spite of spills and
// merge a level of them in 0.33 ms; two take 0.80 and 0.40. Indexed, 2^25 keys: three 0.86 and
// 0.30, two 0.72 and 0.33.
#if KEY_BITS == 32
TILES(plain, false, 31, 3, 3, 3)
TILES(indexed, true, 15, 2, 3, 2)
#else
TILES(plain, false, 15, 2, 2, 2)
TILES(indexed, true, 11, 2, 2, 2)
#endif

extern "C" __global__ void __launch_bounds__(256) bucket_splitters(const BucketArgs args) {
    splitters(args);
}
extern "C" __global__ void __launch_bounds__(TILE_THREADS) bucket_index(const BucketArgs args) {
    index_samples(args);
}
extern "C" __global__ void __launch_bounds__(COLUMN_THREADS) bucket_column_sums(
    const BucketArgs args) {
    column_sums(args);
}
extern "C" __global__ void __launch_bounds__(SCAN_THREADS) bucket_scan(
    const BucketArgs args, const u32 tile, const u32 max_tiles) {
    scan_columns(args, tile, max_tiles);
}
extern "C" __global__ void __launch_bounds__(COLUMN_THREADS) bucket_targets(const BucketArgs args) {
    write_targets(args);
}

#define RELOCATE(VALUE_BYTES)                                                                  \
    extern "C" __global__ void                                                                 \
        __launch_bounds__(TILE_THREADS) bucket_relocate_##VALUE_BYTES(const BucketArgs args) { \
        relocate<VALUE_BYTES>(args);                                                           \
    }
RELOCATE(0)
RELOCATE(4)
RELOCATE(8)

}  // namespace radsweep::bucket_sort
