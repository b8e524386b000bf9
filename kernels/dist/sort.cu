// What a rank does for the sort of the keys of all ranks, besides the sort of its own keys
// (crates/sap-dist/src/device/sort.rs).
//
// Compiled with KEY_BITS (32, 64). Launched once each, but for the last two:
//   samples  every t-th of the sorted keys, for all ranks
//   ends     where the splitters that ranks chose from the samples fall among the sorted keys
//   splits   where each tile of a merge begins in both runs
//   merge    merges two sorted runs; a tree of these merges those of all ranks
//
// Bytes of a merge, for a key and its value: their sizes read, and written. About 40 instructions a
// key, of which a third is the search of a thread's first key. A block finds its part of both runs
// by the splits, which a launch before has searched. Its threads find theirs by merge path in
// shared memory, and a thread then only notes where each of its keys is: the block writes keys and
// values by these offsets, in the order of memory. On an H200 2^27 pairs of 4 + 4 bytes took 0.90
// ms, where a copy of the bytes takes 0.52, and 2^28 keys 1.17 (0.52), with the search in each
// block instead of a launch before.
#include "block/merge_path.cuh"
#include "block/merge_split.cuh"
#include "common/layout.cuh"
#include "common/radix_key.cuh"

namespace radsweep::dist {

constexpr u32 THREADS = 256;
constexpr u32 BLOCKS = KEY_BITS == 32 ? 5 : 4;  // on a multiprocessor, at least
// Keys of a thread: odd, so that threads read other banks than their neighbours.
constexpr u32 ITEMS = KEY_BITS == 32 ? 15 : 11, TILE = THREADS * ITEMS;

// What keys are compared by, for all key types (crates/gpusort/src/key.rs).
struct KeyMap {
    u64 flip, fold;
    u64 minus_zero;  // is read as zero
    DEVICE Key operator()(Key key) const {
        const Key read = key == Key(minus_zero) ? 0 : key;
        return read ^ (Key(flip) ^ (Key(SignedKey(read) >> (KEY_BITS - 1)) & Key(fold)));
    }
};
ASSERT_LAYOUT(KeyMap, 24, AT(flip, 0) AT(fold, 8) AT(minus_zero, 16));

// Writes what every `distance`-th key is compared by. A thread a sample.
extern "C" __global__ void __launch_bounds__(THREADS) dist_sort_samples(
    const Key* keys, u64 distance, u32 count, const __grid_constant__ KeyMap map, u64* samples) {
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count) samples[i] = map(keys[(u64(i) + 1) * distance - 1]);
}

// An element that ends a part of all keys.
struct Splitter {
    u64 bits;      // what its key is compared by
    u64 has_same;  // 1: equal keys of this rank are before it
};
ASSERT_LAYOUT(Splitter, 16, AT(bits, 0) AT(has_same, 8));

// Counts the sorted keys at or before each splitter. A warp a splitter.
extern "C" __global__ void __launch_bounds__(THREADS) dist_sort_ends(
    const Key* keys, u64 n, const Splitter* splitters, u32 count,
    const __grid_constant__ KeyMap map, u64* ends) {
    const u32 i = (blockIdx.x * THREADS + threadIdx.x) / WARP;
    if (i >= count) return;
    const Splitter splitter = splitters[i];
    const u64 end = warp_partition_point(u64(0), n, [&](u64 k) {
        const u64 bits = map(keys[k]);
        return bits < splitter.bits || (splitter.has_same && bits == splitter.bits);
    });
    if (lane_index() == 0) ends[i] = end;
}

// Sorted elements.
struct Run {
    const Key* keys;
    const void* values;
    u64 length;
};
ASSERT_LAYOUT(Run, 24, AT(keys, 0) AT(values, 8) AT(length, 16));

// Two runs, and where their merge goes.
struct Runs {
    Run a, b;
    Key* keys_out;
    void* values_out;
    u64* splits;  // the elements of `a` before each tile of the merge, and in all
    KeyMap map;
};
ASSERT_LAYOUT(Runs, 96,
    AT(a, 0) AT(b, 24) AT(keys_out, 48) AT(values_out, 56) AT(splits, 64) AT(map, 72));

// Finds where each of `count` tiles begins in both runs. A warp a tile.
extern "C" __global__ void __launch_bounds__(THREADS) dist_sort_splits(
    const __grid_constant__ Runs runs, u32 count) {
    constexpr u64 NEAR = 256;  // keys from one look to the next
    const u32 tile = (blockIdx.x * THREADS + threadIdx.x) / WARP;
    if (tile >= count) return;
    const u64 a_length = runs.a.length, b_length = runs.b.length;
    const u64 diagonal = min(u64(tile) * TILE, a_length + b_length);
    const u64 split = warp_merge_split<NEAR>(a_length, b_length, diagonal, [&](u64 i) {
        return runs.map(runs.a.keys[i]) <= runs.map(runs.b.keys[diagonal - 1 - i]);
    });
    if (lane_index() == 0) runs.splits[tile] = split;
}

// Merges two runs; of equal keys those of the first come first. A block takes TILE keys of the
// merge. `Value` is u8 for keys alone.
template <class Value>
DEVICE void merge(const Runs& runs) {
    constexpr bool HAS_VALUES = sizeof(Value) != 1;
    __shared__ Key keys[TILE + 1];
    __shared__ u16 offsets[TILE];
    const u64 a_length = runs.a.length, n = a_length + runs.b.length;
    const Key *const a = runs.a.keys, *const b = runs.b.keys;
    const u64 first = u64(blockIdx.x) * TILE, last = min(first + TILE, n);
    const u32 length = u32(last - first);
    const u64 a_first = runs.splits[blockIdx.x], b_first = first - a_first;
    const u32 a_count = u32(runs.splits[blockIdx.x + 1] - a_first);
    // Reads an element of the tile from memory: those of the first run are before.
    const auto read = [&](const auto* of_a, const auto* of_b, u32 offset) {
        return (offset < a_count ? of_a + a_first : of_b + b_first - a_count)[offset];
    };
    // All loads are on their way before the first is stored.
    Key loaded[ITEMS];
#pragma unroll
    for (u32 round = 0; round < ITEMS; round++) {
        const u32 offset = round * THREADS + threadIdx.x;
        if (offset < length) loaded[round] = read(a, b, offset);
    }
#pragma unroll
    for (u32 round = 0; round < ITEMS; round++) {
        const u32 offset = round * THREADS + threadIdx.x;
        if (offset < length) keys[offset] = loaded[round];
    }
    __syncthreads();
    const u32 own = min(threadIdx.x * ITEMS, length);
    auto bits = [&](u32 offset) { return runs.map(keys[offset]); };
    u32 i = merge_path(a_count, length - a_count, own, [&](u32 in_b, u32 in_a) {
        return bits(a_count + in_b) < bits(in_a);
    });
    u32 k = a_count + own - i;
    // One behind the end is read, and not used.
    Key next_a = bits(i), next_b = bits(k);
#pragma unroll
    for (u32 round = 0; round < ITEMS; round++) {
        if (own + round >= length) break;
        const bool takes_b = i == a_count || (k < length && next_b < next_a);
        offsets[own + round] = u16(takes_b ? k : i);
        const u32 next = (takes_b ? k : i) + 1;
        const Key of_next = bits(next);
        k = takes_b ? next : k;
        i = takes_b ? i : next;
        next_b = takes_b ? of_next : next_b;
        next_a = takes_b ? next_a : of_next;
    }
    __syncthreads();
#pragma unroll
    for (u32 round = 0; round < ITEMS; round++) {
        const u32 at = round * THREADS + threadIdx.x;
        if (at >= length) break;
        const u32 offset = offsets[at];
        runs.keys_out[first + at] = keys[offset];
        if (HAS_VALUES) {
            static_cast<Value*>(runs.values_out)[first + at] = read(
                static_cast<const Value*>(runs.a.values), static_cast<const Value*>(runs.b.values),
                offset);
        }
    }
}

#define MERGE(BYTES, VALUE)                                                                \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) dist_sort_merge_##BYTES( \
        const __grid_constant__ Runs runs) {                                               \
        merge<VALUE>(runs);                                                                \
    }
MERGE(0, u8)
MERGE(4, u32)
MERGE(8, u64)

}  // namespace radsweep::dist
