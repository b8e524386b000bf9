// A block's part of a small sort: the steps of onesweep_small.cu.
#pragma once

#include <cooperative_groups.h>

#include "onesweep_small_types.cuh"

namespace radsweep::onesweep_small {

template <bool FLOAT, u32 VALUE_BYTES>
struct Small {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    static constexpr bool VALUES = VALUE_BYTES != 0;
    static constexpr bool TOGETHER =
        sizeof(Key) == 4 &&
        VALUE_BYTES == 4;  // key and value share one 8-byte word of the exchange
    static constexpr u32 STRIDE = TOGETHER ? 8 : sizeof(Key);  // between keys in the exchange

    // Behind its 3200 bytes: twice 256 counters a warp, then two exchanges (small_tuning.rs:
    // shared_bytes).
    struct alignas(128) Shared {
        Seen seen;
        u32 range[2];  // where this block's parts begin and end
        u32 sums[GROUP], totals[GROUP];
        // Counts of a group of warps; then where the bins of all tiles begin.
        u32 parts[MAX_THREADS / DIGITS][DIGITS];
        u32 first[DIGITS];  // where the tile's keys of a digit go, less their offset in the tile
    };

    static_assert(sizeof(Shared) == 3200, "as the host counts");

    const Args& args;
    Shared& shared;
    const Buffers& buffers;
    Header& header;
    const u32 lane, warp, warps;
    u32 (*const warp_counts)[DIGITS];
    char *source, *target;  // exchanges: the keys with their values, before and after a pass
    const u32 n, tile;      // keys of the sort, and of a tile
    // Of what is on chip: keys of a thread, keys before, keys; the rest is padding.
    u32 rows, base, count;
    u32 barriers = 0;

    DEVICE Small(const Args& args, Shared& shared, u32 n)
        : args(args), shared(shared), buffers(args.buffers),
          header(*reinterpret_cast<Header*>(args.scratch)), lane(threadIdx.x % WARP),
          warp(threadIdx.x / WARP), warps(blockDim.x / WARP),
          warp_counts(reinterpret_cast<u32 (*)[DIGITS]>(&shared + 1)),
          source(reinterpret_cast<char*>(warp_counts + 2 * warps)),
          target(source + args.capacity * (sizeof(Key) + VALUE_BYTES)), n(n),
          tile(args.rows * blockDim.x), rows(args.rows), base(blockIdx.x * tile),
          count(n > base ? (n - base < tile ? n - base : tile) : 0) {}

    DEVICE u32 first_index() const { return warp * WARP * rows + lane; }
    DEVICE u32* counter(u32 digit) const { return &warp_counts[warp][digit]; }

    // A barrier of the grid: after it all blocks see what any of them wrote before it.
    DEVICE void barrier() {
        __syncthreads();
        if (threadIdx.x == 0) {
            const u32 all = ++barriers * gridDim.x;
            add_release(&header.arrived, 1);
            while (load_acquire(&header.arrived) < all) {
            }
        }
        __syncthreads();
    }

    // ---- Loads ----

    // Items of a thread are a warp apart, so that a warp reads consecutive addresses and its rows
    // are in the keys' order.
    DEVICE void load(const Key* keys, const void* with) const {
        const Value* const values = static_cast<const Value*>(with);
#pragma unroll 4
        for (u32 i = 0; i < rows; i++) {
            const u32 index = first_index() + i * WARP;
            Key key = Key(args.order.padding);
            Value value = Value(base + index);
            if (index < count) {
                key = keys[base + index];
                if (VALUES && values != nullptr) value = values[base + index];
            }
            put(source, index * STRIDE, key, value);
        }
    }

    // Finds the bits in which the keys here differ; ALL: also the descents, the lowest and the
    // highest key.
    template <bool ALL>
    DEVICE void look(const Key* from) const {
        const Compared<FLOAT> compared(args.order);
        const Key one = compared(from[ALL ? 0 : base]);
        Key differing = 0, highest = 0, lowest = 0;
        u32 descents = 0;
#pragma unroll 2
        for (u32 i = 0; i < rows; i++) {
            const u32 index = first_index() + i * WARP;
            if (index >= count) break;
            const Key key = compared(key_at(index));
            differing |= key ^ one;
            if (!ALL) continue;
            highest = max(highest, key);
            lowest = max(lowest, Key(~key));
            if (base + index + 1 < n) descents += compared(from[base + index + 1]) < key;
        }
        add<ALL>({differing, highest, lowest, descents});
    }

    // Adds what each thread has seen to what the block has seen.
    template <bool ALL>
    DEVICE void add(Seen seen) const {
        seen.differing = warp_or(seen.differing);
        if (ALL) {
            seen.highest = warp_max(seen.highest);
            seen.lowest = warp_max(seen.lowest);
            seen.descents = warp_sum(seen.descents);
        }
        if (lane != 0) return;
        if (seen.differing != 0) atomicOr(&shared.seen.differing, seen.differing);
        if (!ALL) return;
        atomicMax(&shared.seen.highest, seen.highest);
        atomicMax(&shared.seen.lowest, seen.lowest);
        if (seen.descents != 0) atomicAdd(&shared.seen.descents, seen.descents);
    }

    DEVICE Seen& seen_by(u32 block) const {
        return reinterpret_cast<Seen*>(args.scratch + HEADER_BYTES)[block];
    }

    // ---- The steps of a pass ----

    DEVICE void clear_counters() const {
        radsweep::clear_counters(warp_counts[warp]);
        __syncwarp();
    }

    DEVICE void count_bins(const Bins<FLOAT>& bins) const {
#pragma unroll 2
        for (u32 i = 0; i < rows; i++)
            atomicAdd(counter(bins(key_at(first_index() + i * WARP))), 1);
        __syncthreads();
    }

    // The counts that blocks publish alternate between two tables. A block is at most one
    // publication ahead of others, as a barrier follows each pass except one whose parts did not
    // fit; so it overwrites nothing that has yet to be read.
    DEVICE u32* counts_of(u32 block, u32 publication) const {
        char* const tables = args.scratch + HEADER_BYTES + gridDim.x * sizeof(Seen);
        return reinterpret_cast<u32*>(tables) + (publication % 2 * gridDim.x + block) * WORDS;
    }
    // Returns the top bits of a publication's words; before the first ones they are inverted.
    DEVICE static u32 turn_of(u32 publication) { return publication / 2 % 2 == 1 ? TURN : 0; }

    // Replaces the counts of each warp by where its keys begin, in bytes of the exchange; publishes
    // the tile's counts. Returns the offset in the tile of the first key in the thread's bin.
    DEVICE u32 place_bins(bool publish, u32 last, u32 publication) const {
        const u32 d = threadIdx.x % DIGITS, group = threadIdx.x / DIGITS;
        u32 counts[GROUP], sum = 0;
#pragma unroll
        for (u32 w = 0; w < GROUP; w++) {
            counts[w] = warp_counts[group * GROUP + w][d];
            sum += counts[w];
        }
        u32 total = sum, before = 0;
        if (blockDim.x > DIGITS) {
            shared.parts[group][d] = sum;
            __syncthreads();
            const u32 others = shared.parts[1 - group][d];
            before = group == 0 ? 0 : others;
            total += others;
        }
        if (publish && group == 0) {
            const u32 own = d == last ? total - (rows * blockDim.x - count) : total;
            const u32 next = __shfl_down_sync(ALL_LANES, own, 1);
            if (d % 2 == 0)
                store_relaxed(
                    counts_of(blockIdx.x, publication) + d / 2,
                    (own | next << 16) ^ turn_of(publication));
        }
        const u32 up_to = warp_inclusive_sum(total, lane);
        if (group == 0 && lane == WARP - 1) shared.sums[warp] = up_to;
        __syncthreads();
        const u32 start = add_warps_below<GROUP>(up_to - total, shared.sums, warp % GROUP);
        u32 next = (start + before) * STRIDE;
#pragma unroll
        for (u32 w = 0; w < GROUP; w++) {
            warp_counts[group * GROUP + w][d] = next;
            next += counts[w] * STRIDE;
        }
        __syncthreads();
        return start;
    }

    // Behind the keys of an exchange.
    DEVICE Value* values_of(char* exchange) const {
        return reinterpret_cast<Value*>(exchange + args.capacity * sizeof(Key));
    }

    DEVICE void put(char* exchange, u32 at, Key key, Value value) const {
        if (TOGETHER) {
            *reinterpret_cast<uint2*>(exchange + at) = make_uint2(u32(key), u32(value));
            return;
        }
        *reinterpret_cast<Key*>(exchange + at) = key;
        if (VALUES) values_of(exchange)[at / STRIDE] = value;
    }

    DEVICE Key key_at(u32 index) const {
        return *reinterpret_cast<const Key*>(source + index * STRIDE);
    }

    DEVICE void get(char* exchange, u32 index, Key& key, Value& value) const {
        if (TOGETHER) {
            const uint2 both = reinterpret_cast<const uint2*>(exchange)[index];
            key = both.x;
            value = Value(both.y);
            return;
        }
        key = reinterpret_cast<const Key*>(exchange)[index];
        if (VALUES) value = values_of(exchange)[index];
    }

    // Ranks the keys, and puts each at its offset in the tile: where its warp's next key of that
    // bin goes, plus the lower lanes with the same bin.
    DEVICE void rank(const Bins<FLOAT>& bins) const {
        const u32 up_to_me = lane_mask_le();
        // Rows matched together, to hide their latencies; the capacity for rows is even.
        constexpr u32 TWO = 2;
#pragma unroll 1
        for (u32 i = 0; i < rows; i += TWO) {
            Key keys[TWO];
            Value values[TWO];
            u32 d[TWO], peers[TWO];
#pragma unroll
            for (u32 j = 0; j < TWO; j++)
                get(source, first_index() + (i + j) * WARP, keys[j], values[j]);
#pragma unroll
            for (u32 j = 0; j < TWO; j++) d[j] = bins(keys[j]);
#pragma unroll
            for (u32 j = 0; j < TWO; j++) peers[j] = match_digit(d[j], args.minus_one);
#pragma unroll
            for (u32 j = 0; j < TWO; j++) {
                if (i + j >= rows) break;
                const u32 after = rank_row(counter(d[j]), peers[j], up_to_me, STRIDE);
                put(target, after - STRIDE, keys[j], values[j]);
            }
        }
    }

    // Adds up the tiles' counts, a warp a tile, then over the warps, and finds where each bin of
    // this tile goes. Words are read until they have the pass's top bits. With `parts`, also finds
    // which of them this block is to sort; returns whether the parts of every block fit it.
    DEVICE bool find_first(u32 tile_start, u32 publication, bool parts) const {
        const u32 turn = turn_of(publication);
        u32 before[8] = {}, all[8] = {};  // of the bins 8 * lane and up
        for (u32 from = warp; from < gridDim.x; from += warps * AT_ONCE) {
            uint4 words[AT_ONCE];
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++) {
                words[i] = make_uint4(turn, turn, turn, turn);
                const u32 block = from + i * warps;
                if (block < gridDim.x)
                    words[i] = load_relaxed(
                        reinterpret_cast<const uint4*>(counts_of(block, publication)) + lane);
            }
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++) {
                const u32 block = from + i * warps;
                while ((((words[i].x ^ turn) | (words[i].y ^ turn) | (words[i].z ^ turn) |
                         (words[i].w ^ turn)) &
                        TURN) != 0) {
                    words[i] = load_relaxed(
                        reinterpret_cast<const uint4*>(counts_of(block, publication)) + lane);
                }
                const u32 pairs[4] = {
                    words[i].x ^ turn, words[i].y ^ turn, words[i].z ^ turn, words[i].w ^ turn};
#pragma unroll
                for (u32 e = 0; e < 8; e++) {
                    const u32 count = e % 2 == 0 ? pairs[e / 2] & 0xffff : pairs[e / 2] >> 16;
                    all[e] += count;
                    before[e] += block < blockIdx.x ? count : 0;
                }
            }
        }
        // Overwrites the warp's counters, which it no longer needs, and those behind all warps'.
        u32(*const warp_all)[DIGITS] = warp_counts + warps;
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            const u32 e = 4 * half;
            reinterpret_cast<uint4*>(warp_counts[warp])[2 * lane + half] =
                make_uint4(before[e], before[e + 1], before[e + 2], before[e + 3]);
            reinterpret_cast<uint4*>(warp_all[warp])[2 * lane + half] =
                make_uint4(all[e], all[e + 1], all[e + 2], all[e + 3]);
        }
        __syncthreads();
        const u32 d = threadIdx.x;
        u32 below = 0, total = 0, up_to = 0;
        if (d < DIGITS) {
            const u32 used = warps < gridDim.x ? warps : gridDim.x;
#pragma unroll 8
            for (u32 w = 0; w < used; w++) {
                below += warp_counts[w][d];
                total += warp_all[w][d];
            }
            up_to = warp_inclusive_sum(total, lane);
            if (lane == WARP - 1) shared.totals[warp] = up_to;
        }
        __syncthreads();
        u32 start = up_to - total;
        if (d < DIGITS) {
            start = add_warps_below<GROUP>(start, shared.totals, warp);
            shared.first[d] = start + below - tile_start;
            shared.parts[0][d] = start;
        }
        __syncthreads();
        return !parts || share(start, total);
    }

    // Of parts as even as those of uniform keys, every block takes as many. Otherwise it takes
    // those that begin in its tile, so that it has a tile and a part at most.
    DEVICE bool share(u32 start, u32 total) const {
        const u32 each = DIGITS / gridDim.x,
                  limit = tile + tile / 2 < args.capacity ? tile + tile / 2 : args.capacity;
        const u32 d = threadIdx.x;
        auto begin_of = [&](u32 block) {
            return block * each < DIGITS ? shared.parts[0][block * each] : n;
        };
        const bool uneven = d < gridDim.x && begin_of(d + 1) - begin_of(d) > limit;
        if (!__syncthreads_or(uneven)) {
            if (d < 2) shared.range[d] = begin_of(blockIdx.x + d);
            return true;
        }
        for (u32 end = 0; end < 2; end++) {
            const u32 bound = (blockIdx.x + end) * tile;
            if (d < DIGITS && start < bound && bound <= start + total)
                shared.range[end] = start + total;
        }
        return !__syncthreads_or(d < DIGITS && total > args.capacity - tile);
    }

    // Writes the keys after the pass: to where the bins go, or unchanged from `base` on.
    template <bool SCATTER>
    DEVICE void write(
        const Bins<FLOAT>& bins, Key* keys_to, void* to_values, bool with_keys) const {
        Value* const values_to = static_cast<Value*>(to_values);
#pragma unroll 4
        for (u32 index = threadIdx.x; index < count; index += blockDim.x) {
            Key key;
            Value value;
            get(target, index, key, value);
            const u32 to = (SCATTER ? shared.first[bins(key)] : base) + index;
            if (with_keys) keys_to[to] = key;
            if (VALUES) values_to[to] = value;
        }
    }

    // Copies input that is in order already.
    DEVICE void copy(bool with_keys) const {
        if (buffers.keys_in == buffers.keys_out) return;
        const Value* const from = static_cast<const Value*>(buffers.values_in);
        for (u32 i = base + threadIdx.x; i < base + count; i += blockDim.x) {
            if (with_keys) buffers.keys_out[i] = buffers.keys_in[i];
            if (VALUES)
                static_cast<Value*>(buffers.values_out)[i] = from != nullptr ? from[i] : Value(i);
        }
    }

    // Loads the tile, and finds what all keys have in common.
    DEVICE void look_at_all() {
        if (threadIdx.x == 0) {
            shared.seen = Seen{};
            shared.range[0] = blockIdx.x == 0 ? 0 : n;
            shared.range[1] = n;
        }
        if (threadIdx.x < 2 * WORDS)
            store_relaxed(counts_of(blockIdx.x, threadIdx.x / WORDS) + threadIdx.x % WORDS, TURN);
        clear_counters();
        __syncthreads();
        load(buffers.keys_in, buffers.values_in);
        look<true>(buffers.keys_in);
        __syncthreads();
        if (threadIdx.x == 0) {
            seen_by(blockIdx.x) = shared.seen;
            shared.seen = Seen{};
            if (blockIdx.x == 0) header.arrived = 0;
        }
        cooperative_groups::this_grid().sync();  // needs no memory that is 0 before
        add<true>(threadIdx.x < gridDim.x ? seen_by(threadIdx.x) : Seen{});
        __syncthreads();
    }

    DEVICE void sort() {
        look_at_all();
        const Seen seen = shared.seen;
        const bool sorted = seen.descents == 0;
        u32 active = sorted ? 0 : digits_with<BITS>(args.order, seen.differing), published = 0;
        const u32 run = __popc(active);
        const bool last_keys = !VALUES || !(args.flags & DROP_KEYS);

        Bins<FLOAT> bins{
            digit_of<BITS, FLOAT>(args.order, 0), false, Key(args.order.window), 0, 0.0f, 0.0f};
        bool alone = false;  // what is on chip needs no other block
        // Not without some spare capacity, as parts of even keys differ too.
        bins.parts = run > 1 && args.capacity - tile > tile / 16 &&
                     bins.divide(Key(~seen.lowest), seen.highest);
        while (active != 0) {
            if (!bins.parts) bins.digit = digit_of<BITS, FLOAT>(args.order, __ffs(int(active)) - 1);
            count_bins(bins);
            const u32 start = place_bins(!alone, bins.last(), published);
            rank(bins);
            if (alone) {
                __syncthreads();
                active &= active - 1;
                if (active == 0) {
                    write<false>(bins, buffers.keys_out, buffers.values_out, last_keys);
                } else {
                    clear_counters();
                    char* const ranked = target;
                    target = source;
                    source = ranked;
                }
                continue;
            }
            const bool fits = find_first(start, published++, bins.parts);
            if (!fits) {
                bins.parts = false;
                clear_counters();
                continue;  // by digits, from the unchanged keys
            }
            if (!bins.parts) active &= active - 1;
            const bool to_temp =
                !bins.parts && __popc(active) % 2 == 1;  // so that the last pass writes the output
            Key* const keys_to = to_temp ? buffers.keys_temp : buffers.keys_out;
            void* const values_to = to_temp ? buffers.values_temp : buffers.values_out;
            write<true>(bins, keys_to, values_to, active != 0 || last_keys);
            if (active == 0) break;
            if (threadIdx.x == 0) shared.seen.differing = 0;
            clear_counters();
            barrier();
            if (bins.parts) {
                bins.parts = false;
                alone = true;
                base = shared.range[0];
                count = shared.range[1] - base;
                rows = (count + blockDim.x - 1) / blockDim.x;
                if (count == 0) break;
            }
            load(keys_to, values_to);
            if (alone) {
                look<false>(keys_to);
                __syncthreads();
                active = digits_with<BITS>(args.order, shared.seen.differing);
            }
        }
        if (run == 0) copy(last_keys);
        if (blockIdx.x == 0 && threadIdx.x == 0)
            header.outcome = Outcome{ONESWEEP, pass_count<BITS>(args.order), run, sorted, n, 0};
    }
};

}  // namespace radsweep::onesweep_small
