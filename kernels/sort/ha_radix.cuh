// The passes of ha_radix.cu, for any digit width; the head of that file describes how they work
// together.
#pragma once

#include "block/copy.cuh"
#include "block/scan.cuh"
#include "common/ptx.cuh"
#include "ha_radix_types.cuh"

namespace radsweep::ha_radix {

// ---- Passes ----

template <u32 BITS, bool FLOAT, u32 VALUE_BYTES, u32 THREADS, u32 ITEMS>
struct Sort {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    static constexpr u32 DIGITS = 1 << BITS;
    static constexpr u32 COUNTER =
        32 / DIGITS;  // bits of a thread's counter: all of them are one word
    static constexpr u32 WORDS = DIGITS / 2;  // a block's counters have 16 bits, two a word
    static constexpr u32 WARPS = THREADS / WARP, TILE = THREADS * ITEMS;
    static constexpr bool VALUES = VALUE_BYTES != 0;
    static constexpr u32 PAD =
        sizeof(Key) == 4 ? 32 : 16;  // a gap behind this many keys in shared memory: 128 bytes
    static_assert(
        ITEMS < 1u << COUNTER && TILE < 65536 && WARPS <= WARP && THREADS % PAD == 0,
        "counters and shape");

    // The host gives this many bytes (layout.rs: shared_bytes).
    struct Shared {
        Key keys[TILE + TILE / PAD];
        Value values[VALUES ? TILE + TILE / PAD : 2];
        u32 warps[WARPS][DIGITS];
        u32 next[DIGITS];   // where in the target the part's next keys of a digit go
        u32 moved[DIGITS];  // from an index in the sorted tile to one in the target
        u32 part, phase, last, unused;
    };

    static_assert(
        sizeof(Shared) == (TILE + TILE / PAD) * (sizeof(Key) + VALUE_BYTES) + (VALUES ? 0 : 8) +
                              (WARPS + 2) * DIGITS * 4 + 16,
        "as the host counts them");

    const Args& args;
    Shared& shared;
    const u32 n, lane, warp;

    DEVICE Sort(const Args& args, Shared& shared)
        : args(args), shared(shared), n(u32(key_count(args))), lane(threadIdx.x % WARP),
          warp(threadIdx.x / WARP) {}

    // ---- Tiles: a thread has ITEMS consecutive keys ----

    DEVICE u32 first_tile(u32 part) const {
        return u32((u64(n) + TILE - 1) / TILE * part / args.parts);
    }
    DEVICE u32 tile_count(u32 tile) const {
        return n - tile * TILE < TILE ? n - tile * TILE : TILE;
    }
    // Returns how many of the thread's keys are in the tile.
    DEVICE u32 valid(u32 count) const {
        const u32 before = threadIdx.x * ITEMS;
        return count <= before ? 0 : count - before < ITEMS ? count - before : ITEMS;
    }

    template <bool STREAMED, class T>
    DEVICE void load(T (&items)[ITEMS], const T* from, u32 tile) const {
        from += tile * TILE + threadIdx.x * ITEMS;
        const u32 count = tile_count(tile);
        constexpr u32 EACH = 16 / sizeof(T);
        if (ITEMS % EACH == 0 && count == TILE && reinterpret_cast<u64>(from) % 16 == 0) {
            union {
                uint4 words;
                T items[EACH];
            } vector;
#pragma unroll
            for (u32 i = 0; i < ITEMS; i++) {
                const uint4* const words = reinterpret_cast<const uint4*>(from) + i / EACH;
                if (i % EACH == 0) vector.words = STREAMED ? __ldcs(words) : *words;
                items[i] = vector.items[i % EACH];
            }
        } else {
            const u32 valid = this->valid(count);
#pragma unroll
            for (u32 i = 0; i < ITEMS; i++) items[i] = i < valid ? from[i] : T(0);
        }
    }

    DEVICE Digit<FLOAT> digit_of(u32 pass) const {
        return radsweep::digit_of<BITS, FLOAT>(args.order, pass);
    }

    static DEVICE u32 counter(u32 counters, u32 digit) {
        return counters >> digit * COUNTER & ((1u << (COUNTER - 1) << 1) - 1);
    }

    // ---- Count (section 4.3), and the rest of the order check ----

    DEVICE void count(u32 pass, u32 part) {
        const Key* const source = args.keys[source_of(args, pass)];
        const Digit<FLOAT> digit = digit_of(pass);
        const OrderCheck<FLOAT> check(args.order);
        const bool checks = args.header->lead_in_order;
        bool unsorted = false;
        u32 counts[DIGITS] = {};
        // Backwards, so that the tiles that are mapped first remain in the level-two cache.
        const u32 first = first_tile(part);
        for (u32 tile = first_tile(part + 1); tile-- > first;) {
            Key keys[ITEMS];
            load<true>(keys, source, tile);
            const u32 valid = this->valid(tile_count(tile));
            u32 counters = 0;
            if (valid == ITEMS) {
#pragma unroll
                for (u32 i = 0; i < ITEMS; i++) counters += 1u << digit(keys[i]) * COUNTER;
            } else {
#pragma unroll
                for (u32 i = 0; i < ITEMS; i++) {
                    if (i < valid) counters += 1u << digit(keys[i]) * COUNTER;
                }
            }
#pragma unroll
            for (u32 d = 0; d < DIGITS; d++) counts[d] += counter(counters, d);
            if (checks) {
                // The next thread has the next key; that of the last lane is read.
                const u64 after = u64(tile) * TILE + (threadIdx.x + 1) * ITEMS;
                Key next = __shfl_down_sync(ALL_LANES, keys[0], 1);
                if (lane == WARP - 1 && after < n) next = source[after];
#pragma unroll
                for (u32 i = 0; i + 1 < ITEMS; i++)
                    unsorted |= i + 1 < valid && check.out_of_order(keys[i], keys[i + 1]);
                unsorted |= after < n && check.out_of_order(keys[ITEMS - 1], next);
            }
        }
        // The part's sums to the block-sum array.
#pragma unroll
        for (u32 d = 0; d < DIGITS; d++) {
            counts[d] = warp_sum(counts[d]);
            if (lane == 0) shared.warps[warp][d] = counts[d];
        }
        unsorted = __syncthreads_or(unsorted);
        if (threadIdx.x < DIGITS) {
            u32 sum = 0;
            for (u32 w = 0; w < WARPS; w++) sum += shared.warps[w][threadIdx.x];
            args.sums[threadIdx.x * args.parts + part] = sum;
        }
        if (unsorted && threadIdx.x == 0) store_relaxed(&args.header->unsorted, 1);
    }

    // ---- Global counting (section 4.4): a prefix sum over all, by the last block to count ----

    DEVICE void scan_block_sums() {
        constexpr u32 EACH = 16;
        const u32 sums = DIGITS * args.parts;
        u32* const warps = shared.warps[0];
        u32 before = 0;
        for (u32 first = 0; first < sums; first += THREADS * EACH) {
            const u32 at = first + threadIdx.x * EACH;
            u32 values[EACH], sum = 0;
#pragma unroll
            for (u32 i = 0; i < EACH; i++) {
                values[i] = at + i < sums ? args.sums[at + i] : 0;
                sum += values[i];
            }
            u32 total, exclusive = before + block_exclusive_sum<WARPS>(sum, warps, total);
            before += total;
#pragma unroll
            for (u32 i = 0; i < EACH; i++) {
                if (at + i < sums) args.sums[at + i] = exclusive;
                exclusive += values[i];
            }
            __syncthreads();
        }
    }

    // ---- Four-way prefix sum with in-block shuffle (sections 4.3, 4.6; algorithms 2, 5, 6) ----

    // The 16-bit counter of a digit.
    static DEVICE u32 half(const u32 (&words)[WORDS], u32 digit) {
        const u32 bytes = (BITS == 3 ? digit & 3 : digit) * 0x22 + 0x10;
        if (BITS == 1) return words[0] >> 16 * digit & 0xffff;
        const u32 low = __byte_perm(words[0], words[WORDS > 1], bytes);
        if (BITS == 2) return low & 0xffff;
        const u32 high = __byte_perm(words[WORDS - 2], words[WORDS - 1], bytes);
        return (digit & 4 ? high : low) & 0xffff;
    }

    static DEVICE u32 padded(u32 index) { return index + index / PAD; }

    // Sorts the tile by the digit, in shared memory.
    template <bool FULL>
    DEVICE void shuffle(
        const Key (&keys)[ITEMS], const Value (&values)[ITEMS], Digit<FLOAT> digit,
        u32 valid) const {
        u32 counters = 0, ranks[ITEMS];
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            const u32 d = digit(keys[i]);
            ranks[i] = counter(counters, d);
            if (FULL || i < valid) counters += 1u << d * COUNTER;
        }
        u32 before[WORDS], total[WORDS];
#pragma unroll
        for (u32 k = 0; k < WORDS; k++)
            before[k] = counter(counters, 2 * k) | counter(counters, 2 * k + 1) << 16;
        block_exclusive_sums<WARPS>(before, shared.warps, total);
        u32 start = 0;
#pragma unroll
        for (u32 d = 0; d < DIGITS; d++) {
            before[d / 2] += start << d % 2 * 16;
            const u32 count = total[d / 2] >> d % 2 * 16 & 0xffff;
            if (threadIdx.x == 0) {
                shared.moved[d] = shared.next[d] - start;
                shared.next[d] += count;
            }
            start += count;
        }
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            const u32 at = padded(half(before, digit(keys[i])) + ranks[i]);
            if (FULL || i < valid) {
                shared.keys[at] = keys[i];
                if (VALUES) shared.values[at] = values[i];
            }
        }
    }

    // ---- Positioning and coalesced mapping (sections 4.5, 4.6; algorithm 4) ----

    DEVICE void load_pairs(Key (&keys)[ITEMS], Value (&values)[ITEMS], u32 source, u32 tile) const {
        load<false>(keys, args.keys[source], tile);
        if (!VALUES) return;
        if (args.values[source] != nullptr)
            return load<false>(values, static_cast<const Value*>(args.values[source]), tile);
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) values[i] = Value(tile * TILE + threadIdx.x * ITEMS + i);
    }

    // Keys alone are hinted past the level-two cache: measured to be faster, but slower for pairs.
    template <class T>
    static DEVICE void store(T* to, T item) {
        if (VALUES) *to = item;
        else __stcs(to, item);
    }

    // Neighbours in the sorted tile that share the digit are neighbours in the target.
    template <bool FULL>
    DEVICE void write(
        Key* keys_to, Value* values_to, Digit<FLOAT> digit, u32 count, bool writes_keys) const {
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            const u32 index = threadIdx.x + i * THREADS,
                      at = padded(threadIdx.x) + i * (THREADS + THREADS / PAD);
            if (!FULL && index >= count) break;
            const Key key = shared.keys[at];
            const u32 to = shared.moved[digit(key)] + index;
            if (writes_keys) store(keys_to + to, key);
            if (VALUES) store(values_to + to, shared.values[at]);
        }
    }

    DEVICE void map(u32 pass, u32 part) {
        const u32 source = source_of(args, pass), target = target_of(args, pass);
        const Digit<FLOAT> digit = digit_of(pass);
        const bool writes_keys = !VALUES || !(args.flags & DROP_KEYS) || pass + 1 != args.passes;
        Value* const values_to = static_cast<Value*>(args.values[target]);
        u32 tile = first_tile(part);
        const u32 end = first_tile(part + 1);
        if (tile == end) return;
        if (threadIdx.x == 0) {
#pragma unroll
            for (u32 d = 0; d < DIGITS; d++) shared.next[d] = args.sums[d * args.parts + part];
        }
        Key keys[ITEMS];
        Value values[ITEMS];
        load_pairs(keys, values, source, tile);
        while (true) {
            const u32 count = tile_count(tile);
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

    DEVICE void sort_tile() {
        const OrderCheck<FLOAT> check(args.order);
        Key keys[ITEMS];
        Value values[ITEMS];
        load_pairs(keys, values, INPUT, 0);
        const u32 first = threadIdx.x * ITEMS, valid = this->valid(n);
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            shared.keys[padded(first + i)] = keys[i];
            if (VALUES) shared.values[padded(first + i)] = values[i];
        }
        __syncthreads();
        u32 pass = 0;
        for (; pass < args.passes; pass++) {
            bool unsorted = false;
            for (u32 i = threadIdx.x; i + 1 < n; i += THREADS) {
                unsorted |= check.out_of_order(shared.keys[padded(i)], shared.keys[padded(i + 1)]);
            }
            if (!__syncthreads_or(unsorted)) break;
#pragma unroll
            for (u32 i = 0; i < ITEMS; i++) {
                keys[i] = shared.keys[padded(first + i)];
                if (VALUES) values[i] = shared.values[padded(first + i)];
            }
            shuffle<false>(keys, values, digit_of(pass), valid);  // has a barrier before it writes
            __syncthreads();
        }
        for (u32 i = threadIdx.x; i < n; i += THREADS) {
            if (!VALUES || !(args.flags & DROP_KEYS)) args.keys[OUTPUT][i] = shared.keys[padded(i)];
            if (VALUES) static_cast<Value*>(args.values[OUTPUT])[i] = shared.values[padded(i)];
        }
        if (threadIdx.x != 0) return;
        args.header->outcome.passes_run = pass;
        args.header->outcome.flags = pass != args.passes ? EARLY_EXIT : 0;
        args.header->phase = WRITTEN;
    }

    // ---- Phases ----

    // Does what follows when all parts have completed a phase, by the block of the last one.
    // Returns the next phase.
    DEVICE u32 conclude(u32 phase) {
        Header& header = *args.header;
        const u32 pass = phase / 2;
        if (phase % 2 == 0) {
            if (header.lead_in_order && load_relaxed(&header.unsorted) == 0) {
                if (threadIdx.x == 0) {
                    header.outcome.passes_run = pass;
                    header.outcome.flags = EARLY_EXIT;
                }
                return FINISHED;
            }
            scan_block_sums();
        } else if (pass + 1 != args.passes) {
            const bool in_order =
                OrderCheck<FLOAT>(args.order).lead_in_order(args.keys[target_of(args, pass)], n);
            if (threadIdx.x == 0) {
                header.lead_in_order = in_order;
                header.unsorted = 0;
            }
        }
        return phase + 1;
    }

    // Waits until all parts have completed the phases before. Returns false if nothing is left to
    // do.
    DEVICE bool wait_for(u32 phase) const {
        u32 done;
        while ((done = load_relaxed(&args.header->phase)) < phase) {
        }
        __threadfence();
        return done != FINISHED;
    }

    // Takes parts of the phases from `first` up to `end`. Parts are taken in the order of the
    // phases, so a running block has taken whatever is waited for.
    DEVICE void run(u32 first, u32 end) {
        if (args.parts == 1 && first == 0 && end == 2 * args.passes && args.n <= TILE)
            return sort_tile();
        u32* const next = &args.header->next[first];
        u32 taken = 0;
        if (threadIdx.x == 0) taken = atomicAdd(next, 1);
        while (true) {
            if (threadIdx.x == 0) {
                const u32 phase = first + taken / args.parts;
                shared.part = taken % args.parts;
                shared.phase = phase < end && wait_for(phase) ? phase : FINISHED;
            }
            __syncthreads();
            const u32 part = shared.part, phase = shared.phase;
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
            const u32 then = conclude(phase);
            __syncthreads();
            if (threadIdx.x == 0) {
                __threadfence();
                store_relaxed(&args.header->phase, then);
            }
        }
    }
};

template <u32 BITS, bool FLOAT, u32 VALUE_BYTES, u32 THREADS, u32 ITEMS>
DEVICE void sort(const Args& args, u32 first, u32 end) {
    extern __shared__ uint4 shared_memory[];
    using ThisSort = Sort<BITS, FLOAT, VALUE_BYTES, THREADS, ITEMS>;
    ThisSort(args, *reinterpret_cast<typename ThisSort::Shared*>(shared_memory)).run(first, end);
}

// ---- After the passes: to the output, where they ended early and elsewhere ----

template <u32 VALUE_BYTES>
DEVICE void copy(const Args& args) {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    if (args.header->phase == WRITTEN) return;
    const Buffer last = source_of(args, args.header->outcome.passes_run);
    if (last == OUTPUT || last == INPUT && args.flags & IN_PLACE) return;
    const u64 n = key_count(args);
    if (VALUE_BYTES == 0 || !(args.flags & DROP_KEYS))
        copy_array(args.keys[OUTPUT], args.keys[last], n);
    if (VALUE_BYTES == 0) return;
    Value* const to = static_cast<Value*>(args.values[OUTPUT]);
    if (args.values[last] != nullptr)
        return copy_array(to, static_cast<const Value*>(args.values[last]), n);
    for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
         i += u64(gridDim.x) * blockDim.x)
        to[i] = Value(i);
}

}  // namespace radsweep::ha_radix
