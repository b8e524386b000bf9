// What the merge sort moves on chip: keys, with a tag or without. Included with KEY_BITS defined as 32 or 64.
#pragma once

#include "../common/radix_key.cuh"
#include "satish_merge.cuh"

namespace radsweep {
namespace satish_merge {

// The shape of a block; the host's copy: crates/gpusort/src/cuda/satish_merge/mod.rs. Tiles and pieces of 2^24 pairs on the H200, before
// merge_from had one read an item, in us: of 4 + 4 bytes 512 x 15 1075, 256 x 23 979, 256 x 21 1013, 256 x 31 1127, 128 x 23 1033; of
// 8 + 4 bytes 512 x 9 1516, 256 x 15 1475. More items share a search; more than 23 leave too few threads.
#if KEY_BITS == 32
constexpr uint32_t THREADS = 256, ITEMS = 23;
#else
constexpr uint32_t THREADS = 256, ITEMS = 15;
#endif
constexpr uint32_t BLOCKS = 3;  // on a multiprocessor: 80 registers a thread
constexpr uint32_t TILE = THREADS * ITEMS, RANK_THREADS = 256;
static_assert(TILE % SAMPLE == 0 && THREADS % SAMPLE == 0, "runs are whole numbers of samples");

struct Lone {
    Key key;
};
struct alignas(8) Tagged {
    Key key;
    uint32_t tag;  // a value, or a place in the tile or piece
};
template <bool TAGGED>
struct ItemOf {
    using Type = Tagged;
};
template <>
struct ItemOf<false> {
    using Type = Lone;
};

__device__ __forceinline__ Lone choose(bool first, Lone a, Lone b) { return {first ? a.key : b.key}; }
__device__ __forceinline__ Tagged choose(bool first, Tagged a, Tagged b) { return {first ? a.key : b.key, first ? a.tag : b.tag}; }
__device__ __forceinline__ uint32_t tag_of(Lone) { return 0; }
__device__ __forceinline__ uint32_t tag_of(Tagged item) { return item.tag; }
__device__ __forceinline__ void make(Lone& item, Key key, uint32_t) { item = {key}; }
__device__ __forceinline__ void make(Tagged& item, Key key, uint32_t tag) { item = {key, tag}; }
__device__ __forceinline__ bool before(Lone a, Lone b) { return a.key < b.key; }
__device__ __forceinline__ bool before(Tagged a, Tagged b) {
#if KEY_BITS == 32
    return (uint64_t(a.key) << 32 | a.tag) < (uint64_t(b.key) << 32 | b.tag);
#else
    return a.key < b.key || (a.key == b.key && a.tag < b.tag);
#endif
}

// TILE items and one more, which is read and never used.
template <class Item>
struct Store {
    Item* const items;

    __device__ __forceinline__ explicit Store(void* memory) : items(static_cast<Item*>(memory)) {}
    __device__ __forceinline__ Item get(uint32_t place) const { return items[place]; }
    __device__ __forceinline__ Key key(uint32_t place) const { return items[place].key; }
    __device__ __forceinline__ uint32_t tag(uint32_t place) const { return tag_of(items[place]); }
    __device__ __forceinline__ void put(uint32_t place, Item item) const { items[place] = item; }
};
#if KEY_BITS == 64
template <>
struct Store<Tagged> {  // apart, 12 bytes for 16
    uint64_t* const keys;
    uint32_t* const tags;

    __device__ __forceinline__ explicit Store(void* memory)
        : keys(static_cast<uint64_t*>(memory)), tags(reinterpret_cast<uint32_t*>(keys + TILE + 1)) {}
    __device__ __forceinline__ Tagged get(uint32_t place) const { return {keys[place], tags[place]}; }
    __device__ __forceinline__ Key key(uint32_t place) const { return keys[place]; }
    __device__ __forceinline__ uint32_t tag(uint32_t place) const { return tags[place]; }
    __device__ __forceinline__ void put(uint32_t place, Tagged item) const {
        keys[place] = item.key;
        tags[place] = item.tag;
    }
};
#endif

}  // namespace satish_merge
}  // namespace radsweep
