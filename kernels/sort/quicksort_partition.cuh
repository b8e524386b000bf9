// One partition of a sequence by up to 31 pivots: pivots, the counting pass, the moving pass, and
// the sequences that result. Phase one (many blocks a sequence) and phase two (one block a
// sequence) are made of these pieces.
#pragma once

#include "block/bitonic.cuh"
#include "block/load.cuh"
#include "common/ptx.cuh"
#include "quicksort_types.cuh"

namespace radsweep::quicksort {

DEVICE u32 hash(u32 x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

// ---- Pivots ----
//
// bounds[0..30] are in order; a key's class is the number of bounds at or below it. Keys are
// integers once ordered, so the keys equal to a pivot p are those between the bounds p and p + 1:
// the paper's three parts are the bounds p, p + 1, p + 1, ... .

// Sorts a stratified sample of the sequence, and takes bounds at equal distances in it. A pivot
// that occurs twice is separated from the keys above it.
template <bool FLOAT>
DEVICE void sample_bounds(
    const Compared<FLOAT>& compared, const Key* keys, u32 begin, u32 size, Key* sample,
    Key* bounds) {
    for (u32 i = threadIdx.x; i < SAMPLE; i += blockDim.x) {
        const u32 jitter = hash(i + SAMPLE * hash(begin + size));
        const u64 index = (u64(i) * size + (u64(jitter) * size >> 32)) / SAMPLE;
        sample[i] = compared(keys[begin + index]);
    }
    __syncthreads();
    bitonic_sort(sample, SAMPLE);  // as the paper sorts short sequences
    if (threadIdx.x < PIVOTS) {
        constexpr u32 STEP = SAMPLE / CLASSES;
        const u32 at = (threadIdx.x + 1) * STEP;
        Key bound = sample[at];
        if (threadIdx.x != 0 && bound == sample[at - STEP] && bound != compared.window) bound++;
        bounds[threadIdx.x] = bound;
    }
    __syncthreads();
}

// Whether all keys of a class are equal.
DEVICE bool one_value(const Key* bounds, u32 c, Key window) {
    const Key low = c == 0 ? 0 : bounds[c - 1];
    return c == PIVOTS ? low == window : Key(bounds[c] - low) == 1;
}

// ---- The passes ----

struct PartitionShared {
    Key bounds[CLASSES];
    u32 next[CLASSES];   // where the tile's first key of a class goes
    u32 first[CLASSES];  // the same, less that key's offset in the tile
    // Of each warp: keys of a class, then where its first goes in the tile.
    u32 warps[WARPS][CLASSES];
    u32 counts[CLASSES][WARP];  // keys of a class that a lane of any warp has seen
    u8 classes[TILE];
    u64 exchange[TILE];  // keys, then values; the host leaves out half where all have 4 bytes
};

// Returns the bound at `offset` bytes. Searches count in bytes, so that a bound's address is one
// register and a constant.
DEVICE Key bound_at(const Key* bounds, u32 offset) {
    return *reinterpret_cast<const Key*>(reinterpret_cast<const char*>(bounds) + offset);
}

// Finds a key's class by binary search.
DEVICE u32 class_of(const Key* bounds, Key key) {
    u32 offset = 0;
#pragma unroll
    for (u32 step = CLASSES / 2; step > 0; step /= 2) {
        if (key >= bound_at(bounds, offset + (step - 1) * sizeof(Key)))
            offset += step * sizeof(Key);
    }
    return offset / sizeof(Key);
}

struct LaneClass {
    u32 unlike[5];  // all ones where this lane's index has a zero bit
    u32 below;      // the lanes before this one

    DEVICE explicit LaneClass(u32 lane) : below(lane_mask_le() >> 1) {
#pragma unroll
        for (u32 bit = 0; bit < 5; bit++) unlike[bit] = (lane >> bit & 1) - 1;
    }

    // The same search, each comparison also a ballot: `mine` becomes the lanes whose key has the
    // class of this lane's index.
    DEVICE u32 match(const Key* bounds, Key key, u32 valid, u32& mine) const {
        u32 offset = 0;
        mine = valid;
#pragma unroll
        for (int bit = 4; bit >= 0; bit--) {
            const u32 step = 1u << bit;
            const bool right = key >= bound_at(bounds, offset + (step - 1) * u32(sizeof(Key)));
            if (right) offset += step * sizeof(Key);
            mine &= __ballot_sync(ALL_LANES, right) ^ unlike[bit];
        }
        return offset / sizeof(Key);
    }
};

template <bool FLOAT, u32 VALUE_BYTES>
struct Partition {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    static constexpr bool VALUES = VALUE_BYTES != 0;
    static constexpr u32 ITEMS = TILE / THREADS;

    const Args& args;
    PartitionShared& shared;
    const Compared<FLOAT> compared;
    const u32 source, target;
    const u32 lane, warp;

    DEVICE Partition(const Args& args, PartitionShared& shared, u32 source)
        : args(args), shared(shared), compared(args.order), source(source),
          target(target_of(args, source)), lane(threadIdx.x % WARP), warp(threadIdx.x / WARP) {}

    DEVICE void clear_counts() const {
        for (u32 i = threadIdx.x; i < CLASSES * WARP; i += THREADS)
            shared.counts[i / WARP][i % WARP] = 0;
    }

    // First pass (Algorithm 2): counts keys by class. In order of addresses, each lane to its own
    // bank.
    DEVICE void count(u32 begin, u32 size) const {
        for (; size >= TILE; begin += TILE, size -= TILE) count_tile<true>(begin, TILE);
        if (size != 0) count_tile<false>(begin, size);
    }

    template <bool FULL>
    DEVICE void count_tile(u32 begin, u32 size) const {
        const Key* const keys = args.keys[source] + begin + threadIdx.x;
        Key some[ITEMS];
        load_items<FULL, THREADS>(some, keys, threadIdx.x, size, Key(0));
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            const u32 c = class_of(shared.bounds, compared(some[i]));
            if (FULL || threadIdx.x + i * THREADS < size) atomicAdd(&shared.counts[c][lane], 1);
        }
    }

    // Sums the counts over lanes; one lane calls f(class, count) for each class.
    template <class F>
    DEVICE void sum_counts(F f) const {
        for (u32 c = warp; c < CLASSES; c += WARPS) {
            const u32 sum = warp_sum(shared.counts[c][lane]);
            if (lane == 0) f(c, sum);
        }
    }

    // Second pass: moves the tile's keys, in order within each class, to shared.next[class] on,
    // which advances by their count.
    template <bool FULL>
    DEVICE void move(u32 begin, u32 size) const {
        const Key* const keys = args.keys[source] + begin;
        const LaneClass lane_class(lane);
        const u32 base = warp * WARP * ITEMS + lane;
        Key key[ITEMS];
        u32 rank[ITEMS];  // among the warp's keys of the class; the class above bit 16
        load_items<FULL, WARP>(key, keys + base, base, size, Key(0));
        u32 count = 0;  // the warp's keys of the class of this lane's index
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            const u32 valid = FULL ? ALL_LANES : __ballot_sync(ALL_LANES, base + i * WARP < size);
            u32 mine;
            const u32 c = lane_class.match(shared.bounds, compared(key[i]), valid, mine);
            const u32 peers = __shfl_sync(ALL_LANES, mine, c),
                      before = __shfl_sync(ALL_LANES, count, c);
            rank[i] = before + __popc(peers & lane_class.below) | c << 16;
            count += __popc(mine);
        }
        shared.warps[warp][lane] = count;
        __syncthreads();

        // The cumulative sums: over the warps in each class, over the classes.
        if (warp == 0) {
            u32 total = 0;
#pragma unroll
            for (u32 w = 0; w < WARPS; w++) total += shared.warps[w][lane];
            u32 start = warp_inclusive_sum(total, lane) - total;
            const u32 to = shared.next[lane];
            shared.first[lane] = to - start;
            shared.next[lane] = to + total;
#pragma unroll
            for (u32 w = 0; w < WARPS; w++) {
                const u32 its = shared.warps[w][lane];
                shared.warps[w][lane] = start;
                start += its;
            }
        }
        __syncthreads();

        Key* const exchange = reinterpret_cast<Key*>(shared.exchange);
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            if (!FULL && base + i * WARP >= size) continue;
            const u32 c = rank[i] >> 16;
            rank[i] = shared.warps[warp][c] + (rank[i] & 0xffff);
            exchange[rank[i]] = key[i];
            shared.classes[rank[i]] = u8(c);
        }
        Value value[ITEMS];
        if (VALUES) load_values<FULL>(value, begin, base, size);
        __syncthreads();

        u32 to[ITEMS];
        Key* const keys_to = args.keys[target];
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            const u32 index = threadIdx.x + i * THREADS;
            if (!FULL && index >= size) continue;
            to[i] = shared.first[shared.classes[index]] + index;
            keys_to[to[i]] = exchange[index];
        }
        if (VALUES) {
            Value* const values = reinterpret_cast<Value*>(shared.exchange);
            Value* const values_to = static_cast<Value*>(args.values[target]);
            __syncthreads();
#pragma unroll
            for (u32 i = 0; i < ITEMS; i++) {
                if (FULL || base + i * WARP < size) values[rank[i]] = value[i];
            }
            __syncthreads();
#pragma unroll
            for (u32 i = 0; i < ITEMS; i++) {
                const u32 index = threadIdx.x + i * THREADS;
                if (FULL || index < size) values_to[to[i]] = values[index];
            }
        }
    }

    template <bool FULL>
    DEVICE void load_values(Value (&value)[ITEMS], u32 begin, u32 base, u32 size) const {
        const Value* const values = static_cast<const Value*>(args.values[source]);
        if (values != nullptr)
            return load_items<FULL, WARP>(value, values + begin + base, base, size, Value(0));
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) value[i] = Value(begin + base + i * WARP);
    }

    // Second pass, tile by tile.
    DEVICE void move_all(u32 begin, u32 size) const {
        for (; size >= TILE; begin += TILE, size -= TILE) {
            move<true>(begin, TILE);
            __syncthreads();
        }
        if (size != 0) move<false>(begin, size);
        __syncthreads();
    }
};

// ---- The sequences that result ----

enum Kind : u32 { NOTHING, SHORT, LONG, EQUAL };

// One class a lane: neighbouring classes that fit into a leaf together become one sequence, which
// its first class stands for. Sets `size` to the sequence's.
DEVICE Kind gather_classes(u32 lane, bool equal, u32& size) {
    const u32 equals = __ballot_sync(ALL_LANES, equal), own = size;
    Kind kind = NOTHING;
    u32 head = WARP, sum = 0;  // the open sequence
    for (u32 c = 0; c < CLASSES; c++) {
        const u32 next = __shfl_sync(ALL_LANES, own, c);
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

}  // namespace radsweep::quicksort
