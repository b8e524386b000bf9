// One tile of a block, sorted and merged on chip: the local sort of bucket_sort.cu. Included with
// KEY_BITS defined.
//
// A tile is sorted as elements of which no two that differ compare equal:
//   plain     a key's ordered bits, for integers in their full width without values: equal keys are
//             the same bits
//   indexed   (the ordered bits in the window, the key's offset in the tile), so that any network
//             sorts stably; other keys (floats, windows) and values are fetched by the offset at
//             the end
//
// Each thread sorts ITEMS elements in registers by Batcher's odd-even merge network; then runs are
// merged in pairs, log2(THREADS) times. In a merge a thread finds by binary search which elements
// of both runs are its ITEMS of the result (merge path), reads the second run's backwards and the
// first's forwards, which together fall and then rise, and sorts that bitonic sequence in
// registers: log2(ITEMS) stages without a branch or a dependent load, 9 % faster than merging
// element by element. So an element crosses shared memory 10 times; a bitonic sort of 2^14 keys
// through shared memory has 105 stages. An odd ITEMS keeps the threads' own elements in different
// banks.
#pragma once

#include "block/bitonic.cuh"
#include "block/merge_path.cuh"
#include "block/odd_even.cuh"
#include "common/radix_key.cuh"
#include "common/warp.cuh"

namespace radsweep::bucket_sort {

constexpr u32 TILE_THREADS = 512, TILE_WARPS = TILE_THREADS / WARP;

template <class Element, u32 KEYS>
struct TileMemory {
    Element elements[KEYS];
    DEVICE Element get(u32 at) const { return elements[at]; }
    DEVICE void put(u32 at, Element element) { elements[at] = element; }
};

#if KEY_BITS == 32

constexpr u32 PLAIN_ITEMS = 31, INDEXED_ITEMS = 15;

template <bool INDEXED>
struct ElementOf {
    using Type = u32;
};
template <>
struct ElementOf<true> {
    using Type = u64;
};

DEVICE void set_element(u32& element, Key ordered, u32) { element = ordered; }
DEVICE void set_element(u64& element, Key ordered, u32 index) {
    element = u64(ordered) << 32 | index;
}
DEVICE Key ordered_of(u32 element) { return element; }
DEVICE Key ordered_of(u64 element) { return u32(element >> 32); }
DEVICE u32 index_of(u32) { return 0; }
DEVICE u32 index_of(u64 element) { return u32(element); }

#else

constexpr u32 PLAIN_ITEMS = 15, INDEXED_ITEMS = 11;

struct IndexedKey {
    Key ordered;
    u32 index;
    DEVICE bool operator<(const IndexedKey& other) const {
        return ordered < other.ordered || (ordered == other.ordered && index < other.index);
    }
};

template <bool INDEXED>
struct ElementOf {
    using Type = u64;
};
template <>
struct ElementOf<true> {
    using Type = IndexedKey;
};

DEVICE void set_element(u64& element, Key ordered, u32) { element = ordered; }
DEVICE void set_element(IndexedKey& element, Key ordered, u32 index) { element = {ordered, index}; }
DEVICE Key ordered_of(u64 element) { return element; }
DEVICE Key ordered_of(const IndexedKey& element) { return element.ordered; }
DEVICE u32 index_of(u64) { return 0; }
DEVICE u32 index_of(const IndexedKey& element) { return element.index; }

template <u32 KEYS>
struct TileMemory<IndexedKey, KEYS> {
    Key keys[KEYS];
    u16 indices[KEYS];
    DEVICE IndexedKey get(u32 at) const { return {keys[at], indices[at]}; }
    DEVICE void put(u32 at, const IndexedKey& element) {
        keys[at] = element.ordered;
        indices[at] = u16(element.index);
    }
};

#endif

template <class Element>
DEVICE void compare_exchange(Element& a, Element& b) {
    const bool turn = b < a;
    const Element low = turn ? b : a, high = turn ? a : b;
    a = low;
    b = high;
}

template <bool INDEXED_>
struct Tile {
    static constexpr bool INDEXED = INDEXED_;
    static constexpr u32 ITEMS = INDEXED ? INDEXED_ITEMS : PLAIN_ITEMS, KEYS = TILE_THREADS * ITEMS;
    using Element = typename ElementOf<INDEXED>::Type;
    static_assert(KEYS < 65536, "an index takes 16 bits, and 0xffff is none");

    // The host gives this many bytes (plan.rs: shared_bytes).
    struct Shared {
        TileMemory<Element, KEYS> memory;
        u32 splits[TILE_WARPS];
    };

    Shared& shared;

    static DEVICE Element element(Key ordered, u32 index) {
        Element element;
        set_element(element, ordered, index);
        return element;
    }
    // Puts a key, or padding, which is behind all keys.
    DEVICE void put(u32 at, Key ordered, bool key) const {
        shared.memory.put(at, key ? element(ordered, at) : element(~Key(0), 0xffff));
    }
    // Puts the threads' keys of the tile, TILE_THREADS apart, and padding behind the first `count`.
    DEVICE void put_all(const Key (&keys)[ITEMS], u32 count) const {
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            const u32 at = threadIdx.x + i * TILE_THREADS;
            put(at, keys[i], at < count);
        }
    }
    DEVICE Key ordered(u32 at) const { return ordered_of(shared.memory.get(at)); }
    DEVICE u32 index(u32 at) const { return index_of(shared.memory.get(at)); }

    // Returns how many of the first `diagonal` elements of the merged runs [first, middle) and
    // [middle, end) are of the first run.
    DEVICE u32 split(u32 first, u32 middle, u32 end, u32 diagonal) const {
        return merge_path(middle - first, end - middle, diagonal, [&](u32 b, u32 a) {
            return shared.memory.get(middle + b) < shared.memory.get(first + a);
        });
    }

    // Merges [first, middle) and [middle, end), whose elements are those of neighbouring threads,
    // ITEMS each; WIDE where these are more than a warp. The tile was written before a barrier
    // among them. A thread that is not active has padding only.
    template <bool WIDE>
    DEVICE void merge(u32 first, u32 middle, u32 end, bool active) const {
        const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, own = threadIdx.x * ITEMS,
                  diagonal = own - first;
        const u32 from_first =
            active ? split(first, middle, end, diagonal) : min(diagonal, middle - first);
        u32 until_first = __shfl_down_sync(ALL_LANES, from_first, 1);
        if (WIDE) {
            if (lane == 0) shared.splits[warp] = from_first;
            __syncthreads();
            if (lane == WARP - 1) until_first = shared.splits[(warp + 1) % TILE_WARPS];
        }
        if (own + ITEMS == end) until_first = middle - first;

        Element items[ITEMS];
        if (active) {
            const u32 of_second = ITEMS - (until_first - from_first);
            const u32 falling = middle + diagonal - from_first + of_second - 1,
                      rising = first + from_first - of_second;
#pragma unroll
            for (u32 i = 0; i < ITEMS; i++)
                items[i] = shared.memory.get(i < of_second ? falling - i : rising + i);
        }
        barrier<WIDE>();
        if (active) {
            bitonic_merge<ITEMS>([&](u32 i, u32 j) { compare_exchange(items[i], items[j]); });
            write_own(items);
        }
        barrier<WIDE>();
    }

    template <bool WIDE>
    static DEVICE void barrier() {
        if (WIDE) __syncthreads();
        else __syncwarp();
    }

    DEVICE void write_own(const Element (&items)[ITEMS]) const {
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) shared.memory.put(threadIdx.x * ITEMS + i, items[i]);
    }

    // Sorts the tile, of which `count` elements are keys and the rest padding. Barriers before and
    // after are within.
    DEVICE void sort(u32 count) const {
        __syncthreads();
        const bool active = threadIdx.x * ITEMS < count;
        if (active) {
            Element items[ITEMS];
#pragma unroll
            for (u32 i = 0; i < ITEMS; i++) items[i] = shared.memory.get(threadIdx.x * ITEMS + i);
            odd_even_merge_sort<ITEMS>([&](u32 i, u32 j) { compare_exchange(items[i], items[j]); });
            write_own(items);
        }
        __syncwarp();
#pragma unroll 1
        for (u32 threads = 2; threads <= WARP; threads *= 2)
            merge_neighbours<false>(threads, active);
        __syncthreads();
#pragma unroll 1
        for (u32 threads = 2 * WARP; threads <= TILE_THREADS && threads / 2 * ITEMS < count;
             threads *= 2) {
            merge_neighbours<true>(threads, active);
        }
    }

    template <bool WIDE>
    DEVICE void merge_neighbours(u32 threads, bool active) const {
        const u32 first = (threadIdx.x & ~(threads - 1)) * ITEMS, run = threads / 2 * ITEMS;
        merge<WIDE>(first, first + run, first + 2 * run, active);
    }
};

}  // namespace radsweep::bucket_sort
