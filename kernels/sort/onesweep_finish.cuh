// The end of a sort of onesweep.cu that began with the highest digits: a block sorts all keys that
// are equal in these by the lower ones, in shared memory.
//
// After one pass, by the highest digit, a block takes the keys of a digit; the histogram's counts
// tell the plan that all fit. So a key is moved twice, whatever its width. After two passes, by the
// two highest digits, it takes a segment: the keys with the same 8 to 16 highest bits. A sample of
// the keys tells the plan whether segments fit, and `find_segments` whether that is right. 2^24 u64
// keys then take 0.51 to 0.55 ms, before 0.91; with u32 values 0.66 to 0.69, 1.26 (H200,
// 2026-11-29).
//
//   1  Load the keys, warp-striped.
//   2  Count them in 4096 bins by the 12 bits below those that all have. An atomic gives each key a
//      place in its bin; the order within a bin is not told.
//   3  Put each key, with its origin if there are values, into its bin in shared memory.
//   4  Compare each key with those of its bin, and write it to its rank. Equal keys are ordered by
//      origin, so the sort is stable.
//
// Where a bin has more than MAX_BIN keys, or equal keys could differ in bits that are not compared
// and have no origin, the block sorts by digits of 8 bits instead, as a pass does, but from and to
// shared memory.
//
// H200, 2026-11-29, microseconds between two events, and before with a pass for each digit:
// 3 million u32 keys 70, 98; 1.5 million pairs 60, 87; 2^20 u64 keys 65, 117. Of 3 million u32
// keys the histogram took 19 (now 16), the pass and this kernel 20 each, passes that end at once 6.
//
// Instructions of a warp for 32 keys, 3.8 million u32 keys: 164, of which comparing takes some 100,
// as the fullest of the bins that 32 lanes see has twice the mean of 3.6 keys; 2.8 are issued a
// cycle. Tried: by digits only, 76; insertion in place by a thread for each 8 bins, 1 to 2 slower,
// as lanes wait for the one that moves most.
#pragma once

#include "onesweep_types.cuh"

namespace radsweep::onesweep {

// One block's keys: those of a highest digit or of a segment, from the temporary buffer to the
// output. Keys of segments that are sorted in place are in the output already.
template <bool FLOAT, u32 VALUE_BYTES, u32 THREADS, u32 ITEMS>
struct Finish {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    static constexpr u32 WARPS = THREADS / WARP, TILE = THREADS * ITEMS;
    static constexpr bool VALUES = VALUE_BYTES != 0;
    static constexpr u32 BINS = WARPS * DIGITS, BIN_BITS = 12, MAX_BIN = 32;
    static_assert(1 << BIN_BITS == BINS);
    static_assert(THREADS % WARP == 0 && THREADS >= DIGITS && TILE <= 65536, "tile shape");

    // The host gives this many bytes (tuning.rs: finish_shared_bytes).
    struct Shared {
        union {
            u32 warp_counts[WARPS][DIGITS];
            u32 bins[BINS + 4];  // where each bin begins, and the end of the last one
        };
        u32 sums[WARPS];
        Key keys[TILE];
        u16 origins[VALUES ? TILE : 1];  // where in the block's input the key was
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

    Key keys[ITEMS];
    u32 origins[VALUES ? ITEMS : 1];

    DEVICE Finish(const Args& args, Shared& shared)
        : args(args), shared(shared), lane(lane_index()), warp(threadIdx.x / WARP) {}

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

    DEVICE u32 index_of(u32 row) const { return (warp * rows + row) * WARP + lane; }

    DEVICE void load() {
        const Key* const from = args.keys[source] + base;
        for_rows([&](u32 i) {
            const u32 index = index_of(i);
            keys[i] = index < count ? from[index] : Key(args.order.padding);
            if (VALUES) origins[i] = index;
        });
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

    // Sorts by one digit; the result is in shared memory.
    DEVICE void sort_by(u32 pass) const {
        u32(&counts)[DIGITS] = shared.warp_counts[warp];
        const Digit<FLOAT> digit = digit_of<BITS, FLOAT>(args.order, pass);
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
            shared.keys[to] = keys[i];
            if (VALUES) shared.origins[to] = u16(origins[i]);
        });
        __syncthreads();
    }

    DEVICE void read_back() {
        for_rows([&](u32 i) {
            const u32 index = index_of(i);
            keys[i] = shared.keys[index];
            if (VALUES) origins[i] = shared.origins[index];
        });
    }

    // Sorts and writes the keys by counting: each goes into the bin of the BIN_BITS bits below
    // those that all have, in any order, and then to its rank among those of its bin. Returns
    // false, with nothing written, if some bin has more than MAX_BIN keys.
    DEVICE bool sort_by_bins(u32 shift) {
        const Compared<FLOAT> compared(args.order);
        const auto bin_of = [&](Key ordered) { return u32(ordered >> shift) & (BINS - 1); };
        uint4* const words = reinterpret_cast<uint4*>(shared.bins);
#pragma unroll
        for (u32 i = 0; i < BINS / 4; i += THREADS) words[i + threadIdx.x] = make_uint4(0, 0, 0, 0);
        __syncthreads();
        u32 ranks[ITEMS / 4];
        for_rows([&](u32 i) {
            u32 rank = 0;
            if (index_of(i) < count) rank = atomicAdd(&shared.bins[bin_of(compared(keys[i]))], 1);
            if (i % 4 == 0) ranks[i / 4] = rank;
            else ranks[i / 4] |= rank << 8 * (i % 4);
            if (i % 4 == 3) asm("" : "+r"(ranks[i / 4]));
        });
        __syncthreads();
        constexpr u32 EACH = BINS / THREADS;
        u32 sizes[EACH], sum = 0;
        bool crowded = false;
#pragma unroll
        for (u32 e = 0; e < EACH; e++) {
            sizes[e] = shared.bins[threadIdx.x * EACH + e];
            crowded |= sizes[e] > MAX_BIN;
            sum += sizes[e];
        }
        if (__syncthreads_or(crowded)) return false;
        u32 total;
        u32 next = block_exclusive_sum<WARPS>(sum, shared.sums, total);
#pragma unroll
        for (u32 e = 0; e < EACH; e++) {
            shared.bins[threadIdx.x * EACH + e] = next;
            next += sizes[e];
        }
        if (threadIdx.x == 0) shared.bins[BINS] = count;
        __syncthreads();
        for_rows([&](u32 i) {
            const u32 index = index_of(i);
            if (index >= count) return;
            const u32 to =
                shared.bins[bin_of(compared(keys[i]))] + (ranks[i / 4] >> 8 * (i % 4) & 255);
            shared.keys[to] = keys[i];
            if (VALUES) shared.origins[to] = u16(index);
        });
        __syncthreads();
        Key* const to = args.keys[OUTPUT] + base;
        const Value* const values = static_cast<const Value*>(args.values[TEMP]) + base;
        Value* const values_to = static_cast<Value*>(args.values[OUTPUT]) + base;
        const bool with_keys = !VALUES || !(args.flags & DROP_KEYS);
        for (u32 i = threadIdx.x; i < count; i += THREADS) {
            const Key key = shared.keys[i], own = compared(key);
            const u32 bin = bin_of(own), first = shared.bins[bin], end = shared.bins[bin + 1];
            const u32 origin = VALUES ? shared.origins[i] : i;
            u32 rank = first;
            for (u32 j = first; j < end; j++) {
                const Key other = compared(shared.keys[j]);
                rank += other < own || (other == own && (VALUES ? shared.origins[j] : j) < origin);
            }
            if (with_keys) to[rank] = key;
            if (VALUES) values_to[rank] = values[origin];
        }
        return true;
    }

    DEVICE void write() const {
        Key* const to = args.keys[OUTPUT] + base;
        const Value* const values = static_cast<const Value*>(args.values[TEMP]) + base;
        Value* const values_to = static_cast<Value*>(args.values[OUTPUT]) + base;
        const bool with_keys = !VALUES || !(args.flags & DROP_KEYS);
#pragma unroll 4
        for (u32 i = threadIdx.x; i < count; i += THREADS) {
            if (with_keys) to[i] = shared.keys[i];
            if (VALUES) values_to[i] = values[shared.origins[i]];
        }
    }

    DEVICE void sort(u32 state) {
        const u32 top = state >> TOP_SHIFT & 255, index = blockIdx.x;
        source = state & IN_OUTPUT ? OUTPUT : TEMP;
        u32 from;  // the bits by which keys are in order
        Offset end;
        if (state & SEGMENTS) {
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
        load();
        // Equal keys are the same bits, or have their origins.
        const bool whole = VALUES || (!FLOAT && Key(~args.order.window) == 0);
        if (whole && from >= args.order.begin + BIN_BITS && sort_by_bins(from - BIN_BITS)) return;
        for (u32 passes = state & LOWER; passes != 0;) {
            const u32 pass = u32(__ffs(int(passes))) - 1;
            passes &= passes - 1;
            sort_by(pass);
            if (passes != 0) read_back();
        }
        write();
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
#pragma unroll
        for (u32 pass = 0; pass < MAX_PASSES; pass++) header.state[pass] = header.otherwise[pass];
        header.copy_back = header.copy_back_otherwise;
        header.too_large = 1;
    }
}

template <bool FLOAT, u32 VALUE_BYTES, u32 THREADS, u32 ITEMS>
DEVICE void finish(const Args& args) {
    extern __shared__ uint4 shared_memory[];
    using ThisFinish = Finish<FLOAT, VALUE_BYTES, THREADS, ITEMS>;
    const u32 state = args.header->finish;
    if (state == 0 || (state & SEGMENTS && args.header->too_large != 0)) return;
    ThisFinish(args, *reinterpret_cast<typename ThisFinish::Shared*>(shared_memory)).sort(state);
}

}  // namespace radsweep::onesweep
