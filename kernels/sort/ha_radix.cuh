// The passes of ha_radix.cu, for any digit width; the head of that file tells how they work together.
#pragma once

#include "../common/layout.cuh"
#include "../common/warp.cuh"
#include "../common/radix_key.cuh"
#include "outcome.cuh"

namespace radsweep::ha {

// ---- What the host passes, and what stays in the scratch memory. The host's copies: crates/gpusort/src/cuda/ha_radix/layout.rs. ----

enum Buffer : uint32_t { INPUT, OUTPUT, TEMP };

constexpr uint32_t IN_PLACE = 1;      // Args::flags: input and output are one buffer
constexpr uint32_t DROP_KEYS = 2;     // Args::flags: the sorted keys are not wanted
constexpr uint32_t MAX_PHASES = 64;   // a pass has two: count (even) and map (odd)
constexpr uint32_t FINISHED = ~0u;    // Header::phase: the keys are in order, no phase is to run any more
constexpr uint32_t WRITTEN = ~1u;     // and in the output

struct Header {
    Outcome outcome;
    uint32_t phase;                   // phases that all parts are through
    uint32_t arrived;                 // parts that are through a phase, over all phases
    uint32_t lead_in_order;           // of this pass: the leading keys are in order, so look at the others
    uint32_t unsorted;                // of this pass: some key is less than the one before
    uint32_t next[MAX_PHASES];        // by the phase that a launch begins with: parts taken
};
ASSERT_LAYOUT(Header, 304, AT(outcome, 0) AT(phase, 32) AT(next, 48));

struct Args {
    Key* keys[3];                     // by Buffer
    void* values[3];                  // by Buffer; a null input means 0, 1, 2, ...
    Header* header;
    uint32_t* sums;                   // the block-sum array, [digit][part]
    const uint64_t* device_count;     // null, or where the number of keys stands, at most n
    uint64_t n;
    KeyOrder order;
    uint32_t flags;
    uint32_t passes;
    uint32_t parts;                   // that the tiles are shared out to
    uint32_t algorithm;               // FamilyId
};
ASSERT_LAYOUT(Args, 136,
    AT(keys, 0) AT(values, 24) AT(header, 48) AT(sums, 56) AT(device_count, 64) AT(n, 72) AT(order, 80) AT(flags, 120)
    AT(passes, 124) AT(parts, 128) AT(algorithm, 132));

__device__ __forceinline__ uint64_t key_count(const Args& args) {
    if (args.device_count == nullptr) return args.n;
    const uint64_t count = *args.device_count;
    return count < args.n ? count : args.n;
}

// The buffers alternate so that the last pass, if it runs, writes the output; in place, the first must not write it.
__device__ __forceinline__ Buffer target_of(const Args& args, uint32_t pass) {
    const uint32_t output_parity = args.flags & IN_PLACE ? 1 : args.passes - 1;
    return (pass ^ output_parity) & 1 ? TEMP : OUTPUT;
}
__device__ __forceinline__ Buffer source_of(const Args& args, uint32_t pass) {
    return pass == 0 ? INPUT : target_of(args, pass - 1);
}

template <uint32_t BYTES>
struct ValueOf {
    using Type = uint32_t;
};
template <>
struct ValueOf<8> {
    using Type = uint64_t;
};

// ---- Order check (section 4.2, algorithm 3) ----

template <bool FLOAT>
struct OrderCheck {
    Ordering<FLOAT> ordering;
    Key window;

    __device__ __forceinline__ explicit OrderCheck(const KeyOrder& order)
        : ordering(ordering_of<FLOAT>(order)), window(Key(order.window)) {}

    __device__ __forceinline__ bool out_of_order(Key key, Key next) const {
        return (ordering(next) & window) < (ordering(key) & window);
    }

    // Whether the leading sqrt(n) keys are in order, for the block.
    __device__ __forceinline__ bool lead_in_order(const Key* keys, uint64_t n) const {
        const uint32_t lead = n < 4 ? uint32_t(n) : uint32_t(sqrtf(float(n)));
        bool unsorted = false;
        constexpr uint32_t AT_ONCE = 8;
        for (uint32_t first = threadIdx.x; first + 1 < lead && !unsorted; first += AT_ONCE * blockDim.x) {
#pragma unroll
            for (uint32_t i = 0; i < AT_ONCE; i++) {
                const uint32_t at = first + i * blockDim.x;
                if (at + 1 < lead) unsorted |= out_of_order(keys[at], keys[at + 1]);
            }
        }
        return !__syncthreads_or(unsorted);
    }
};

// Before the first pass, by one block.
template <bool FLOAT>
__device__ __forceinline__ void start(const Args& args) {
    Header& header = *args.header;
    const uint64_t n = key_count(args);
    const bool any = n != 0 && args.passes != 0;
    const bool in_order = OrderCheck<FLOAT>(args.order).lead_in_order(args.keys[INPUT], any ? n : 0);
    for (uint32_t i = threadIdx.x; i < MAX_PHASES; i += blockDim.x) header.next[i] = 0;
    if (threadIdx.x != 0) return;
    header.outcome = Outcome{args.algorithm, args.passes, any ? args.passes : 0, !any, n, 0};
    header.phase = any ? 0 : FINISHED;
    header.arrived = 0;
    header.lead_in_order = in_order;
    header.unsorted = 0;
}

// ---- Passes ----

template <uint32_t BITS, bool FLOAT, uint32_t VALUE_BYTES, uint32_t THREADS, uint32_t ITEMS>
struct Sort {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    static constexpr uint32_t DIGITS = 1 << BITS;
    static constexpr uint32_t COUNTER = 32 / DIGITS;       // bits of a thread's counter: all of them are one word
    static constexpr uint32_t WORDS = DIGITS / 2;          // a block's counters have 16 bits, two a word
    static constexpr uint32_t WARPS = THREADS / WARP, TILE = THREADS * ITEMS;
    static constexpr bool VALUES = VALUE_BYTES != 0;
    static constexpr uint32_t PAD = sizeof(Key) == 4 ? 32 : 16;  // a gap behind so many keys in shared memory: 128 bytes
    static_assert(ITEMS < 1u << COUNTER && TILE < 65536 && WARPS <= WARP && THREADS % PAD == 0, "counters and shape");

    // The host gives this many bytes (layout.rs: shared_bytes).
    struct Shared {
        Key keys[TILE + TILE / PAD];
        Value values[VALUES ? TILE + TILE / PAD : 2];
        uint32_t warps[WARPS][DIGITS];
        uint32_t next[DIGITS];         // where in the target the part's next keys of a digit go
        uint32_t moved[DIGITS];        // from a place in the sorted tile to one in the target
        uint32_t part, phase, last, unused;
    };

    static_assert(sizeof(Shared) == (TILE + TILE / PAD) * (sizeof(Key) + VALUE_BYTES) + (VALUES ? 0 : 8) + (WARPS + 2) * DIGITS * 4 + 16,
                  "as the host counts them");

    const Args& args;
    Shared& shared;
    const uint32_t n, lane, warp;

    __device__ __forceinline__ Sort(const Args& args, Shared& shared)
        : args(args), shared(shared), n(uint32_t(key_count(args))), lane(threadIdx.x % WARP), warp(threadIdx.x / WARP) {}

    // ---- Tiles: a thread has ITEMS consecutive keys ----

    __device__ __forceinline__ uint32_t first_tile(uint32_t part) const {
        return uint32_t((uint64_t(n) + TILE - 1) / TILE * part / args.parts);
    }
    __device__ __forceinline__ uint32_t tile_count(uint32_t tile) const {
        return n - tile * TILE < TILE ? n - tile * TILE : TILE;
    }
    // Of the thread's keys, those that the tile has.
    __device__ __forceinline__ uint32_t valid(uint32_t count) const {
        const uint32_t before = threadIdx.x * ITEMS;
        return count <= before ? 0 : count - before < ITEMS ? count - before : ITEMS;
    }

    template <bool STREAMED, class T>
    __device__ __forceinline__ void load(T (&items)[ITEMS], const T* from, uint32_t tile) const {
        from += tile * TILE + threadIdx.x * ITEMS;
        const uint32_t count = tile_count(tile);
        constexpr uint32_t EACH = 16 / sizeof(T);
        if (ITEMS % EACH == 0 && count == TILE && reinterpret_cast<uintptr_t>(from) % 16 == 0) {
            union {
                uint4 words;
                T items[EACH];
            } vector;
#pragma unroll
            for (uint32_t i = 0; i < ITEMS; i++) {
                const uint4* const words = reinterpret_cast<const uint4*>(from) + i / EACH;
                if (i % EACH == 0) vector.words = STREAMED ? __ldcs(words) : *words;
                items[i] = vector.items[i % EACH];
            }
        } else {
            const uint32_t valid = this->valid(count);
#pragma unroll
            for (uint32_t i = 0; i < ITEMS; i++) items[i] = i < valid ? from[i] : T(0);
        }
    }

    __device__ __forceinline__ Digit<FLOAT> digit_of(uint32_t pass) const {
        const uint32_t shift = args.order.begin + BITS * pass, bits = args.order.end - shift;
        return Digit<FLOAT>(ordering_of<FLOAT>(args.order), shift, bits < BITS ? (1u << bits) - 1 : DIGITS - 1);
    }

    static __device__ __forceinline__ uint32_t counter(uint32_t counters, uint32_t digit) {
        return counters >> digit * COUNTER & ((1u << (COUNTER - 1) << 1) - 1);
    }

    // ---- Count (section 4.3), and the rest of the order check ----

    __device__ __forceinline__ void count(uint32_t pass, uint32_t part) {
        const Key* const source = args.keys[source_of(args, pass)];
        const Digit<FLOAT> digit = digit_of(pass);
        const OrderCheck<FLOAT> check(args.order);
        const bool checks = args.header->lead_in_order;
        bool unsorted = false;
        uint32_t counts[DIGITS] = {};
        // Backwards, so that the tiles that are mapped first are still in the level-two cache.
        const uint32_t first = first_tile(part);
        for (uint32_t tile = first_tile(part + 1); tile-- > first;) {
            Key keys[ITEMS];
            load<true>(keys, source, tile);
            const uint32_t valid = this->valid(tile_count(tile));
            uint32_t counters = 0;
            if (valid == ITEMS) {
#pragma unroll
                for (uint32_t i = 0; i < ITEMS; i++) counters += 1u << digit(keys[i]) * COUNTER;
            } else {
#pragma unroll
                for (uint32_t i = 0; i < ITEMS; i++) {
                    if (i < valid) counters += 1u << digit(keys[i]) * COUNTER;
                }
            }
#pragma unroll
            for (uint32_t d = 0; d < DIGITS; d++) counts[d] += counter(counters, d);
            if (checks) {
                // The next thread has the next key; that of the last lane is read.
                const uint64_t after = uint64_t(tile) * TILE + (threadIdx.x + 1) * ITEMS;
                Key next = __shfl_down_sync(ALL_LANES, keys[0], 1);
                if (lane == WARP - 1 && after < n) next = source[after];
#pragma unroll
                for (uint32_t i = 0; i + 1 < ITEMS; i++) unsorted |= i + 1 < valid && check.out_of_order(keys[i], keys[i + 1]);
                unsorted |= after < n && check.out_of_order(keys[ITEMS - 1], next);
            }
        }
        // The part's sums to the block-sum array.
#pragma unroll
        for (uint32_t d = 0; d < DIGITS; d++) {
#pragma unroll
            for (uint32_t step = WARP / 2; step != 0; step /= 2) counts[d] += __shfl_xor_sync(ALL_LANES, counts[d], step);
            if (lane == 0) shared.warps[warp][d] = counts[d];
        }
        unsorted = __syncthreads_or(unsorted);
        if (threadIdx.x < DIGITS) {
            uint32_t sum = 0;
            for (uint32_t w = 0; w < WARPS; w++) sum += shared.warps[w][threadIdx.x];
            args.sums[threadIdx.x * args.parts + part] = sum;
        }
        if (unsorted && threadIdx.x == 0) store_relaxed(&args.header->unsorted, 1);
    }

    // ---- Global counting (section 4.4): one exclusive prefix sum over all digits and parts, by the block that counted last ----

    __device__ __forceinline__ void scan_block_sums() {
        constexpr uint32_t EACH = 16;
        const uint32_t sums = DIGITS * args.parts;
        uint32_t* const warps = shared.warps[0];
        uint32_t before = 0;
        for (uint32_t first = 0; first < sums; first += THREADS * EACH) {
            const uint32_t at = first + threadIdx.x * EACH;
            uint32_t values[EACH], sum = 0;
#pragma unroll
            for (uint32_t i = 0; i < EACH; i++) {
                values[i] = at + i < sums ? args.sums[at + i] : 0;
                sum += values[i];
            }
            const uint32_t up_to = warp_inclusive_sum(sum, lane);
            if (lane == WARP - 1) warps[warp] = up_to;
            __syncthreads();
            uint32_t exclusive = before + up_to - sum;
            for (uint32_t w = 0; w < WARPS; w++) {
                if (w < warp) exclusive += warps[w];
                before += warps[w];
            }
#pragma unroll
            for (uint32_t i = 0; i < EACH; i++) {
                if (at + i < sums) args.sums[at + i] = exclusive;
                exclusive += values[i];
            }
            __syncthreads();
        }
    }

    // ---- Four-way prefix sum with in-block shuffle (sections 4.3, 4.6; algorithms 2, 5, 6) ----

    // The 16-bit counter of a digit.
    static __device__ __forceinline__ uint32_t half(const uint32_t (&words)[WORDS], uint32_t digit) {
        const uint32_t bytes = (BITS == 3 ? digit & 3 : digit) * 0x22 + 0x10;
        if (BITS == 1) return words[0] >> 16 * digit & 0xffff;
        const uint32_t low = __byte_perm(words[0], words[WORDS > 1], bytes);
        if (BITS == 2) return low & 0xffff;
        const uint32_t high = __byte_perm(words[WORDS - 2], words[WORDS - 1], bytes);
        return (digit & 4 ? high : low) & 0xffff;
    }

    // Replaces the thread's counters by the sums over the threads before it; all threads' sums go to `total`.
    __device__ __forceinline__ void prefix_sum(uint32_t (&words)[WORDS], uint32_t (&total)[WORDS]) const {
        uint32_t up_to[WORDS];
#pragma unroll
        for (uint32_t k = 0; k < WORDS; k++) {
            up_to[k] = warp_inclusive_sum(words[k], lane);
            if (lane == WARP - 1) shared.warps[warp][k] = up_to[k];
        }
        __syncthreads();
#pragma unroll
        for (uint32_t k = 0; k < WORDS; k++) {
            uint32_t sum = lane < WARPS ? shared.warps[lane][k] : 0;
#pragma unroll
            for (uint32_t step = 1; step < WARPS; step *= 2) {
                const uint32_t below = __shfl_up_sync(ALL_LANES, sum, step);
                if (lane >= step) sum += below;
            }
            total[k] = __shfl_sync(ALL_LANES, sum, WARPS - 1);
            const uint32_t before = __shfl_sync(ALL_LANES, sum, (warp - 1) % WARP);
            words[k] = up_to[k] - words[k] + (warp == 0 ? 0 : before);
        }
    }

    static __device__ __forceinline__ uint32_t padded(uint32_t place) { return place + place / PAD; }

    // Sorts the tile by the digit, in shared memory.
    template <bool FULL>
    __device__ __forceinline__ void shuffle(const Key (&keys)[ITEMS], const Value (&values)[ITEMS], Digit<FLOAT> digit,
                                            uint32_t valid) const {
        uint32_t counters = 0, ranks[ITEMS];
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            const uint32_t d = digit(keys[i]);
            ranks[i] = counter(counters, d);
            if (FULL || i < valid) counters += 1u << d * COUNTER;
        }
        uint32_t before[WORDS], total[WORDS];
#pragma unroll
        for (uint32_t k = 0; k < WORDS; k++) before[k] = counter(counters, 2 * k) | counter(counters, 2 * k + 1) << 16;
        prefix_sum(before, total);
        uint32_t start = 0;
#pragma unroll
        for (uint32_t d = 0; d < DIGITS; d++) {
            before[d / 2] += start << d % 2 * 16;
            const uint32_t count = total[d / 2] >> d % 2 * 16 & 0xffff;
            if (threadIdx.x == 0) {
                shared.moved[d] = shared.next[d] - start;
                shared.next[d] += count;
            }
            start += count;
        }
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            const uint32_t at = padded(half(before, digit(keys[i])) + ranks[i]);
            if (FULL || i < valid) {
                shared.keys[at] = keys[i];
                if (VALUES) shared.values[at] = values[i];
            }
        }
    }

    // ---- Positioning and coalesced mapping (sections 4.5, 4.6; algorithm 4) ----

    __device__ __forceinline__ void load_pairs(Key (&keys)[ITEMS], Value (&values)[ITEMS], uint32_t source, uint32_t tile) const {
        load<false>(keys, args.keys[source], tile);
        if (!VALUES) return;
        if (args.values[source] != nullptr) return load<false>(values, static_cast<const Value*>(args.values[source]), tile);
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) values[i] = Value(tile * TILE + threadIdx.x * ITEMS + i);
    }

    // Keys alone are hinted past the level-two cache: measured to be faster, but slower for pairs.
    template <class T>
    static __device__ __forceinline__ void store(T* to, T item) {
        if (VALUES) *to = item;
        else __stcs(to, item);
    }

    // Neighbours in the sorted tile that share the digit are neighbours in the target.
    template <bool FULL>
    __device__ __forceinline__ void write(Key* keys_to, Value* values_to, Digit<FLOAT> digit, uint32_t count, bool writes_keys) const {
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            const uint32_t place = threadIdx.x + i * THREADS, at = padded(threadIdx.x) + i * (THREADS + THREADS / PAD);
            if (!FULL && place >= count) break;
            const Key key = shared.keys[at];
            const uint32_t to = shared.moved[digit(key)] + place;
            if (writes_keys) store(keys_to + to, key);
            if (VALUES) store(values_to + to, shared.values[at]);
        }
    }

    __device__ __forceinline__ void map(uint32_t pass, uint32_t part) {
        const uint32_t source = source_of(args, pass), target = target_of(args, pass);
        const Digit<FLOAT> digit = digit_of(pass);
        const bool writes_keys = !VALUES || !(args.flags & DROP_KEYS) || pass + 1 != args.passes;
        Value* const values_to = static_cast<Value*>(args.values[target]);
        uint32_t tile = first_tile(part);
        const uint32_t end = first_tile(part + 1);
        if (tile == end) return;
        if (threadIdx.x == 0) {
#pragma unroll
            for (uint32_t d = 0; d < DIGITS; d++) shared.next[d] = args.sums[d * args.parts + part];
        }
        Key keys[ITEMS];
        Value values[ITEMS];
        load_pairs(keys, values, source, tile);
        while (true) {
            const uint32_t count = tile_count(tile);
            if (count == TILE) shuffle<true>(keys, values, digit, ITEMS);
            else shuffle<false>(keys, values, digit, valid(count));
            __syncthreads();
            tile++;
            if (tile < end) load_pairs(keys, values, source, tile);  // while this tile is written
            if (count == TILE) write<true>(args.keys[target], values_to, digit, TILE, writes_keys);
            else write<false>(args.keys[target], values_to, digit, count, writes_keys);
            if (tile == end) return;
        }
    }

    // ---- All passes over a single tile, on chip: its order is the order of all keys ----

    __device__ __forceinline__ void sort_tile() {
        const OrderCheck<FLOAT> check(args.order);
        Key keys[ITEMS];
        Value values[ITEMS];
        load_pairs(keys, values, INPUT, 0);
        const uint32_t first = threadIdx.x * ITEMS, valid = this->valid(n);
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            shared.keys[padded(first + i)] = keys[i];
            if (VALUES) shared.values[padded(first + i)] = values[i];
        }
        __syncthreads();
        uint32_t pass = 0;
        for (; pass < args.passes; pass++) {
            bool unsorted = false;
            for (uint32_t i = threadIdx.x; i + 1 < n; i += THREADS) {
                unsorted |= check.out_of_order(shared.keys[padded(i)], shared.keys[padded(i + 1)]);
            }
            if (!__syncthreads_or(unsorted)) break;
#pragma unroll
            for (uint32_t i = 0; i < ITEMS; i++) {
                keys[i] = shared.keys[padded(first + i)];
                if (VALUES) values[i] = shared.values[padded(first + i)];
            }
            shuffle<false>(keys, values, digit_of(pass), valid);  // has a barrier before it writes
            __syncthreads();
        }
        for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
            if (!VALUES || !(args.flags & DROP_KEYS)) args.keys[OUTPUT][i] = shared.keys[padded(i)];
            if (VALUES) static_cast<Value*>(args.values[OUTPUT])[i] = shared.values[padded(i)];
        }
        if (threadIdx.x != 0) return;
        args.header->outcome.passes_run = pass;
        args.header->outcome.early_exit = pass != args.passes;
        args.header->phase = WRITTEN;
    }

    // ---- Phases ----

    // What follows when all parts are through a phase, by the block of the last; returns the next phase.
    __device__ __forceinline__ uint32_t conclude(uint32_t phase) {
        Header& header = *args.header;
        const uint32_t pass = phase / 2;
        if (phase % 2 == 0) {
            if (header.lead_in_order && load_relaxed(&header.unsorted) == 0) {
                if (threadIdx.x == 0) {
                    header.outcome.passes_run = pass;
                    header.outcome.early_exit = 1;
                }
                return FINISHED;
            }
            scan_block_sums();
        } else if (pass + 1 != args.passes) {
            const bool in_order = OrderCheck<FLOAT>(args.order).lead_in_order(args.keys[target_of(args, pass)], n);
            if (threadIdx.x == 0) {
                header.lead_in_order = in_order;
                header.unsorted = 0;
            }
        }
        return phase + 1;
    }

    // Waits until all parts are through the phases before. Returns false where there is nothing more to do.
    __device__ __forceinline__ bool wait_for(uint32_t phase) const {
        uint32_t done;
        while ((done = load_relaxed(&args.header->phase)) < phase) {}
        __threadfence();
        return done != FINISHED;
    }

    // Takes parts of the phases from `first` up to `end`. Parts are taken in the order of the phases, so whatever is waited for
    // has been taken by a block that runs.
    __device__ __forceinline__ void run(uint32_t first, uint32_t end) {
        if (args.parts == 1 && first == 0 && end == 2 * args.passes && args.n <= TILE) return sort_tile();
        uint32_t* const next = &args.header->next[first];
        uint32_t taken = 0;
        if (threadIdx.x == 0) taken = atomicAdd(next, 1);
        while (true) {
            if (threadIdx.x == 0) {
                const uint32_t phase = first + taken / args.parts;
                shared.part = taken % args.parts;
                shared.phase = phase < end && wait_for(phase) ? phase : FINISHED;
            }
            __syncthreads();
            const uint32_t part = shared.part, phase = shared.phase;
            if (phase == FINISHED) return;
            if (threadIdx.x == 0) taken = atomicAdd(next, 1);
            if (phase % 2 == 0) count(phase / 2, part);
            else map(phase / 2, part);

            __syncthreads();
            if (threadIdx.x == 0) {
                __threadfence();
                shared.last = atomicAdd(&args.header->arrived, 1) == (phase + 1) * args.parts - 1;
                __threadfence();
            }
            __syncthreads();
            if (!shared.last) continue;
            const uint32_t then = conclude(phase);
            __syncthreads();
            if (threadIdx.x == 0) {
                __threadfence();
                store_relaxed(&args.header->phase, then);
            }
        }
    }
};

template <uint32_t BITS, bool FLOAT, uint32_t VALUE_BYTES, uint32_t THREADS, uint32_t ITEMS>
__device__ __forceinline__ void sort(const Args& args, uint32_t first, uint32_t end) {
    extern __shared__ uint4 shared_memory[];
    using ThisSort = Sort<BITS, FLOAT, VALUE_BYTES, THREADS, ITEMS>;
    ThisSort(args, *reinterpret_cast<typename ThisSort::Shared*>(shared_memory)).run(first, end);
}

// ---- After the passes: to the output, where they ended early and elsewhere ----

template <class T>
__device__ __forceinline__ void copy_array(T* to, const T* from, uint64_t n) {
    const uint64_t thread = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x, threads = uint64_t(gridDim.x) * blockDim.x;
    constexpr uint32_t EACH = 16 / sizeof(T);
    const bool vectors = (reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % 16 == 0;
    const uint64_t whole = vectors ? n / EACH : 0;
    for (uint64_t i = thread; i < whole; i += threads) reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
    for (uint64_t i = whole * EACH + thread; i < n; i += threads) to[i] = from[i];
}

template <uint32_t VALUE_BYTES>
__device__ __forceinline__ void copy(const Args& args) {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    if (args.header->phase == WRITTEN) return;
    const Buffer last = source_of(args, args.header->outcome.passes_run);
    if (last == OUTPUT || last == INPUT && args.flags & IN_PLACE) return;
    const uint64_t n = key_count(args);
    if (VALUE_BYTES == 0 || !(args.flags & DROP_KEYS)) copy_array(args.keys[OUTPUT], args.keys[last], n);
    if (VALUE_BYTES == 0) return;
    Value* const to = static_cast<Value*>(args.values[OUTPUT]);
    if (args.values[last] != nullptr) return copy_array(to, static_cast<const Value*>(args.values[last]), n);
    for (uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += uint64_t(gridDim.x) * blockDim.x) to[i] = Value(i);
}

}  // namespace radsweep::ha
