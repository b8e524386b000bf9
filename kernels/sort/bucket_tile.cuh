// One tile of a block, sorted and merged on chip: the local sort of bucket_sort.cu. Included with KEY_BITS defined.
//
// A tile is sorted as elements of which no two that differ compare equal:
//   plain     a key's ordered bits, for integers in their full width without values: equal keys are the same bits
//   indexed   (the ordered bits in the window, the key's place in the tile), so that any network sorts stably; keys of other bits
//             (floats, windows) and values are fetched by the place at the end
//
// Each thread sorts ITEMS elements in registers by Batcher's odd-even merge network; then runs are merged in pairs, log2(THREADS)
// times. In a merge a thread finds by binary search which elements of both runs are its ITEMS of the result (merge path), reads
// the second run's backwards and the first's forwards, which together fall and then rise, and sorts that bitonic sequence in
// registers: log2(ITEMS) stages without a branch or a dependent load, 9 % faster than merging element by element. So an element
// crosses shared memory 10 times; a bitonic sort of 2^14 keys through shared memory has 105 stages. An odd ITEMS keeps the threads'
// own elements in different banks.
#pragma once

#include "../common/warp.cuh"
#include "../common/radix_key.cuh"

namespace radsweep {

constexpr uint32_t TILE_THREADS = 512, TILE_WARPS = TILE_THREADS / WARP;

#if KEY_BITS == 32

constexpr uint32_t PLAIN_ITEMS = 31, INDEXED_ITEMS = 15;

template <bool INDEXED>
struct ElementOf {
    using Type = uint32_t;
};
template <>
struct ElementOf<true> {
    using Type = uint64_t;
};

__device__ __forceinline__ void set_element(uint32_t& element, Key ordered, uint32_t) { element = ordered; }
__device__ __forceinline__ void set_element(uint64_t& element, Key ordered, uint32_t place) { element = uint64_t(ordered) << 32 | place; }
__device__ __forceinline__ Key ordered_of(uint32_t element) { return element; }
__device__ __forceinline__ Key ordered_of(uint64_t element) { return uint32_t(element >> 32); }
__device__ __forceinline__ uint32_t place_of(uint32_t) { return 0; }
__device__ __forceinline__ uint32_t place_of(uint64_t element) { return uint32_t(element); }

template <class Element, uint32_t KEYS>
struct TileMemory {
    Element elements[KEYS];
    __device__ __forceinline__ Element get(uint32_t at) const { return elements[at]; }
    __device__ __forceinline__ void put(uint32_t at, Element element) { elements[at] = element; }
};

#else

constexpr uint32_t PLAIN_ITEMS = 15, INDEXED_ITEMS = 11;

struct PlacedKey {
    Key ordered;
    uint32_t place;
    __device__ __forceinline__ bool operator<(const PlacedKey& other) const {
        return ordered < other.ordered || (ordered == other.ordered && place < other.place);
    }
};

template <bool INDEXED>
struct ElementOf {
    using Type = uint64_t;
};
template <>
struct ElementOf<true> {
    using Type = PlacedKey;
};

__device__ __forceinline__ void set_element(uint64_t& element, Key ordered, uint32_t) { element = ordered; }
__device__ __forceinline__ void set_element(PlacedKey& element, Key ordered, uint32_t place) { element = {ordered, place}; }
__device__ __forceinline__ Key ordered_of(uint64_t element) { return element; }
__device__ __forceinline__ Key ordered_of(const PlacedKey& element) { return element.ordered; }
__device__ __forceinline__ uint32_t place_of(uint64_t) { return 0; }
__device__ __forceinline__ uint32_t place_of(const PlacedKey& element) { return element.place; }

template <class Element, uint32_t KEYS>
struct TileMemory {
    Element elements[KEYS];
    __device__ __forceinline__ Element get(uint32_t at) const { return elements[at]; }
    __device__ __forceinline__ void put(uint32_t at, Element element) { elements[at] = element; }
};

template <uint32_t KEYS>
struct TileMemory<PlacedKey, KEYS> {
    Key keys[KEYS];
    uint16_t places[KEYS];
    __device__ __forceinline__ PlacedKey get(uint32_t at) const { return {keys[at], places[at]}; }
    __device__ __forceinline__ void put(uint32_t at, const PlacedKey& element) {
        keys[at] = element.ordered;
        places[at] = uint16_t(element.place);
    }
};

#endif

template <class Element>
__device__ __forceinline__ void compare_exchange(Element& a, Element& b) {
    const bool turn = b < a;
    const Element low = turn ? b : a, high = turn ? a : b;
    a = low;
    b = high;
}

constexpr __host__ __device__ uint32_t power_of_two_from(uint32_t x) {
    uint32_t power = 1;
    while (power < x) power *= 2;
    return power;
}

// The networks are those of the next power of two with elements above all others behind the last, whose comparators do nothing.
template <uint32_t ITEMS, uint32_t STRIDE, class Element>
__device__ __forceinline__ void bitonic_merge(Element (&items)[ITEMS]) {
#pragma unroll
    for (uint32_t i = 0; i + STRIDE < ITEMS; i++) {
        if ((i & STRIDE) == 0) compare_exchange(items[i], items[i + STRIDE]);
    }
    if constexpr (STRIDE > 1) bitonic_merge<ITEMS, STRIDE / 2>(items);
}

// Batcher's odd-even merge sort: runs of RUN become runs of 2 RUN by comparators at distances STRIDE = RUN, RUN / 2, ... 1.
template <uint32_t ITEMS, uint32_t RUN, uint32_t STRIDE, class Element>
__device__ __forceinline__ void odd_even_merge_sort(Element (&items)[ITEMS]) {
    constexpr uint32_t FIRST = STRIDE % RUN;
#pragma unroll
    for (uint32_t i = FIRST; i + STRIDE < ITEMS; i++) {
        if ((i - FIRST) / STRIDE % 2 == 0 && i / (2 * RUN) == (i + STRIDE) / (2 * RUN)) compare_exchange(items[i], items[i + STRIDE]);
    }
    if constexpr (STRIDE > 1) odd_even_merge_sort<ITEMS, RUN, STRIDE / 2>(items);
    else if constexpr (2 * RUN < ITEMS) odd_even_merge_sort<ITEMS, 2 * RUN, 2 * RUN>(items);
}

template <bool INDEXED_>
struct Tile {
    static constexpr bool INDEXED = INDEXED_;
    static constexpr uint32_t ITEMS = INDEXED ? INDEXED_ITEMS : PLAIN_ITEMS, KEYS = TILE_THREADS * ITEMS;
    using Element = typename ElementOf<INDEXED>::Type;
    static_assert(KEYS < 65536, "a place takes 16 bits, and 0xffff is none");

    // The host gives this many bytes (plan.rs: shared_bytes).
    struct Shared {
        TileMemory<Element, KEYS> memory;
        uint32_t splits[TILE_WARPS];
    };

    Shared& shared;

    static __device__ __forceinline__ Element element(Key ordered, uint32_t place) {
        Element element;
        set_element(element, ordered, place);
        return element;
    }
    // A key, or padding: behind all keys.
    __device__ __forceinline__ void put(uint32_t at, Key ordered, bool key) const {
        shared.memory.put(at, key ? element(ordered, at) : element(~Key(0), 0xffff));
    }
    __device__ __forceinline__ Key ordered(uint32_t at) const { return ordered_of(shared.memory.get(at)); }
    __device__ __forceinline__ uint32_t place(uint32_t at) const { return place_of(shared.memory.get(at)); }

    // How many of the first `diagonal` elements of the merged runs [first, middle) and [middle, end) are of the first run.
    __device__ __forceinline__ uint32_t split(uint32_t first, uint32_t middle, uint32_t end, uint32_t diagonal) const {
        uint32_t low = diagonal > end - middle ? diagonal - (end - middle) : 0, high = min(diagonal, middle - first);
        const uint32_t opposite = middle + diagonal - 1;
        while (low < high) {
            const uint32_t middle_one = (low + high) / 2;
            if (shared.memory.get(opposite - middle_one) < shared.memory.get(first + middle_one)) high = middle_one;
            else low = middle_one + 1;
        }
        return low;
    }

    // Merges [first, middle) and [middle, end), whose elements are those of neighbouring threads, ITEMS each; WIDE where these are
    // more than a warp. What the tile holds was written before a barrier among them. A thread that is not active has padding only.
    template <bool WIDE>
    __device__ __forceinline__ void merge(uint32_t first, uint32_t middle, uint32_t end, bool active) const {
        const uint32_t lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, own = threadIdx.x * ITEMS, diagonal = own - first;
        const uint32_t from_first = active ? split(first, middle, end, diagonal) : min(diagonal, middle - first);
        uint32_t until_first = __shfl_down_sync(ALL_LANES, from_first, 1);
        if (WIDE) {
            if (lane == 0) shared.splits[warp] = from_first;
            __syncthreads();
            if (lane == WARP - 1) until_first = shared.splits[(warp + 1) % TILE_WARPS];
        }
        if (own + ITEMS == end) until_first = middle - first;

        Element items[ITEMS];
        if (active) {
            const uint32_t of_second = ITEMS - (until_first - from_first);
            const uint32_t falling = middle + diagonal - from_first + of_second - 1, rising = first + from_first - of_second;
#pragma unroll
            for (uint32_t i = 0; i < ITEMS; i++) items[i] = shared.memory.get(i < of_second ? falling - i : rising + i);
        }
        barrier<WIDE>();
        if (active) {
            bitonic_merge<ITEMS, power_of_two_from(ITEMS) / 2>(items);
            write_own(items);
        }
        barrier<WIDE>();
    }

    template <bool WIDE>
    static __device__ __forceinline__ void barrier() {
        if (WIDE) __syncthreads();
        else __syncwarp();
    }

    __device__ __forceinline__ void write_own(const Element (&items)[ITEMS]) const {
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) shared.memory.put(threadIdx.x * ITEMS + i, items[i]);
    }

    // Sorts the tile, of which `count` elements are keys and the rest padding. Barriers before and after are within.
    __device__ __forceinline__ void sort(uint32_t count) const {
        __syncthreads();
        const bool active = threadIdx.x * ITEMS < count;
        if (active) {
            Element items[ITEMS];
#pragma unroll
            for (uint32_t i = 0; i < ITEMS; i++) items[i] = shared.memory.get(threadIdx.x * ITEMS + i);
            odd_even_merge_sort<ITEMS, 1, 1>(items);
            write_own(items);
        }
        __syncwarp();
#pragma unroll 1
        for (uint32_t threads = 2; threads <= WARP; threads *= 2) merge_neighbours<false>(threads, active);
        __syncthreads();
#pragma unroll 1
        for (uint32_t threads = 2 * WARP; threads <= TILE_THREADS && threads / 2 * ITEMS < count; threads *= 2) {
            merge_neighbours<true>(threads, active);
        }
    }

    template <bool WIDE>
    __device__ __forceinline__ void merge_neighbours(uint32_t threads, bool active) const {
        const uint32_t first = (threadIdx.x & ~(threads - 1)) * ITEMS, run = threads / 2 * ITEMS;
        merge<WIDE>(first, first + run, first + 2 * run, active);
    }
};

}  // namespace radsweep
