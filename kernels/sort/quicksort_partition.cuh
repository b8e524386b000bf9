// One partition of a sequence by up to 31 pivots: pivots, the counting pass, the moving pass, and the sequences that result.
// Phase one (many blocks a sequence) and phase two (one block a sequence) put these pieces together.
#pragma once

#include "quicksort_types.cuh"

namespace radsweep {

__device__ __forceinline__ uint32_t hash(uint32_t x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

// ---- Pivots ----
//
// bounds[0..30] are in order; a key's class is the number of bounds at or below it. Keys are integers once ordered, so the keys
// equal to a pivot p are those between the bounds p and p + 1: the paper's three parts are the bounds p, p + 1, p + 1, ... .

// Sorts SAMPLE keys in shared memory, bitonic, as the paper sorts short sequences. Steps within 64 keys stay within a warp.
__device__ __forceinline__ void sort_sample(Key* sample) {
    for (uint32_t k = 2; k <= SAMPLE; k *= 2) {
        for (uint32_t j = k / 2; j > 0; j /= 2) {
            if (threadIdx.x < SAMPLE / 2) {
                const uint32_t a = 2 * threadIdx.x - (threadIdx.x & (j - 1)), b = a + j;
                const Key x = sample[a], y = sample[b];
                if ((y < x) == ((a & k) == 0) && x != y) {
                    sample[a] = y;
                    sample[b] = x;
                }
            }
            if (2 * j > 2 * WARP || j == 1) __syncthreads();
            else __syncwarp();
        }
    }
}

// A stratified sample of the sequence, sorted; the bounds at equal distances in it. A pivot that is there twice is split off from
// the keys above it.
template <bool FLOAT>
__device__ __forceinline__ void sample_bounds(const Compared<FLOAT>& compared, const Key* keys, uint32_t begin, uint32_t size,
                                              Key* sample, Key* bounds) {
    for (uint32_t i = threadIdx.x; i < SAMPLE; i += blockDim.x) {
        const uint32_t jitter = hash(i + SAMPLE * hash(begin + size));
        const uint64_t place = (uint64_t(i) * size + (uint64_t(jitter) * size >> 32)) / SAMPLE;
        sample[i] = compared(keys[begin + place]);
    }
    __syncthreads();
    sort_sample(sample);
    if (threadIdx.x < PIVOTS) {
        constexpr uint32_t STEP = SAMPLE / CLASSES;
        const uint32_t at = (threadIdx.x + 1) * STEP;
        Key bound = sample[at];
        if (threadIdx.x != 0 && bound == sample[at - STEP] && bound != compared.window) bound++;
        bounds[threadIdx.x] = bound;
    }
    __syncthreads();
}

// Whether all keys of a class are equal.
__device__ __forceinline__ bool one_value(const Key* bounds, uint32_t c, Key window) {
    const Key low = c == 0 ? 0 : bounds[c - 1];
    return c == PIVOTS ? low == window : Key(bounds[c] - low) == 1;
}

// ---- The passes ----

struct PartitionShared {
    Key bounds[CLASSES];
    uint32_t next[CLASSES];              // where the tile's first key of a class goes
    uint32_t first[CLASSES];             // the same, less that key's place in the tile
    uint32_t warps[WARPS][CLASSES];      // of each warp: keys of a class, then where its first goes in the tile
    uint32_t counts[CLASSES][WARP];      // keys of a class that a lane of any warp has seen
    uint8_t classes[TILE];
    uint64_t exchange[TILE];             // keys, then values; the host leaves out half where all have 4 bytes
};

// The bound at `offset` bytes. Searches count in bytes, so that a bound's address is one register and a constant.
__device__ __forceinline__ Key bound_at(const Key* bounds, uint32_t offset) {
    return *reinterpret_cast<const Key*>(reinterpret_cast<const char*>(bounds) + offset);
}

// A key's class by binary search.
__device__ __forceinline__ uint32_t class_of(const Key* bounds, Key key) {
    uint32_t offset = 0;
#pragma unroll
    for (uint32_t step = CLASSES / 2; step > 0; step /= 2) {
        if (key >= bound_at(bounds, offset + (step - 1) * sizeof(Key))) offset += step * sizeof(Key);
    }
    return offset / sizeof(Key);
}

struct LaneClass {
    uint32_t unlike[5];                  // all ones where this lane's number has a zero bit
    uint32_t below;                      // the lanes before this one

    __device__ __forceinline__ explicit LaneClass(uint32_t lane) : below(lane_mask_le() >> 1) {
#pragma unroll
        for (uint32_t bit = 0; bit < 5; bit++) unlike[bit] = (lane >> bit & 1) - 1;
    }

    // The same search, each comparison also a ballot: `mine` becomes the lanes whose key has the class of this lane's number.
    __device__ __forceinline__ uint32_t match(const Key* bounds, Key key, uint32_t valid, uint32_t& mine) const {
        uint32_t offset = 0;
        mine = valid;
#pragma unroll
        for (int bit = 4; bit >= 0; bit--) {
            const uint32_t step = 1u << bit;
            const bool right = key >= bound_at(bounds, offset + (step - 1) * uint32_t(sizeof(Key)));
            if (right) offset += step * sizeof(Key);
            mine &= __ballot_sync(ALL_LANES, right) ^ unlike[bit];
        }
        return offset / sizeof(Key);
    }
};

template <bool FLOAT, uint32_t VALUE_BYTES>
struct Partition {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    static constexpr bool VALUES = VALUE_BYTES != 0;
    static constexpr uint32_t ITEMS = TILE / THREADS;

    const Args& args;
    PartitionShared& shared;
    const Compared<FLOAT> compared;
    const uint32_t source, target;
    const uint32_t lane, warp;

    __device__ __forceinline__ Partition(const Args& args, PartitionShared& shared, uint32_t source)
        : args(args), shared(shared), compared(args.order), source(source), target(target_of(args, source)),
          lane(threadIdx.x % WARP), warp(threadIdx.x / WARP) {}

    __device__ __forceinline__ void clear_counts() const {
        for (uint32_t i = threadIdx.x; i < CLASSES * WARP; i += THREADS) shared.counts[i / WARP][i % WARP] = 0;
    }

    // First pass (Algorithm 2): counts keys by class. In order of addresses, each lane to its own bank.
    __device__ __forceinline__ void count(uint32_t begin, uint32_t size) const {
        for (; size >= TILE; begin += TILE, size -= TILE) count_tile<true>(begin, TILE);
        if (size != 0) count_tile<false>(begin, size);
    }

    template <bool FULL>
    __device__ __forceinline__ void count_tile(uint32_t begin, uint32_t size) const {
        const Key* const keys = args.keys[source] + begin + threadIdx.x;
        Key some[ITEMS];
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) some[i] = FULL || threadIdx.x + i * THREADS < size ? keys[i * THREADS] : 0;
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            const uint32_t c = class_of(shared.bounds, compared(some[i]));
            if (FULL || threadIdx.x + i * THREADS < size) atomicAdd(&shared.counts[c][lane], 1);
        }
    }

    // The sums over lanes; f(class, count) is called by one lane for each class.
    template <class F>
    __device__ __forceinline__ void sum_counts(F f) const {
        for (uint32_t c = warp; c < CLASSES; c += WARPS) {
            const uint32_t sum = warp_inclusive_sum(shared.counts[c][lane], lane);
            if (lane == WARP - 1) f(c, sum);
        }
    }

    // Second pass: moves the tile's keys, in order within each class, to shared.next[class] on, which moves on by their number.
    template <bool FULL>
    __device__ __forceinline__ void move(uint32_t begin, uint32_t size) const {
        const Key* const keys = args.keys[source] + begin;
        const LaneClass lane_class(lane);
        const uint32_t base = warp * WARP * ITEMS + lane;
        Key key[ITEMS];
        uint32_t rank[ITEMS];            // among the warp's keys of the class; the class above bit 16
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) key[i] = FULL || base + i * WARP < size ? keys[base + i * WARP] : 0;
        uint32_t count = 0;              // the warp's keys of the class of this lane's number
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            const uint32_t valid = FULL ? ALL_LANES : __ballot_sync(ALL_LANES, base + i * WARP < size);
            uint32_t mine;
            const uint32_t c = lane_class.match(shared.bounds, compared(key[i]), valid, mine);
            const uint32_t peers = __shfl_sync(ALL_LANES, mine, c), before = __shfl_sync(ALL_LANES, count, c);
            rank[i] = before + __popc(peers & lane_class.below) | c << 16;
            count += __popc(mine);
        }
        shared.warps[warp][lane] = count;
        __syncthreads();

        // The cumulative sums: over the warps in each class, over the classes.
        if (warp == 0) {
            uint32_t total = 0;
#pragma unroll
            for (uint32_t w = 0; w < WARPS; w++) total += shared.warps[w][lane];
            uint32_t start = warp_inclusive_sum(total, lane) - total;
            const uint32_t to = shared.next[lane];
            shared.first[lane] = to - start;
            shared.next[lane] = to + total;
#pragma unroll
            for (uint32_t w = 0; w < WARPS; w++) {
                const uint32_t its = shared.warps[w][lane];
                shared.warps[w][lane] = start;
                start += its;
            }
        }
        __syncthreads();

        Key* const exchange = reinterpret_cast<Key*>(shared.exchange);
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            if (!FULL && base + i * WARP >= size) continue;
            const uint32_t c = rank[i] >> 16;
            rank[i] = shared.warps[warp][c] + (rank[i] & 0xffff);
            exchange[rank[i]] = key[i];
            shared.classes[rank[i]] = uint8_t(c);
        }
        Value value[ITEMS];
        if (VALUES) load_values<FULL>(value, begin, base, size);
        __syncthreads();

        uint32_t to[ITEMS];
        Key* const keys_to = args.keys[target];
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            const uint32_t place = threadIdx.x + i * THREADS;
            if (!FULL && place >= size) continue;
            to[i] = shared.first[shared.classes[place]] + place;
            keys_to[to[i]] = exchange[place];
        }
        if (VALUES) {
            Value* const values = reinterpret_cast<Value*>(shared.exchange);
            Value* const values_to = static_cast<Value*>(args.values[target]);
            __syncthreads();
#pragma unroll
            for (uint32_t i = 0; i < ITEMS; i++) {
                if (FULL || base + i * WARP < size) values[rank[i]] = value[i];
            }
            __syncthreads();
#pragma unroll
            for (uint32_t i = 0; i < ITEMS; i++) {
                const uint32_t place = threadIdx.x + i * THREADS;
                if (FULL || place < size) values_to[to[i]] = values[place];
            }
        }
    }

    template <bool FULL>
    __device__ __forceinline__ void load_values(Value (&value)[ITEMS], uint32_t begin, uint32_t base, uint32_t size) const {
        const Value* const values = static_cast<const Value*>(args.values[source]);
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            const uint32_t place = base + i * WARP;
            if (values == nullptr) value[i] = Value(begin + place);
            else if (FULL || place < size) value[i] = values[begin + place];
        }
    }

    // Second pass, tile by tile.
    __device__ __forceinline__ void move_all(uint32_t begin, uint32_t size) const {
        for (; size >= TILE; begin += TILE, size -= TILE) {
            move<true>(begin, TILE);
            __syncthreads();
        }
        if (size != 0) move<false>(begin, size);
        __syncthreads();
    }
};

// ---- The sequences that result ----

enum Kind : uint32_t { NOTHING, SHORT, LONG, EQUAL };

// One class a lane: neighbouring classes that fit into a leaf together become one sequence, which its first class stands for.
// Sets `size` to the sequence's.
__device__ __forceinline__ Kind gather_classes(uint32_t lane, bool equal, uint32_t& size) {
    const uint32_t equals = __ballot_sync(ALL_LANES, equal), own = size;
    Kind kind = NOTHING;
    uint32_t head = WARP, sum = 0;       // the open sequence
    for (uint32_t c = 0; c < CLASSES; c++) {
        const uint32_t next = __shfl_sync(ALL_LANES, own, c);
        if (next == 0) continue;
        if (next > LEAF) {
            head = WARP;
            if (lane == c) kind = equals >> c & 1 ? EQUAL : LONG;
            continue;
        }
        if (head == WARP || sum + next > LEAF) {
            head = c;
            sum = 0;
        }
        sum += next;
        if (lane == head) {
            kind = SHORT;
            size = sum;
        }
    }
    return kind;
}

}  // namespace radsweep
