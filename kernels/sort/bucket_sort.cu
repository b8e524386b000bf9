// GPU Bucket Sort: deterministic sample sort.
// F. Dehne, H. Zaboli: Deterministic Sample Sort For GPUs, 2010, arXiv 1002.4464; Parallel Sorting for GPUs, 2017.
//
// Compiled with KEY_BITS (32, 64). The steps are those of the paper's Algorithm 1, with m sublists of a tile's keys, s buckets, and
// k >= s samples of each sublist. Launched in this order, always the same for a number of keys, without the host waiting:
//
//   tile_sort     one block a sublist
//     1  split: the input in sublists of one tile
//     2  local sort of each on chip (bucket_tile.cuh)
//     3  local sampling, as the sorted sublist is written: every SPACING-th key
//   tile_sort, merge (once a level)
//     4  all samples sorted, by (key, place): tiles on chip, then runs of tiles in pairs
//   splitters
//     5  s equidistant global samples
//   index         one block a sublist
//     6  where the global samples fall in each sublist, by binary search on chip
//   column_sums, scan, targets
//     7  prefix sum over the bucket sizes, column by column: sums of groups of rows, one block over these, and back down the rows
//   relocate      one block a sublist
//     8  every key of a sublist to its place in its bucket
//   tile_sort     one block for each tile of a bucket
//     9  each bucket sorted: on chip, which is all for a bucket of one tile; else the tiles' keys are sampled again
//   split         one block a bucket of several tiles: steps 4 to 7 among its sorted tiles, on chip
//   merge_part    one block a part, which fits a tile: its pieces of the sorted tiles read and merged on chip
//   merge         instead of these two, once a level, where buckets may have more than 32 tiles
//
// Bucket sizes. The sorted sublists, one behind the other, are numbered by place; a sample is every SPACING-th place of them, and
// keys compare by (ordered bits, place), so that no two are equal. A bucket has at most C = ceil(samples / s) samples, and in
// each sublist at most the keys of their sections and SPACING - 1 before the first of them, so at most (C + m) SPACING - m keys;
// the host chooses SPACING such that this is at most 2 n / s (plan.rs). It holds for every input; all keys equal give n / s.
// The order of equal keys is that of their places, so the sort is stable.
//
// Bytes a key of B bytes with a value of V bytes: 2 (B + V) each for local sort, relocation, bucket sort and, where buckets have
// several tiles, their parts; B for the indexing. Keys u32 at 2^26: 36, at 4.28 TB/s 0.56 ms.
//
// Arithmetic instructions a key, predicted for u32: 13 for the network in registers, and 9 levels of merging of 5 for the network,
// 3 to choose an address and 2 for the search: about 110 for each of the two sorts on chip. They run at half rate: 64 a
// multiprocessor and cycle, so at most 120 G keys/s. Measured on an H200: 84 G/s for the local sort with two blocks a
// multiprocessor, 96 with three. The whole sort of 2^26 uniform keys, with two, in ms: local sort 0.81, samples 0.30, indexing 0.16,
// prefix sum 0.05, relocation 0.25, bucket sort 1.57 (0.81 for the tiles); in all 3.14, 21.4 G keys/s.
//
// Departures from the paper:
//  - The local sort is not bitonic through shared memory; see bucket_tile.cuh. It needs only an order on keys, as there.
//  - Tiles fill the 64 KiB of shared memory that a block has on Turing instead of 8 KiB: fewer sublists, so fewer samples.
//  - Samples carry their places (key, place); the paper is silent on equal keys, which break its bound.
//  - k is above s where the host can afford it, which brings the largest bucket down from 2 n / s to n / s + n / k.
//  - The samples are an index sort of keys whose place follows from their number; s is chosen by n, for buckets of few tiles.
//  - All splitters are searched at once, not by halves: lanes that read one address share the access today.
//  - Larger buckets than a tile are not sorted by a bitonic sort in global memory, but by the paper's steps once more: a few sorted
//    tiles sampled closely give parts that are sure to fit a tile, so that each key is read and written once more. What is done
//    with a bucket follows from its size on the device.

#include "../common/layout.cuh"
#include "bucket_divide.cuh"
#include "bucket_tile.cuh"
#include "outcome.cuh"

#include <type_traits>

using namespace radsweep;

namespace {

// ---- What the host passes, and what stays in the scratch memory. The host's copies: crates/gpusort/src/cuda/bucket_sort/. ----

constexpr uint32_t DROP_KEYS = 1;      // flags: the sorted keys are not wanted
constexpr uint32_t EXACT = 2;          // flags: ordered bits in the window tell the key: integers in their full width

// An array in pieces that are sorted each for itself: the buckets. Without `begins` there is one piece.
struct Pieces {
    const uint32_t* begins;            // one more than there are pieces
    const uint32_t* first_tiles;       // the same, in tiles
    const uint32_t* piece_of_tile;
};

struct SortArgs {
    Array from;                        // what tile_sort reads; a merge reads and writes `to`
    Array to[2];                       // 0: where the result goes; runs alternate
    Pieces pieces;
    Key* samples;                      // null, or where step 3 writes
    Outcome* outcome;                  // null, or where to say that this was all
    uint32_t* bucket_of_part;          // null where runs are merged in pairs; ~0 for no part
    uint16_t* part_starts;             // [part][run]: where the part begins in the run
    uint64_t n;
    KeyOrder order;
    uint32_t spacing;                  // keys from sample to sample; divides a tile
    uint32_t levels;                   // of merging, where there is one piece
    uint32_t value_bytes;              // 0, 4, 8
    uint32_t flags;
    uint32_t bucket_count;
    uint32_t unused;
};
ASSERT_LAYOUT(SortArgs, 176,
    AT(from, 0) AT(to, 16) AT(pieces.begins, 48) AT(pieces.first_tiles, 56) AT(pieces.piece_of_tile, 64) AT(samples, 72)
    AT(outcome, 80) AT(bucket_of_part, 88) AT(part_starts, 96) AT(n, 104) AT(order, 112) AT(spacing, 152) AT(levels, 156)
    AT(value_bytes, 160) AT(flags, 164) AT(bucket_count, 168) AT(unused, 172));

__device__ __forceinline__ uint32_t levels_of(uint64_t tiles) { return tiles <= 1 ? 0 : 32 - __clz(uint32_t(tiles - 1)); }

// A block's tile of a piece.
template <uint32_t KEYS>
struct Place {
    uint32_t begin, size;              // of the piece
    uint32_t tile;                     // within the piece
    uint32_t levels;                   // of merging that the piece needs
    uint32_t count;                    // keys in the tile

    __device__ __forceinline__ bool find(const SortArgs& args, uint32_t block) {
        begin = 0, size = uint32_t(args.n), tile = block, levels = args.levels;
        if (args.pieces.begins != nullptr) {
            const uint32_t piece = args.pieces.piece_of_tile[block];
            if (piece == ~0u) return false;
            begin = args.pieces.begins[piece];
            size = args.pieces.begins[piece + 1] - begin;
            tile = block - args.pieces.first_tiles[piece];
            levels = levels_of((uint64_t(size) + KEYS - 1) / KEYS);
        }
        count = min(KEYS, size - tile * KEYS);
        return true;
    }
    __device__ __forceinline__ uint32_t base() const { return begin + tile * KEYS; }
};

// Writes the tile's `count` elements from `to` on. `source` tells where an element of the tile lay in `from`. Sorts in place: a
// thread's keys, then its values, are all read before any are written.
template <class Tile, class Source>
__device__ __forceinline__ void write_tile(const SortArgs& args, const Tile& tile, const Array& from, const Array& to, uint64_t base,
                                           uint32_t count, bool with_keys, Source source) {
    constexpr uint32_t ITEMS = Tile::ITEMS;
    const bool exact = !Tile::INDEXED || args.flags & EXACT;
    if (with_keys) {
        Key keys[ITEMS];
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            const uint32_t at = threadIdx.x + i * TILE_THREADS;
            if (at >= count) break;
            keys[i] = exact ? tile.ordered(at) ^ Key(args.order.flip) : from.keys[source(tile.place(at))];
        }
        if (!exact) __syncthreads();
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            const uint32_t at = threadIdx.x + i * TILE_THREADS;
            if (at >= count) break;
            to.keys[base + at] = keys[i];
        }
    }
    if (!Tile::INDEXED || args.value_bytes == 0) return;
    const auto move_values = [&](auto* values_to, const auto* values_from) {
        typename std::remove_pointer<decltype(values_to)>::type values[ITEMS];
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            const uint32_t at = threadIdx.x + i * TILE_THREADS;
            if (at >= count) break;
            const uint64_t place = source(tile.place(at));
            values[i] = values_from == nullptr ? place : values_from[place];
        }
        __syncthreads();
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            const uint32_t at = threadIdx.x + i * TILE_THREADS;
            if (at >= count) break;
            values_to[base + at] = values[i];
        }
    };
    if (args.value_bytes == 4) move_values(static_cast<uint32_t*>(to.values), static_cast<const uint32_t*>(from.values));
    else move_values(static_cast<uint64_t*>(to.values), static_cast<const uint64_t*>(from.values));
}

// ---- Steps 1 to 3; the first part of steps 4 and 9 ----

template <bool INDEXED>
__device__ __forceinline__ void tile_sort(const SortArgs& args) {
    extern __shared__ uint4 shared_memory[];
    using ThisTile = Tile<INDEXED>;
    const ThisTile tile{*reinterpret_cast<typename ThisTile::Shared*>(shared_memory)};
    constexpr uint32_t ITEMS = ThisTile::ITEMS;

    // Step 1.
    Place<ThisTile::KEYS> place;
    if (!place.find(args, blockIdx.x)) return;
    const uint32_t base = place.base(), count = place.count;
    Key keys[ITEMS];
#pragma unroll
    for (uint32_t i = 0; i < ITEMS; i++) {
        const uint32_t at = threadIdx.x + i * TILE_THREADS;
        if (at < count) keys[i] = ordered_key(args.order, args.from.keys[base + at]);
    }
#pragma unroll
    for (uint32_t i = 0; i < ITEMS; i++) {
        const uint32_t at = threadIdx.x + i * TILE_THREADS;
        tile.put(at, keys[i], at < count);
    }

    // Step 2.
    tile.sort(count);

    // Step 3. Before the tile is written: in place the keys are still where they were.
    const bool exact = !INDEXED || args.flags & EXACT;
    if (args.samples != nullptr) {
        for (uint32_t at = threadIdx.x * args.spacing; at < count; at += TILE_THREADS * args.spacing) {
            args.samples[blockIdx.x * (ThisTile::KEYS / args.spacing) + at / args.spacing] =
                exact ? tile.ordered(at) ^ Key(args.order.flip) : args.from.keys[base + tile.place(at)];
        }
    }
    if (!exact) __syncthreads();
    const uint32_t to = args.bucket_of_part != nullptr ? place.levels != 0 : place.levels & 1;
    const bool with_keys = !(args.flags & DROP_KEYS) || place.levels != 0;
    write_tile(args, tile, args.from, args.to[to], base, count, with_keys, [&](uint32_t of) { return base + of; });
    if (args.outcome != nullptr && blockIdx.x == 0 && threadIdx.x == 0) *args.outcome = Outcome{BUCKET_SORT, 0, 0, 0, args.n, args.n};
}

// ---- Steps 4 and 9: runs of sorted tiles merged in pairs ----

// How many of the first `diagonal` keys of two merged runs are of the first: 33 parts of what is left each time. All lanes take part.
__device__ __forceinline__ uint32_t split_runs(const KeyOrder& order, const Key* first, uint32_t first_size, const Key* second,
                                               uint32_t second_size, uint32_t diagonal) {
    const uint32_t lane = threadIdx.x % WARP;
    uint32_t low = diagonal > second_size ? diagonal - second_size : 0, high = min(diagonal, first_size);
    while (low < high) {
        const uint32_t step = (high - low) / WARP + 1, at = low + lane * step + step - 1;
        bool before = false;
        if (at >= low && at < high) before = !(ordered_key(order, second[diagonal - 1 - at]) < ordered_key(order, first[at]));
        low += __popc(__ballot_sync(ALL_LANES, before)) * step;
        high = min(high, low + step - 1);
    }
    return low;
}

template <bool INDEXED>
__device__ __forceinline__ void merge(const SortArgs& args, uint32_t level) {
    extern __shared__ uint4 shared_memory[];
    using ThisTile = Tile<INDEXED>;
    const ThisTile tile{*reinterpret_cast<typename ThisTile::Shared*>(shared_memory)};
    constexpr uint32_t ITEMS = ThisTile::ITEMS, KEYS = ThisTile::KEYS;

    Place<KEYS> place;
    if (!place.find(args, blockIdx.x) || level >= place.levels) return;
    const Array from = args.to[(place.levels - level) & 1], to = args.to[(place.levels - level - 1) & 1];
    const uint64_t run = uint64_t(KEYS) << level, pair = place.tile * uint64_t(KEYS) / (2 * run) * (2 * run);
    const uint32_t first_size = uint32_t(min(uint64_t(run), place.size - pair));
    const uint32_t second_size = uint32_t(min(uint64_t(run), place.size - pair - first_size));
    const uint32_t diagonal = uint32_t(place.tile * uint64_t(KEYS) - pair), count = place.count;
    const uint32_t first = place.begin + uint32_t(pair), second = first + first_size;

    const uint32_t warp = threadIdx.x / WARP;
    if (warp < 2) {
        const uint32_t from_first = split_runs(args.order, from.keys + first, first_size, from.keys + second, second_size,
                                               diagonal + warp * count);
        if (threadIdx.x % WARP == 0) tile.shared.splits[warp] = from_first;
    }
    __syncthreads();
    const uint32_t from_first = tile.shared.splits[0], of_first = tile.shared.splits[1] - from_first;
    const uint32_t from_second = second + (diagonal - from_first) - of_first;
    const auto source = [&](uint32_t at) { return at < of_first ? first + from_first + at : from_second + at; };

    Key keys[ITEMS];
#pragma unroll
    for (uint32_t i = 0; i < ITEMS; i++) {
        const uint32_t at = threadIdx.x + i * TILE_THREADS;
        if (at < count) keys[i] = ordered_key(args.order, from.keys[source(at)]);
    }
#pragma unroll
    for (uint32_t i = 0; i < ITEMS; i++) {
        const uint32_t at = threadIdx.x + i * TILE_THREADS;
        tile.put(at, keys[i], at < count);
    }
    __syncthreads();
    tile.template merge<true>(0, of_first, KEYS, threadIdx.x * ITEMS < count);
    const bool with_keys = !(args.flags & DROP_KEYS) || level + 1 != place.levels;
    write_tile(args, tile, from, to, place.base(), count, with_keys, source);
}

// ---- Step 9 of buckets of several tiles: steps 3 to 8 within each, among its sorted tiles (runs), into parts that fit a tile ----

constexpr uint32_t MAX_RUNS = WARP;

struct Bucket {
    uint32_t begin, size, runs, first_tile;
    uint32_t first_part, most_parts;   // room for its parts

    __device__ __forceinline__ Bucket(const SortArgs& args, uint32_t bucket) {
        begin = args.pieces.begins[bucket], size = args.pieces.begins[bucket + 1] - begin;
        first_tile = args.pieces.first_tiles[bucket], runs = args.pieces.first_tiles[bucket + 1] - first_tile;
        first_part = 2 * first_tile + bucket, most_parts = 2 * runs + 1;
    }
};

// One block a bucket: sorts the samples of its runs on chip, takes equidistant ones, and finds these in each run.
template <bool INDEXED>
__device__ __forceinline__ void split_bucket(const SortArgs& args) {
    extern __shared__ uint4 shared_memory[];
    using Samples = Tile<true>;
    const Samples tile{*reinterpret_cast<Samples::Shared*>(shared_memory)};
    constexpr uint32_t KEYS = Tile<INDEXED>::KEYS, ITEMS = Tile<INDEXED>::ITEMS;
    const Bucket bucket(args, blockIdx.x);
    const uint32_t runs = bucket.runs, spacing = args.spacing, of_run = KEYS / spacing;
    uint32_t parts = 0;
    if (runs > 1) {
        const uint32_t count = (runs - 1) * of_run + (bucket.size - (runs - 1) * KEYS + spacing - 1) / spacing;
        const Key* const samples = args.samples + bucket.first_tile * of_run;
        for (uint32_t at = threadIdx.x; at < Samples::KEYS; at += TILE_THREADS) {
            tile.put(at, at < count ? ordered_key(args.order, samples[at]) : Key(0), at < count);
        }
        tile.sort(count);

        // A part of that many samples has at most (samples + runs) * spacing - runs keys; each run's are padded to whole threads.
        const uint32_t of_part = (KEYS - runs * (ITEMS - 1) + runs) / spacing - runs;
        parts = (count + of_part - 1) / of_part;
        for (uint32_t entry = threadIdx.x; entry < parts * runs; entry += TILE_THREADS) {
            const uint32_t part = entry / runs, run = entry % runs;
            uint32_t low = 0;
            if (part != 0) {
                const uint32_t rank = part * count / parts, number = tile.place(rank), owner = number / of_run;
                const Key splitter = tile.ordered(rank);
                const Key* const keys = args.to[1].keys + bucket.begin + run * KEYS;
                uint32_t high = min(KEYS, bucket.size - run * KEYS);
                if (run == owner) low = high = number % of_run * spacing;
                while (low < high) {
                    const uint32_t middle = (low + high) / 2;
                    const Key key = ordered_key(args.order, keys[middle]);
                    if (key < splitter || (key == splitter && run < owner)) low = middle + 1;
                    else high = middle;
                }
            }
            args.part_starts[(bucket.first_part + part) * MAX_RUNS + run] = uint16_t(low);
        }
    }
    for (uint32_t part = threadIdx.x; part < bucket.most_parts; part += TILE_THREADS) {
        args.bucket_of_part[bucket.first_part + part] = part < parts ? blockIdx.x : ~0u;
    }
}

// One block a part: its piece of each run is read to the tile, and these are merged in pairs.
template <bool INDEXED>
__device__ __forceinline__ void merge_part(const SortArgs& args) {
    extern __shared__ uint4 shared_memory[];
    using ThisTile = Tile<INDEXED>;
    const ThisTile tile{*reinterpret_cast<typename ThisTile::Shared*>(shared_memory)};
    constexpr uint32_t ITEMS = ThisTile::ITEMS, KEYS = ThisTile::KEYS;
    __shared__ uint32_t starts[MAX_RUNS + 1];  // of the pieces in the tile, each padded to whole threads
    __shared__ uint32_t shifts[MAX_RUNS];      // from there to `from`
    __shared__ uint32_t ends[MAX_RUNS];        // without the padding
    __shared__ uint32_t sums[2];               // keys of the parts before in the bucket; keys of the part

    const uint32_t part = blockIdx.x;
    if (part >= 2 * args.pieces.first_tiles[args.bucket_count] + args.bucket_count) return;
    const uint32_t number = args.bucket_of_part[part];
    if (number == ~0u) return;
    const Bucket bucket(args, number);
    const uint32_t runs = bucket.runs;
    if (threadIdx.x < WARP) {
        const uint32_t run = threadIdx.x;
        const bool last = part + 1 == bucket.first_part + bucket.most_parts || args.bucket_of_part[part + 1] == ~0u;
        uint32_t begin = 0, end = 0;
        if (run < runs) {
            begin = args.part_starts[part * MAX_RUNS + run];
            end = last ? min(KEYS, bucket.size - run * KEYS) : args.part_starts[(part + 1) * MAX_RUNS + run];
        }
        const uint32_t count = end - begin, padded = (count + ITEMS - 1) / ITEMS * ITEMS;
        const uint32_t start = warp_inclusive_sum(padded, run) - padded;
        starts[run] = start;
        shifts[run] = bucket.begin + run * KEYS + begin - start;
        ends[run] = start + count;
        const uint32_t before = warp_inclusive_sum(begin, run), keys = warp_inclusive_sum(count, run);
        if (run == WARP - 1) {
            starts[MAX_RUNS] = start + padded;
            sums[0] = before;
            sums[1] = keys;
        }
    }
    __syncthreads();

    const Array from = args.to[1];
    Key keys[ITEMS];
    uint32_t there = 0;                // a bit for each key
    uint32_t run_of_key = 0;
#pragma unroll
    for (uint32_t i = 0; i < ITEMS; i++) {
        const uint32_t at = threadIdx.x + i * TILE_THREADS;
        while (run_of_key + 1 < runs && at >= starts[run_of_key + 1]) run_of_key++;
        if (at < ends[run_of_key]) {
            keys[i] = ordered_key(args.order, from.keys[shifts[run_of_key] + at]);
            there |= 1u << i;
        }
    }
#pragma unroll
    for (uint32_t i = 0; i < ITEMS; i++) tile.put(threadIdx.x + i * TILE_THREADS, keys[i], there >> i & 1);
    __syncthreads();

    // The piece that a place of the tile is of.
    const auto run_at = [&](uint32_t at) {
        uint32_t run = 0;
#pragma unroll
        for (uint32_t step = MAX_RUNS / 2; step != 0; step /= 2) {
            if (starts[run + step] <= at) run += step;
        }
        return run;
    };
    const uint32_t own = threadIdx.x * ITEMS, run = run_at(own);
    const bool active = own < starts[MAX_RUNS];
    for (uint32_t width = 1; width < runs; width *= 2) {
        const uint32_t pair = run & ~(2 * width - 1);
        const uint32_t first = active ? starts[pair] : own, middle = active ? starts[pair + width] : own;
        const uint32_t end = active ? starts[pair + 2 * width] : own;
        tile.template merge<true>(first, middle, end, active);
    }
    write_tile(args, tile, from, args.to[0], bucket.begin + sums[0], sums[1], !(args.flags & DROP_KEYS),
               [&](uint32_t at) { return shifts[run_at(at)] + at; });
}

}  // namespace

// ---- Entry points. A tile's shape is in the names, so that host and device cannot disagree about it. ----

// Blocks that share a multiprocessor, which bounds a thread's registers: SORT_BLOCKS of tile_sort, and so on.
#define TILES(KIND, INDEXED, EACH, SORT_BLOCKS, MERGE_BLOCKS, PART_BLOCKS)                                      \
    static_assert(Tile<INDEXED>::ITEMS == EACH, "the shape in the name");                                       \
    extern "C" __global__ void __launch_bounds__(TILE_THREADS, SORT_BLOCKS)                                     \
        bucket_tile_sort_##KIND##_512x##EACH(const SortArgs args) {                                             \
        tile_sort<INDEXED>(args);                                                                               \
    }                                                                                                           \
    extern "C" __global__ void __launch_bounds__(TILE_THREADS, MERGE_BLOCKS)                                    \
        bucket_merge_##KIND##_512x##EACH(const SortArgs args, const uint32_t level) {                           \
        merge<INDEXED>(args, level);                                                                            \
    }                                                                                                           \
    extern "C" __global__ void __launch_bounds__(TILE_THREADS, 2)                                               \
        bucket_split_##KIND##_512x##EACH(const SortArgs args) {                                                 \
        split_bucket<INDEXED>(args);                                                                            \
    }                                                                                                           \
    extern "C" __global__ void __launch_bounds__(TILE_THREADS, PART_BLOCKS)                                     \
        bucket_merge_part_##KIND##_512x##EACH(const SortArgs args) {                                            \
        merge_part<INDEXED>(args);                                                                              \
    }
// On an H200, alone: three blocks sort the tiles of 2^26 u32 keys in 0.70 ms in spite of spills and merge a level of them in 0.33 ms;
// two take 0.80 and 0.40. Indexed, 2^25 keys: three 0.86 and 0.30, two 0.72 and 0.33.
#if KEY_BITS == 32
TILES(plain, false, 31, 3, 3, 3)
TILES(indexed, true, 15, 2, 3, 2)
#else
TILES(plain, false, 15, 2, 2, 2)
TILES(indexed, true, 11, 2, 2, 2)
#endif

extern "C" __global__ void __launch_bounds__(256) bucket_splitters(const BucketArgs args) { splitters(args); }
extern "C" __global__ void __launch_bounds__(TILE_THREADS) bucket_index(const BucketArgs args) { index_samples(args); }
extern "C" __global__ void __launch_bounds__(COLUMN_THREADS) bucket_column_sums(const BucketArgs args) { column_sums(args); }
extern "C" __global__ void __launch_bounds__(SCAN_THREADS) bucket_scan(const BucketArgs args, const uint32_t tile,
                                                                          const uint32_t most_tiles) {
    scan_columns(args, tile, most_tiles);
}
extern "C" __global__ void __launch_bounds__(COLUMN_THREADS) bucket_targets(const BucketArgs args) { write_targets(args); }

#define RELOCATE(VALUE_BYTES)                                                                                      \
    extern "C" __global__ void __launch_bounds__(TILE_THREADS) bucket_relocate_##VALUE_BYTES(const BucketArgs args) { \
        relocate<VALUE_BYTES>(args);                                                                               \
    }
RELOCATE(0)
RELOCATE(4)
RELOCATE(8)
