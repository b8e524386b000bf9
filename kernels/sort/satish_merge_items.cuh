// The items that the merge sort moves on chip: keys, with a tag or without. Included with KEY_BITS
// defined as 32 or 64.
#pragma once

#include "common/radix_key.cuh"
#include "satish_merge.cuh"

namespace radsweep::satish_merge {

// The shape of a block; the host's copy: crates/gpusort/src/cuda/satish_merge/mod.rs. Tiles and
// pieces of 2^24 pairs on the H200, before merge_from had one read an item, in us: of 4 + 4 bytes
// 512 x 15 1075, 256 x 23 979, 256 x 21 1013, 256 x 31 1127, 128 x 23 1033; of 8 + 4 bytes 512 x 9
// 1516, 256 x 15 1475. More items share a search; more than 23 leave too few threads.
#if KEY_BITS == 32
constexpr u32 THREADS = 256, ITEMS = 23;
#else
constexpr u32 THREADS = 256, ITEMS = 15;
#endif
constexpr u32 BLOCKS = 3;  // on a multiprocessor: 80 registers a thread
constexpr u32 TILE = THREADS * ITEMS, RANK_THREADS = 256;
static_assert(TILE % SAMPLE == 0 && THREADS % SAMPLE == 0, "runs are whole numbers of samples");

struct Lone {
    Key key;
};
struct alignas(8) Tagged {
    Key key;
    u32 tag;  // a value, or an offset in the tile or piece
};
template <bool TAGGED>
struct ItemOf {
    using Type = Tagged;
};
template <>
struct ItemOf<false> {
    using Type = Lone;
};

DEVICE Lone choose(bool first, Lone a, Lone b) { return {first ? a.key : b.key}; }
DEVICE Tagged choose(bool first, Tagged a, Tagged b) {
    return {first ? a.key : b.key, first ? a.tag : b.tag};
}
DEVICE u32 tag_of(Lone) { return 0; }
DEVICE u32 tag_of(Tagged item) { return item.tag; }
DEVICE void make(Lone& item, Key key, u32) { item = {key}; }
DEVICE void make(Tagged& item, Key key, u32 tag) { item = {key, tag}; }
DEVICE bool before(Lone a, Lone b) { return a.key < b.key; }
DEVICE bool before(Tagged a, Tagged b) {
#if KEY_BITS == 32
    return (u64(a.key) << 32 | a.tag) < (u64(b.key) << 32 | b.tag);
#else
    return a.key < b.key || (a.key == b.key && a.tag < b.tag);
#endif
}

// A store of TILE items and one more, which is read and never used.
template <class Item>
struct Store {
    Item* const items;

    DEVICE explicit Store(void* memory) : items(static_cast<Item*>(memory)) {}
    DEVICE Item get(u32 index) const { return items[index]; }
    DEVICE Key key(u32 index) const { return items[index].key; }
    DEVICE u32 tag(u32 index) const { return tag_of(items[index]); }
    DEVICE void put(u32 index, Item item) const { items[index] = item; }
};
#if KEY_BITS == 64
template <>
struct Store<Tagged> {  // in two arrays: 12 bytes instead of 16
    u64* const keys;
    u32* const tags;

    DEVICE explicit Store(void* memory)
        : keys(static_cast<u64*>(memory)), tags(reinterpret_cast<u32*>(keys + TILE + 1)) {}
    DEVICE Tagged get(u32 index) const { return {keys[index], tags[index]}; }
    DEVICE Key key(u32 index) const { return keys[index]; }
    DEVICE u32 tag(u32 index) const { return tags[index]; }
    DEVICE void put(u32 index, Tagged item) const {
        keys[index] = item.key;
        tags[index] = item.tag;
    }
};
#endif

}  // namespace radsweep::satish_merge
