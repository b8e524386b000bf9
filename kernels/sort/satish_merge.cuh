// The parts of the merge sort of Satish, Harris and Garland that know nothing of keys: they take
// any order.
//
// N. Satish, M. Harris, M. Garland: Designing Efficient Sorting Algorithms for Manycore GPUs, IPDPS
// 2009, section IV.
//
// Used by satish_merge.cu for the built-in keys, satish_merge_words.cu for keys of many words, and
// satish_merge_records.cuh for an order given as source at run time. What they need of an `Order`:
//   Item                                      what is moved on chip
//   Rank, rank(item), rank_at(store, index)   what is compared
//   less(rank, rank)                          the order
//   before(item, item)                        the order with ties by index in the input, for the
//                                             network, which is not stable; items behind the end
//                                             of the input come after all others
// and of a `Memory`, for ranking splitters:
//   Rank, less(rank, rank), sample(i) (each SAMPLE-th element), element(i)
#pragma once

#include "block/merge_path.cuh"
#include "block/odd_even.cuh"
#include "common/warp.cuh"
#include "outcome.cuh"

namespace radsweep::satish_merge {

// Every SAMPLE-th element of a run is a sample, from the first on. With 32 pieces are more even,
// and sorts 4 % slower.
constexpr u32 SAMPLE = 64;
constexpr u32 MAX_RUNS = 8;  // merged in one pass
constexpr u32 ROW = WARP;    // elements that a warp reads at once

// `Args::flags`: the last pass.
constexpr u32 LAST = 4;

// One pass over runs of `run` elements each, the last one shorter.
struct Level {
    u64 run;      // a multiple of SAMPLE
    u32 spacing;  // every spacing-th of the merged samples is a splitter
    u32 pieces;   // of `runs` full runs
    u32 runs;     // merged to one: 2, 4 or 8
    u32 unused;
};

// `Args` of satish_merge_records.cuh. It stands here because the compiler at run time cannot assert
// offsets: NVRTC has no `__builtin_offsetof` before release 13.
struct RecordArgs {
    const void* records;  // the input
    const void* in;       // records or their index; not read by the tiles
    void* out;
    void* samples;  // records or index
    u32* splits;
    Outcome* outcome;
    u64 n;
    Level level;
    u32 passes;
    u32 flags;
};

#ifdef ASSERT_LAYOUT  // not if compiled at run time
ASSERT_LAYOUT(Level, 24, AT(run, 0) AT(spacing, 8) AT(pieces, 12) AT(runs, 16) AT(unused, 20));
ASSERT_LAYOUT(RecordArgs, 88,
    AT(records, 0) AT(in, 8) AT(out, 16) AT(samples, 24) AT(splits, 32) AT(outcome, 40) AT(n, 48)
    AT(level, 56) AT(passes, 80) AT(flags, 84));
#endif

DEVICE u32 samples_in(u32 length) { return length / SAMPLE + (length % SAMPLE != 0); }

// Selects without a branch. Items that are structs define their own.
DEVICE u32 choose(bool first, u32 a, u32 b) { return first ? a : b; }
DEVICE u64 choose(bool first, u64 a, u64 b) { return first ? a : b; }

// The runs that are merged to run `group` of the next level.
struct Group {
    u64 begin;
    u64 run;
    u64 n;

    DEVICE Group(const Level& level, u64 group, u64 n)
        : begin(group * level.runs * level.run), run(level.run), n(n) {}

    DEVICE u64 start(u32 r) const { return begin + r * run; }
    DEVICE u32 length(u32 r) const {
        const u64 at = start(r);
        if (at >= n) return 0;
        return u32(n - at < run ? n - at : run);
    }
};

// ---- Section IV.A on chip ----

// A block with items in shared memory. `Store` has get(index), put(index, item).
template <class Order, class Store, u32 THREADS, u32 ITEMS>
struct Chip {
    using Item = typename Order::Item;
    using Rank = typename Order::Rank;

    const Order order;
    const Store store;

    // Returns how many of the first `diagonal` merged items are of A; ties are A's. rank(a, C) =
    // rank(a, A) + rank(a, B).
    DEVICE u32 split(u32 a, u32 a_length, u32 b, u32 b_length, u32 diagonal) const {
        return merge_path(a_length, b_length, diagonal, [&](u32 in_b, u32 in_a) {
            return order.less(order.rank_at(store, b + in_b), order.rank_at(store, a + in_a));
        });
    }

    // Merges the next ITEMS of A and B, or as many as there are.
    template <bool CHECKED>
    DEVICE void merge_from(Item (&items)[ITEMS], u32 a, u32 a_end, u32 b, u32 b_end) const {
        Item from_a = store.get(a), from_b = store.get(b);
        Rank rank_a = order.rank(from_a), rank_b = order.rank(from_b);
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            const bool take_b = CHECKED ? b < b_end && (a >= a_end || order.less(rank_b, rank_a))
                                        : order.less(rank_b, rank_a);
            items[i] = choose(take_b, from_b, from_a);
            if (i == ITEMS - 1) break;
            // One read of shared memory, then selects: two reads, each by some of the lanes, took
            // 10 % longer (H200, pairs).
            const u32 next = (take_b ? b : a) + 1;
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

    // Gets the merged items of the neighbours [begin, middle) and [middle, end) from `diagonal` on.
    // All threads of a warp take part; one without work passes a diagonal within the end.
    DEVICE void merge(Item (&items)[ITEMS], u32 begin, u32 middle, u32 end, u32 diagonal) const {
        const u32 a = begin + split(begin, middle - begin, middle, end - middle, diagonal);
        const u32 b = middle + (begin + diagonal - a);
        // If both have enough items, no end need be checked. The warp does not diverge.
        if (__all_sync(ALL_LANES, a + ITEMS <= middle && b + ITEMS <= end))
            merge_from<false>(items, a, middle, b, end);
        else merge_from<true>(items, a, middle, b, end);
    }

    DEVICE bool in_order(u32 begin, u32 middle, u32 end) const {
        if (begin >= middle || middle >= end) return true;
        return !order.less(order.rank_at(store, middle), order.rank_at(store, middle - 1));
    }

    // Sorts a tile: thread t has the items from t * ITEMS on, the first `count` of all count.
    // Leaves them in the store.
    DEVICE void sort(Item (&items)[ITEMS], u32 count) const {
        odd_even_merge_sort<ITEMS>([&](u32 i, u32 j) {
            const Item a = items[i], b = items[j];
            const bool swap = order.before(b, a);
            items[i] = choose(swap, b, a);
            items[j] = choose(swap, a, b);
        });
        const u32 mine = threadIdx.x * ITEMS;
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) store.put(mine + i, items[i]);
        __syncthreads();
        for (u32 threads = 2; threads / 2 * ITEMS < count; threads *= 2) {
            const u32 first = threadIdx.x / threads * threads;
            const u32 begin = min(first * ITEMS, count),
                      middle = min((first + threads / 2) * ITEMS, count);
            const u32 end = min((first + threads) * ITEMS, count);
            if (!__syncthreads_or(!in_order(begin, middle, end))) continue;
            const bool work = mine < end;
            merge(items, begin, middle, end, work ? mine - begin : end - begin);
            __syncthreads();
            if (work) {
#pragma unroll
                for (u32 i = 0; i < ITEMS; i++) store.put(mine + i, items[i]);
            }
            __syncthreads();
        }
    }

    // Merges `runs` neighbours in the store, run r of them being [at[r], at[r + 1]), to one: a tree
    // of pairwise merges. Each pair has threads of its own, so THREADS * ITEMS must exceed the
    // number of items by those of `runs / 2 - 1` threads.
    DEVICE void merge_runs(const u32* at, u32 runs) const {
        for (u32 half = 1; half < runs; half *= 2) {
            u32 begin = 0, middle = 0, end = 0, thread = threadIdx.x;
            bool work = false;
            for (u32 r = 0; r < runs; r += 2 * half) {
                const u32 from = at[r], to = at[r + 2 * half];
                const u32 threads = (to - from + ITEMS - 1) / ITEMS;
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
            const u32 diagonal = work ? thread * ITEMS : 0;
            merge(items, begin, middle, end, diagonal);
            __syncthreads();
            if (work) {
                const u32 mine = begin + diagonal;
                if (mine + ITEMS <= end) {
#pragma unroll
                    for (u32 i = 0; i < ITEMS; i++) store.put(mine + i, items[i]);
                } else {
#pragma unroll
                    for (u32 i = 0; i < ITEMS; i++) {
                        if (mine + i < end) store.put(mine + i, items[i]);
                    }
                }
            }
            __syncthreads();
        }
    }
};

// ---- Section IV.A: splitters, ranked in every run ----

// Whether an element of another run comes before `self`. Ties come in the order of their runs:
// `earlier` tells that the other one's is before.
template <class Memory, class Rank>
DEVICE bool precedes(const Memory& memory, bool earlier, const Rank& other, const Rank& self) {
    return earlier ? !memory.less(self, other) : memory.less(other, self);
}

// Finds where splitter `self` of run `mine` falls in each other run, from its rank among that run's
// samples: in the window between the two samples that bracket it. Replaces these ranks by those
// among the elements.
template <class Memory>
DEVICE void rank_in_windows(
    const Memory& memory, const Level& level, const Group& group, u32 mine,
    const typename Memory::Rank& self, u32 (&rank)[MAX_RUNS]) {
    using Rank = typename Memory::Rank;
    Rank others[MAX_RUNS];
    u32 window[MAX_RUNS];
#pragma unroll
    for (u32 r = 0; r < MAX_RUNS; r++) {
        const bool before_all = rank[r] == 0;
        rank[r] = before_all ? 0 : (rank[r] - 1) * SAMPLE + 1;
        window[r] = r >= level.runs || r == mine || before_all
                        ? 0
                        : min(SAMPLE - 1, group.length(r) - rank[r]);
    }
    for (u32 step = SAMPLE / 2; step != 0; step /= 2) {
#pragma unroll
        for (u32 r = 0; r < MAX_RUNS; r++) {
            others[r] =
                step <= window[r] ? memory.element(group.start(r) + rank[r] + step - 1) : self;
        }
#pragma unroll
        for (u32 r = 0; r < MAX_RUNS; r++) {
            if (step <= window[r] && precedes(memory, r < mine, others[r], self)) {
                rank[r] += step;
                window[r] -= step;
            } else {
                window[r] = min(window[r], step - 1);
            }
        }
    }
}

// One thread a sample. Its rank among the samples of every other run gives its rank in S, the
// samples of all runs merged; every spacing-th of S is a splitter, and the samples that bracket it
// in a run leave a window of SAMPLE elements there, in which its rank is found. Between two
// splitters lie `spacing` samples, so at most spacing * SAMPLE + (runs - 1) * (SAMPLE - 1)
// elements.
//
// A warp has consecutive samples of one run. The ranks of its first and last one in each run, found
// by a lane each, bound those of all others: they search few samples, and mostly the same ones.
template <class Memory>
DEVICE void rank_splitters(const Memory& memory, const Level& level, u64 n, u32* splits) {
    using Rank = typename Memory::Rank;
    const u32 lane = threadIdx.x % WARP;
    const u64 warp = (u64(blockIdx.x) * blockDim.x + threadIdx.x) / WARP;
    const u32 samples_of_run = u32(level.run / SAMPLE);
    const u32 warps_of_run = (samples_of_run + WARP - 1) / WARP;
    const u64 run = warp / warps_of_run, group_number = run / level.runs;
    if (run * level.run >= n) return;
    const Group group(level, group_number, n);
    const u32 mine = u32(run % level.runs);
    const u32 first = u32(warp % warps_of_run) * WARP, own = samples_in(group.length(mine));
    if (first >= own) return;
    const auto sample = [&](u32 r, u32 index) {
        return memory.sample(group.begin / SAMPLE + u64(r) * samples_of_run + index);
    };
    u32 edge_rank = 0;
    if (lane < 2 * MAX_RUNS) {
        const u32 r = lane % MAX_RUNS;
        const Rank edge = sample(mine, lane < MAX_RUNS ? first : min(first + WARP, own) - 1);
        const u32 length = r < level.runs && r != mine ? samples_in(group.length(r)) : 0;
        for (u32 step = 1u << (31 - __clz(samples_of_run)); step != 0; step /= 2) {
            const u32 next = edge_rank + step;
            if (next <= length && precedes(memory, r < mine, sample(r, next - 1), edge))
                edge_rank = next;
        }
    }
    __syncwarp();
    u32 rank[MAX_RUNS], most[MAX_RUNS];
    u32 widest = 0;
#pragma unroll
    for (u32 r = 0; r < MAX_RUNS; r++) {
        rank[r] = __shfl_sync(ALL_LANES, edge_rank, r);
        most[r] = __shfl_sync(ALL_LANES, edge_rank, MAX_RUNS + r);
        widest = max(widest, most[r] - rank[r]);
    }
    const u32 index = first + lane;
    if (index >= own) return;
    const Rank self = sample(mine, index);
    Rank others[MAX_RUNS];  // of all runs at once, so that their reads overlap
    for (u32 step = widest == 0 ? 0 : 1u << (31 - __clz(widest)); step != 0; step /= 2) {
#pragma unroll
        for (u32 r = 0; r < MAX_RUNS; r++) {
            const u32 next = rank[r] + step;
            others[r] = next <= most[r] ? sample(r, next - 1) : self;
        }
#pragma unroll
        for (u32 r = 0; r < MAX_RUNS; r++) {
            const u32 next = rank[r] + step;
            if (next <= most[r] && precedes(memory, r < mine, others[r], self)) rank[r] = next;
        }
    }
    u32 in_all = index;
#pragma unroll
    for (u32 r = 0; r < MAX_RUNS; r++) in_all += rank[r];
    if (in_all == 0 || in_all % level.spacing != 0) return;

    rank_in_windows(memory, level, group, mine, self, rank);
    u32* const to = splits + (group_number * level.pieces + in_all / level.spacing) * MAX_RUNS;
#pragma unroll
    for (u32 r = 0; r < MAX_RUNS; r++) {
        if (r < level.runs) to[r] = r == mine ? index * SAMPLE : rank[r];
    }
}

// ---- Section IV.A: the pieces between splitters, one a block ----

template <u32 THREADS, u32 ITEMS>
struct Piece {
    static constexpr u32 WARPS = THREADS / ROW;
    static constexpr u32 MAX_ELEMENTS = (THREADS - (MAX_RUNS / 2 - 1)) * ITEMS;  // elements
    static constexpr u32 ROWS = MAX_ELEMENTS / ROW + MAX_RUNS + 1;
    static constexpr u32 WARP_ROWS = (ROWS + WARPS - 1) / WARPS;
    static_assert(
        ROWS <= THREADS && MAX_ELEMENTS <= 32768,
        "rows are made by one thread each, indices have 16 bits");

    struct Row {
        u32 from;  // in memory
        u16 to;    // in the piece
        u16 count;
    };
    struct alignas(16) Shared {
        u32 at[MAX_RUNS + 1];  // where each run's part begins in the piece
        u32 from[MAX_RUNS];    // and in memory
        Row rows[WARP_ROWS * WARPS];
    };

    Shared& shared;
    u32 count;
    u64 to;  // where it goes

    DEVICE explicit Piece(Shared& shared) : shared(shared) {}

    // Finds the block's piece. Returns false for a block without work.
    DEVICE bool find(const Level& level, u64 n, const u32* splits) {
        const u32 number = blockIdx.x % level.pieces;
        const u64 group_number = blockIdx.x / level.pieces;
        const Group group(level, group_number, n);
        const u64 end = group.begin + level.runs * level.run;
        if (group.begin >= n) return false;
        const u64 samples = ((end < n ? end : n) - group.begin + SAMPLE - 1) / SAMPLE;
        if (u64(number) * level.spacing >= samples) return false;
        const bool last = (u64(number) + 1) * level.spacing >= samples;

        const u32* const split = splits + (group_number * level.pieces + number) * MAX_RUNS;
        if (threadIdx.x < ROW) {
            const u32 r = threadIdx.x;
            u32 begin = 0, length = 0;
            if (r < level.runs) {
                // Clamped to the run: an order that is not a strict weak one leaves any number
                // here.
                const u32 end_of_run = group.length(r);
                begin = number == 0 ? 0 : min(split[r], end_of_run);
                const u32 next = last ? end_of_run : min(split[MAX_RUNS + r], end_of_run);
                length = next > begin ? next - begin : 0;
            }
            u32 up_to = length, before = begin;
#pragma unroll
            for (u32 step = 1; step < MAX_RUNS; step *= 2) {
                const u32 lengths = __shfl_up_sync(ALL_LANES, up_to, step);
                const u32 begins = __shfl_up_sync(ALL_LANES, before, step);
                if (r >= step) {
                    up_to += lengths;
                    before += begins;
                }
            }
            if (r < MAX_RUNS) {
                shared.at[r + 1] = min(up_to, MAX_ELEMENTS);
                shared.from[r] = u32(group.start(r)) + begin;
            }
            if (r == 0) shared.at[0] = 0;
            if (r == MAX_RUNS - 1) shared.rows[0].from = before;
        }
        __syncthreads();
        to = group.begin + shared.rows[0].from;
        const u64 behind = (end < n ? end : n) - to;
        count = min(shared.at[MAX_RUNS], behind < MAX_ELEMENTS ? u32(behind) : MAX_ELEMENTS);
        __syncthreads();
        make_rows();
        __syncthreads();
        return true;
    }

    // A row is consecutive in memory, so it is in one run.
    DEVICE void make_rows() const {
        if (threadIdx.x >= WARP_ROWS * WARPS) return;
        Row row = {0, 0, 0};
        u32 number = threadIdx.x;
        for (u32 r = 0; r < MAX_RUNS; r++) {
            const u32 begin = shared.at[r], length = shared.at[r + 1] - begin;
            const u32 rows = (length + ROW - 1) / ROW, done = number * ROW;
            if (number < rows) {
                row = {shared.from[r] + done, u16(begin + done), u16(min(ROW, length - done))};
                break;
            }
            number -= rows;
        }
        shared.rows[threadIdx.x] = row;
    }

    // Calls read(index in memory, offset in the piece, index of the row) for every element.
    template <class Read>
    DEVICE void each(const Read& read) const {
        const u32 warp = threadIdx.x / ROW, lane = threadIdx.x % ROW;
#pragma unroll
        for (u32 i = 0; i < WARP_ROWS; i++) {
            const Row row = shared.rows[warp + i * WARPS];
            if (lane < row.count) read(row.from + lane, row.to + lane, i);
        }
    }
};

}  // namespace radsweep::satish_merge
