// The merge sort of Satish, Harris and Garland, its parts that know nothing of keys: any order will do.
// N. Satish, M. Harris, M. Garland: Designing Efficient Sorting Algorithms for Manycore GPUs, IPDPS 2009, section IV.
//
// satish_merge.cu uses them for the built-in keys and for keys of many words, satish_merge_records.cu for an order given as
// source at run time. What they ask of an `Order`:
//   Item               what is moved on chip
//   Rank, rank(item), rank_at(store, place)   what is compared
//   less(rank, rank)   the order
//   before(item, item) the order with ties by place in the input; the network is not stable and asks this one. It may meet
//                      items behind the end of the input, which come after all others
// and of a `Memory`, for ranking splitters:
//   Rank, less(rank, rank), sample(i) (each SAMPLE-th element), element(i)
#pragma once

#include <stdint.h>

namespace radsweep {
namespace satish_merge {

// Every SAMPLE-th element of a run is a sample, from the first on. 32 makes more even pieces, and 4 % slower sorts.
constexpr uint32_t SAMPLE = 64;
constexpr uint32_t MOST_RUNS = 8;  // merged in one pass
constexpr uint32_t WARP_LANES = 32, ROW = WARP_LANES;  // a row: elements that a warp reads at once

// One pass over runs of `run` elements each, the last one shorter.
struct Level {
    uint64_t run;        // a multiple of SAMPLE
    uint32_t spacing;    // every spacing-th of the merged samples is a splitter
    uint32_t pieces;     // of `runs` full runs
    uint32_t runs;       // merged to one: 2, 4 or 8
    uint32_t unused;
};
#ifdef ASSERT_LAYOUT  // not where the text is compiled at run time
ASSERT_LAYOUT(Level, 24, AT(run, 0) AT(spacing, 8) AT(pieces, 12) AT(runs, 16) AT(unused, 20));
#endif

__device__ __forceinline__ uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }
__device__ __forceinline__ uint32_t samples_in(uint32_t length) { return length / SAMPLE + (length % SAMPLE != 0); }

// A select, not a jump. Items that are more than a number bring their own.
__device__ __forceinline__ uint32_t choose(bool first, uint32_t a, uint32_t b) { return first ? a : b; }
__device__ __forceinline__ uint64_t choose(bool first, uint64_t a, uint64_t b) { return first ? a : b; }

// The runs that are merged to run `group` of the next level.
struct Group {
    uint64_t begin;
    uint64_t run;
    uint64_t n;

    __device__ __forceinline__ Group(const Level& level, uint64_t group, uint64_t n)
        : begin(group * level.runs * level.run), run(level.run), n(n) {}

    __device__ __forceinline__ uint64_t start(uint32_t r) const { return begin + r * run; }
    __device__ __forceinline__ uint32_t length(uint32_t r) const {
        const uint64_t at = start(r);
        if (at >= n) return 0;
        return uint32_t(n - at < run ? n - at : run);
    }
};

// ---- Step 2: tiles by Batcher's odd-even merge sort ----

// Knuth's form for any number of items (The Art of Computer Programming 3, 5.2.2, algorithm M), in registers.
template <class Order, class Item, uint32_t N>
__device__ __forceinline__ void odd_even_merge_sort(const Order& order, Item (&items)[N]) {
#pragma unroll
    for (uint32_t log_p = 0; 1u << log_p < N; log_p++) {
#pragma unroll
        for (uint32_t halvings = 0; halvings <= log_p; halvings++) {
            const uint32_t p = 1u << log_p, k = p >> halvings, first = k % p;
#pragma unroll
            for (uint32_t x = 0; x + k < N; x++) {
                const bool compared = x >= first && (x - first) / k % 2 == 0 && x / (2 * p) == (x + k) / (2 * p);
                if (!compared) continue;
                const Item a = items[x], b = items[x + k];
                const bool swap = order.before(b, a);
                items[x] = choose(swap, b, a);
                items[x + k] = choose(swap, a, b);
            }
        }
    }
}

// ---- Section IV.A on chip ----

// A block with items in shared memory. `Store` has get(place), put(place, item).
template <class Order, class Store, uint32_t THREADS, uint32_t ITEMS>
struct Chip {
    using Item = typename Order::Item;
    using Rank = typename Order::Rank;

    const Order order;
    const Store store;

    // Where `diagonal` merged items end in A of a_length items; ties are A's. A binary search: rank(a, C) = rank(a, A) + rank(a, B).
    __device__ __forceinline__ uint32_t split(uint32_t a, uint32_t a_length, uint32_t b, uint32_t b_length, uint32_t diagonal) const {
        uint32_t low = diagonal > b_length ? diagonal - b_length : 0, high = least(diagonal, a_length);
        while (low < high) {
            const uint32_t middle = (low + high) / 2;
            const bool b_first = order.less(order.rank_at(store, b + diagonal - 1 - middle), order.rank_at(store, a + middle));
            if (b_first) high = middle;
            else low = middle + 1;
        }
        return low;
    }

    // The next ITEMS of A and B merged, or what there is.
    template <bool CHECKED>
    __device__ __forceinline__ void merge_from(Item (&items)[ITEMS], uint32_t a, uint32_t a_end, uint32_t b, uint32_t b_end) const {
        Item from_a = store.get(a), from_b = store.get(b);
        Rank rank_a = order.rank(from_a), rank_b = order.rank(from_b);
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            const bool take_b = CHECKED ? b < b_end && (a >= a_end || order.less(rank_b, rank_a)) : order.less(rank_b, rank_a);
            items[i] = choose(take_b, from_b, from_a);
            if (i == ITEMS - 1) break;
            // One read of shared memory and selects; two reads, each by some of the lanes, took 10 % longer (H200, pairs).
            const uint32_t next = (take_b ? b : a) + 1;
            const Item item = store.get(next);
            const Rank rank = order.rank(item);
            b = take_b ? next : b;
            a = take_b ? a : next;
            from_b = choose(take_b, item, from_b);
            from_a = choose(take_b, from_a, item);
            rank_b = choose(take_b, rank, rank_b);
            rank_a = choose(take_b, rank_a, rank);
        }
    }

    // The items of the neighbours [begin, middle) and [middle, end) from `diagonal` on, once merged. For all threads of a warp; one
    // without work passes a diagonal within the end.
    __device__ __forceinline__ void merge(Item (&items)[ITEMS], uint32_t begin, uint32_t middle, uint32_t end, uint32_t diagonal) const {
        const uint32_t a = begin + split(begin, middle - begin, middle, end - middle, diagonal);
        const uint32_t b = middle + (begin + diagonal - a);
        // Where both have enough there is no end to look for. One way for the warp.
        if (__all_sync(0xffffffffu, a + ITEMS <= middle && b + ITEMS <= end)) merge_from<false>(items, a, middle, b, end);
        else merge_from<true>(items, a, middle, b, end);
    }

    __device__ __forceinline__ bool in_order(uint32_t begin, uint32_t middle, uint32_t end) const {
        if (begin >= middle || middle >= end) return true;
        return !order.less(order.rank_at(store, middle), order.rank_at(store, middle - 1));
    }

    // Sorts a tile: thread t has the items from t * ITEMS on, the first `count` of all count. Leaves them in the store.
    __device__ __forceinline__ void sort(Item (&items)[ITEMS], uint32_t count) const {
        odd_even_merge_sort(order, items);
        const uint32_t mine = threadIdx.x * ITEMS;
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) store.put(mine + i, items[i]);
        __syncthreads();
        for (uint32_t threads = 2; threads / 2 * ITEMS < count; threads *= 2) {
            const uint32_t first = threadIdx.x / threads * threads;
            const uint32_t begin = least(first * ITEMS, count), middle = least((first + threads / 2) * ITEMS, count);
            const uint32_t end = least((first + threads) * ITEMS, count);
            if (!__syncthreads_or(!in_order(begin, middle, end))) continue;
            const bool work = mine < end;
            merge(items, begin, middle, end, work ? mine - begin : end - begin);
            __syncthreads();
            if (work) {
#pragma unroll
                for (uint32_t i = 0; i < ITEMS; i++) store.put(mine + i, items[i]);
            }
            __syncthreads();
        }
    }

    // Merges `runs` neighbours in the store, run r of them being [at[r], at[r + 1]), to one: a tree of pairwise merges. Each pair has
    // threads of its own, so THREADS * ITEMS is to be `runs / 2 - 1` threads' items more than there are.
    __device__ __forceinline__ void merge_runs(const uint32_t* at, uint32_t runs) const {
        for (uint32_t half = 1; half < runs; half *= 2) {
            uint32_t begin = 0, middle = 0, end = 0, thread = threadIdx.x;
            bool work = false;
            for (uint32_t r = 0; r < runs; r += 2 * half) {
                const uint32_t from = at[r], to = at[r + 2 * half];
                const uint32_t threads = (to - from + ITEMS - 1) / ITEMS;
                work = thread < threads;
                if (work) {
                    begin = from;
                    middle = at[r + half];
                    end = to;
                    break;
                }
                thread -= threads;
            }
            if (!__syncthreads_or(work && !in_order(begin, middle, end))) continue;
            Item items[ITEMS];
            const uint32_t diagonal = work ? thread * ITEMS : 0;
            merge(items, begin, middle, end, diagonal);
            __syncthreads();
            if (work) {
                const uint32_t mine = begin + diagonal;
                if (mine + ITEMS <= end) {
#pragma unroll
                    for (uint32_t i = 0; i < ITEMS; i++) store.put(mine + i, items[i]);
                } else {
#pragma unroll
                    for (uint32_t i = 0; i < ITEMS; i++) {
                        if (mine + i < end) store.put(mine + i, items[i]);
                    }
                }
            }
            __syncthreads();
        }
    }
};

// ---- Section IV.A: splitters, ranked in every run ----

// One thread a sample. Its rank among the samples of every other run gives its rank in S, the samples of all runs merged; every
// spacing-th of S is a splitter, and the samples that bracket it in a run leave a window of SAMPLE elements there to find its rank
// in. Between two splitters lie `spacing` samples, so at most spacing * SAMPLE + (runs - 1) * (SAMPLE - 1) elements.
//
// A warp has consecutive samples of one run. The ranks of its first and last one in each run, found by a lane each, bound those of
// all others: they search few samples, and mostly the same ones.
template <class Memory>
__device__ __forceinline__ void rank_splitters(const Memory& memory, const Level& level, uint64_t n, uint32_t* splits) {
    using Rank = typename Memory::Rank;
    const uint32_t lane = threadIdx.x % WARP_LANES;
    const uint64_t warp = (uint64_t(blockIdx.x) * blockDim.x + threadIdx.x) / WARP_LANES;
    const uint32_t samples_of_run = uint32_t(level.run / SAMPLE);
    const uint32_t warps_of_run = (samples_of_run + WARP_LANES - 1) / WARP_LANES;
    const uint64_t run = warp / warps_of_run, group_number = run / level.runs;
    if (run * level.run >= n) return;
    const Group group(level, group_number, n);
    const uint32_t mine = uint32_t(run % level.runs);
    const uint32_t first = uint32_t(warp % warps_of_run) * WARP_LANES, own = samples_in(group.length(mine));
    if (first >= own) return;
    const auto sample = [&](uint32_t r, uint32_t place) { return memory.sample(group.begin / SAMPLE + uint64_t(r) * samples_of_run + place); };
    // Ties come in the order of their runs.
    const auto precedes = [&](uint32_t r, const Rank& other, const Rank& self) {
        return r < mine ? !memory.less(self, other) : memory.less(other, self);
    };

    uint32_t edge_rank = 0;
    if (lane < 2 * MOST_RUNS) {
        const uint32_t r = lane % MOST_RUNS;
        const Rank edge = sample(mine, lane < MOST_RUNS ? first : least(first + WARP_LANES, own) - 1);
        const uint32_t length = r < level.runs && r != mine ? samples_in(group.length(r)) : 0;
        for (uint32_t step = 1u << (31 - __clz(samples_of_run)); step != 0; step /= 2) {
            const uint32_t next = edge_rank + step;
            if (next <= length && precedes(r, sample(r, next - 1), edge)) edge_rank = next;
        }
    }
    __syncwarp();
    uint32_t rank[MOST_RUNS], most[MOST_RUNS];
    uint32_t widest = 0;
#pragma unroll
    for (uint32_t r = 0; r < MOST_RUNS; r++) {
        rank[r] = __shfl_sync(0xffffffffu, edge_rank, r);
        most[r] = __shfl_sync(0xffffffffu, edge_rank, MOST_RUNS + r);
        widest = widest > most[r] - rank[r] ? widest : most[r] - rank[r];
    }
    const uint32_t place = first + lane;
    if (place >= own) return;
    const Rank self = sample(mine, place);
    Rank others[MOST_RUNS];  // of all runs at once, so that their reads overlap
    for (uint32_t step = widest == 0 ? 0 : 1u << (31 - __clz(widest)); step != 0; step /= 2) {
#pragma unroll
        for (uint32_t r = 0; r < MOST_RUNS; r++) {
            const uint32_t next = rank[r] + step;
            others[r] = next <= most[r] ? sample(r, next - 1) : self;
        }
#pragma unroll
        for (uint32_t r = 0; r < MOST_RUNS; r++) {
            const uint32_t next = rank[r] + step;
            if (next <= most[r] && precedes(r, others[r], self)) rank[r] = next;
        }
    }
    uint32_t in_all = place;
#pragma unroll
    for (uint32_t r = 0; r < MOST_RUNS; r++) in_all += rank[r];
    if (in_all == 0 || in_all % level.spacing != 0) return;

    uint32_t low[MOST_RUNS], window[MOST_RUNS];
#pragma unroll
    for (uint32_t r = 0; r < MOST_RUNS; r++) {
        const bool before_all = rank[r] == 0;
        low[r] = before_all ? 0 : (rank[r] - 1) * SAMPLE + 1;
        window[r] = r >= level.runs || r == mine || before_all ? 0 : least(SAMPLE - 1, group.length(r) - low[r]);
    }
    for (uint32_t step = SAMPLE / 2; step != 0; step /= 2) {
#pragma unroll
        for (uint32_t r = 0; r < MOST_RUNS; r++) {
            others[r] = step <= window[r] ? memory.element(group.start(r) + low[r] + step - 1) : self;
        }
#pragma unroll
        for (uint32_t r = 0; r < MOST_RUNS; r++) {
            if (step <= window[r] && precedes(r, others[r], self)) {
                low[r] += step;
                window[r] -= step;
            } else {
                window[r] = least(window[r], step - 1);
            }
        }
    }
    uint32_t* const to = splits + (group_number * level.pieces + in_all / level.spacing) * MOST_RUNS;
#pragma unroll
    for (uint32_t r = 0; r < MOST_RUNS; r++) {
        if (r < level.runs) to[r] = r == mine ? place * SAMPLE : low[r];
    }
}

// ---- Section IV.A: the pieces between splitters, one a block ----

template <uint32_t THREADS, uint32_t ITEMS>
struct Piece {
    static constexpr uint32_t WARPS = THREADS / ROW;
    static constexpr uint32_t MOST = (THREADS - (MOST_RUNS / 2 - 1)) * ITEMS;  // elements
    static constexpr uint32_t ROWS = MOST / ROW + MOST_RUNS + 1;
    static constexpr uint32_t WARP_ROWS = (ROWS + WARPS - 1) / WARPS;
    static_assert(ROWS <= THREADS && MOST <= 32768, "rows are made by one thread each, places have 16 bits");

    struct Row {
        uint32_t from;   // in memory
        uint16_t to;     // in the piece
        uint16_t count;
    };
    struct alignas(16) Shared {
        uint32_t at[MOST_RUNS + 1];  // where each run's part begins in the piece
        uint32_t from[MOST_RUNS];    // and in memory
        Row rows[WARP_ROWS * WARPS];
    };

    Shared& shared;
    uint32_t count;
    uint64_t to;  // where it goes

    __device__ __forceinline__ explicit Piece(Shared& shared) : shared(shared) {}

    // False for a block without work.
    __device__ __forceinline__ bool find(const Level& level, uint64_t n, const uint32_t* splits) {
        const uint32_t number = blockIdx.x % level.pieces;
        const uint64_t group_number = blockIdx.x / level.pieces;
        const Group group(level, group_number, n);
        const uint64_t end = group.begin + level.runs * level.run;
        if (group.begin >= n) return false;
        const uint64_t samples = ((end < n ? end : n) - group.begin + SAMPLE - 1) / SAMPLE;
        if (uint64_t(number) * level.spacing >= samples) return false;
        const bool last = (uint64_t(number) + 1) * level.spacing >= samples;

        const uint32_t* const split = splits + (group_number * level.pieces + number) * MOST_RUNS;
        if (threadIdx.x < ROW) {
            const uint32_t r = threadIdx.x;
            uint32_t begin = 0, length = 0;
            if (r < level.runs) {
                // Within the run whatever stands there: an order that is none leaves anything.
                const uint32_t end_of_run = group.length(r);
                begin = number == 0 ? 0 : least(split[r], end_of_run);
                const uint32_t next = last ? end_of_run : least(split[MOST_RUNS + r], end_of_run);
                length = next > begin ? next - begin : 0;
            }
            uint32_t up_to = length, before = begin;
#pragma unroll
            for (uint32_t step = 1; step < MOST_RUNS; step *= 2) {
                const uint32_t lengths = __shfl_up_sync(0xffffffffu, up_to, step);
                const uint32_t begins = __shfl_up_sync(0xffffffffu, before, step);
                if (r >= step) {
                    up_to += lengths;
                    before += begins;
                }
            }
            if (r < MOST_RUNS) {
                shared.at[r + 1] = least(up_to, MOST);
                shared.from[r] = uint32_t(group.start(r)) + begin;
            }
            if (r == 0) shared.at[0] = 0;
            if (r == MOST_RUNS - 1) shared.rows[0].from = before;
        }
        __syncthreads();
        to = group.begin + shared.rows[0].from;
        const uint64_t behind = (end < n ? end : n) - to;
        count = least(shared.at[MOST_RUNS], behind < MOST ? uint32_t(behind) : MOST);
        __syncthreads();
        make_rows();
        __syncthreads();
        return true;
    }

    // A row is consecutive in memory, so it is in one run.
    __device__ __forceinline__ void make_rows() const {
        if (threadIdx.x >= WARP_ROWS * WARPS) return;
        Row row = {0, 0, 0};
        uint32_t number = threadIdx.x;
        for (uint32_t r = 0; r < MOST_RUNS; r++) {
            const uint32_t begin = shared.at[r], length = shared.at[r + 1] - begin;
            const uint32_t rows = (length + ROW - 1) / ROW, done = number * ROW;
            if (number < rows) {
                row = {shared.from[r] + done, uint16_t(begin + done), uint16_t(least(ROW, length - done))};
                break;
            }
            number -= rows;
        }
        shared.rows[threadIdx.x] = row;
    }

    // read(place in memory, place in the piece, number of the row) for every element, all reads before any write(…).
    template <class Read>
    __device__ __forceinline__ void each(const Read& read) const {
        const uint32_t warp = threadIdx.x / ROW, lane = threadIdx.x % ROW;
#pragma unroll
        for (uint32_t i = 0; i < WARP_ROWS; i++) {
            const Row row = shared.rows[warp + i * WARPS];
            if (lane < row.count) read(row.from + lane, row.to + lane, i);
        }
    }
};

}  // namespace satish_merge
}  // namespace radsweep
