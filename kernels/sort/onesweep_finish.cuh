// The end of a sort of onesweep.cu that began with the highest digits: a block sorts all keys that
// are equal in these by the lower ones, in shared memory.
//
// After one pass, by the highest digit, a block takes the keys of a digit; the histogram's counts
// tell the plan that all fit. So a key is moved twice, whatever its width. After two passes, by the
// two highest digits, it takes a segment: the keys with the same 8 to 16 highest bits. A sample of
// the keys tells the plan whether segments fit, and `find_segments` whether that is right.
//
//   1  Load the keys, warp-striped.
//   2  Count them in 2048 or 4096 bins by the bits below those that all have. An atomic gives each
//      key a place in its bin: keys of a bin are in any order.
//   3  Put each key into its bin in shared memory.
//   4  Sort each bin, and write its keys.
//
// Integers of 32 bits without values, and keys of 32 bits with values in segments, are sorted as
// words: a key's ordered bits, or the lowest of them above the index at which the key was. Words
// that are equal are the same, so the network in step 4 need not be stable: a thread sorts 16
// neighbours in registers, then the 8 last of them with the 8 next, and so on while a bin may reach
// further. Of the other keys each is compared with those of its bin. Equal ones are ordered by
// origin.
//
// Where a bin has more than MAX_BIN keys, or equal keys could differ in bits that are not compared
// and have no origin, the block sorts by digits of 8 bits instead, as a pass does, but from and to
// shared memory.
//
// H200, 2026-11-29, milliseconds between two events, and before with a pass for each digit:
//
//   u32 keys    3 million 0.061, 0.098     2^24 0.29, 0.33    2^28 3.30, 4.13
//   u32 pairs   1.5 million 0.060, 0.087   2^24 0.40, 0.48    2^28 5.01, 6.70
//   u64 keys    2^20 0.065, 0.117          2^24 0.53, 0.91
//
// A block for each segment of 2^28 u32 keys takes 0.96 ms in all, of pairs 1.34, of which reading
// and writing would take 0.5 and 1.05: 74 and 95 instructions of a warp for 32 keys, at 3.3 and 3.0
// a cycle. The network is 11 of them, and 3 more a round. What it took to get there, for keys and
// pairs: comparing each key with those of its bin, and gathering values from memory, 1.6 and 3.1
// (156 instructions for keys); the network, 1.06 and 2.18; values through shared memory, 1.8 for
// pairs; no branch around an atomic or a load, for which a warp waited at each of its keys.
//
// Tried instead of comparing, when that took 70 us for 3 million u32 keys: by digits only, 76;
// insertion in place by a thread for each 8 bins, 71 to 72, as lanes wait for the one that moves
// most. And the network for words of 64 bits, which takes 3 times the instructions: 2^24 u64 keys
// 0.63 ms.
#pragma once

#include "block/odd_even.cuh"
#include "onesweep_types.cuh"

namespace radsweep::onesweep {

// One block's keys: those of a highest digit or of a segment, from the temporary buffer to the
// output. Keys of segments that are sorted in place are in the output already.
//
// SEGMENT: only for segments of keys of 32 bits, all of which count. If these are floats, they have
// values.
//
// Args: may be another type with the members that are used here, if the keys do not lie side by
// side but in runs, which it then finds (kernels/dist/segments.cu).
template <
    bool FLOAT, u32 VALUE_BYTES, u32 THREADS, u32 ITEMS, bool SEGMENT, class Args = onesweep::Args>
struct Finish {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    static constexpr u32 WARPS = THREADS / WARP, TILE = THREADS * ITEMS;
    static constexpr bool VALUES = VALUE_BYTES != 0;
    // Whether what is sorted is words, as above. Otherwise it is keys and, apart, their origins.
    static constexpr bool WORDS = KEY_BITS == 32 && (VALUES ? SEGMENT : !FLOAT);
    static constexpr u32 BINS = WARPS * DIGITS;
    static constexpr u32 BIN_BITS = WARPS == 8 ? 11 : WARPS == 16 ? 12 : 13;
    static constexpr u32 MAX_BIN = WORDS ? 64 : 32;
    static constexpr u32 WINDOW = 16, HALF = WINDOW / 2;  // words that a thread sorts at once
    static_assert(1 << BIN_BITS == BINS);
    static_assert(THREADS % 128 == 0 && THREADS >= DIGITS && TILE <= 65536, "tile shape");

    // The host gives this many bytes (tuning.rs: finish_shared_bytes, segment_shared_bytes; for
    // several devices shared_bytes of crates/sap-dist/src/device/sort/segments.rs).
    struct alignas(uint4) Shared {
        union {
            u32 warp_counts[WARPS][DIGITS];
            // Where each bin begins, and the end of the last one. While keys are counted, a counter
            // of padding for each lane is behind the bins.
            u32 bins[BINS + WARP];
        };
        u32 sums[WARPS];
        u32 most, padding[3];  // keys of the fullest bin, or HALF + 1
        union {
            Key keys[TILE + WINDOW];
            Value values[WORDS && VALUES ? TILE : 1];
        };
        u16 origins[VALUES && !WORDS ? TILE : 1];  // where in the block's input the key was
    };

    // Rows of a warp that are looked at together, without a branch.
    static constexpr u32 STEP = 2;
    static_assert(ITEMS % STEP == 0, "rows");

    const Args& args;
    Shared& shared;
    const u32 lane, warp;
    Buffer source;
    Offset base;  // of the block's keys in source and output
    u32 count;    // keys; behind them is padding, which sorts behind every key
    u32 rows;     // of a warp
    u32 first;    // index of this thread's first key; the others follow at distances of WARP
    i32 left;     // keys from that one on
    u32 origin_bits = 0;

    const Ordering<FLOAT> ordering;
    Key keys[ITEMS];
    u32 origins[VALUES && !WORDS ? ITEMS : 1];

    DEVICE Finish(const Args& args, Shared& shared)
        : args(args), shared(shared), lane(lane_index()), warp(threadIdx.x / WARP),
          ordering(ordering_of<FLOAT>(args.order)) {}

    DEVICE const Key* from_keys() const { return args.keys[source] + base; }
    DEVICE Key* to_keys() const { return args.keys[OUTPUT] + base; }
    DEVICE const Value* from_values() const {
        return static_cast<const Value*>(args.values[TEMP]) + base;
    }
    DEVICE Value* to_values() const { return static_cast<Value*>(args.values[OUTPUT]) + base; }
    DEVICE bool with_keys() const { return !VALUES || !(args.flags & DROP_KEYS); }

    // Where key `index` lies in shared memory. Words lie in such an order that threads that each
    // read the next window read from all banks.
    static DEVICE u32 slot(u32 index) { return WORDS ? index ^ (index >> 3 & 12) : index; }

    // Calls `visit` for each of the warp's rows.
    template <class Visit>
    DEVICE void for_rows(Visit visit) const {
#pragma unroll
        for (u32 i = 0; i < ITEMS; i += STEP) {
            if (i >= rows) break;
#pragma unroll
            for (u32 k = 0; k < STEP; k++) visit(i + k);
        }
    }

    DEVICE u32 index_of(u32 row) const { return first + row * WARP; }
    DEVICE bool has(u32 row) const { return i32(row * WARP) < left; }

    // Calls `visit` for the keys and values of each run, with the index of the first and their
    // number.
    template <class Visit>
    DEVICE void for_runs(Visit visit) const {
        if constexpr (Args::ONE_RUN) {
            visit(from_keys(), from_values(), 0, count);
        } else {
            u32 begin = 0;
            for (const auto* run = args.template runs<Value>(&shared + 1); begin < count; run++) {
                const u32 length = run->length;
                visit(run->keys, run->values, begin, length);
                begin += length;
            }
        }
    }

    DEVICE Key key_in_runs(u32 index) const {
        const auto* run = args.template runs<Value>(&shared + 1);
        for (; index >= run->length; run++) index -= run->length;
        return run->keys[index];
    }

    DEVICE Key any_key() const {
        if constexpr (Args::ONE_RUN) return from_keys()[0];
        else return key_in_runs(0);
    }

    DEVICE void load() {
        if (!Args::ONE_RUN) for_rows([&](u32 i) { keys[i] = Key(args.order.padding); });
        for_runs([&](const Key* own_keys, const Value* own_values, u32 begin, u32 length) {
            const Key* const from = own_keys + first - begin;
            if (WORDS && VALUES) {
                origin_bits = WARP - u32(__clz(int(count - 1)));
                constexpr u32 LINE = 128;
                const char* const values = reinterpret_cast<const char*>(own_values);
                for (u32 at = threadIdx.x * LINE; at < length * VALUE_BYTES; at += THREADS * LINE)
                    prefetch(values + at);
            }
            if (Args::ONE_RUN) {
                for_rows(
                    [&](u32 i) { keys[i] = has(i) ? from[i * WARP] : Key(args.order.padding); });
            } else {
                const i32 low = i32(begin) - i32(first), high = low + i32(length);
                if (high <= 0 || low >= i32(rows * WARP)) return;
                for_rows([&](u32 i) {
                    if (i32(i * WARP) >= low && i32(i * WARP) < high) keys[i] = from[i * WARP];
                });
            }
        });
        // Apart, or each of these rows would wait for its keys.
        if (WORDS) {
            for_rows([&](u32 i) {
                keys[i] = ordering(keys[i]) << origin_bits | (VALUES ? index_of(i) : 0);
                if (VALUES && !has(i)) keys[i] = ~Key(0);
            });
        }
    }

    // Replaces the counts of each warp by where its keys begin.
    DEVICE void place_digits() const {
        const u32 d = threadIdx.x;
        u32 sum = 0, up_to = 0;
        if (d < DIGITS) {
#pragma unroll
            for (u32 w = 0; w < WARPS; w++) sum += shared.warp_counts[w][d];
            up_to = warp_inclusive_sum(sum, lane);
            if (lane == WARP - 1) shared.sums[warp] = up_to;
        }
        __syncthreads();
        if (d < DIGITS) {
            u32 next = add_warps_below<DIGITS / WARP>(up_to - sum, shared.sums, warp);
#pragma unroll
            for (u32 w = 0; w < WARPS; w++) {
                const u32 count = shared.warp_counts[w][d];
                shared.warp_counts[w][d] = next;
                next += count;
            }
        }
        __syncthreads();
    }

    DEVICE auto digit_at(u32 pass) const {
        if constexpr (WORDS) {
            const auto digit = digit_of<BITS, false>(args.order, pass);
            return Digit<false>({0, 0}, digit.shift + origin_bits, digit.mask);
        } else {
            return digit_of<BITS, FLOAT>(args.order, pass);
        }
    }

    // Sorts by one digit; the result is in shared memory.
    DEVICE void sort_by(u32 pass) const {
        u32(&counts)[DIGITS] = shared.warp_counts[warp];
        const auto digit = digit_at(pass);
        clear_counters(counts);
        __syncwarp();
        for_rows([&](u32 i) { atomicAdd(&counts[digit(keys[i])], 1); });
        __syncthreads();
        place_digits();
        const u32 up_to_me = lane_mask_le();
        for_rows([&](u32 i) {
            const u32 d = digit(keys[i]);
            const u32 peers = match_digit(d, args.minus_one);
            const u32 to = rank_row(&counts[d], peers, up_to_me, 1) - 1;
            shared.keys[slot(to)] = keys[i];
            if (VALUES && !WORDS) shared.origins[to] = u16(origins[i]);
        });
        __syncthreads();
    }

    DEVICE void read_back() {
        for_rows([&](u32 i) {
            const u32 index = index_of(i);
            keys[i] = shared.keys[slot(index)];
            if (VALUES && !WORDS) origins[i] = shared.origins[index];
        });
    }

    // Sorts words that lie in order but within bins of up to `most`: windows of which each has half
    // in common with the next are sorted in turn, by a thread each. This is an odd-even
    // transposition sort of the halves: a bin that reaches into k of them takes k rounds.
    DEVICE void sort_windows(u32 most) const {
        constexpr u32 CHUNK = 16 / sizeof(Key);
        if (threadIdx.x < 2 * WINDOW) {
            const u32 index = count + threadIdx.x;
            if (index < (count + WINDOW - 1) / WINDOW * WINDOW + WINDOW)
                shared.keys[slot(index)] = ~Key(0);
        }
        __syncthreads();
        const u32 rounds = (most - 2) / HALF + 2;
        for (u32 round = 0; round < rounds; round++) {
            for (u32 at = threadIdx.x * WINDOW + round % 2 * HALF; at < count;
                 at += THREADS * WINDOW) {
                union {
                    Key words[WINDOW];
                    uint4 chunks[WINDOW / CHUNK];
                } window;
#pragma unroll
                for (u32 c = 0; c < WINDOW / CHUNK; c++)
                    window.chunks[c] =
                        *reinterpret_cast<uint4*>(shared.keys + slot(at + c * CHUNK));
                const auto compare = [&](u32 i, u32 j) {
                    const Key low = min(window.words[i], window.words[j]);
                    window.words[j] = max(window.words[i], window.words[j]);
                    window.words[i] = low;
                };
                if (round == 0) odd_even_merge_sort<WINDOW>(compare);
                else odd_even_merge_sort<WINDOW, HALF>(compare);
#pragma unroll
                for (u32 c = 0; c < WINDOW / CHUNK; c++)
                    *reinterpret_cast<uint4*>(shared.keys + slot(at + c * CHUNK)) =
                        window.chunks[c];
            }
            __syncthreads();
        }
    }

    // Sorts and writes the keys by counting: each goes into the bin of the BIN_BITS bits below
    // `from`, from which on all have the same, in any order, and then to its rank among those of
    // its bin. Returns false, with nothing written, if some bin has more than MAX_BIN keys.
    DEVICE bool sort_by_bins(u32 from) {
        const Compared<FLOAT> compared(args.order);
        const u32 shift = from - BIN_BITS + origin_bits;
        const auto bin_of = [&](Key key) {
            return u32((WORDS ? key : compared(key)) >> shift) & (BINS - 1);
        };
        uint4* const words = reinterpret_cast<uint4*>(shared.bins);
#pragma unroll
        for (u32 i = 0; i < BINS / 4; i += THREADS) words[i + threadIdx.x] = make_uint4(0, 0, 0, 0);
        if (threadIdx.x < WARP) shared.bins[BINS + threadIdx.x] = 0;
        if (threadIdx.x == 0) shared.most = HALF + 1;
        __syncthreads();
        u32 ranks[ITEMS / 4];
        for_rows([&](u32 i) {
            // Padding is counted too, so that there is no branch.
            const u32 rank = atomicAdd(&shared.bins[has(i) ? bin_of(keys[i]) : BINS + lane], 1);
            if (i % 4 == 0) ranks[i / 4] = rank;
            else
                ranks[i / 4] = __byte_perm(ranks[i / 4], rank, 0x3210 ^ (i % 4 ^ 4) << 4 * (i % 4));
        });
        __syncthreads();
        constexpr u32 EACH = BINS / THREADS;
        u32 sizes[EACH], sum = 0, most = 0;
#pragma unroll
        for (u32 e = 0; e < EACH; e++) {
            sizes[e] = shared.bins[threadIdx.x * EACH + e];
            most = max(most, sizes[e]);
            sum += sizes[e];
        }
        if (most > HALF + 1) atomicMax(&shared.most, most);  // by few threads
        u32 total;
        u32 next = block_exclusive_sum<WARPS>(sum, shared.sums, total);
#pragma unroll
        for (u32 e = 0; e < EACH; e++) {
            shared.bins[threadIdx.x * EACH + e] = next;
            next += sizes[e];
        }
        if (threadIdx.x == 0) shared.bins[BINS] = count;
        __syncthreads();
        most = shared.most;
        if (most > MAX_BIN) return false;
        for_rows([&](u32 i) {
            u32 to = shared.bins[bin_of(keys[i])] + (ranks[i / 4] >> 8 * (i % 4) & 255);
            asm volatile("" : "+r"(to));  // read without a branch, so that threads do not wait
            if (has(i)) shared.keys[slot(to)] = keys[i];
            if (VALUES && !WORDS && has(i)) shared.origins[to] = u16(index_of(i));
        });
        if (WORDS) {
            sort_windows(most);
            write_words();
            return true;
        }
        __syncthreads();
        for (u32 i = threadIdx.x; i < count; i += THREADS) {
            const Key key = shared.keys[i], own = compared(key);
            const u32 bin = bin_of(key), first = shared.bins[bin], end = shared.bins[bin + 1];
            const u32 origin = VALUES ? shared.origins[i] : i;
            u32 rank = first;
            for (u32 j = first; j < end; j++) {
                const Key other = compared(shared.keys[j]);
                rank += other < own || (other == own && (VALUES ? shared.origins[j] : j) < origin);
            }
            if (with_keys()) to_keys()[rank] = key;
            if (VALUES) to_values()[rank] = from_values()[origin];
        }
        return true;
    }

    DEVICE void write() const {
#pragma unroll 4
        for (u32 i = threadIdx.x; i < count; i += THREADS) {
            if (with_keys()) to_keys()[i] = shared.keys[i];
            if (VALUES) to_values()[i] = from_values()[shared.origins[i]];
        }
    }

    // Writes the keys of sorted words, and then the values, which go through the same memory.
    DEVICE void write_words() {
        // The bits that words lack are the same in all keys.
        Key high = 0;
        if (VALUES) high = ordering(any_key()) & ~(~Key(0) >> origin_bits);
        const u32 origin_mask = (1u << origin_bits) - 1;
        const i32 own = i32(count - threadIdx.x);  // keys from this thread's on, THREADS apart
        const Key* const words = shared.keys + slot(threadIdx.x);
        Key* const to = to_keys() + threadIdx.x;
        for_rows([&](u32 i) { keys[i] = words[i * THREADS]; });
        for_rows([&](u32 i) {
            Key key = ordering.key_of(high | keys[i] >> origin_bits);
            if (i32(i * THREADS) >= own) return;
            if constexpr (Args::ONE_RUN) {
                if (FLOAT && key == 0) key = from_keys()[keys[i] & origin_mask];  // it may be -0.0
            } else if (FLOAT && key == 0) {
                key = key_in_runs(keys[i] & origin_mask);
            }
            if (with_keys()) to[i * THREADS] = key;
        });
        if (!VALUES) return;
        __syncthreads();
        const auto stage = [](const Value* from, Value* staged, i32 own) {
            constexpr u32 AT_ONCE = 32 / sizeof(Value);
#pragma unroll 1
            for (i32 at = 0; at < own; at += AT_ONCE * THREADS) {
                Value values[AT_ONCE];
#pragma unroll
                for (u32 k = 0; k < AT_ONCE; k++)
                    if (at + i32(k * THREADS) < own) values[k] = from[at + i32(k * THREADS)];
#pragma unroll
                for (u32 k = 0; k < AT_ONCE; k++)
                    if (at + i32(k * THREADS) < own) staged[at + i32(k * THREADS)] = values[k];
            }
        };
        Value* const staged = shared.values + threadIdx.x;
        if constexpr (Args::ONE_RUN) {
            stage(from_values() + threadIdx.x, staged, own);
        } else {
            for_runs([&](const Key*, const Value* from, u32 begin, u32 length) {
                stage(from + threadIdx.x, staged + begin, i32(length - threadIdx.x));
            });
        }
        __syncthreads();
        Value* const values_to = to_values() + threadIdx.x;
        for_rows([&](u32 i) {
            if constexpr ((TILE & (TILE - 1)) == 0) {
                // Behind the last key a word is any, but what it has for an index is in the tile.
                const Value value = shared.values[keys[i] & origin_mask];
                if (i32(i * THREADS) < own) values_to[i * THREADS] = value;
            } else if (i32(i * THREADS) < own) {
                values_to[i * THREADS] = shared.values[keys[i] & origin_mask];
            }
        });
    }

    DEVICE void sort(u32 state) {
        const u32 top = state >> TOP_SHIFT & 255, index = blockIdx.x;
        source = state & IN_OUTPUT ? OUTPUT : TEMP;
        u32 from;  // the bits by which keys are in order
        Offset end;
        if constexpr (!Args::ONE_RUN) {
            from = KEY_BITS - args.segment_bits;
            args.template find<Value>(&shared + 1, base, end);
        } else if (state & SEGMENTS) {
            from = segment_shift(args);
            base = args.segments[index];
            end = args.segments[index + 1];
        } else {
            if (index >= DIGITS) return;
            const Offset* const bins = args.bins + top * DIGITS;
            from = args.order.begin + BITS * top;
            base = bins[index];
            end = index + 1 < DIGITS ? bins[index + 1] : Offset(key_count(args));
        }
        count = u32(end - base);
        if (count == 0) return;
        rows = ((count + THREADS - 1) / THREADS + STEP - 1) / STEP * STEP;
        first = warp * rows * WARP + lane;
        left = i32(count) - i32(first);
        load();
        // Equal keys are the same bits, or have their origins.
        const bool whole = VALUES || (!FLOAT && Key(~args.order.window) == 0);
        if (whole && from >= args.order.begin + BIN_BITS && sort_by_bins(from)) return;
        for_rows([&](u32 i) {
            if (VALUES && !WORDS) origins[i] = index_of(i);
        });
        for (u32 passes = state & LOWER; passes != 0;) {
            const u32 pass = u32(__ffs(int(passes))) - 1;
            passes &= passes - 1;
            sort_by(pass);
            if (passes != 0) read_back();
        }
        if (WORDS) write_words();
        else write();
    }
};

constexpr u32 SEGMENT_THREADS = 256;

// Finds where each segment of keys in order begins, among the keys of its highest digit: a thread a
// segment. The last thread of a block finds the first segment of the next block too, which is where
// its neighbour's ends.
template <bool FLOAT>
DEVICE void find_segments(const Args& args) {
    __shared__ Offset begins[SEGMENT_THREADS];
    const u32 state = args.header->finish;
    if (!(state & SEGMENTS)) return;
    const Compared<FLOAT> compared(args.order);
    const Key* const keys = args.keys[state & IN_OUTPUT ? OUTPUT : TEMP];
    const u32 segments = 1u << args.segment_bits, top = state >> TOP_SHIFT & 255,
              below = args.order.begin + BITS * top - segment_shift(args);
    const u32 segment = blockIdx.x * (SEGMENT_THREADS - 1) + threadIdx.x, d = segment >> below;
    const Offset n = Offset(key_count(args));
    const Offset* const bins = args.bins + top * DIGITS;
    Offset begin = segment < segments ? bins[d] : n;
    Offset end = segment < segments && d + 1 < DIGITS ? bins[d + 1] : n;
    while (begin < end) {
        const Offset middle = begin + (end - begin) / 2;
        if (segment_of(args, compared(keys[middle])) < segment) begin = middle + 1;
        else end = middle;
    }
    begins[threadIdx.x] = begin;
    __syncthreads();
    if (segment > segments) return;
    if (threadIdx.x + 1 < SEGMENT_THREADS || segment == segments) args.segments[segment] = begin;
    if (segment < segments && threadIdx.x + 1 < SEGMENT_THREADS &&
        begins[threadIdx.x + 1] - begin > args.finish_keys) {
        Header& header = *args.header;
        for (u32& pass : header.state)
            if (pass != 0) pass |= RUN;
        if (header.copy_back == IF_TOO_LARGE) header.copy_back = COPY_BACK;
        header.too_large = 1;
    }
}

template <bool FLOAT, u32 VALUE_BYTES, u32 THREADS, u32 ITEMS, bool SEGMENT>
DEVICE void finish(const Args& args) {
    extern __shared__ uint4 shared_memory[];
    using ThisFinish = Finish<FLOAT, VALUE_BYTES, THREADS, ITEMS, SEGMENT>;
    const u32 state = args.header->finish;
    if (state == 0 || (state & SEGMENTS && args.header->too_large != 0)) return;
    ThisFinish(args, *reinterpret_cast<typename ThisFinish::Shared*>(shared_memory)).sort(state);
}

}  // namespace radsweep::onesweep
