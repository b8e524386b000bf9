// Onesweep: least-significant-digit radix sort, 8-bit digits, each pass reading and writing every key once.
// A. Adinets, D. Merrill: Onesweep: A Faster Least Significant Digit Radix Sort for GPUs, 2022, arXiv 2206.01784.
//
// Compiled with KEY_BITS (32, 64) and OFFSET_BITS (32: at most 2^30 - 1 keys; 64: any number). Keys keep their own bits in
// memory; common/radix_key.cuh makes digits of them. Launched in this order, always the same, without the host waiting:
//
//   memset        Header, bins and look-back words to 0
//   histogram     (a few blocks a multiprocessor) x 512 threads, 16-byte loads
//     1  count all digits of all passes in one read of the keys; compare neighbours (order check)
//     2  the block that ends last: exclusive sums of the counts, and the plan: which passes run, between which buffers
//   pass          one block a tile, once per digit; a pass that the plan leaves out ends at once
//     1  take the next tile number; load the tile, warp-striped
//     2  count the digits per warp; publish the tile's counts
//     3  exclusive sums over digits, then over warps within a digit: where each warp's first key of a digit goes in the tile
//     4  rank each key among its warp's (common/warp.cuh) and put it, with its value, at its place in the tile
//     5  look back: add up the counts of the tiles before, publish the sum including this tile's
//     6  write the tile out, digit by digit in consecutive addresses
//   copy_back     only for sorts in place: when an odd number of passes left the result in the temporary buffer
//
// Several arrays of one length are sorted side by side: gridDim.y of them in each launch.
//
// Bytes a key of B bytes with a value of V bytes, P passes run: B for the histogram and 2 P (B + V) for the
// passes, and about 4 KiB a tile and pass of look-back words, mostly in L2. Four passes over u32: 36, pairs 68.
//
// Instructions a key and pass, counted in the SASS for sm_90 (u32 keys, 20 a thread): 5 to load and count, 41 to rank and put
// (28 of them match_digit), 9 to write, about 12 more for the tile's sums and its look-back; 21 in the histogram kernel for
// all four digits. Wavefronts of shared memory for 32 random keys: about 17 (four accesses of 3.4 each, the rest in order).
//
// Departures from the paper:
//  - The keys' order is checked (Ha, Krüger, Silva 2009, §4.2), here once, in the histogram kernel; passes whose digit all keys
//    share are left out. The plan alternates buffers so that the result lands in the caller's whatever the number of passes.
//  - A tile's counts are published before its keys are ranked, so that the ranking hides the look-back's latency.
//  - The look-back words need no clearing between passes: each pass that runs reads them with the top bit turned over, which
//    makes what the last one left ("inclusive") mean "nothing yet".
//  - Several predecessors are read at once in the look-back.
//  - An index sort makes its values up in its first pass; none are read.

#include "../common/warp.cuh"
#include "../common/radix_key.cuh"
#include "adaptive.cuh"
#include "outcome.cuh"
#include "onesweep_digit.cuh"
#include "onesweep_tuning.cuh"

using namespace radsweep;

#if OFFSET_BITS == 32
using Offset = uint32_t;
#elif OFFSET_BITS == 64
using Offset = uint64_t;
#else
#error "OFFSET_BITS must be 32 or 64"
#endif

namespace {

constexpr uint32_t ARRAYS = 3;         // sorted side by side, at most
constexpr uint32_t MAX_PASSES = KEY_BITS / 8;

// ---- What the host passes, and what stays in the scratch memory. The host's copies: crates/gpusort/src/cuda/layout.rs. ----

enum Buffer : uint32_t { INPUT, OUTPUT, TEMP };

constexpr uint32_t IN_PLACE = 1;       // Args::flags: input and output are one buffer
constexpr uint32_t DROP_KEYS = 2;      // Args::flags: the sorted keys are not wanted
constexpr uint32_t NEARLY_SORTED = 4;  // Args::flags: a kernel of adaptive.cu ran before

struct Args {
    Key* keys[ARRAYS][3];              // by Buffer
    void* values[ARRAYS][3];           // by Buffer; a null input means 0, 1, 2, ...
    uint64_t stride;                   // bytes from the next four of one array to those of the next array
    struct Header* header;
    Offset* bins;                      // [pass][digit]: counts, then where the digit's keys begin
    Offset* own;                       // [tile][digit]: the keys of each tile
    Offset* groups;                    // [group][digit]: the look-back words
    const uint64_t* device_count;      // null, or where the number of keys stands, at most n
    uint64_t n;
    KeyOrder order;
    KeyOrder order_again;              // the same; see Pass::rank
    uint32_t flags;
    uint32_t minus_one;                // 0xffffffff, see match_digit
    uint32_t stall_tile;               // for tests: this tile waits, before publishing its counts and again before its sums
    uint32_t stall_cycles;
};

// PassState bits.
constexpr uint32_t RUN = 1, COPY = 2, LAST = 4, TURNED = 8;
constexpr uint32_t SOURCE_SHIFT = 8, TARGET_SHIFT = 12;

struct Header {
    Outcome outcome;
    uint32_t unsorted;                 // 1: some key is less than the one before
    uint32_t finished;                 // blocks of the histogram kernel that ended
    uint32_t copy_back;                // 1: the result is in the temporary buffer
    uint32_t unused;
    uint32_t next_tile[8];             // by pass
    uint32_t state[8];                 // by pass
};

__device__ __forceinline__ uint64_t key_count(const Args& args) {
    if (args.device_count == nullptr) return args.n;
    const uint64_t count = *args.device_count;
    return count < args.n ? count : args.n;
}

// Of the array that this block works for: header, bins or look-back words, given the first array's.
template <class T>
__device__ __forceinline__ T* of_array(const Args& args, T* first) {
    return reinterpret_cast<T*>(reinterpret_cast<char*>(first) + blockIdx.y * args.stride);
}

// ---- Histogram ----

constexpr uint32_t HISTOGRAM_THREADS = 512;
constexpr uint32_t HISTOGRAM_UNROLL = 2;
constexpr uint32_t COPIES = 32 / sizeof(Key);  // of each count, for different lanes: fewer of a warp's atomics meet in a bank
constexpr uint32_t VECTOR = 16 / sizeof(Key);
constexpr uint32_t CHUNK = HISTOGRAM_THREADS * HISTOGRAM_UNROLL;  // vectors that a block reads at once

union KeyVector {
    uint4 words;
    Key keys[VECTOR];
};

template <bool FLOAT>
struct Histogram {
    const Args& args;
    uint32_t (&counts)[MAX_PASSES][DIGITS][COPIES];
    const uint64_t n;
    const Ordering<FLOAT> ordering;
    const Key* const keys;
    const uint64_t lead;               // keys between the 16-byte boundary before the first key and that key
    bool check = true;                 // uniform over the warp
    bool unsorted = false;

    __device__ Histogram(const Args& args, uint32_t (&counts)[MAX_PASSES][DIGITS][COPIES])
        : args(args), counts(counts), n(key_count(args)), ordering(ordering_of<FLOAT>(args.order)), keys(args.keys[blockIdx.y][INPUT]),
          lead(reinterpret_cast<uintptr_t>(args.keys[blockIdx.y][INPUT]) % 16 / sizeof(Key)) {}

    // Chunk of vectors from `first`; INSIDE where it holds keys only. Vector v holds the keys from v * VECTOR - lead on; an
    // index before the first key wraps to a large one, so that `index < n` tells keys from the rest at both ends.
    template <bool INSIDE>
    __device__ __forceinline__ void count_chunk(uint64_t first) {
        KeyVector vectors[HISTOGRAM_UNROLL];
        const uint32_t lane = threadIdx.x % WARP;
#pragma unroll
        for (uint32_t u = 0; u < HISTOGRAM_UNROLL; u++) {
            const uint64_t vector = first + u * HISTOGRAM_THREADS + threadIdx.x;
            if (INSIDE) {
                vectors[u].words = reinterpret_cast<const uint4*>(keys - lead)[vector];
            } else {
#pragma unroll
                for (uint32_t e = 0; e < VECTOR; e++) {
                    const uint64_t index = vector * VECTOR + e - lead;
                    vectors[u].keys[e] = index < n ? keys[index] : 0;
                }
            }
        }
        uint32_t valid = 0;            // a bit for each key
#pragma unroll
        for (uint32_t u = 0; u < HISTOGRAM_UNROLL; u++) {
            const uint64_t index = (first + u * HISTOGRAM_THREADS + threadIdx.x) * VECTOR - lead;
            if (check) check_order<INSIDE>(vectors[u], index, lane);
#pragma unroll
            for (uint32_t e = 0; e < VECTOR; e++) valid |= (INSIDE || index + e < n) << (u * VECTOR + e);
        }
#pragma unroll
        for (uint32_t pass = 0; pass < MAX_PASSES; pass++) {
            if (pass >= pass_count(args.order)) break;
            const Digit<FLOAT> digit = digit_of<FLOAT>(args.order, pass);
#pragma unroll
            for (uint32_t i = 0; i < HISTOGRAM_UNROLL * VECTOR; i++) {
                const uint32_t d = digit(vectors[i / VECTOR].keys[i % VECTOR]);
                if (valid >> i & 1) atomicAdd(&counts[pass][d][lane % COPIES], 1);
            }
        }
    }

    // Compares each key with the next. Neighbouring lanes hold neighbouring vectors; the last lane fetches its next key.
    template <bool INSIDE>
    __device__ __forceinline__ void check_order(const KeyVector& vector, uint64_t index, uint32_t lane) {
        Key next = __shfl_down_sync(ALL_LANES, vector.keys[0], 1);
        if (lane == WARP - 1 && index + VECTOR < n) next = keys[index + VECTOR];
#pragma unroll
        for (uint32_t e = 0; e < VECTOR; e++) {
            const Key after = e + 1 < VECTOR ? vector.keys[(e + 1) % VECTOR] : next;
            const bool both = (INSIDE || index + e < n) && (INSIDE && e + 1 < VECTOR || index + e + 1 < n);
            if (both && (ordering(after) & Key(args.order.window)) < (ordering(vector.keys[e]) & Key(args.order.window))) unsorted = true;
        }
        check = !__any_sync(ALL_LANES, unsorted);
    }

    __device__ __forceinline__ void count_all() {
        const uint64_t vectors = (lead + n + VECTOR - 1) / VECTOR;
        for (uint64_t first = uint64_t(blockIdx.x) * CHUNK; first < vectors; first += uint64_t(gridDim.x) * CHUNK) {
            if (first * VECTOR >= lead && (first + CHUNK) * VECTOR <= lead + n) count_chunk<true>(first);
            else count_chunk<false>(first);
        }
    }
};

// Turns the counts of all passes into exclusive sums, a warp a pass, and writes which passes run between which buffers.
__device__ void make_plan(const Args& args, uint64_t n) {
    __shared__ uint32_t one_digit[MAX_PASSES];
    const uint32_t lane = threadIdx.x % WARP, pass = threadIdx.x / WARP, passes = pass_count(args.order);
    constexpr uint32_t EACH = DIGITS / WARP;
    static_assert(HISTOGRAM_THREADS / WARP >= MAX_PASSES, "a warp for each pass");

    if (pass < passes) {
        Offset* const bins = of_array(args, args.bins) + pass * DIGITS + lane * EACH;
        Offset counts[EACH], sum = 0;
        bool all = false;
#pragma unroll
        for (uint32_t e = 0; e < EACH; e++) {
            counts[e] = load_relaxed(bins + e);
            sum += counts[e];
            all |= counts[e] == n;
        }
        Offset before = warp_inclusive_sum(sum, lane) - sum;
#pragma unroll
        for (uint32_t e = 0; e < EACH; e++) {
            bins[e] = before;
            before += counts[e];
        }
        all = __any_sync(ALL_LANES, all);
        if (lane == 0) one_digit[pass] = all;
    }
    __syncthreads();
    if (threadIdx.x != 0) return;

    Header& header = *of_array(args, args.header);
    const bool in_place = args.flags & IN_PLACE, sorted = load_relaxed(&header.unsorted) == 0;
    uint32_t active = 0;
    for (uint32_t p = 0; p < passes; p++) active += !sorted && !one_digit[p];
    uint32_t source = INPUT;
    for (uint32_t p = 0, k = 0; p < passes; p++) {
        if (sorted || one_digit[p]) continue;
        // In place from the input and back; else so that the last pass writes the output.
        const bool odd = in_place ? k % 2 == 0 : (active - 1 - k) % 2 == 1;
        const uint32_t target = odd ? TEMP : OUTPUT;
        header.state[p] = RUN | (k + 1 == active ? LAST : 0) | (k % 2 ? TURNED : 0) | source << SOURCE_SHIFT
            | target << TARGET_SHIFT;
        source = target;
        k++;
    }
    if (active == 0 && !in_place) header.state[0] = RUN | COPY | LAST | INPUT << SOURCE_SHIFT | OUTPUT << TARGET_SHIFT;
    header.copy_back = in_place && active % 2;
    header.outcome = Outcome{ONESWEEP, passes, active, sorted, n, 0};
}

// Whether a kernel of adaptive.cu has sorted. Then no pass is planned; a sort in place is still to be copied back.
__device__ __forceinline__ bool is_done(const Args& args) {
    Header* const header = of_array(args, args.header);
    if (!(args.flags & NEARLY_SORTED) || adaptive_state(header)->done == 0) return false;
    header->copy_back = args.flags & IN_PLACE;
    return true;
}

template <bool FLOAT>
__device__ __forceinline__ void histogram(const Args& args) {
    if (is_done(args)) return;
    __shared__ uint32_t counts[MAX_PASSES][DIGITS][COPIES];
    __shared__ bool ends_last;
    uint32_t* const flat = &counts[0][0][0];
    const uint32_t used = pass_count(args.order) * DIGITS;

    for (uint32_t i = threadIdx.x; i < used * COPIES; i += HISTOGRAM_THREADS) flat[i] = 0;
    __syncthreads();
    Histogram<FLOAT> block(args, counts);
    block.count_all();
    const bool unsorted = __syncthreads_or(block.unsorted);

    for (uint32_t i = threadIdx.x; i < used; i += HISTOGRAM_THREADS) {
        uint32_t count = 0;
#pragma unroll
        for (uint32_t c = 0; c < COPIES; c++) count += flat[i * COPIES + (c + i) % COPIES];
#if OFFSET_BITS == 32
        if (count != 0) atomicAdd(of_array(args, args.bins) + i, count);
#else
        if (count != 0) atomicAdd(reinterpret_cast<unsigned long long*>(of_array(args, args.bins) + i), (unsigned long long)count);
#endif
    }
    if (unsorted && threadIdx.x == 0) atomicOr(&of_array(args, args.header)->unsorted, 1);

    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) ends_last = atomicAdd(&of_array(args, args.header)->finished, 1) == gridDim.x - 1;
    __syncthreads();
    if (!ends_last) return;
    __threadfence();
    make_plan(args, block.n);
}

// ---- Pass ----

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

// ---- After the passes ----

template <class T>
__device__ __forceinline__ void copy_array(T* to, const T* from, uint64_t n) {
    for (uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += uint64_t(gridDim.x) * blockDim.x) to[i] = from[i];
}

template <uint32_t VALUE_BYTES>
__device__ __forceinline__ void copy_back(const Args& args) {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    if (of_array(args, args.header)->copy_back == 0) return;
    const uint64_t n = key_count(args);
    copy_array(args.keys[blockIdx.y][OUTPUT], args.keys[blockIdx.y][TEMP], n);
    if (VALUE_BYTES != 0) copy_array(static_cast<Value*>(args.values[blockIdx.y][OUTPUT]), static_cast<const Value*>(args.values[blockIdx.y][TEMP]), n);
}

}  // namespace

// ---- Entry points. A pass carries its tile shape in its name, so that host and device cannot disagree about it. ----

#define HISTOGRAM(KIND, FLOAT)                                                                                   \
    extern "C" __global__ void __launch_bounds__(HISTOGRAM_THREADS) onesweep_histogram_##KIND(const Args args) { \
        histogram<FLOAT>(args);                                                                                  \
    }
HISTOGRAM(integer, false)
HISTOGRAM(float, true)

#define PASS(KIND, FLOAT, VALUE_BYTES, THREADS, ITEMS, BLOCKS)                                               \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                            \
        onesweep_pass_##KIND##_##VALUE_BYTES##_##THREADS##x##ITEMS(const Args args, const uint32_t pass) {   \
        run_pass<FLOAT, VALUE_BYTES, THREADS, ITEMS>(args, pass);                                            \
    }
#define PASSES(VALUE_BYTES, THREADS, ITEMS, BLOCKS)          \
    PASS(integer, false, VALUE_BYTES, THREADS, ITEMS, BLOCKS) \
    PASS(float, true, VALUE_BYTES, THREADS, ITEMS, BLOCKS)
ONESWEEP_TILES(PASSES)

#define COPY_BACK(VALUE_BYTES) \
    extern "C" __global__ void __launch_bounds__(256) onesweep_copy_back_##VALUE_BYTES(const Args args) { copy_back<VALUE_BYTES>(args); }
COPY_BACK(0)
COPY_BACK(4)
COPY_BACK(8)
