// A pass of onesweep.cu: one block's tile.
#pragma once

#include "onesweep_types.cuh"

namespace {

// Tiles are looked back over in groups: a tile adds up the tiles before it in its group, and then groups. So the chain is
// an eighth as long as tile by tile, and as many words are read.
//
// A group's word is a number with its state on top: 0 nothing yet, 1 the group's own count, 2 the sum up to and with the
// group. Each pass that runs sees the words with the top bit turned over against the one before: old sums, 2, become 0. A
// tile's own count has the lower bit set, and the top bit that tells this pass from the one before.
constexpr uint32_t GROUP = 8;         // tiles
constexpr Offset OWN = Offset(1) << (OFFSET_BITS - 2), SUM = OWN << 1, NUMBER = OWN - 1;
constexpr uint32_t READ = 4;          // words read at once: more take registers that the keys need

// One block's tile in one pass.
template <bool FLOAT, uint32_t VALUE_BYTES, uint32_t THREADS, uint32_t ITEMS>
struct Pass {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    static constexpr uint32_t WARPS = THREADS / WARP, TILE = THREADS * ITEMS;
    static constexpr bool VALUES = VALUE_BYTES != 0;
    static constexpr uint32_t STRIDE = sizeof(Key);  // between keys in the exchange
    static_assert(THREADS % WARP == 0 && THREADS >= DIGITS && TILE <= 65536, "tile shape");

    // Places in the tile, two to a word, and digits, four to a word: what is left of the keys while the values move.
    using Places = uint32_t[(ITEMS + 1) / 2];
    using Digits = uint32_t[(ITEMS + 3) / 4];

    // The host gives this many bytes (tuning.rs: shared_bytes). Keys, then values, go through the exchange.
    struct Shared {
        uint32_t warp_counts[WARPS][DIGITS];
        Offset first[DIGITS];          // where the tile's keys of a digit go, less their place in the tile
        uint32_t sums[DIGITS / WARP];
        uint32_t tile;
        uint32_t padding[3];
        char exchange[TILE * (sizeof(Key) > VALUE_BYTES ? sizeof(Key) : VALUE_BYTES)];
    };

    const Args& args;
    Shared& shared;
    const uint32_t pass, state;
    const Digit<FLOAT> digit;
    const uint32_t lane, warp;

    uint32_t tile;
    Offset base;                       // of the tile in the source
    uint32_t count;                    // keys in the tile; the rest is padding, which sorts behind every key of the tile

    __device__ __forceinline__ Pass(const Args& args, Shared& shared, uint32_t pass, uint32_t state)
        : args(args), shared(shared), pass(pass), state(state),
          digit(digit_of<FLOAT>(args.order, pass)), lane(threadIdx.x % WARP), warp(threadIdx.x / WARP) {}

    __device__ __forceinline__ bool full() const { return count == TILE; }
    __device__ __forceinline__ const Key* source_keys() const { return args.keys[blockIdx.y][state >> SOURCE_SHIFT & 3]; }
    __device__ __forceinline__ Key* target_keys() const { return args.keys[blockIdx.y][state >> TARGET_SHIFT & 3]; }
    __device__ __forceinline__ const Value* source_values() const {
        return static_cast<const Value*>(args.values[blockIdx.y][state >> SOURCE_SHIFT & 3]);
    }
    __device__ __forceinline__ Value* target_values() const {
        return static_cast<Value*>(args.values[blockIdx.y][state >> TARGET_SHIFT & 3]);
    }
    __device__ __forceinline__ bool writes_keys() const { return !VALUES || !(args.flags & DROP_KEYS) || !(state & LAST); }
    __device__ __forceinline__ Key* exchanged_keys() const { return reinterpret_cast<Key*>(shared.exchange); }
    __device__ __forceinline__ Value* exchanged_values() const { return reinterpret_cast<Value*>(shared.exchange); }

    // Tiles are numbered in the order in which blocks start, so that every tile waited for has a block that runs.
    __device__ __forceinline__ bool take_tile() {
        if (threadIdx.x == 0) shared.tile = atomicAdd(&of_array(args, args.header)->next_tile[pass], 1);
        uint4* const counts = reinterpret_cast<uint4*>(shared.warp_counts[warp]);
#pragma unroll
        for (uint32_t i = 0; i < DIGITS / 4; i += WARP) counts[i + lane] = make_uint4(0, 0, 0, 0);
        __syncthreads();
        tile = shared.tile;
        base = Offset(tile) * TILE;
        const uint64_t n = key_count(args);
        if (base >= n) return false;
        count = n - base < TILE ? uint32_t(n - base) : TILE;
        return true;
    }

    __device__ __forceinline__ void copy() const {
        for (uint32_t i = threadIdx.x; i < count; i += THREADS) {
            if (writes_keys()) target_keys()[base + i] = source_keys()[base + i];
            if (VALUES) target_values()[base + i] = source_values() ? source_values()[base + i] : Value(base + i);
        }
    }

    // Items of a thread are a warp apart, so that a warp reads consecutive addresses and its rows are in the keys' order.
    template <class T>
    __device__ __forceinline__ void load_items(T (&items)[ITEMS], const T* from, T padding) const {
        const uint32_t at = warp * WARP * ITEMS + lane;
        from += base + at;
        if (full()) {
#pragma unroll
            for (uint32_t i = 0; i < ITEMS; i++) items[i] = from[i * WARP];
        } else {
#pragma unroll
            for (uint32_t i = 0; i < ITEMS; i++) {
                items[i] = padding;
                if (at + i * WARP < count) items[i] = from[i * WARP];
            }
        }
    }

    __device__ __forceinline__ void load_values(Value (&values)[ITEMS]) const {
        if (source_values() != nullptr) return load_items(values, source_values(), Value(0));
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) values[i] = Value(base + warp * WARP * ITEMS + lane + i * WARP);
    }

    __device__ __forceinline__ uint32_t* counter(uint32_t digit) const { return &shared.warp_counts[warp][digit]; }

    __device__ __forceinline__ void count_digits(const Key (&keys)[ITEMS]) const {
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) atomicAdd(counter(digit(keys[i])), 1);
        __syncthreads();
    }

    __device__ __forceinline__ Offset* own_word(uint32_t of_tile) const {
        return of_array(args, args.own) + (uint64_t(of_tile) * DIGITS + threadIdx.x);
    }
    __device__ __forceinline__ Offset* group_word(uint32_t of_group) const {
        return of_array(args, args.groups) + (uint64_t(of_group) * DIGITS + threadIdx.x);
    }
    __device__ __forceinline__ Offset turn(Offset word) const { return state & TURNED ? word ^ SUM : word; }

    // Publishes the tile's counts and replaces the counts of each warp by where its keys begin, in bytes of the exchange.
    // Returns, to the thread of a digit, the keys with that digit (`own`) and the place of the first of them in the tile.
    __device__ __forceinline__ uint32_t place_digits(uint32_t& own) const {
        const uint32_t d = threadIdx.x;
        uint32_t sum = 0, up_to = 0;
        if (d < DIGITS) {
#pragma unroll
            for (uint32_t w = 0; w < WARPS; w++) sum += shared.warp_counts[w][d];
            own = d == digit.mask ? sum - (TILE - count) : sum;
            store_relaxed(own_word(tile), turn(OWN) | own);
            up_to = warp_inclusive_sum(sum, lane);
            if (lane == WARP - 1) shared.sums[warp] = up_to;
        }
        __syncthreads();
        uint32_t place = up_to - sum;
        if (d < DIGITS) {
#pragma unroll
            for (uint32_t w = 0; w < DIGITS / WARP; w++) {
                if (w < warp) place += shared.sums[w];
            }
            uint32_t next = place * STRIDE;
#pragma unroll
            for (uint32_t w = 0; w < WARPS; w++) {  // read again: the registers are full of keys
                const uint32_t count = shared.warp_counts[w][d];
                shared.warp_counts[w][d] = next;
                next += count * STRIDE;
            }
        }
        __syncthreads();
        return place;
    }

    // A key's place: where its warp's next key of that digit goes, plus the lower lanes with the same digit. The highest lane
    // of each digit moves the counter on for the next row. All read before any writes, and write before any reads again.
    __device__ __forceinline__ void rank(const Key (&keys)[ITEMS], Places& places) const {
        const uint32_t up_to_me = lane_mask_le();
        // From parameters of their own, or else the compiler keeps the digits of count_digits in registers that are needed.
        const Digit<FLOAT> digit = digit_of<FLOAT>(args.order_again, pass);
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            const uint32_t d = digit(keys[i]);
            const uint32_t peers = match_digit(d, args.minus_one);
            const uint32_t after = *counter(d) + __popc(peers & up_to_me) * STRIDE;
            __syncwarp();
            if ((peers & ~up_to_me) == 0) *counter(d) = after;
            __syncwarp();
            *reinterpret_cast<Key*>(shared.exchange + (after - STRIDE)) = keys[i];
            if (VALUES) pack<16>(places[i / 2], i % 2, after / STRIDE - 1);
        }
    }

    // Puts a number at its place in a word, first place first. The empty instruction is for the compiler, which would otherwise
    // see through the word and keep each number in a register of its own.
    template <uint32_t BITS>
    static __device__ __forceinline__ void pack(uint32_t& word, uint32_t place, uint32_t number) {
        if (place == 0) word = number;
        else word |= number << BITS * place;
        if (place == 32 / BITS - 1) asm("" : "+r"(word));
    }

    __device__ __forceinline__ void stall_if_asked() const {
        if (tile != args.stall_tile) return;
        const long long start = clock64();
        while (clock64() - start < args.stall_cycles) {}
    }

    // The keys with this thread's digit in the tiles of the group before this one.
    __device__ __forceinline__ Offset before_in_group() const {
        const uint32_t start = tile / GROUP * GROUP;
        Offset before = 0;
        for (uint32_t first = start; first < tile; first += READ) {
            Offset words[READ];
#pragma unroll
            for (uint32_t i = 0; i < READ; i++) words[i] = first + i < tile ? load_relaxed(own_word(first + i)) : turn(OWN);
#pragma unroll
            for (uint32_t i = 0; i < READ; i++) {
                while ((words[i] & ~NUMBER) != turn(OWN)) words[i] = load_relaxed(own_word(first + i));
                before += words[i] & NUMBER;
            }
        }
        return before;
    }

    // The last tile of a group publishes the group's count as soon as it can.
    __device__ __forceinline__ void publish_group(uint32_t own) const {
        if (threadIdx.x >= DIGITS || tile % GROUP != GROUP - 1) return;
        store_relaxed(group_word(tile / GROUP), turn((tile < GROUP ? SUM : OWN) | (before_in_group() + own)));
    }

    // The keys with this thread's digit in the groups before this tile's.
    __device__ __forceinline__ Offset look_back(uint32_t group) const {
        Offset before = 0;
        uint32_t done = 0;             // groups added up, from the one before this backwards
        while (true) {
            Offset words[READ];
#pragma unroll
            for (uint32_t i = 0; i < READ; i++) {
                words[i] = done + i < group ? turn(load_relaxed(group_word(group - 1 - done - i))) : SUM;
            }
#pragma unroll
            for (uint32_t i = 0; i < READ; i++) {
                if ((words[i] & ~NUMBER) == 0) break;
                before += words[i] & NUMBER;
                if (words[i] & SUM) return before;
                done++;
            }
        }
    }

    // Where the tile's keys of each digit go.
    __device__ __forceinline__ void find_first(uint32_t own, uint32_t place) const {
        if (threadIdx.x >= DIGITS) return;
        Offset before = before_in_group();
        const uint32_t group = tile / GROUP;
        if (group != 0) {
            before += look_back(group);
            if (tile % GROUP == GROUP - 1) store_relaxed(group_word(group), turn(SUM | (before + own)));
        }
        shared.first[threadIdx.x] = of_array(args, args.bins)[pass * DIGITS + threadIdx.x] + before - place;
    }

    // Four items at a time, or else the compiler reads all keys at once into registers that the values need.
    static __device__ __forceinline__ void pause_after(uint32_t item) {
        if (VALUES && item % 4 == 3) asm volatile("" ::: "memory");
    }

    template <bool FULL>
    __device__ __forceinline__ void write_keys(Digits& digits) const {
        Key* const to = target_keys();
        const bool writes_keys = this->writes_keys();
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            const uint32_t place = threadIdx.x + i * THREADS;
            if (!FULL && place >= count) break;
            const Key key = exchanged_keys()[place];
            const uint32_t d = digit(key);
            if (writes_keys) to[shared.first[d] + place] = key;
            if (VALUES) pack<8>(digits[i / 4], i % 4, d);
            pause_after(i);
        }
    }

    template <bool FULL>
    __device__ __forceinline__ void write_values(const Digits& digits) const {
        Value* const to = target_values();
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            const uint32_t place = threadIdx.x + i * THREADS;
            if (!FULL && place >= count) break;
            to[shared.first[digits[i / 4] >> 8 * (i % 4) & 255] + place] = exchanged_values()[place];
            pause_after(i);
        }
    }

    template <bool FULL>
    __device__ __forceinline__ void write(const Value (&values)[ITEMS], const Places& places) const {
        Digits digits;
        write_keys<FULL>(digits);
        if (!VALUES) return;
        __syncthreads();
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) exchanged_values()[places[i / 2] >> 16 * (i % 2) & 0xffff] = values[i];
        __syncthreads();
        write_values<FULL>(digits);
    }

    __device__ __forceinline__ void process() {
        if (!take_tile()) return;
        if (state & COPY) return copy();

        Key keys[ITEMS];
        load_items(keys, source_keys(), Key(args.order.padding));
        count_digits(keys);
        stall_if_asked();
        uint32_t own = 0;
        const uint32_t place = place_digits(own);
        publish_group(own);
        Places places;
        rank(keys, places);
        stall_if_asked();
        find_first(own, place);
        Value values[ITEMS];           // on their way while the keys are written
        if (VALUES) load_values(values);
        __syncthreads();
        if (full()) write<true>(values, places);
        else write<false>(values, places);
    }
};

template <bool FLOAT, uint32_t VALUE_BYTES, uint32_t THREADS, uint32_t ITEMS>
__device__ __forceinline__ void run_pass(const Args& args, uint32_t pass) {
    extern __shared__ uint4 shared_memory[];
    using ThisPass = Pass<FLOAT, VALUE_BYTES, THREADS, ITEMS>;
    const uint32_t state = of_array(args, args.header)->state[pass];
    if (state & RUN) ThisPass(args, *reinterpret_cast<typename ThisPass::Shared*>(shared_memory), pass, state).process();
}

}  // namespace
