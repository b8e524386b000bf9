// Least-significant-digit radix sort by digits of four bits, whose tiles are sorted on chip before
// they are scattered.
//
// N. Satish, M. Harris, M. Garland: Designing Efficient Sorting Algorithms for Manycore GPUs, IPDPS
// 2009, section III.
//
// Compiled with KEY_BITS 32 or 64, for at most 2^32 - 1 keys. Keys keep their own bits in memory;
// common/radix_key.cuh makes digits of them. The four steps of a pass (section III), launched in
// this order without the host waiting:
//
//   tile      a block a tile of `threads * items` keys
//     1  load the tile, sort it by the digit with four 1-bit splits on chip
//     2  write the sorted tile, and its 16 counts into the digit-major table (Figure 2:
//        column-major, one column a block)
//   scan      3  a block a digit: prefix sum over the digit's row of the table; a block more
//             plans the passes, the first time. Only for many tiles, see below
//   scatter   4  a block a tile: each run of equal digits goes, in order, to where the table says
//
// A tile goes to the temporary buffer and from there to the output, in every pass, so a sort in
// place needs no further step, and only the first pass reads the input. Few keys are a single tile
// (p = 1), which one block sorts by all digits in one launch.
//
// Bytes a key of B bytes with a value of V bytes and pass run: 4 (B + V), and some hundred bytes of
// the table a tile, mostly in the level-two cache. Eight passes over u32: 128, pairs of u32: 256.
//
// The splits. A 1-bit split moves the keys with a 0 before those with a 1, all in their order; four
// of them, from the lowest bit, sort by the digit. Its scan of flags is a ballot and a population
// count of the lanes below. Here the four ballots of a row of 32 keys are taken before any key
// moves, and their scans are made at once: lane l keeps the sum for digit l % 16, whose keys of a
// row are the AND of the four ballots, each complemented where the digit has a 0. A key reads both
// sums, of its row and of the rows before, from the lane of its digit. So the tile crosses shared
// memory once a digit, not four times, and needs two barriers.
//
// Instructions a key and pass, predicted: tile 28 (digit 2, tests and ballots 8, AND 4, sums 4,
// shuffles 2, place 4, load, put and write 3) and the tile's share, scatter 10. Four splits one
// after the other, each through shared memory, would take 60 to 70. At two cycles a logic
// instruction that is about 45 cycles a row of 32 keys, as long as moving its bytes takes: both
// kernels should be bound by memory. Measured (H200 on 2026-11-21, 16 keys a thread, u32): 40 and
// 18. Of 2^26 keys a pass takes 0.16 ms for the tiles, 0.01 for the scan, 0.14 for the scatter,
// where copying the bytes takes 0.13; the level-two cache is at 90 and 87 % of its rate. 27.4 G
// keys/s, 0.82 of the limit by bytes; pairs of u32 14.4, 0.86. docs/benchmarks.md has the rates of
// another run.
//
// Departures from the paper, and what each gains on an H200 (2^26 keys of u32 unless said):
//  - Tiles of 4096 keys, 16 a thread, in registers, for 1024, 4 a thread: longer runs, a smaller
//    table. 8 a thread: 7 % slower.
//  - The four splits of a digit in one, see above: about half the instructions and a quarter of the
//    exchanges.
//  - Steps 1 and 2 are one kernel.
//  - With up to 512 tiles step 3 is made by the scatter, each block adding up the table's rows: two
//    launches a pass instead of three, 10 % at 2^21 keys. Where the paper has one prefix sum over
//    the whole table, here each digit's row has its own, and the scatter adds the sum over the
//    digits.
//  - A digit that all keys share is left out: the first pass, which reads all keys anyway, finds
//    the bits that vary. Its launches remain, and their blocks end at once.
//  - Few keys take one launch instead of sixteen: 11 us for 1,024 keys in a graph, where 16,384
//    take 42.
//  - The scatter takes the tiles from the last, which is still in the level-two cache: this saves
//    2 %. It moves the values after the keys, not each beside its key: fewer addresses are written
//    at a time, 8 % of a sort of pairs.
//  - An index sort generates its values in the first pass that runs; none are read. If its keys are
//    not wanted, the last pass that runs does not write them.

#include "satish_radix.cuh"
#include "satish_radix_tuning.cuh"

namespace radsweep::satish_radix {

// ---- Steps 1 and 2 ----

template <bool FLOAT, u32 VALUE_BYTES, u32 THREADS, u32 ITEMS>
struct Tile {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    using TileSplit = Split<FLOAT, THREADS, ITEMS>;
    static constexpr u32 KEYS = THREADS * ITEMS;
    static constexpr bool VALUES = VALUE_BYTES != 0;

    // The host gives this many bytes (tuning.rs: tile_shared_bytes).
    struct Shared {
        uint4 keys[KEYS * sizeof(Key) / 16];
        uint4 values[KEYS * VALUE_BYTES / 16 + 1];
        typename TileSplit::Shared split;
        Key varying[TileSplit::WARPS];
    };

    const Args& args;
    Shared& shared;
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const u32 first;  // of the thread's keys in the tile; the others are a warp apart
    // Of the tile's keys; the rest is padding, which sorts behind every key of the tile.
    u32 start, count;

    DEVICE Tile(const Args& args, Shared& shared)
        : args(args), shared(shared),
          first(threadIdx.x / WARP * WARP * ITEMS + threadIdx.x % WARP) {}

    template <class T>
    DEVICE void load(T (&items)[ITEMS], const T* from, T padding) const {
        from += start + first;
        if (count == KEYS) load_items<true, WARP>(items, from, first, count, padding);
        else load_items<false, WARP>(items, from, first, count, padding);
    }

    DEVICE void load_values(Value (&values)[ITEMS], u32 source) const {
        const Value* const from = static_cast<const Value*>(args.values[source]);
        if (from != nullptr) return load(values, from, Value(0));
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) values[i] = Value(start + first + i * WARP);
    }

    // The bits in which the keys of this thread's warp differ from the first key of all.
    DEVICE Key warp_varying(const Key (&keys)[ITEMS]) const {
        const Ordering<FLOAT> ordering = ordering_of<FLOAT>(args.order);
        const Key reference = ordering(args.keys[INPUT][0]);
        Key varying = 0;
        for_items<ITEMS, WARP>(
            first, count, [&](u32 i, u32) { varying |= ordering(keys[i]) ^ reference; });
        return warp_or(varying);
    }

    // Writes the sorted tile from shared memory.
    template <u32 BYTES>
    DEVICE void write(const uint4* from, void* to) const {
        constexpr u32 VECTORS = ITEMS * BYTES / 16;
        static_assert(ITEMS * BYTES % 16 == 0, "tile shape");
        uint4* const vectors =
            reinterpret_cast<uint4*>(static_cast<char*>(to) + u64(start) * BYTES);
#pragma unroll
        for (u32 i = 0; i < VECTORS; i++)
            vectors[threadIdx.x + i * THREADS] = from[threadIdx.x + i * THREADS];
    }

    DEVICE void process(u32 pass) {
        const u32 n = u32(key_count(args));
        start = blockIdx.x * KEYS;
        if (start >= n) return;
        count = n - start < KEYS ? n - start : KEYS;
        u32 source = INPUT;
        if (pass != 0) {
            const Plan plan{args.header->varying, shift_of(args.order, pass)};
            if (!plan.runs()) return;
            if (plan.moved_before()) source = OUTPUT;
        }

        Key keys[ITEMS];
        Value values[ITEMS];
        load(keys, args.keys[source], Key(args.order.padding));
        if (VALUES) load_values(values, source);
        if (pass == 0) {
            const Key varying = warp_varying(keys);
            if (lane == 0) shared.varying[warp] = varying;
        }

        const Digit<FLOAT> digit = digit_of<BITS, FLOAT>(args.order, pass);
        u32 offsets[ITEMS];
        const u32 total = TileSplit::offsets(keys, ITEMS, digit, shared.split, offsets);
        if (threadIdx.x < DIGITS) {
            const u32 padding = lane == digit.mask ? KEYS - count : 0;
            args.table[u64(lane) * args.stride + blockIdx.x] = total - padding;
        }
        if (pass == 0 && threadIdx.x == 0) {
            Key varying = 0;
            for (u32 w = 0; w < TileSplit::WARPS; w++) varying |= shared.varying[w];
            args.varying[blockIdx.x] = varying;
        }
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            at_offset<Key>(shared.keys, offsets[i]) = keys[i];
            if (VALUES) at_offset<Value>(shared.values, offsets[i]) = values[i];
        }
        __syncthreads();
        write<sizeof(Key)>(shared.keys, args.keys[TEMP]);
        if constexpr (VALUES) write<VALUE_BYTES>(shared.values, args.values[TEMP]);
    }
};

// ---- Step 3 ----

constexpr u32 SCAN_THREADS = 1024, SCAN_ITEMS = 16;

// Gathers the bits that vary, for the passes to come and the report. One block.
DEVICE void make_plan(const Args& args, u32 n, u32 tiles) {
    __shared__ Key of_warps[WARP];
    Key varying = 0;
    for (u32 tile = threadIdx.x; tile < tiles; tile += blockDim.x) varying |= args.varying[tile];
    varying = warp_or(varying);
    if (threadIdx.x % WARP == 0) of_warps[threadIdx.x / WARP] = varying;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (u32 w = 1; w < blockDim.x / WARP; w++) varying |= of_warps[w];
    args.header->varying = u64(varying) & args.order.window;
    const u32 passes = pass_count<BITS>(args.order);
    u32 run = 0;
    for (u32 p = 0; p < passes; p++)
        run += Plan{args.header->varying, shift_of(args.order, p)}.runs();
    args.header->outcome = Outcome{SATISH_RADIX, passes, run, run == 0, n, 0};
}

// The prefix sum over a digit's row, and the sum of all behind it.
DEVICE void scan_row(u32* row, u32 tiles) {
    __shared__ u32 of_warps[SCAN_THREADS / WARP];
    u32 carry = 0;
    for (u32 begin = 0; begin <= tiles; begin += SCAN_THREADS * SCAN_ITEMS) {
        const u32 at = begin + threadIdx.x * SCAN_ITEMS;
        uint4* const vectors = reinterpret_cast<uint4*>(row + at);
        uint4 words[SCAN_ITEMS / 4];
        u32 sum = 0;
#pragma unroll
        for (u32 v = 0; v < SCAN_ITEMS / 4; v++) {
            words[v] = at <= tiles ? vectors[v] : make_uint4(0, 0, 0, 0);
            u32* const word[4] = {&words[v].x, &words[v].y, &words[v].z, &words[v].w};
#pragma unroll
            for (u32 w = 0; w < 4; w++) {
                const u32 own = at + v * 4 + w < tiles ? *word[w] : 0;
                *word[w] = sum;
                sum += own;
            }
        }
        u32 total;
        const u32 before = carry + block_exclusive_sum<SCAN_THREADS / WARP>(sum, of_warps, total);
        if (at <= tiles) {
#pragma unroll
            for (u32 v = 0; v < SCAN_ITEMS / 4; v++) {
                vectors[v] = make_uint4(
                    words[v].x + before, words[v].y + before, words[v].z + before,
                    words[v].w + before);
            }
        }
        carry += total;
        __syncthreads();
    }
}

// A block for each digit; in pass 0 one more, for the plan.
template <u32 TILE_KEYS>
DEVICE void scan(const Args& args, u32 pass) {
    const u32 n = u32(key_count(args)), tiles = n / TILE_KEYS + (n % TILE_KEYS != 0);
    if (blockIdx.x == DIGITS) return make_plan(args, n, tiles);
    if (pass != 0 && !Plan{args.header->varying, shift_of(args.order, pass)}.runs()) return;
    scan_row(args.table + u64(blockIdx.x) * args.stride, tiles);
}

// ---- Step 4 ----

template <bool FLOAT, u32 VALUE_BYTES, u32 THREADS, u32 ITEMS>
struct Scatter {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    static constexpr u32 KEYS = THREADS * ITEMS, WARPS = THREADS / WARP;
    static constexpr bool VALUES = VALUE_BYTES != 0;

    // A tile's entries of a digit's row of the table.
    struct Row {
        u32 before, own, total;  // keys with the digit: in the tiles before, in the tile, in all
    };

    const Args& args;
    const u32 pass, lane = threadIdx.x % WARP;
    u32 tile, tiles, start, count;  // the tile and how many there are; of its keys

    DEVICE Scatter(const Args& args, u32 pass) : args(args), pass(pass) {}

    // Step 3 for this tile alone, if no scan ran before. Each warp adds up a few digits' rows, four
    // tiles a lane at once.
    DEVICE Row sum_row() const {
        constexpr u32 ROWS = DIGITS / WARPS;
        static_assert(DIGITS % WARPS == 0, "a block for all digits");
        __shared__ Row rows[DIGITS];
        const u32 digit = threadIdx.x / WARP * ROWS;
        const u32* const counts = args.table + u64(digit) * args.stride;
        u32 before[ROWS] = {}, total[ROWS] = {};
        for (u32 t = lane * 4; t < tiles; t += WARP * 4) {
#pragma unroll
            for (u32 r = 0; r < ROWS; r++) {
                const uint4 vector = *reinterpret_cast<const uint4*>(counts + r * args.stride + t);
                const u32 words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
                for (u32 w = 0; w < 4; w++) {
                    total[r] += t + w < tiles ? words[w] : 0;
                    before[r] += t + w < tile ? words[w] : 0;
                }
            }
        }
#pragma unroll
        for (u32 r = 0; r < ROWS; r++) {
            const Row row{warp_sum(before[r]), counts[r * args.stride + tile], warp_sum(total[r])};
            if (lane == 0) rows[digit + r] = row;
        }
        __syncthreads();
        return rows[lane % DIGITS];
    }

    DEVICE Row scanned_row() const {
        const u32* const sums = args.table + u64(lane % DIGITS) * args.stride;
        return Row{sums[tile], sums[tile + 1] - sums[tile], sums[tiles]};
    }

    // Copies the input to the output: there is nothing to sort by.
    DEVICE void copy() const {
        const Value* const values = static_cast<const Value*>(args.values[INPUT]);
        for (u32 i = start + threadIdx.x; i - start < count; i += THREADS) {
            if (!(args.flags & IN_PLACE)) args.keys[OUTPUT][i] = args.keys[INPUT][i];
            if (VALUES)
                static_cast<Value*>(args.values[OUTPUT])[i] =
                    values != nullptr ? values[i] : Value(i);
        }
    }

    DEVICE void process() {
        const u32 n = u32(key_count(args)), passes = pass_count<BITS>(args.order);
        tiles = n / KEYS + (n % KEYS != 0);
        const bool plans =
            passes == 0 || (pass == 0 && !(args.flags & SCANNED));  // else the scan kernel does
        if (plans && blockIdx.x == 0) make_plan(args, n, passes == 0 ? 0 : tiles);
        if (blockIdx.x >= tiles) return;
        tile = tiles - 1 - blockIdx.x;
        start = tile * KEYS;
        count = n - start < KEYS ? n - start : KEYS;
        if (passes == 0) return copy();

        // Pass 0 has no plan yet; the table alone tells it whether its digit varies.
        bool writes_keys = true;
        if (pass != 0) {
            const Plan plan{args.header->varying, shift_of(args.order, pass)};
            if (plan.varying == 0 && pass == passes - 1) return copy();
            if (!plan.runs()) return;
            writes_keys = !(VALUES && plan.last() && args.flags & DROP_KEYS);
        }

        const u32 first = threadIdx.x / WARP * WARP * ITEMS + lane;
        Key keys[ITEMS];
        load_items<true, WARP>(keys, args.keys[TEMP] + start + first, first, count, Key(0));
        const Row row = args.flags & SCANNED ? scanned_row() : sum_row();
        if (pass == 0 && __any_sync(ALL_LANES, row.total == n)) {
            if (passes == 1) copy();
            return;
        }
        // Where the tile's keys of this lane's digit go, less their offset in the tile.
        const u32 offset =
            sum_of_digits_below(row.total, lane) + row.before - sum_of_digits_below(row.own, lane);
        const Digit<FLOAT> digit = digit_of<BITS, FLOAT>(args.order, pass);
        u32 to[ITEMS];
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            const u32 at = first + i * WARP;
            to[i] = __shfl_sync(ALL_LANES, offset, digit(keys[i])) + at;
            if (at < count && writes_keys) args.keys[OUTPUT][to[i]] = keys[i];
        }
        if (!VALUES) return;
        Value values[ITEMS];
        const Value* const from = static_cast<const Value*>(args.values[TEMP]) + start + first;
        load_items<true, WARP>(values, from, first, count, Value(0));
        for_items<ITEMS, WARP>(first, count, [&](u32 i, u32) {
            static_cast<Value*>(args.values[OUTPUT])[to[i]] = values[i];
        });
    }
};

// ---- All digits of few keys, by one block ----

template <bool FLOAT, u32 VALUE_BYTES, u32 THREADS, u32 ITEMS>
struct Small {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    using SmallSplit = Split<FLOAT, THREADS, ITEMS>;
    static constexpr u32 ELEMENT = sizeof(Key) > VALUE_BYTES ? sizeof(Key) : VALUE_BYTES;
    static constexpr bool VALUES = VALUE_BYTES != 0;

    // The host gives this many bytes (tuning.rs: small_shared_bytes).
    struct Shared {
        uint4 exchange[THREADS * ITEMS * ELEMENT / 16];  // keys, then values
        typename SmallSplit::Shared split;
    };

    Shared& shared;
    const u32 rows;   // of a warp
    const u32 first;  // of the thread's keys

    template <class T>
    DEVICE void exchange(T (&items)[ITEMS], const u32 (&offsets)[ITEMS]) const {
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            if (i < rows) at_offset<T>(shared.exchange, offsets[i]) = items[i];
        }
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            if (i < rows) items[i] = reinterpret_cast<const T*>(shared.exchange)[first + i * WARP];
        }
    }

    static DEVICE void sort(const Args& args, Shared& shared) {
        const u32 n = u32(key_count(args)), passes = pass_count<BITS>(args.order),
                  rows = (n + THREADS - 1) / THREADS;
        const u32 lane = threadIdx.x % WARP, first = threadIdx.x / WARP * WARP * rows + lane;
        const Small block{shared, rows, first};
        const Value* const values_from = static_cast<const Value*>(args.values[INPUT]);
        Key keys[ITEMS];
        Value values[ITEMS];
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            const u32 at = first + i * WARP;
            keys[i] = Key(args.order.padding);
            values[i] = Value(at);
            if (i < rows && at < n) {
                keys[i] = args.keys[INPUT][at];
                if (VALUES && values_from != nullptr) values[i] = values_from[at];
            }
        }
        u32 run = 0;
        for (u32 pass = 0; pass < passes; pass++) {
            const Digit<FLOAT> digit = digit_of<BITS, FLOAT>(args.order, pass);
            u32 offsets[ITEMS];
            const u32 total = SmallSplit::offsets(keys, rows, digit, shared.split, offsets);
            const u32 padding = lane % DIGITS == digit.mask ? rows * THREADS - n : 0;
            if (__any_sync(ALL_LANES, total - padding == n)) {  // all have the same digit
                __syncthreads();
                continue;
            }
            // The next exchange of keys comes after the next barrier of `offsets`.
            block.exchange(keys, offsets);
            if (VALUES) __syncthreads();
            if (VALUES) block.exchange(values, offsets);
            run++;
        }
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            const u32 at = first + i * WARP;
            if (i < rows && at < n) {
                args.keys[OUTPUT][at] = keys[i];
                if (VALUES) static_cast<Value*>(args.values[OUTPUT])[at] = values[i];
            }
        }
        if (threadIdx.x == 0)
            args.header->outcome = Outcome{SATISH_RADIX, passes, run, run == 0, n, 0};
    }
};

// ---- Entry points. A name carries the shape, so that host and device cannot disagree ----

#define TILE(KIND, FLOAT, VALUE_BYTES, THREADS, ITEMS, BLOCKS)                             \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                          \
    satish_radix_tile_##KIND##_##VALUE_BYTES##_##THREADS##x##ITEMS(                        \
        const Args args, const u32 pass) {                                                 \
        extern __shared__ uint4 shared_memory[];                                           \
        using ThisTile = Tile<FLOAT, VALUE_BYTES, THREADS, ITEMS>;                         \
        ThisTile(args, *reinterpret_cast<ThisTile::Shared*>(shared_memory)).process(pass); \
    }                                                                                      \
    extern "C" __global__ void __launch_bounds__(THREADS)                                  \
    satish_radix_scatter_##KIND##_##VALUE_BYTES##_##THREADS##x##ITEMS(                     \
        const Args args, const u32 pass) {                                                 \
        Scatter<FLOAT, VALUE_BYTES, THREADS, ITEMS>(args, pass).process();                 \
    }
#define TILES(VALUE_BYTES, THREADS, ITEMS, BLOCKS)                                             \
    TILE(integer, false, VALUE_BYTES, THREADS, ITEMS, BLOCKS)                                  \
    TILE(float, true, VALUE_BYTES, THREADS, ITEMS, BLOCKS)                                     \
    extern "C" __global__ void                                                                 \
        __launch_bounds__(SCAN_THREADS) satish_radix_scan_##VALUE_BYTES##_##THREADS##x##ITEMS( \
            const Args args, const u32 pass) {                                                 \
        scan<THREADS * ITEMS>(args, pass);                                                     \
    }
SATISH_TILES(TILES)

#define SMALL(KIND, FLOAT, VALUE_BYTES, THREADS, ITEMS)                                           \
    extern "C" __global__ void __launch_bounds__(THREADS)                                         \
    satish_radix_small_##KIND##_##VALUE_BYTES##_##THREADS##x##ITEMS(const Args args, const u32) { \
        extern __shared__ uint4 shared_memory[];                                                  \
        using ThisSmall = Small<FLOAT, VALUE_BYTES, THREADS, ITEMS>;                              \
        ThisSmall::sort(args, *reinterpret_cast<ThisSmall::Shared*>(shared_memory));              \
    }
#define SMALLS(VALUE_BYTES, THREADS, ITEMS)            \
    SMALL(integer, false, VALUE_BYTES, THREADS, ITEMS) \
    SMALL(float, true, VALUE_BYTES, THREADS, ITEMS)
SATISH_SMALL(SMALLS)

}  // namespace radsweep::satish_radix
