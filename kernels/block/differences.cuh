// The differences of two sorted lists: the elements of each that the other does not have, in order.
//
// Both lists are merged in thought: a block takes 1,792 elements of the merge, wherever they come
// from (merge_path.cuh), and a thread 7 of them, one after the other. Of equal elements that of the
// first list is first, so one of the first list is missing from the second unless the next of the
// second list equals it, and one of the second unless the last of the first list does. A block
// learns by look-back (look_back.cuh) how many elements the blocks before it found, so its own are
// written at once: there is no list of marks, and no second pass.
//
// The host need not know the lengths of the lists: it launches for their capacity, and blocks
// beyond the end do nothing. Nothing is written beyond the capacity for differences, but all are
// counted.
//
// 256 threads. Bytes an element: its size read, and written where the other list lacks it. About 40
// instructions an element, of which the search of a thread's first element is a third.
#pragma once
#include "common/layout.cuh"
#include "look_back.cuh"
#include "merge_path.cuh"
#include "merge_split.cuh"
#include "scan.cuh"

namespace radsweep {

constexpr u32 DIFFERENCE_THREADS = 256;
constexpr u32 DIFFERENCE_ROUNDS = 7;  // odd, so that threads read other banks than their neighbours
constexpr u32 DIFFERENCE_ITEMS = DIFFERENCE_THREADS * DIFFERENCE_ROUNDS;

// A sorted list: as many elements as `count` says, or `n` where that is null; `n` at most.
template <class Item>
struct SortedList {
    const Item* items;
    u64 n;
    const u64* count;
    DEVICE u64 len() const { return count ? min(n, *count) : n; }
};

// Two lists, each to be compared with the other.
template <class Item>
struct Differences {
    SortedList<Item> lists[2];
    u64* words[2];  // a word for each block, zero; the first list has one more, which numbers them
    Item* out[2];
    u64 capacity[2];
    u64* totals[2];
};

// What a block compares: elements of the merge of both lists. Those of the first list, with the one
// before, are in shared memory in front of those of the second, with the next.
template <class Code>
struct DifferenceTile {
    const Code *a, *b;
    u32 a_count, b_count;
    DEVICE u32 length() const { return a_count + b_count; }
};

// Loads the tile of the merged elements from `first` on.
template <class Form, class Code = typename Form::Code>
DEVICE DifferenceTile<Code> load_difference_tile(
    const Differences<typename Form::Item>& d, u64 a_length, u64 b_length, u64 first, Code* codes) {
    using Item = typename Form::Item;
    constexpr u32 ROUNDS = DIFFERENCE_ROUNDS;
    constexpr u64 NEAR = 64;  // elements from one look to the next
    const Item *const a = d.lists[0].items, *const b = d.lists[1].items;
    const u64 end = min(first + DIFFERENCE_ITEMS, a_length + b_length);
    const MergeTile of_a = block_merge_split<NEAR>(
        a_length, b_length, first, end,
        [&](u64 i, u64 k) { return Form::code(a[i]) <= Form::code(b[k]); });
    const u64 a_first = of_a.begin, b_first = first - a_first;
    const u32 length = u32(end - first);
    // Lists of a search that is done again may be in no order: then the result is of no use, but
    // all accesses stay in bounds.
    const u32 a_count = u32(min(max(of_a.end, a_first) - a_first, u64(length)));
    // All loads are on their way before the first is stored.
    Code loaded[ROUNDS + 1];
#pragma unroll
    for (u32 round = 0; round <= ROUNDS; round++) {
        const u32 k = round * DIFFERENCE_THREADS + threadIdx.x;
        const u64 in_a = a_first + k - 1, in_b = b_first + (k - a_count - 1);
        loaded[round] = ~Code(0);
        if (k > a_count) {
            if (k < length + 2 && in_b < b_length) loaded[round] = Form::code(b[in_b]);
        } else if (k > 0 || a_first > 0) {
            loaded[round] = Form::code(a[in_a]);
        }
    }
#pragma unroll
    for (u32 round = 0; round <= ROUNDS; round++) {
        const u32 k = round * DIFFERENCE_THREADS + threadIdx.x;
        if (k < length + 2) codes[k] = loaded[round];
    }
    __syncthreads();
    return {codes + 1, codes + 1 + a_count, a_count, length - a_count};
}

// What a thread found among its elements of a tile, a bit each: whether they are of the second
// list, and whether the other list lacks them.
struct OwnDifferences {
    u32 sides, marks;
    u32 counts;  // those of the first list in the low half
};

// Compares a thread's `count` elements, of which the first are elements `i` and `k` of the lists.
template <class Code>
DEVICE OwnDifferences compare_elements(const DifferenceTile<Code>& tile, u32 i, u32 k, u32 count) {
    // Read here: in the condition of the loop they would make it a branch.
    const u32 a_count = tile.a_count, b_count = tile.b_count;
    OwnDifferences own = {};
    Code last = tile.a[i32(i) - 1], of_first = tile.a[i], of_second = tile.b[k];
#pragma unroll
    for (u32 round = 0; round < DIFFERENCE_ROUNDS; round++) {
        if (round >= count) break;
        const bool takes_b = i == a_count || (k < b_count && of_second < of_first);
        const bool lacks = of_second != (takes_b ? last : of_first);
        if (takes_b) {
            of_second = tile.b[++k];
        } else {
            last = of_first;
            of_first = tile.a[++i];
        }
        own.sides |= u32(takes_b) << round;
        own.marks |= u32(lacks) << round;
        own.counts += lacks ? takes_b ? 0x10000u : 1u : 0u;
    }
    return own;
}

// Compares two lists of `Form::Item`, whose order is that of the integers that `Form::code` makes
// of them. `Form::item` is its inverse, and no element has the greatest `Form::Code`.
template <class Form>
DEVICE void find_differences(const Differences<typename Form::Item>& d) {
    using Code = typename Form::Code;
    __shared__ Code codes[DIFFERENCE_ITEMS + 2];
    __shared__ u64 before[2];
    __shared__ u32 sums[DIFFERENCE_THREADS / WARP], number;
    const u64 a_length = d.lists[0].len(), b_length = d.lists[1].len(), n = a_length + b_length;
    const u64 tiles = (n + DIFFERENCE_ITEMS - 1) / DIFFERENCE_ITEMS;
    if (blockIdx.x >= tiles) {
        if (n == 0 && blockIdx.x == 0 && threadIdx.x < 2) *d.totals[threadIdx.x] = 0;
        return;
    }
    // As many blocks as there are tiles come here.
    if (threadIdx.x == 0) number = u32(atomicAdd(d.words[0], 1ull));
    __syncthreads();
    const DifferenceTile<Code> tile =
        load_difference_tile<Form>(d, a_length, b_length, u64(number) * DIFFERENCE_ITEMS, codes);
    const u32 start = min(threadIdx.x * DIFFERENCE_ROUNDS, tile.length()),
              count = min(DIFFERENCE_ROUNDS, tile.length() - start);
    u32 i = merge_path(tile.a_count, tile.b_count, start, [&](u32 in_b, u32 in_a) {
        return tile.b[in_b] < tile.a[in_a];
    });
    u32 k = start - i;
    auto [sides, marks, counts] = compare_elements(tile, i, k, count);
    u32 all;
    const u32 below = block_exclusive_sum<DIFFERENCE_THREADS / WARP>(counts, sums, all);
    const u32 warp = threadIdx.x / WARP;
    if (warp < 2) {
        const u32 own = warp == 0 ? all & 0xffff : all >> 16;
        const u64 sum = LookBack<u64>::exchange(d.words[warp] + (warp == 0), number, own);
        if (lane_index() == 0) {
            before[warp] = sum;
            if (number == tiles - 1) *d.totals[warp] = sum + own;
        }
    }
    __syncthreads();
    u64 at[2] = {before[0] + (below & 0xffff), before[1] + (below >> 16)};
    // Read again, since few are missing: in registers, all that a thread has would be too many.
    for (; marks != 0; marks >>= 1, sides >>= 1) {
        const bool side = sides & 1;
        const Code code = side ? tile.b[k++] : tile.a[i++];
        if ((marks & 1) == 0) continue;
        const u64 slot = side ? at[1]++ : at[0]++;
        if (slot < d.capacity[side]) d.out[side][slot] = Form::item(code);
    }
}

}  // namespace radsweep
