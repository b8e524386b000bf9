// Merge sort of records by an order given as source: compiled at run time behind a `struct Item` and a
// `__device__ bool less(const Item&, const Item&)` of the caller's. The steps are those of satish_merge.cu; Satish, Harris and Garland
// 2009, section IV.
//
// Records are sorted by their places: comparisons look at records that stay where they are. `records` stages the records of a tile or
// piece in shared memory and moves them once a pass; `index` leaves them in the input and moves their index.
//
// Defined by the host (crates/gpusort/src/cuda/satish_merge/records.rs): RECORD_BYTES, RECORD_ALIGNMENT, and RECORD_ITEMS a thread.
#pragma once

#include "outcome.cuh"
#include "satish_merge.cuh"

namespace radsweep {
namespace satish_merge {

using Record = ::Item;
static_assert(sizeof(Record) == RECORD_BYTES, "Item has another size than the records to be sorted");
static_assert(alignof(Record) <= RECORD_ALIGNMENT, "Item has a stricter alignment than the records to be sorted");

constexpr uint32_t THREADS = 256, INDEX_ITEMS = 15;
constexpr uint32_t LAST = 1;

struct Args {
    const Record* records;  // the input
    const void* in;         // records or their index; not read by the tiles
    void* out;
    void* samples;          // records or index
    uint32_t* splits;
    Outcome* outcome;
    uint64_t n;
    Level level;
    uint32_t passes;
    uint32_t flags;
};
static_assert(sizeof(Args) == 88, "not as the host has it");

struct Places {
    uint32_t* places;

    __device__ __forceinline__ uint32_t get(uint32_t place) const { return places[place]; }
    __device__ __forceinline__ void put(uint32_t place, uint32_t item) const { places[place] = item; }
};

// The order of places; those from `limit` on are behind the end.
struct ByComparator {
    using Item = uint32_t;
    using Rank = uint32_t;
    const Record* records;
    uint32_t limit;

    __device__ __forceinline__ uint32_t rank(uint32_t place) const { return place; }
    __device__ __forceinline__ uint32_t rank_at(const Places& store, uint32_t place) const { return store.get(place); }
    __device__ __forceinline__ bool less(uint32_t a, uint32_t b) const { return ::less(records[a], records[b]); }
    __device__ __forceinline__ bool before(uint32_t a, uint32_t b) const {
        if (a >= limit || b >= limit) return a < b;
        return less(a, b) || (a < b && !less(b, a));
    }
};

// Shared memory: the places, TILE and one that is read and never used, then the records.
template <uint32_t TILE>
__device__ __forceinline__ Record* staged_behind(uint32_t* places) {
    return reinterpret_cast<Record*>(places + (TILE + 1 + 3) / 4 * 4);
}

template <class T>
__device__ __forceinline__ void put(const Args& args, uint64_t at, const T& item) {
    static_cast<T*>(args.out)[at] = item;
    if (at % SAMPLE == 0 && !(args.flags & LAST)) static_cast<T*>(args.samples)[at / SAMPLE] = item;
}

// ---- Steps 1 and 2 ----

template <bool STAGED, uint32_t ITEMS>
__device__ __forceinline__ void sort_tile(const Args& args) {
    extern __shared__ uint4 shared_memory[];
    constexpr uint32_t TILE = THREADS * ITEMS;
    const uint64_t base = uint64_t(blockIdx.x) * TILE;
    if (blockIdx.x == 0 && threadIdx.x == 0) *args.outcome = {SATISH_MERGE, args.passes + 1, args.passes + 1, 0, args.n, 0};
    const uint32_t count = args.n - base < TILE ? uint32_t(args.n - base) : TILE;
    uint32_t* const places = reinterpret_cast<uint32_t*>(shared_memory);
    Record* const staged = staged_behind<TILE>(places);
    if (STAGED) {
        for (uint32_t i = threadIdx.x; i < count; i += THREADS) staged[i] = args.records[base + i];
        __syncthreads();
    }
    uint32_t items[ITEMS];
#pragma unroll
    for (uint32_t i = 0; i < ITEMS; i++) items[i] = threadIdx.x * ITEMS + i;
    const ByComparator order{STAGED ? staged : args.records + base, count};
    const Chip<ByComparator, Places, THREADS, ITEMS> chip{order, Places{places}};
    chip.sort(items, count);
    for (uint32_t i = threadIdx.x; i < count; i += THREADS) {
        if (STAGED) put(args, base + i, staged[places[i]]);
        else put(args, base + i, uint32_t(base) + places[i]);
    }
}

// ---- Step 3 ----

struct RecordsInMemory {
    using Rank = Record;
    const Record* records;
    const Record* samples;

    __device__ __forceinline__ Record sample(uint64_t i) const { return samples[i]; }
    __device__ __forceinline__ Record element(uint64_t i) const { return records[i]; }
    __device__ __forceinline__ bool less(const Record& a, const Record& b) const { return ::less(a, b); }
};

struct IndexInMemory {
    using Rank = uint32_t;
    const Record* records;
    const uint32_t* index;
    const uint32_t* samples;

    __device__ __forceinline__ uint32_t sample(uint64_t i) const { return samples[i]; }
    __device__ __forceinline__ uint32_t element(uint64_t i) const { return index[i]; }
    __device__ __forceinline__ bool less(uint32_t a, uint32_t b) const { return ::less(records[a], records[b]); }
};

template <bool STAGED, uint32_t ITEMS>
__device__ __forceinline__ void merge_piece(const Args& args) {
    extern __shared__ uint4 shared_memory[];
    using ThisPiece = Piece<THREADS, ITEMS>;
    typename ThisPiece::Shared& shared = *reinterpret_cast<typename ThisPiece::Shared*>(shared_memory);
    ThisPiece piece(shared);
    if (!piece.find(args.level, args.n, args.splits)) return;
    if (threadIdx.x == 0) atomicMax(reinterpret_cast<unsigned long long*>(&args.outcome->detail), (unsigned long long)piece.count);
    uint32_t* const places = reinterpret_cast<uint32_t*>(&shared + 1);
    Record* const staged = staged_behind<THREADS * ITEMS>(places);
    piece.each([&](uint32_t from, uint32_t place, uint32_t) {
        if (STAGED) staged[place] = static_cast<const Record*>(args.in)[from];
        places[place] = STAGED ? place : static_cast<const uint32_t*>(args.in)[from];
    });
    __syncthreads();
    const Chip<ByComparator, Places, THREADS, ITEMS> chip{ByComparator{STAGED ? staged : args.records, ~0u}, Places{places}};
    chip.merge_runs(shared.at, args.level.runs);
    for (uint32_t i = threadIdx.x; i < piece.count; i += THREADS) {
        if (STAGED) put(args, piece.to + i, staged[places[i]]);
        else put(args, piece.to + i, places[i]);
    }
}

#ifdef RECORD_ITEMS
extern "C" __global__ void __launch_bounds__(THREADS) records_tile(const Args args) { sort_tile<true, RECORD_ITEMS>(args); }
extern "C" __global__ void __launch_bounds__(THREADS) records_rank(const Args args) {
    const RecordsInMemory memory{static_cast<const Record*>(args.in), static_cast<const Record*>(args.samples)};
    rank_splitters(memory, args.level, args.n, args.splits);
}
extern "C" __global__ void __launch_bounds__(THREADS) records_pieces(const Args args) { merge_piece<true, RECORD_ITEMS>(args); }
#endif
extern "C" __global__ void __launch_bounds__(THREADS) index_tile(const Args args) { sort_tile<false, INDEX_ITEMS>(args); }
extern "C" __global__ void __launch_bounds__(THREADS) index_rank(const Args args) {
    const IndexInMemory memory{args.records, static_cast<const uint32_t*>(args.in), static_cast<const uint32_t*>(args.samples)};
    rank_splitters(memory, args.level, args.n, args.splits);
}
extern "C" __global__ void __launch_bounds__(THREADS) index_pieces(const Args args) { merge_piece<false, INDEX_ITEMS>(args); }

}  // namespace satish_merge
}  // namespace radsweep
