// A thread's items of a tile: DISTANCE apart in memory, so that a warp reads consecutive addresses.
// With a distance of a warp its rows are in the order of the items; a block-wide one needs no more
// than the thread's index.
#pragma once

#include "common/warp.cuh"

namespace radsweep {

// Loads item i from `from[i * DISTANCE]`; `first` is the index in the tile of the first one. Those
// from `count` on get `padding`. FULL: there are none.
template <bool FULL, u32 DISTANCE, class T, u32 ITEMS>
DEVICE void load_items(T (&items)[ITEMS], const T* from, u32 first, u32 count, T padding) {
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        if (FULL) {
            items[i] = from[i * DISTANCE];
        } else {
            items[i] = padding;
            if (first + i * DISTANCE < count) items[i] = from[i * DISTANCE];
        }
    }
}

// Calls `visit(i, at)` for each item i whose index in the tile, `at`, is below `count`. The items
// are independent, so that their loads from memory are on their way at once.
template <u32 ITEMS, u32 DISTANCE, class Visit>
DEVICE void for_items(u32 first, u32 count, Visit visit) {
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        if (first + i * DISTANCE < count) visit(i, first + i * DISTANCE);
    }
}

// Calls `visit` alike, with one branch behind the last item, where no item waits for memory.
template <u32 ITEMS, u32 DISTANCE, class Visit>
DEVICE void for_items_in_turn(u32 first, u32 count, Visit visit) {
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        const u32 at = first + i * DISTANCE;
        if (at >= count) break;
        visit(i, at);
    }
}

}  // namespace radsweep
