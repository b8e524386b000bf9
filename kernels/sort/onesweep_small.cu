// Onesweep for small inputs: the whole sort in one launch, by one block or by a grid that is on the device at once.
//
// Up to about a million keys a sort is bounded by latencies: on an H200 each further launch of a stream costs 4 us (of the
// host's time), a grid-wide barrier 1.0 to 1.3 us, a trip to the level-two cache 0.13 us, and a pass of onesweep.cu over 2^18
// keys, which reads and writes them all, little more. So keys stay in registers and shared memory where they can, digits are
// counted when their turn comes, and the keys of a grid change blocks once.
//
//   one block      memory besides input and output is not touched
//     1  load the tile, warp-striped; compare neighbours (order check), collect the bits in which keys differ
//     2  for each digit in which some keys differ, steps 2 to 4 of a pass of onesweep.cu, on chip
//     3  write the tile
//   one grid       at most as many blocks as run at once, a tile a block
//     1  as above; also the lowest and the highest key; barrier of the grid, which CUDA keeps the counter of, so that no memory
//        needs to be 0 before and one launch is all; now all blocks know these
//     2  parts: a pass over up to 256 equal parts of the range between the two in the place of a digit. Each block counts its tile,
//        publishes the counts, ranks, reads all tiles' counts, writes its tile out part by part; barrier
//     3  each block loads its share of the parts, as many for each where they are even, else those that begin in its place, and
//        sorts them as one block does: they are the sorted output's
//   or, where the host says that the input may be nearly sorted and step 1 found few descents:
//     2" sort windows of it (adaptive_window.cuh); barrier; done, or else as above
//   or, where the keys lie so unevenly that some block's parts would not fit it, or differ in one digit only:
//     2' for each digit in which some keys differ, the same pass by that digit; barrier; each block loads the tile that is now
//        in its place
//
// The counts that blocks publish say themselves whether they are new, by their top bits, and so no barrier is needed there. Passes
// by digits write to the output and to a temporary buffer in turns, so that none overwrites what a slow block still reads. As every
// block has its tile on chip before any writes, a sort in place needs no copy.
//
// Several arrays of one length are sorted side by side: gridDim.y of them, each with its own header and counts.
//
// Cycles of a block of a grid over 2^14 (256 threads, 1 row) and 2^18 pairs (512 threads, 4 to 6 rows) on an H200, by clock64, in
// a form that kept the tile in registers, was unrolled for 16 rows, and had its own first barrier after a memset: load and look 2000,
// 2700; first barrier 2600, 4900; the pass by parts, with the scatter, 5200, 9600; barrier 2500, 3200; load and look 1800, 2100;
// each pass on chip 2100, 3400, of which sums over the digits 900, 1050 and ranking 250 a row. The straight-line code of more rows cost more than it saved: 2 us
// for 10 rows at any size, as the instructions are fetched for one use; hence the loops over rows here.

#include <cooperative_groups.h>

#include "onesweep_small_types.cuh"

namespace {

template <bool FLOAT, uint32_t VALUE_BYTES>
struct Small {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    static constexpr bool VALUES = VALUE_BYTES != 0;
    static constexpr bool TOGETHER = sizeof(Key) == 4 && VALUE_BYTES == 4;  // key and value share one 8-byte word of the exchange
    static constexpr uint32_t STRIDE = TOGETHER ? 8 : sizeof(Key);          // between keys in the exchange

    // Behind its 3200 bytes: twice 256 counters a warp, then two exchanges (small.rs: shared_bytes).
    struct alignas(128) Shared {
        Seen seen;
        uint32_t range[2];                             // where this block's parts begin and end
        uint32_t sums[GROUP], totals[GROUP];
        uint32_t parts[MAX_THREADS / DIGITS][DIGITS];  // counts of a group of warps; then where the bins of all tiles begin
        uint32_t first[DIGITS];                        // where the tile's keys of a digit go, less their place in the tile
    };

    static_assert(sizeof(Shared) == 3200, "as the host counts");

    const Args& args;
    Shared& shared;
    const Buffers& buffers;
    Header& header;
    const uint32_t lane, warp, warps;
    uint32_t (*const warp_counts)[DIGITS];
    char *source, *target;             // exchanges: the keys with their values, before and after a pass
    const uint32_t n, tile;            // keys of the sort, and of a tile
    uint32_t rows, base, count;        // of what is on chip: keys of a thread, keys before, keys; the rest is padding
    uint32_t barriers = 0;

    __device__ __forceinline__ Small(const Args& args, Shared& shared, uint32_t n)
        : args(args), shared(shared), buffers(args.buffers[blockIdx.y]),
          header(reinterpret_cast<Header*>(args.scratch)[blockIdx.y]), lane(threadIdx.x % WARP),
          warp(threadIdx.x / WARP), warps(blockDim.x / WARP), warp_counts(reinterpret_cast<uint32_t(*)[DIGITS]>(&shared + 1)),
          source(reinterpret_cast<char*>(warp_counts + 2 * warps)), target(source + args.capacity * (sizeof(Key) + VALUE_BYTES)), n(n), tile(args.rows * blockDim.x), rows(args.rows),
          base(blockIdx.x * tile), count(n > base ? (n - base < tile ? n - base : tile) : 0) {}

    __device__ __forceinline__ uint32_t first_place() const { return warp * WARP * rows + lane; }
    __device__ __forceinline__ uint32_t* counter(uint32_t digit) const { return &warp_counts[warp][digit]; }

    // All the array's blocks' writes before it are seen by all of them after it. Arrays may need different numbers of passes.
    __device__ __forceinline__ void barrier() {
        __syncthreads();
        if (threadIdx.x == 0) {
            const uint32_t all = ++barriers * gridDim.x;
            add_release(&header.arrived, 1);
            while (load_acquire(&header.arrived) < all) {}
        }
        __syncthreads();
    }

    // ---- Loads ----

    // Items of a thread are a warp apart, so that a warp reads consecutive addresses and its rows are in the keys' order.
    __device__ __forceinline__ void load(const Key* keys, const void* with) const {
        const Value* const values = static_cast<const Value*>(with);
#pragma unroll 4
        for (uint32_t i = 0; i < rows; i++) {
            const uint32_t place = first_place() + i * WARP;
            Key key = Key(args.order.padding);
            Value value = Value(base + place);
            if (place < count) {
                key = keys[base + place];
                if (VALUES && values != nullptr) value = values[base + place];
            }
            put(source, place * STRIDE, key, value);
        }
    }

    // What all keys here have in common; ALL: and the order check, and the lowest and the highest.
    template <bool ALL>
    __device__ __forceinline__ void look(const Key* from) const {
        const Ordering<FLOAT> ordering = ordering_of<FLOAT>(args.order);
        const Key window = Key(args.order.window);
        const Key one = ordering(from[ALL ? 0 : base]) & window;
        Key differing = 0, highest = 0, lowest = 0;
        uint32_t descents = 0;
#pragma unroll 2
        for (uint32_t i = 0; i < rows; i++) {
            const uint32_t place = first_place() + i * WARP;
            if (place >= count) break;
            const Key key = ordering(key_at(place)) & window;
            differing |= key ^ one;
            if (!ALL) continue;
            highest = highest > key ? highest : key;
            lowest = lowest > Key(~key) ? lowest : Key(~key);
            if (base + place + 1 < n) descents += (ordering(from[base + place + 1]) & window) < key;
        }
        add<ALL>({differing, highest, lowest, descents});
    }

    // Adds what each thread has seen to what the block has.
    template <bool ALL>
    __device__ __forceinline__ void add(Seen seen) const {
#pragma unroll
        for (uint32_t step = WARP / 2; step > 0; step /= 2) {
            seen.differing |= __shfl_xor_sync(ALL_LANES, seen.differing, step);
            if (!ALL) continue;
            const Key high = __shfl_xor_sync(ALL_LANES, seen.highest, step), low = __shfl_xor_sync(ALL_LANES, seen.lowest, step);
            seen.highest = seen.highest > high ? seen.highest : high;
            seen.lowest = seen.lowest > low ? seen.lowest : low;
            seen.descents += __shfl_xor_sync(ALL_LANES, seen.descents, step);
        }
        if (lane != 0) return;
        if (seen.differing != 0) atomicOr(atomic_word(&shared.seen.differing), KeyWord(seen.differing));
        if (!ALL) return;
        atomicMax(atomic_word(&shared.seen.highest), KeyWord(seen.highest));
        atomicMax(atomic_word(&shared.seen.lowest), KeyWord(seen.lowest));
        if (seen.descents != 0) atomicAdd(atomic_word(&shared.seen.descents), KeyWord(seen.descents));
    }

    __device__ __forceinline__ Seen& seen_by(uint32_t block) const {
        return reinterpret_cast<Seen*>(args.scratch + gridDim.y * HEADER_BYTES)[blockIdx.y * gridDim.x + block];
    }

    // The digits that are not the same in all keys, a bit each.
    __device__ __forceinline__ uint32_t digits_in(Key differing) const {
        uint32_t digits = 0;
        for (uint32_t pass = 0; pass < pass_count(args.order); pass++) {
            if (uint32_t(differing >> (args.order.begin + 8 * pass)) & 255) digits |= 1u << pass;
        }
        return digits;
    }

    // ---- The steps of a pass ----

    __device__ __forceinline__ void clear_counters() const {
        uint4* const counts = reinterpret_cast<uint4*>(warp_counts[warp]);
#pragma unroll
        for (uint32_t i = 0; i < DIGITS / 4; i += WARP) counts[i + lane] = make_uint4(0, 0, 0, 0);
        __syncwarp();
    }

    __device__ __forceinline__ void count_bins(const Bins<FLOAT>& bins) const {
#pragma unroll 2
        for (uint32_t i = 0; i < rows; i++) atomicAdd(counter(bins(key_at(first_place() + i * WARP))), 1);
        __syncthreads();
    }

    // The counts that blocks publish alternate between two tables. A block is at most one publication ahead of others, as a
    // barrier follows each pass but one that found no room; so it overwrites nothing that is still to be read.
    __device__ __forceinline__ uint32_t* counts_of(uint32_t block, uint32_t publication) const {
        const uint32_t table = 2 * blockIdx.y + publication % 2;
        return reinterpret_cast<uint32_t*>(args.scratch + gridDim.y * (HEADER_BYTES + gridDim.x * sizeof(Seen))) + (table * gridDim.x + block) * WORDS;
    }
    // The top bits of a publication's words; before the first ones they are turned.
    __device__ __forceinline__ static uint32_t turn_of(uint32_t publication) { return publication / 2 % 2 == 1 ? TURN : 0; }

    // Replaces the counts of each warp by where its keys begin, in bytes of the exchange; publishes the tile's counts. Returns
    // the place in the tile of the first key in the thread's bin.
    __device__ __forceinline__ uint32_t place_bins(bool publish, uint32_t last, uint32_t publication) const {
        const uint32_t d = threadIdx.x % DIGITS, group = threadIdx.x / DIGITS;
        uint32_t counts[GROUP], sum = 0;
#pragma unroll
        for (uint32_t w = 0; w < GROUP; w++) {
            counts[w] = warp_counts[group * GROUP + w][d];
            sum += counts[w];
        }
        uint32_t total = sum, before = 0;
        if (blockDim.x > DIGITS) {
            shared.parts[group][d] = sum;
            __syncthreads();
            const uint32_t others = shared.parts[1 - group][d];
            before = group == 0 ? 0 : others;
            total += others;
        }
        if (publish && group == 0) {
            const uint32_t own = d == last ? total - (rows * blockDim.x - count) : total;
            const uint32_t next = __shfl_down_sync(ALL_LANES, own, 1);
            if (d % 2 == 0) store_relaxed(counts_of(blockIdx.x, publication) + d / 2, (own | next << 16) ^ turn_of(publication));
        }
        const uint32_t up_to = warp_inclusive_sum(total, lane);
        if (group == 0 && lane == WARP - 1) shared.sums[warp] = up_to;
        __syncthreads();
        uint32_t place = up_to - total;
#pragma unroll
        for (uint32_t w = 0; w + 1 < GROUP; w++) {
            if (w < warp % GROUP) place += shared.sums[w];
        }
        uint32_t next = (place + before) * STRIDE;
#pragma unroll
        for (uint32_t w = 0; w < GROUP; w++) {
            warp_counts[group * GROUP + w][d] = next;
            next += counts[w] * STRIDE;
        }
        __syncthreads();
        return place;
    }

    // Behind the keys of an exchange.
    __device__ __forceinline__ Value* values_of(char* exchange) const { return reinterpret_cast<Value*>(exchange + args.capacity * sizeof(Key)); }

    __device__ __forceinline__ void put(char* exchange, uint32_t at, Key key, Value value) const {
        if (TOGETHER) {
            *reinterpret_cast<uint2*>(exchange + at) = make_uint2(uint32_t(key), uint32_t(value));
            return;
        }
        *reinterpret_cast<Key*>(exchange + at) = key;
        if (VALUES) values_of(exchange)[at / STRIDE] = value;
    }

    __device__ __forceinline__ Key key_at(uint32_t place) const { return *reinterpret_cast<const Key*>(source + place * STRIDE); }

    __device__ __forceinline__ void get(char* exchange, uint32_t place, Key& key, Value& value) const {
        if (TOGETHER) {
            const uint2 both = reinterpret_cast<const uint2*>(exchange)[place];
            key = both.x;
            value = Value(both.y);
            return;
        }
        key = reinterpret_cast<const Key*>(exchange)[place];
        if (VALUES) value = values_of(exchange)[place];
    }

    // A key's place: where its warp's next key of that bin goes, plus the lower lanes with the same bin. The highest lane of
    // each bin moves the counter on for the next row.
    __device__ __forceinline__ void rank(const Bins<FLOAT>& bins) const {
        const uint32_t up_to_me = lane_mask_le();
        constexpr uint32_t TWO = 2;    // rows matched together, to hide their latencies; the room for rows is even
#pragma unroll 1
        for (uint32_t i = 0; i < rows; i += TWO) {
            Key keys[TWO];
            Value values[TWO];
            uint32_t d[TWO], peers[TWO];
#pragma unroll
            for (uint32_t j = 0; j < TWO; j++) get(source, first_place() + (i + j) * WARP, keys[j], values[j]);
#pragma unroll
            for (uint32_t j = 0; j < TWO; j++) d[j] = bins(keys[j]);
#pragma unroll
            for (uint32_t j = 0; j < TWO; j++) peers[j] = match_digit(d[j], args.minus_one);
#pragma unroll
            for (uint32_t j = 0; j < TWO; j++) {
                if (i + j >= rows) break;
                const uint32_t after = *counter(d[j]) + __popc(peers[j] & up_to_me) * STRIDE;
                __syncwarp();
                if ((peers[j] & ~up_to_me) == 0) *counter(d[j]) = after;
                __syncwarp();
                put(target, after - STRIDE, keys[j], values[j]);
            }
        }
    }

    // Adds up the tiles' counts, a warp a tile, then over the warps, and from there where each bin of this tile goes. Words are
    // read until they have the pass's turn. With `parts`, also which of them this block is to sort; returns whether all blocks
    // have room for theirs.
    __device__ __forceinline__ bool find_places(uint32_t place, uint32_t publication, bool parts) const {
        const uint32_t turn = turn_of(publication);
        uint32_t before[8] = {}, all[8] = {};  // of the bins 8 * lane and up
        for (uint32_t from = warp; from < gridDim.x; from += warps * AT_ONCE) {
            uint4 words[AT_ONCE];
#pragma unroll
            for (uint32_t i = 0; i < AT_ONCE; i++) {
                words[i] = make_uint4(turn, turn, turn, turn);
                const uint32_t block = from + i * warps;
                if (block < gridDim.x) words[i] = load_relaxed(reinterpret_cast<const uint4*>(counts_of(block, publication)) + lane);
            }
#pragma unroll
            for (uint32_t i = 0; i < AT_ONCE; i++) {
                const uint32_t block = from + i * warps;
                while ((((words[i].x ^ turn) | (words[i].y ^ turn) | (words[i].z ^ turn) | (words[i].w ^ turn)) & TURN) != 0) {
                    words[i] = load_relaxed(reinterpret_cast<const uint4*>(counts_of(block, publication)) + lane);
                }
                const uint32_t pairs[4] = {words[i].x ^ turn, words[i].y ^ turn, words[i].z ^ turn, words[i].w ^ turn};
#pragma unroll
                for (uint32_t e = 0; e < 8; e++) {
                    const uint32_t count = e % 2 == 0 ? pairs[e / 2] & 0xffff : pairs[e / 2] >> 16;
                    all[e] += count;
                    before[e] += block < blockIdx.x ? count : 0;
                }
            }
        }
        // Over the warp's counters, which it no longer needs, and the like behind all warps'.
        uint32_t(*const warp_all)[DIGITS] = warp_counts + warps;
#pragma unroll
        for (uint32_t half = 0; half < 2; half++) {
            const uint32_t e = 4 * half;
            reinterpret_cast<uint4*>(warp_counts[warp])[2 * lane + half] = make_uint4(before[e], before[e + 1], before[e + 2], before[e + 3]);
            reinterpret_cast<uint4*>(warp_all[warp])[2 * lane + half] = make_uint4(all[e], all[e + 1], all[e + 2], all[e + 3]);
        }
        __syncthreads();
        const uint32_t d = threadIdx.x;
        uint32_t below = 0, total = 0, up_to = 0;
        if (d < DIGITS) {
            const uint32_t used = warps < gridDim.x ? warps : gridDim.x;
#pragma unroll 8
            for (uint32_t w = 0; w < used; w++) {
                below += warp_counts[w][d];
                total += warp_all[w][d];
            }
            up_to = warp_inclusive_sum(total, lane);
            if (lane == WARP - 1) shared.totals[warp] = up_to;
        }
        __syncthreads();
        uint32_t start = up_to - total;
        if (d < DIGITS) {
#pragma unroll
            for (uint32_t w = 0; w + 1 < GROUP; w++) {
                if (w < warp) start += shared.totals[w];
            }
            shared.first[d] = start + below - place;
            shared.parts[0][d] = start;
        }
        __syncthreads();
        return !parts || share(start, total);
    }

    // Of parts as even as those of uniform keys, every block takes as many. Of others it takes those that begin in its place, so
    // that it has a tile and a part at most.
    __device__ __forceinline__ bool share(uint32_t start, uint32_t total) const {
        const uint32_t each = DIGITS / gridDim.x, room = tile + tile / 2 < args.capacity ? tile + tile / 2 : args.capacity;
        const uint32_t d = threadIdx.x;
        auto begin_of = [&](uint32_t block) { return block * each < DIGITS ? shared.parts[0][block * each] : n; };
        const bool uneven = d < gridDim.x && begin_of(d + 1) - begin_of(d) > room;
        if (!__syncthreads_or(uneven)) {
            if (d < 2) shared.range[d] = begin_of(blockIdx.x + d);
            return true;
        }
        for (uint32_t end = 0; end < 2; end++) {
            const uint32_t bound = (blockIdx.x + end) * tile;
            if (d < DIGITS && start < bound && bound <= start + total) shared.range[end] = start + total;
        }
        return !__syncthreads_or(d < DIGITS && total > args.capacity - tile);
    }

    // Writes the keys after the pass out: to where the bins go, or as they are from `base` on.
    template <bool SCATTER>
    __device__ __forceinline__ void write(const Bins<FLOAT>& bins, Key* keys_to, void* to_values, bool with_keys) const {
        Value* const values_to = static_cast<Value*>(to_values);
#pragma unroll 4
        for (uint32_t place = threadIdx.x; place < count; place += blockDim.x) {
            Key key;
            Value value;
            get(target, place, key, value);
            const uint32_t to = (SCATTER ? shared.first[bins(key)] : base) + place;
            if (with_keys) keys_to[to] = key;
            if (VALUES) values_to[to] = value;
        }
    }

    // In order already.
    __device__ __forceinline__ void copy(bool with_keys) const {
        if (buffers.keys_in == buffers.keys_out) return;
        const Value* const from = static_cast<const Value*>(buffers.values_in);
        for (uint32_t i = base + threadIdx.x; i < base + count; i += blockDim.x) {
            if (with_keys) buffers.keys_out[i] = buffers.keys_in[i];
            if (VALUES) static_cast<Value*>(buffers.values_out)[i] = from != nullptr ? from[i] : Value(i);
        }
    }

    // The parts of the range from the lowest to the highest key; false where floating point cannot tell them apart.
    __device__ __forceinline__ bool make_parts(Bins<FLOAT>& bins, Key lowest, Key highest) const {
        float range;
        if (FLOAT) {
            if (Key(~bins.window) != 0) return false;  // parts of a float have no order
            bins.lowest = bins.digit.ordering.key_of(lowest);
            range = float(float_of(bins.digit.ordering.key_of(highest)) - float_of(bins.lowest));
        } else {
            bins.lowest = lowest;
            range = float(Key(highest - lowest));
        }
        bins.last_part = float(DIGITS / gridDim.x * gridDim.x - 1);
        bins.scale = (bins.last_part + 1) / range;
        return fabsf(range) < 1e38f && fabsf(bins.scale) < 1e38f;
    }

    // Input that is nearly sorted, by windows, which the blocks take in turns. False where it is not, and then what is on chip is as
    // before.
    __device__ __forceinline__ bool sort_windows() {
        using ThisWindow = Window<Array, FLOAT, VALUE_BYTES, WINDOW_THREADS, WINDOW_ITEMS, WINDOW_HALO_RUNS>;
        auto& place = *reinterpret_cast<typename ThisWindow::Shared*>(warp_counts);
        for (uint32_t number = blockIdx.x; number < args.windows; number += gridDim.x) {
            ThisWindow({args, buffers, header}, place, number).sort();
            __syncthreads();
        }
        barrier();
        const AdaptiveState& state = *adaptive_state(&header);
        if (load_relaxed(&state.done) == 0) {
            clear_counters();
            load(buffers.keys_in, buffers.values_in);
            return false;
        }
        if (buffers.keys_in != buffers.keys_out) return true;
        for (uint32_t i = base + threadIdx.x; i < base + count; i += blockDim.x) {
            buffers.keys_out[i] = buffers.keys_temp[i];
            if (VALUES) static_cast<Value*>(buffers.values_out)[i] = static_cast<const Value*>(buffers.values_temp)[i];
        }
        return true;
    }

    __device__ __forceinline__ void sort() {
        const bool grid = gridDim.x > 1;
        if (threadIdx.x == 0) {
            shared.seen = Seen{};
            shared.range[0] = blockIdx.x == 0 ? 0 : n;
            shared.range[1] = n;
        }
        if (grid && threadIdx.x < 2 * WORDS) store_relaxed(counts_of(blockIdx.x, threadIdx.x / WORDS) + threadIdx.x % WORDS, TURN);
        clear_counters();
        __syncthreads();
        load(buffers.keys_in, buffers.values_in);
        look<true>(buffers.keys_in);
        __syncthreads();
        if (grid) {
            if (threadIdx.x == 0) {
                seen_by(blockIdx.x) = shared.seen;
                shared.seen = Seen{};
                if (blockIdx.x == 0) header.arrived = 0;
                if (blockIdx.x == 0) *adaptive_state(&header) = AdaptiveState{};
            }
            cooperative_groups::this_grid().sync();  // needs no memory that is 0 before
            add<true>(threadIdx.x < gridDim.x ? seen_by(threadIdx.x) : Seen{});
            __syncthreads();
        }
        const Seen seen = shared.seen;
        const bool sorted = seen.descents == 0;
        if (args.flags & NEARLY_SORTED && seen.descents <= n / 20 && sort_windows()) return;
        uint32_t active = sorted ? 0 : digits_in(seen.differing), published = 0;
        const uint32_t run = __popc(active);
        const bool last_keys = !VALUES || !(args.flags & DROP_KEYS);

        Bins<FLOAT> bins{digit_of<FLOAT>(args.order, 0), false, Key(args.order.window), 0, 0.0f, 0.0f};
        bool alone = !grid;            // what is on chip needs no other block
        // No use without some room, as parts of even keys differ too.
        bins.parts = grid && run > 1 && args.capacity - tile > tile / 16 && make_parts(bins, Key(~seen.lowest), seen.highest);
        while (active != 0) {
            if (!bins.parts) bins.digit = digit_of<FLOAT>(args.order, __ffs(int(active)) - 1);
            count_bins(bins);
            const uint32_t place = place_bins(!alone, bins.last(), published);
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
            const bool fits = find_places(place, published++, bins.parts);
            if (!fits) {
                bins.parts = false;
                clear_counters();
                continue;              // by digits, from the keys as they were before
            }
            if (!bins.parts) active &= active - 1;
            const bool to_temp = !bins.parts && __popc(active) % 2 == 1;  // so that the last pass writes the output
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
                active = digits_in(shared.seen.differing);
            }
        }
        if (run == 0) copy(last_keys);
        if (blockIdx.x == 0 && threadIdx.x == 0) header.outcome = Outcome{ONESWEEP, pass_count(args.order), run, sorted, n, 0};
    }
};

template <bool FLOAT, uint32_t VALUE_BYTES>
__device__ __forceinline__ void sort_small(const Args& args) {
    extern __shared__ uint4 shared_memory[];
    using ThisSmall = Small<FLOAT, VALUE_BYTES>;
    uint32_t n = args.n;
    if (args.device_count != nullptr && *args.device_count < n) n = uint32_t(*args.device_count);
    ThisSmall(args, *reinterpret_cast<typename ThisSmall::Shared*>(shared_memory), n).sort();
}

}  // namespace

#define SMALL(KIND, FLOAT, VALUE_BYTES)                                                                                   \
    extern "C" __global__ void __launch_bounds__(MAX_THREADS, 1) onesweep_small_##KIND##_##VALUE_BYTES(const Args args) { \
        sort_small<FLOAT, VALUE_BYTES>(args);                                                                             \
    }
#define SMALLS(VALUE_BYTES)            \
    SMALL(integer, false, VALUE_BYTES) \
    SMALL(float, true, VALUE_BYTES)
SMALLS(0)
SMALLS(4)
SMALLS(8)
