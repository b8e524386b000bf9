// A sequence short enough for one block's registers and shared memory: sorted there and written to the output.
//
// Each thread sorts a run of LEAF_ITEMS neighbouring keys in registers by Batcher's odd-even merge network; then runs are merged,
// two and two, each thread finding by binary search which keys are its own LEAF_ITEMS of the merged run. Equal keys keep their
// order: the network compares places too, and a merge takes from the left run first. Where keys compared equal are equal to the
// bit and no values go with them, no places are kept, and a thread merges its keys by a bitonic network (2^26 keys: 0.93 to 0.91 ms).
#pragma once

#include "quicksort_types.cuh"

namespace radsweep {

struct LeafShared {
    Key keys[LEAF];                      // as compared
    uint16_t places[LEAF];
};

template <bool FLOAT, uint32_t VALUE_BYTES>
struct Leaf {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    static constexpr bool VALUES = VALUE_BYTES != 0;

    static_assert(LEAF_ITEMS > 8 && LEAF_ITEMS <= 16, "merge_by_network");

    const Args& args;
    LeafShared& shared;
    const Compared<FLOAT> compared;
    const uint32_t begin, size, source;

    __device__ __forceinline__ Leaf(const Args& args, LeafShared& shared, const Work& work)
        : args(args), shared(shared), compared(args.order), begin(work.begin), size(work.size), source(work.source) {}

    __device__ __forceinline__ bool keys_can_be_remade() const { return !FLOAT && compared.window == Key(~Key(0)); }

    __device__ __forceinline__ void sort() const {
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

    template <bool PLACES>
    __device__ __forceinline__ void sort_keys() const {
        const uint32_t runs = (size + LEAF_ITEMS - 1) / LEAF_ITEMS, padded = runs * LEAF_ITEMS;
        const Key* const from = args.keys[source] + begin;
#pragma unroll
        for (uint32_t i = 0; i < LEAF_ITEMS; i++) {
            const uint32_t place = threadIdx.x + i * THREADS;
            if (place < padded) shared.keys[place] = place < size ? compared(from[place]) : Key(~Key(0));
        }
        __syncthreads();

        const uint32_t first = threadIdx.x * LEAF_ITEMS;
        const bool active = threadIdx.x < runs;
        Key key[LEAF_ITEMS];
        uint32_t place[LEAF_ITEMS];
        if (active) {
#pragma unroll
            for (uint32_t i = 0; i < LEAF_ITEMS; i++) {
                key[i] = shared.keys[first + i];
                place[i] = first + i;
            }
            network<PLACES>(key, place);
        }
        for (uint32_t width = 1;; width *= 2) {  // runs of `width` threads are sorted
            if (active) {
#pragma unroll
                for (uint32_t i = 0; i < LEAF_ITEMS; i++) {
                    shared.keys[first + i] = key[i];
                    if (PLACES) shared.places[first + i] = uint16_t(place[i]);
                }
            }
            // Runs of up to a warp's threads are merged by that warp alone.
            if (width < WARP && width < runs) __syncwarp();
            else __syncthreads();
            if (width >= runs) return;
            if (PLACES) {
                if (active) merge_in_turn(split_for(width, padded), key, place);
            } else {
                merge_by_network(width, padded, active, key);
            }
            if (width < WARP) __syncwarp();
            else __syncthreads();
        }
    }

    template <bool PLACES>
    static __device__ __forceinline__ void network(Key (&key)[LEAF_ITEMS], uint32_t (&place)[LEAF_ITEMS]) {
#pragma unroll
        for (uint32_t p = 1; p < LEAF_ITEMS; p *= 2) {
#pragma unroll
            for (uint32_t k = p; k >= 1; k /= 2) {
#pragma unroll
                for (uint32_t a = k % p; a + k < LEAF_ITEMS; a++) {
                    if ((a - k % p) / k % 2 == 0 && a / (2 * p) == (a + k) / (2 * p)) {
                        exchange<PLACES>(key[a], key[a + k], place[a], place[a + k]);
                    }
                }
            }
        }
    }

    template <bool PLACES>
    static __device__ __forceinline__ void exchange(Key& a, Key& b, uint32_t& a_place, uint32_t& b_place) {
        if (!PLACES) {
            const Key x = a, y = b;
            a = x < y ? x : y;
            b = x < y ? y : x;
        } else if (b < a || (b == a && b_place < a_place)) {
            const Key x = a;
            const uint32_t at = a_place;
            a = b;
            a_place = b_place;
            b = x;
            b_place = at;
        }
    }

    // Of two neighbouring sorted runs: this thread's part of the run that they merge to begins with keys[a] and keys[b].
    struct Split {
        uint32_t start, middle, end;     // of the runs
        uint32_t a, b;
    };

    __device__ __forceinline__ Split split_for(uint32_t width, uint32_t padded) const {
        const Key* const keys = shared.keys;
        const uint32_t start = (threadIdx.x & ~(2 * width - 1)) * LEAF_ITEMS, length = width * LEAF_ITEMS;
        const uint32_t middle = min(start + length, padded), end = min(middle + length, padded);
        const uint32_t diagonal = threadIdx.x * LEAF_ITEMS - start;
        uint32_t low = diagonal > end - middle ? diagonal - (end - middle) : 0, high = min(diagonal, middle - start);
        while (low < high) {
            const uint32_t half = (low + high) / 2;
            if (keys[middle + diagonal - 1 - half] < keys[start + half]) high = half;
            else low = half + 1;
        }
        return {start, middle, end, start + low, middle + diagonal - low};
    }

    // Key after key, from the left run where both are equal.
    __device__ __forceinline__ void merge_in_turn(Split split, Key (&key)[LEAF_ITEMS], uint32_t (&place)[LEAF_ITEMS]) const {
        // Keys behind the runs may be another warp's, which writes them meanwhile.
        const uint32_t last = split.end - 1;
        Key at_a = shared.keys[split.a], at_b = shared.keys[min(split.b, last)];
#pragma unroll
        for (uint32_t i = 0; i < LEAF_ITEMS; i++) {
            const bool take_b = split.b < split.end && (split.a >= split.middle || at_b < at_a);
            const uint32_t at = take_b ? split.b : split.a;
            key[i] = take_b ? at_b : at_a;
            place[i] = shared.places[at];
            split.a += !take_b;
            split.b += take_b;
            const Key next = shared.keys[min(at + 1, last)];
            at_a = take_b ? at_a : next;
            at_b = take_b ? next : at_b;
        }
    }

    // For keys alone: the thread's keys of the right run backwards, then those of the left run, are a bitonic sequence; as many slots
    // as are missing to a power of two would hold the greatest key and never move.
    __device__ __forceinline__ void merge_by_network(uint32_t width, uint32_t padded, bool active, Key (&key)[LEAF_ITEMS]) const {
        const Split split = split_for(width, padded);
        uint16_t* const splits = shared.places;
        if (active) splits[threadIdx.x] = uint16_t(split.a);
        if (width < WARP) __syncwarp();
        else __syncthreads();
        if (!active) return;
        const uint32_t next = threadIdx.x + 1;
        const bool last = next % (2 * width) == 0 || next * LEAF_ITEMS == padded;
        const uint32_t of_b = LEAF_ITEMS - ((last ? split.middle : splits[next]) - split.a);
        const Key* const b_top = shared.keys + split.b + of_b - 1;
        const Key* const a_bottom = shared.keys + split.a - of_b;
#pragma unroll
        for (uint32_t i = 0; i < LEAF_ITEMS; i++) key[i] = i < of_b ? *(b_top - i) : a_bottom[i];
#pragma unroll
        for (uint32_t step = 8; step >= 1; step /= 2) {
#pragma unroll
            for (uint32_t i = 0; i + step < LEAF_ITEMS; i++) {
                uint32_t unused;
                if ((i & step) == 0) exchange<false>(key[i], key[i + step], unused, unused);
            }
        }
    }

    __device__ __forceinline__ void write_keys() const {
        Key* const to = args.keys[OUTPUT] + begin;
#pragma unroll
        for (uint32_t i = 0; i < LEAF_ITEMS; i++) {
            const uint32_t place = threadIdx.x + i * THREADS;
            if (place < size) to[place] = shared.keys[place] ^ compared.ordering.flip;
        }
    }

    // Keys or values in the order of the places. All are read before any is written: source and output may be one buffer. What fits
    // goes through the keys' shared memory, so that only whole sectors are read.
    template <class T>
    __device__ __forceinline__ void gather(void* const* buffers) const {
        const T* const from = static_cast<const T*>(buffers[source]);
        T* const to = static_cast<T*>(buffers[OUTPUT]) + begin;
        T* const staged = reinterpret_cast<T*>(shared.keys);
        constexpr bool STAGED = sizeof(T) <= sizeof(Key);
        if (STAGED) {
            __syncthreads();
#pragma unroll
            for (uint32_t i = 0; i < LEAF_ITEMS; i++) {
                const uint32_t place = threadIdx.x + i * THREADS;
                if (place < size) staged[place] = from == nullptr ? T(begin + place) : from[begin + place];
            }
            __syncthreads();
        }
        T some[LEAF_ITEMS];
#pragma unroll
        for (uint32_t i = 0; i < LEAF_ITEMS; i++) {
            const uint32_t place = threadIdx.x + i * THREADS;
            if (place >= size) continue;
            const uint32_t at = shared.places[place];
            some[i] = STAGED ? staged[at] : from == nullptr ? T(begin + at) : from[begin + at];
        }
        if (!STAGED) __syncthreads();
#pragma unroll
        for (uint32_t i = 0; i < LEAF_ITEMS; i++) {
            const uint32_t place = threadIdx.x + i * THREADS;
            if (place < size) to[place] = some[i];
        }
    }
};

}  // namespace radsweep
