// A sequence short enough for one block's registers and shared memory: sorted there and written to
// the output.
//
// Each thread sorts a run of LEAF_ITEMS neighbouring keys in registers by Batcher's odd-even merge
// network; then runs are merged, two and two, each thread finding by binary search which keys are
// its own LEAF_ITEMS of the merged run. Equal keys keep their order: the network compares offsets
// too, and a merge takes from the left run first. Where keys that compare equal have equal bits and
// no values, no offsets are kept, and a thread merges its keys by a bitonic network (2^26 keys:
// 0.93 to 0.91 ms).
#pragma once

#include "block/bitonic.cuh"
#include "block/load.cuh"
#include "block/merge_path.cuh"
#include "block/odd_even.cuh"
#include "quicksort_types.cuh"

namespace radsweep::quicksort {

struct LeafShared {
    Key keys[LEAF];  // as compared
    u16 indices[LEAF];
};

template <bool FLOAT, u32 VALUE_BYTES>
struct Leaf {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    static constexpr bool VALUES = VALUE_BYTES != 0;

    const Args& args;
    LeafShared& shared;
    const Compared<FLOAT> compared;
    const u32 begin, size, source;

    DEVICE Leaf(const Args& args, LeafShared& shared, const Work& work)
        : args(args), shared(shared), compared(args.order), begin(work.begin), size(work.size),
          source(work.source) {}

    // Calls `visit(i, index)` for the sequence's elements, LEAF_ITEMS a thread.
    template <class Visit>
    DEVICE void for_elements(Visit visit) const {
        for_items<LEAF_ITEMS, THREADS>(threadIdx.x, size, visit);
    }

    DEVICE bool keys_can_be_remade() const { return !FLOAT && compared.window == Key(~Key(0)); }

    DEVICE void sort() const {
        if (!VALUES && keys_can_be_remade()) {
            sort_keys<false>();
            write_keys();
        } else {
            sort_keys<true>();
            if (!(args.flags & DROP_KEYS)) {
                if (keys_can_be_remade()) write_keys();
                else gather<Key>(reinterpret_cast<void* const*>(args.keys));
            }
            if (VALUES) gather<Value>(args.values);
        }
    }

    template <bool INDICES>
    DEVICE void sort_keys() const {
        const u32 runs = (size + LEAF_ITEMS - 1) / LEAF_ITEMS, padded = runs * LEAF_ITEMS;
        const Key* const from = args.keys[source] + begin;
        for_items<LEAF_ITEMS, THREADS>(threadIdx.x, padded, [&](u32, u32 index) {
            shared.keys[index] = index < size ? compared(from[index]) : Key(~Key(0));
        });
        __syncthreads();

        const u32 first = threadIdx.x * LEAF_ITEMS;
        const bool active = threadIdx.x < runs;
        Key key[LEAF_ITEMS];
        u32 index[LEAF_ITEMS];
        if (active) {
#pragma unroll
            for (u32 i = 0; i < LEAF_ITEMS; i++) {
                key[i] = shared.keys[first + i];
                index[i] = first + i;
            }
            network<INDICES>(key, index);
        }
        for (u32 width = 1;; width *= 2) {  // runs of `width` threads are sorted
            if (active) {
#pragma unroll
                for (u32 i = 0; i < LEAF_ITEMS; i++) {
                    shared.keys[first + i] = key[i];
                    if (INDICES) shared.indices[first + i] = u16(index[i]);
                }
            }
            // Runs of up to a warp's threads are merged by that warp alone.
            if (width < WARP && width < runs) __syncwarp();
            else __syncthreads();
            if (width >= runs) return;
            if (INDICES) {
                if (active) merge_in_turn(split_for(width, padded), key, index);
            } else {
                merge_by_network(width, padded, active, key);
            }
            if (width < WARP) __syncwarp();
            else __syncthreads();
        }
    }

    template <bool INDICES>
    static DEVICE void network(Key (&key)[LEAF_ITEMS], u32 (&index)[LEAF_ITEMS]) {
        odd_even_merge_sort<LEAF_ITEMS>(
            [&](u32 i, u32 j) { exchange<INDICES>(key[i], key[j], index[i], index[j]); });
    }

    template <bool INDICES>
    static DEVICE void exchange(Key& a, Key& b, u32& a_index, u32& b_index) {
        if (!INDICES) {
            const Key x = a, y = b;
            a = x < y ? x : y;
            b = x < y ? y : x;
        } else if (b < a || (b == a && b_index < a_index)) {
            const Key x = a;
            const u32 at = a_index;
            a = b;
            a_index = b_index;
            b = x;
            b_index = at;
        }
    }

    // This thread's part of the merge of two neighbouring sorted runs begins with keys[a] and
    // keys[b].
    struct Split {
        u32 start, middle, end;  // of the runs
        u32 a, b;
    };

    DEVICE Split split_for(u32 width, u32 padded) const {
        const Key* const keys = shared.keys;
        const u32 start = (threadIdx.x & ~(2 * width - 1)) * LEAF_ITEMS,
                  length = width * LEAF_ITEMS;
        const u32 middle = min(start + length, padded), end = min(middle + length, padded);
        const u32 diagonal = threadIdx.x * LEAF_ITEMS - start;
        const u32 low = merge_path(middle - start, end - middle, diagonal, [&](u32 b, u32 a) {
            return keys[middle + b] < keys[start + a];
        });
        return {start, middle, end, start + low, middle + diagonal - low};
    }

    // Merges key after key, from the left run if both are equal.
    DEVICE void merge_in_turn(Split split, Key (&key)[LEAF_ITEMS], u32 (&index)[LEAF_ITEMS]) const {
        // Keys behind the runs may belong to another warp, which writes them meanwhile.
        const u32 last = split.end - 1;
        Key at_a = shared.keys[split.a], at_b = shared.keys[min(split.b, last)];
#pragma unroll
        for (u32 i = 0; i < LEAF_ITEMS; i++) {
            const bool take_b = split.b < split.end && (split.a >= split.middle || at_b < at_a);
            const u32 at = take_b ? split.b : split.a;
            key[i] = take_b ? at_b : at_a;
            index[i] = shared.indices[at];
            split.a += !take_b;
            split.b += take_b;
            const Key next = shared.keys[min(at + 1, last)];
            at_a = take_b ? at_a : next;
            at_b = take_b ? next : at_b;
        }
    }

    // For keys alone: the thread's keys of the right run backwards, then those of the left run, are
    // a bitonic sequence; the slots missing to a power of two would hold the greatest key and never
    // move.
    DEVICE void merge_by_network(u32 width, u32 padded, bool active, Key (&key)[LEAF_ITEMS]) const {
        const Split split = split_for(width, padded);
        u16* const splits = shared.indices;
        if (active) splits[threadIdx.x] = u16(split.a);
        if (width < WARP) __syncwarp();
        else __syncthreads();
        if (!active) return;
        const u32 next = threadIdx.x + 1;
        const bool last = next % (2 * width) == 0 || next * LEAF_ITEMS == padded;
        const u32 of_b = LEAF_ITEMS - ((last ? split.middle : splits[next]) - split.a);
        const Key* const b_top = shared.keys + split.b + of_b - 1;
        const Key* const a_bottom = shared.keys + split.a - of_b;
#pragma unroll
        for (u32 i = 0; i < LEAF_ITEMS; i++) key[i] = i < of_b ? *(b_top - i) : a_bottom[i];
        bitonic_merge<LEAF_ITEMS>([&](u32 i, u32 j) {
            u32 unused;
            exchange<false>(key[i], key[j], unused, unused);
        });
    }

    DEVICE void write_keys() const {
        Key* const to = args.keys[OUTPUT] + begin;
        for_elements(
            [&](u32, u32 index) { to[index] = shared.keys[index] ^ compared.ordering.flip; });
    }

    // Writes keys or values in the order of the offsets. All are read before any is written: source
    // and output may be one buffer. What fits goes through the keys' shared memory, so that only
    // whole sectors are read.
    template <class T>
    DEVICE void gather(void* const* buffers) const {
        const T* const from = static_cast<const T*>(buffers[source]);
        T* const to = static_cast<T*>(buffers[OUTPUT]) + begin;
        T* const staged = reinterpret_cast<T*>(shared.keys);
        constexpr bool STAGED = sizeof(T) <= sizeof(Key);
        if (STAGED) {
            __syncthreads();
            for_elements([&](u32, u32 index) {
                staged[index] = from == nullptr ? T(begin + index) : from[begin + index];
            });
            __syncthreads();
        }
        T some[LEAF_ITEMS];
        for_elements([&](u32 i, u32 index) {
            const u32 at = shared.indices[index];
            some[i] = STAGED ? staged[at] : from == nullptr ? T(begin + at) : from[begin + at];
        });
        if (!STAGED) __syncthreads();
        for_elements([&](u32 i, u32 index) { to[index] = some[i]; });
    }
};

}  // namespace radsweep::quicksort
