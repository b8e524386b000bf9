// A pass of onesweep.cu: one block's tile.
#pragma once

#include "block/load.cuh"
#include "block/look_back.cuh"
#include "onesweep_types.cuh"

namespace radsweep::onesweep {

// Tiles are looked back over in groups: a tile adds up the tiles before it in its group, and then
// groups. So the chain is an eighth as long as tile by tile, for as many words read.
//
// A group's word is a count with its state on top (block/look_back.cuh). The top state bit
// alternates meaning each pass that runs, so the last pass's INCLUSIVE reads as nothing yet. A
// tile's own count has the lower bit set, and the top bit that tells this pass from the one before.
constexpr u32 GROUP = 8;  // tiles
using States = LookBack<Offset>;
constexpr Offset OWN = States::OWN, INCLUSIVE = States::INCLUSIVE, SUM = States::SUM;
constexpr u32 READ = 4;  // words read at once: more take registers that the keys need

// One block's tile in one pass.
template <bool FLOAT, u32 VALUE_BYTES, u32 THREADS, u32 ITEMS>
struct Pass {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    static constexpr u32 WARPS = THREADS / WARP, TILE = THREADS * ITEMS;
    static constexpr bool VALUES = VALUE_BYTES != 0;
    static constexpr u32 STRIDE = sizeof(Key);  // between keys in the exchange
    static_assert(THREADS % WARP == 0 && THREADS >= DIGITS && TILE <= 65536, "tile shape");

    // Offsets in the tile, two to a word, and digits, four to a word: what remains of the keys
    // while the values move.
    using Ranks = u32[(ITEMS + 1) / 2];
    using Digits = u32[(ITEMS + 3) / 4];

    // The host gives this many bytes (tuning.rs: pass_shared_bytes). Keys, then values, go through
    // the exchange.
    struct Shared {
        u32 warp_counts[WARPS][DIGITS];
        Offset first[DIGITS];  // where the tile's keys of a digit go, less their offset in the tile
        u32 sums[DIGITS / WARP];
        u32 tile;
        u32 padding[3];
        char exchange[TILE * (sizeof(Key) > VALUE_BYTES ? sizeof(Key) : VALUE_BYTES)];
    };

    const Args& args;
    Shared& shared;
    const u32 pass, state;
    const Digit<FLOAT> digit;
    const u32 lane, warp;

    u32 tile;
    Offset base;  // of the tile in the source
    u32 count;    // keys in the tile; the rest is padding, which sorts behind every key of the tile

    DEVICE Pass(const Args& args, Shared& shared, u32 pass, u32 state)
        : args(args), shared(shared), pass(pass), state(state),
          digit(digit_of<BITS, FLOAT>(args.order, pass)), lane(threadIdx.x % WARP),
          warp(threadIdx.x / WARP) {}

    DEVICE bool full() const { return count == TILE; }
    DEVICE const Key* source_keys() const { return args.keys[state >> SOURCE_SHIFT & 3]; }
    DEVICE Key* target_keys() const { return args.keys[state >> TARGET_SHIFT & 3]; }
    DEVICE const Value* source_values() const {
        return static_cast<const Value*>(args.values[state >> SOURCE_SHIFT & 3]);
    }
    DEVICE Value* target_values() const {
        return static_cast<Value*>(args.values[state >> TARGET_SHIFT & 3]);
    }
    DEVICE bool writes_keys() const {
        return !VALUES || !(args.flags & DROP_KEYS) || !(state & LAST);
    }
    DEVICE Key* exchanged_keys() const { return reinterpret_cast<Key*>(shared.exchange); }
    DEVICE Value* exchanged_values() const { return reinterpret_cast<Value*>(shared.exchange); }

    // Tiles are numbered in the order in which blocks start, so that every tile waited for has a
    // block that runs.
    DEVICE bool take_tile() {
        if (threadIdx.x == 0) shared.tile = atomicAdd(&args.header->next_tile[pass], 1);
        clear_counters(shared.warp_counts[warp]);
        __syncthreads();
        tile = shared.tile;
        base = Offset(tile) * TILE;
        const u64 n = key_count(args);
        if (base >= n) return false;
        count = n - base < TILE ? u32(n - base) : TILE;
        return true;
    }

    DEVICE void copy() const {
        for (u32 i = threadIdx.x; i < count; i += THREADS) {
            if (writes_keys()) target_keys()[base + i] = source_keys()[base + i];
            if (VALUES)
                target_values()[base + i] =
                    source_values() ? source_values()[base + i] : Value(base + i);
        }
    }

    template <class T>
    DEVICE void load(T (&items)[ITEMS], const T* from, T padding) const {
        const u32 first = warp * WARP * ITEMS + lane;
        from += base + first;
        if (full()) load_items<true, WARP>(items, from, first, count, padding);
        else load_items<false, WARP>(items, from, first, count, padding);
    }

    DEVICE void load_values(Value (&values)[ITEMS]) const {
        if (source_values() != nullptr) return load(values, source_values(), Value(0));
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++)
            values[i] = Value(base + warp * WARP * ITEMS + lane + i * WARP);
    }

    DEVICE u32* counter(u32 digit) const { return &shared.warp_counts[warp][digit]; }

    DEVICE void count_digits(const Key (&keys)[ITEMS]) const {
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) atomicAdd(counter(digit(keys[i])), 1);
        __syncthreads();
    }

    DEVICE Offset* own_word(u32 of_tile) const {
        return args.own + (u64(of_tile) * DIGITS + threadIdx.x);
    }
    DEVICE Offset* group_word(u32 of_group) const {
        return args.groups + (u64(of_group) * DIGITS + threadIdx.x);
    }
    DEVICE Offset turn(Offset word) const { return state & TURNED ? word ^ INCLUSIVE : word; }

    // Publishes the tile's counts and replaces the counts of each warp by where its keys begin, in
    // bytes of the exchange. Returns, to the thread of a digit, the keys with that digit (`own`)
    // and the offset of the first of them in the tile.
    DEVICE u32 place_digits(u32& own) const {
        const u32 d = threadIdx.x;
        u32 sum = 0, up_to = 0;
        if (d < DIGITS) {
#pragma unroll
            for (u32 w = 0; w < WARPS; w++) sum += shared.warp_counts[w][d];
            own = d == digit.mask ? sum - (TILE - count) : sum;
            store_relaxed(own_word(tile), turn(OWN) | own);
            up_to = warp_inclusive_sum(sum, lane);
            if (lane == WARP - 1) shared.sums[warp] = up_to;
        }
        __syncthreads();
        u32 start = up_to - sum;
        if (d < DIGITS) {
            start = add_warps_below<DIGITS / WARP>(start, shared.sums, warp);
            u32 next = start * STRIDE;
#pragma unroll
            for (u32 w = 0; w < WARPS; w++) {  // read again: the registers are full of keys
                const u32 count = shared.warp_counts[w][d];
                shared.warp_counts[w][d] = next;
                next += count * STRIDE;
            }
        }
        __syncthreads();
        return start;
    }

    // Ranks the keys, and puts each at its offset in the tile: where its warp's next key of that
    // digit goes, plus the lower lanes with the same digit.
    DEVICE void rank(const Key (&keys)[ITEMS], Ranks& ranks) const {
        const u32 up_to_me = lane_mask_le();
        // From separate parameters, or else the compiler keeps the digits of count_digits in
        // registers that are needed.
        const Digit<FLOAT> digit = digit_of<BITS, FLOAT>(args.order_again, pass);
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            const u32 d = digit(keys[i]);
            const u32 peers = match_digit(d, args.minus_one);
            const u32 after = rank_row(counter(d), peers, up_to_me, STRIDE);
            *reinterpret_cast<Key*>(shared.exchange + (after - STRIDE)) = keys[i];
            if (VALUES) pack<16>(ranks[i / 2], i % 2, after / STRIDE - 1);
        }
    }

    // Packs a number into a word, at index `index` from the low end. The empty instruction keeps
    // the compiler from holding each number in a register of its own.
    template <u32 BITS>
    static DEVICE void pack(u32& word, u32 index, u32 number) {
        if (index == 0) word = number;
        else word |= number << BITS * index;
        if (index == 32 / BITS - 1) asm("" : "+r"(word));
    }

    DEVICE void stall_if_asked() const {
        if (tile != args.stall_tile) return;
        const i64 start = clock64();
        while (clock64() - start < args.stall_cycles) {
        }
    }

    // Returns the keys with this thread's digit in the tiles of the group before this one.
    DEVICE Offset before_in_group() const {
        const u32 start = tile / GROUP * GROUP;
        Offset before = 0;
        for (u32 first = start; first < tile; first += READ) {
            Offset words[READ];
#pragma unroll
            for (u32 i = 0; i < READ; i++)
                words[i] = first + i < tile ? load_relaxed(own_word(first + i)) : turn(OWN);
#pragma unroll
            for (u32 i = 0; i < READ; i++) {
                while ((words[i] & ~SUM) != turn(OWN)) words[i] = load_relaxed(own_word(first + i));
                before += words[i] & SUM;
            }
        }
        return before;
    }

    // The last tile of a group publishes the group's count as soon as it can.
    DEVICE void publish_group(u32 own) const {
        if (threadIdx.x >= DIGITS || tile % GROUP != GROUP - 1) return;
        store_relaxed(
            group_word(tile / GROUP),
            turn((tile < GROUP ? INCLUSIVE : OWN) | (before_in_group() + own)));
    }

    // Returns the keys with this thread's digit in the groups before this tile's.
    DEVICE Offset look_back(u32 group) const {
        return States::template by_thread<READ>(
            group, [&](u32 g) { return group_word(g); }, [&](Offset word) { return turn(word); });
    }

    // Finds where the tile's keys of each digit go.
    DEVICE void find_first(u32 own, u32 start) const {
        if (threadIdx.x >= DIGITS) return;
        Offset before = before_in_group();
        const u32 group = tile / GROUP;
        if (group != 0) {
            before += look_back(group);
            if (tile % GROUP == GROUP - 1)
                store_relaxed(group_word(group), turn(INCLUSIVE | (before + own)));
        }
        shared.first[threadIdx.x] = args.bins[pass * DIGITS + threadIdx.x] + before - start;
    }

    // Four items at a time, or else the compiler reads all keys at once into registers that the
    // values need.
    static DEVICE void pause_after(u32 item) {
        if (VALUES && item % 4 == 3) asm volatile("" ::: "memory");
    }

    template <bool FULL>
    DEVICE void write_keys(Digits& digits) const {
        Key* const to = target_keys();
        const bool writes_keys = this->writes_keys();
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            const u32 index = threadIdx.x + i * THREADS;
            if (!FULL && index >= count) break;
            const Key key = exchanged_keys()[index];
            const u32 d = digit(key);
            if (writes_keys) to[shared.first[d] + index] = key;
            if (VALUES) pack<8>(digits[i / 4], i % 4, d);
            pause_after(i);
        }
    }

    template <bool FULL>
    DEVICE void write_values(const Digits& digits) const {
        Value* const to = target_values();
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            const u32 index = threadIdx.x + i * THREADS;
            if (!FULL && index >= count) break;
            to[shared.first[digits[i / 4] >> 8 * (i % 4) & 255] + index] =
                exchanged_values()[index];
            pause_after(i);
        }
    }

    template <bool FULL>
    DEVICE void write(const Value (&values)[ITEMS], const Ranks& ranks) const {
        Digits digits;
        write_keys<FULL>(digits);
        if (!VALUES) return;
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++)
            exchanged_values()[ranks[i / 2] >> 16 * (i % 2) & 0xffff] = values[i];
        __syncthreads();
        write_values<FULL>(digits);
    }

    DEVICE void process() {
        if (!take_tile()) return;
        if (state & COPY) return copy();

        Key keys[ITEMS];
        load(keys, source_keys(), Key(args.order.padding));
        count_digits(keys);
        stall_if_asked();
        u32 own = 0;
        const u32 start = place_digits(own);
        publish_group(own);
        Ranks ranks;
        rank(keys, ranks);
        stall_if_asked();
        find_first(own, start);
        Value values[ITEMS];  // load while the keys are written
        if (VALUES) load_values(values);
        __syncthreads();
        if (full()) write<true>(values, ranks);
        else write<false>(values, ranks);
    }
};

template <bool FLOAT, u32 VALUE_BYTES, u32 THREADS, u32 ITEMS>
DEVICE void run_pass(const Args& args, u32 pass) {
    extern __shared__ uint4 shared_memory[];
    using ThisPass = Pass<FLOAT, VALUE_BYTES, THREADS, ITEMS>;
    const u32 state = args.header->state[pass];
    if (!(state & RUN)) return;
    auto& shared = *reinterpret_cast<typename ThisPass::Shared*>(shared_memory);
    ThisPass(args, shared, pass, state).process();
}

}  // namespace radsweep::onesweep
