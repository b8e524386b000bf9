// Merge sort of records by an order given as source: compiled at run time behind a `struct Item`
// and a `__device__ bool less(const Item&, const Item&)` of the caller's. The steps are those of
// satish_merge.cu; Satish, Harris and Garland 2009, section IV.
//
// Records are sorted by their indices: comparisons read records that do not move. `records` stages
// the records of a tile or piece in shared memory and moves them once a pass; `index` leaves them
// in the input and moves their index.
//
// Bytes a record and kernel that moves it: its own, read and written, with `records`; 4 and 4 with
// `index`, and a sector or more of 32 for each comparison. A single tile takes 7.3 us with
// `records` and 8.3 with `index` (H200, 2026-12-01), of which launching takes 2: the steps wait for
// each other. More tiles were not timed.
//
// Defined by the host (crates/gpusort/src/cuda/satish_merge/records.rs): RECORD_BYTES,
// RECORD_ALIGNMENT, and RECORD_ITEMS a thread.
#pragma once

#include "satish_merge.cuh"

namespace radsweep::satish_merge {

using Record = ::Item;
static_assert(
    sizeof(Record) == RECORD_BYTES, "Item has another size than the records to be sorted");
static_assert(
    alignof(Record) <= RECORD_ALIGNMENT,
    "Item has a stricter alignment than the records to be sorted");

constexpr u32 THREADS = 256, INDEX_ITEMS = 15;

using Args = RecordArgs;

DEVICE const Record* records_of(const Args& args) {
    return static_cast<const Record*>(args.records);
}

struct Indices {
    u32* indices;

    DEVICE u32 get(u32 index) const { return indices[index]; }
    DEVICE void put(u32 index, u32 item) const { indices[index] = item; }
};

// The order of indices; those from `limit` on are behind the end.
struct ByComparator {
    using Item = u32;
    using Rank = u32;
    const Record* records;
    u32 limit;

    DEVICE u32 rank(u32 index) const { return index; }
    DEVICE u32 rank_at(const Indices& store, u32 index) const { return store.get(index); }
    DEVICE bool less(u32 a, u32 b) const { return ::less(records[a], records[b]); }
    DEVICE bool before(u32 a, u32 b) const {
        if (a >= limit || b >= limit) return a < b;
        return less(a, b) || (a < b && !less(b, a));
    }
};

// Shared memory: the indices, TILE and one that is read and never used, then the records.
template <u32 TILE>
DEVICE Record* staged_behind(u32* indices) {
    return reinterpret_cast<Record*>(indices + (TILE + 1 + 3) / 4 * 4);
}

template <class T>
DEVICE void put(const Args& args, u64 at, const T& item) {
    static_cast<T*>(args.out)[at] = item;
    if (at % SAMPLE == 0 && !(args.flags & LAST)) static_cast<T*>(args.samples)[at / SAMPLE] = item;
}

// ---- Steps 1 and 2 ----

template <bool STAGED, u32 ITEMS>
DEVICE void sort_tile(const Args& args) {
    extern __shared__ uint4 shared_memory[];
    constexpr u32 TILE = THREADS * ITEMS;
    const u64 base = u64(blockIdx.x) * TILE;
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *args.outcome = {SATISH_MERGE, args.passes + 1, args.passes + 1, 0, args.n, 0};
    const u32 count = args.n - base < TILE ? u32(args.n - base) : TILE;
    u32* const indices = reinterpret_cast<u32*>(shared_memory);
    Record* const staged = staged_behind<TILE>(indices);
    if (STAGED) {
        for (u32 i = threadIdx.x; i < count; i += THREADS) staged[i] = records_of(args)[base + i];
        __syncthreads();
    }
    u32 items[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) items[i] = threadIdx.x * ITEMS + i;
    const ByComparator order{STAGED ? staged : records_of(args) + base, count};
    const Chip<ByComparator, Indices, THREADS, ITEMS> chip{order, Indices{indices}};
    chip.sort(items, count);
    for (u32 i = threadIdx.x; i < count; i += THREADS) {
        if (STAGED) put(args, base + i, staged[indices[i]]);
        else put(args, base + i, u32(base) + indices[i]);
    }
}

// ---- Step 3 ----

struct RecordsInMemory {
    using Rank = Record;
    const Record* records;
    const Record* samples;

    DEVICE Record sample(u64 i) const { return samples[i]; }
    DEVICE Record element(u64 i) const { return records[i]; }
    DEVICE bool less(const Record& a, const Record& b) const { return ::less(a, b); }
};

struct IndexInMemory {
    using Rank = u32;
    const Record* records;
    const u32* index;
    const u32* samples;

    DEVICE u32 sample(u64 i) const { return samples[i]; }
    DEVICE u32 element(u64 i) const { return index[i]; }
    DEVICE bool less(u32 a, u32 b) const { return ::less(records[a], records[b]); }
};

template <bool STAGED, u32 ITEMS>
DEVICE void merge_piece(const Args& args) {
    extern __shared__ uint4 shared_memory[];
    using ThisPiece = Piece<THREADS, ITEMS>;
    typename ThisPiece::Shared& shared =
        *reinterpret_cast<typename ThisPiece::Shared*>(shared_memory);
    ThisPiece piece(shared);
    if (!piece.find(args.level, args.n, args.splits)) return;
    if (threadIdx.x == 0) atomicMax(&args.outcome->detail, u64(piece.count));
    u32* const indices = reinterpret_cast<u32*>(&shared + 1);
    Record* const staged = staged_behind<THREADS * ITEMS>(indices);
    piece.each([&](u32 from, u32 index, u32) {
        if (STAGED) staged[index] = static_cast<const Record*>(args.in)[from];
        indices[index] = STAGED ? index : static_cast<const u32*>(args.in)[from];
    });
    __syncthreads();
    const Chip<ByComparator, Indices, THREADS, ITEMS> chip{
        ByComparator{STAGED ? staged : records_of(args), ~0u}, Indices{indices}};
    chip.merge_runs(shared.at, args.level.runs);
    for (u32 i = threadIdx.x; i < piece.count; i += THREADS) {
        if (STAGED) put(args, piece.to + i, staged[indices[i]]);
        else put(args, piece.to + i, indices[i]);
    }
}

#ifdef RECORD_ITEMS
extern "C" __global__ void __launch_bounds__(THREADS) records_tile(const Args args) {
    sort_tile<true, RECORD_ITEMS>(args);
}
extern "C" __global__ void __launch_bounds__(THREADS) records_rank(const Args args) {
    const RecordsInMemory memory{
        static_cast<const Record*>(args.in), static_cast<const Record*>(args.samples)};
    rank_splitters(memory, args.level, args.n, args.splits);
}
extern "C" __global__ void __launch_bounds__(THREADS) records_pieces(const Args args) {
    merge_piece<true, RECORD_ITEMS>(args);
}
#endif
extern "C" __global__ void __launch_bounds__(THREADS) index_tile(const Args args) {
    sort_tile<false, INDEX_ITEMS>(args);
}
extern "C" __global__ void __launch_bounds__(THREADS) index_rank(const Args args) {
    const IndexInMemory memory{
        records_of(args), static_cast<const u32*>(args.in), static_cast<const u32*>(args.samples)};
    rank_splitters(memory, args.level, args.n, args.splits);
}
extern "C" __global__ void __launch_bounds__(THREADS) index_pieces(const Args args) {
    merge_piece<false, INDEX_ITEMS>(args);
}

}  // namespace radsweep::satish_merge
