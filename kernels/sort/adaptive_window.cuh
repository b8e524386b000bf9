// A window of nearly sorted input: a core of CORE elements and a halo of HALO before and behind it. Where no element is more than
// HALO places from its own, the element of rank r in the sorted window is the one of global rank (window's start + r), for all r in
// the core. So there is no histogram, no look-back and no second pass: one read and one write of each element.
//
//     1  load the keys
//     2  extract: each thread goes through a run of ITEMS keys and takes out both keys of each descent, the last one kept and the
//        one less than it (C. Cook, D. Kim: Best Sorting Algorithm for Nearly Sorted Lists, CACM 23 (11), 1980); then the same at
//        the seams of runs, until what is left is in order over the whole window. About two keys for each displaced one
//     3  sort the keys taken out by (key, place), bitonic, in shared memory
//     4  merge by rank: a key that was kept goes to its number among those plus the keys taken out that precede it, and these
//        go in between. Only places, of 16 bits, are moved
//     5  write the core, its values read from where they are: neighbours stay neighbours, so both sides are coalesced
//     6  the block whose window is done last checks that no element outside a window belongs before or into its core (`verify`)
//
// A window in which more than REMOVED keys are taken out ends the attempt.
//
// Bytes an element of B bytes with a value of V: 2 (B + V) of DRAM, and WIDTH / CORE as much for the keys' read from the level-two
// cache; pairs of u32 16, where Onesweep moves 68. Predicted instructions for each of the WIDTH / CORE elements (u32 pairs): 3 to
// load, 14 to extract, 12 to merge, 12 to write, and about 3 for sort, scans and barriers. Not measured yet.
//
// The other ways, by their predicted cost for u32 pairs:
//  - Tiles sorted twice, the second time shifted by half a tile, with flags at the borders: two reads and writes (32 bytes) and two
//    sorts of a tile instead of one extraction; a displacement of half a tile at most, as here.
//  - Extract and merge over the whole array: takes any displacement, but needs a scan over all blocks to compact what is kept (read
//    8, write 8), a sort of the rest, and a merge (read 8, write 8): 32 bytes and three dependent launches.
//  - A full radix sort of each window on chip moves the same bytes as this, but a digit's pass over shared memory takes about as
//    long as one over DRAM (Onesweep's is bound by the ranking, not by bytes), times four digits and WIDTH / CORE.

#pragma once

#include "../common/warp.cuh"
#include "../common/radix_key.cuh"
#include "adaptive.cuh"
#include "onesweep_digit.cuh"
#include "outcome.cuh"

namespace radsweep {

constexpr uint32_t REMOVED = 1024;     // keys that are taken out of a window, at most
constexpr uint32_t ROUNDS = 48;        // over the seams of runs, at most
constexpr uint32_t NONE = 0xffffffffu;

// Of a window, in ordered bits: what `verify` wants to know.
struct WindowRecord {
    Key all_max, head_max;             // over the core's elements; over all but its last HALO
    Key all_min, tail_min;             // over the core's elements; over all but its first HALO
    Key first, last;                   // that the core was sorted to
    uint32_t removed;
    uint32_t unused;
};

// A key, in ordered bits, and its place in the window: no two are equal, and their order is the stable one.
struct alignas(2 * sizeof(Key)) Element {
    Key key;
    uint32_t place;

    __device__ __forceinline__ bool operator<(const Element& other) const {
        return key < other.key || (key == other.key && place < other.place);
    }
};

template <class T>
__device__ __forceinline__ T larger(T a, T b) { return a > b ? a : b; }
template <class T>
__device__ __forceinline__ T smaller(T a, T b) { return a < b ? a : b; }

// A window of the array that `Array` tells of: n() keys in the order order(), keys_in(), keys_out(), values_in() (null means 0, 1,
// 2, ...), values_out(), drop_keys(): the sorted keys are not wanted; windows() of it, their records(), and header(), which begins
// with Outcome and has the AdaptiveState. What is written is never what is read.
template <class Array, bool FLOAT, uint32_t VALUE_BYTES, uint32_t THREADS, uint32_t ITEMS, uint32_t HALO_RUNS>
struct Window {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    static constexpr bool VALUES = VALUE_BYTES != 0;
    static constexpr uint32_t WARPS = THREADS / WARP, WIDTH = THREADS * ITEMS;
    static constexpr uint32_t HALO = HALO_RUNS * ITEMS, CORE = WIDTH - 2 * HALO;
    static constexpr uint32_t WHOLE_RUN = 0xffffffffu >> (32 - ITEMS);
    static_assert(ITEMS % 2 == 1 && ITEMS < 32, "runs without bank conflicts, a bit for each key");
    static_assert(CORE > HALO, "the windows next to a window reach up to it");
    static_assert(REMOVED % 64 == 0 && REMOVED <= 2 * THREADS && WIDTH <= 65536 && WARPS <= WARP, "shape");

    // The host gives this many bytes (adaptive.rs: shared_bytes).
    struct Shared {
        Element removed[REMOVED];
        Key keys[WIDTH];               // by place
        uint16_t sources[WIDTH];       // by rank: places; before, the runs' largest and smallest keys; at last, `verify`'s
        uint32_t kept[THREADS];        // by run, a bit for each key that is not taken out
        uint32_t sums[WARP];
        uint32_t last_runs[WARP];      // of each warp the last run in which some key is kept
        Key bounds[4];
        uint32_t ends_last;
        uint32_t padding[3];
    };
    static_assert(sizeof(Shared) == REMOVED * 2 * sizeof(Key) + WIDTH * (sizeof(Key) + 2) + THREADS * 4 + WARP * 8 + 4 * sizeof(Key) + 16,
                  "as the host counts");
    static_assert(2 * THREADS * sizeof(Key) <= WIDTH * sizeof(uint16_t), "the runs' bounds in the sources' place");

    const Array array;
    Shared& shared;
    const Ordering<FLOAT> ordering;
    const Key window;
    const uint32_t lane, warp, run;    // the thread's run of places, from run * ITEMS on
    const uint32_t number;             // of the window
    const uint64_t core;               // where the core begins; its first place is HALO

    __device__ __forceinline__ Window(const Array& array, Shared& shared, uint32_t number)
        : array(array), shared(shared), ordering(ordering_of<FLOAT>(array.order())), window(Key(array.order().window)),
          lane(threadIdx.x % WARP), warp(threadIdx.x / WARP), run(threadIdx.x), number(number), core(uint64_t(number) * CORE) {}

    __device__ __forceinline__ Key ordered(Key key) const { return ordering(key) & window; }
    __device__ __forceinline__ Key at(uint32_t place) const { return ordered(shared.keys[place]); }
    __device__ __forceinline__ Element element(uint32_t place) const { return {at(place), place}; }
    __device__ __forceinline__ uint32_t core_count() const { return array.n() - core < CORE ? uint32_t(array.n() - core) : CORE; }
    __device__ __forceinline__ AdaptiveState& state() const { return *adaptive_state(array.header()); }
    __device__ __forceinline__ Key* run_max() const { return reinterpret_cast<Key*>(shared.sources); }
    __device__ __forceinline__ Key* run_min() const { return run_max() + THREADS; }

    // Before the input stand keys whose ordered bits are 0, behind it keys whose ordered bits are ones: both stay there.
    __device__ __forceinline__ Key beyond(bool before) const {
        if (!before) return Key(array.order().padding);
        return ordering.flip ^ (FLOAT && SignedKey(ordering.flip) < 0 ? ordering.fold : 0);
    }

    // The key at a place, or what stands for it beyond the input.
    __device__ __forceinline__ Key load_key(uint32_t place) const {
        const uint64_t index = core + place;  // and HALO more than meant
        if (index < HALO || index - HALO >= array.n()) return beyond(index < HALO);
        return array.keys_in()[index - HALO];
    }

    // Whether a sample of neighbours says that the input can be nearly sorted: the descents are not too many to take out.
    __device__ __forceinline__ bool looks_sorted() const {
        const Key sample = ordered(load_key(threadIdx.x + ITEMS / 2 * THREADS)), next = __shfl_down_sync(ALL_LANES, sample, 1);
        const bool descends = lane < WARP - 1 && next < sample;
        return __syncthreads_count(descends) <= THREADS / 8 || give_up();
    }

    // 1.
    __device__ __forceinline__ void load() const {
        Key keys[ITEMS];
        if (core >= HALO && core + CORE + HALO <= array.n()) {
            const Key* const from = array.keys_in() + (core - HALO) + threadIdx.x;
#pragma unroll
            for (uint32_t i = 0; i < ITEMS; i++) keys[i] = from[i * THREADS];
        } else {
#pragma unroll
            for (uint32_t i = 0; i < ITEMS; i++) keys[i] = load_key(threadIdx.x + i * THREADS);
        }
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) shared.keys[threadIdx.x + i * THREADS] = keys[i];
        __syncthreads();
    }

    __device__ __forceinline__ bool give_up() const {
        if (threadIdx.x == 0) store_relaxed(&state().gave_up, 1);
        return false;
    }

    // 2, within the run. Returns the keys kept, which are in order.
    __device__ __forceinline__ uint32_t extract_from_run() const {
        uint32_t kept = 0;
        Key last = 0, most = 0, least = ~Key(0);
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            const Key key = at(run * ITEMS + i);
            most = larger(most, key);
            least = smaller(least, key);
            if (key >= last) {
                kept |= 1u << i;
                last = key;
            } else {
                kept ^= highest_bit(kept);
                last = kept != 0 ? at(run * ITEMS + 31 - __clz(int(kept))) : 0;
            }
        }
        run_max()[run] = most;
        run_min()[run] = least;
        return kept;
    }

    static __device__ __forceinline__ uint32_t highest_bit(uint32_t word) { return 0x80000000u >> __clz(int(word)); }
    static __device__ __forceinline__ uint32_t first_place(uint32_t run, uint32_t kept) { return run * ITEMS + __ffs(int(kept)) - 1; }
    static __device__ __forceinline__ uint32_t last_place(uint32_t run, uint32_t kept) { return run * ITEMS + 31 - __clz(int(kept)); }

    // 2, between runs: each thread whose run has kept keys compares its first with the last one kept before, and takes out pairs of
    // them, from what both runs had when the round began. Returns false after too many rounds. `before` is the place of the last
    // key kept before the run, NONE for the first.
    __device__ __forceinline__ bool extract_at_seams(uint32_t& before) const {
        for (uint32_t round = 0; round < ROUNDS; round++) {
            const uint32_t kept = shared.kept[run];
            const uint32_t filled = __ballot_sync(ALL_LANES, kept != 0), below = filled & ((1u << lane) - 1);
            if (lane == 0) shared.last_runs[warp] = filled != 0 ? warp * WARP + 31 - __clz(int(filled)) : NONE;
            __syncthreads();
            uint32_t other = below != 0 ? warp * WARP + 31 - __clz(int(below)) : NONE;
            for (uint32_t w = warp; other == NONE && w > 0; w--) other = shared.last_runs[w - 1];
            before = NONE;
            uint32_t left = 0, right = kept, left_kept = 0;
            if (other != NONE) {
                left = left_kept = shared.kept[other];
                before = last_place(other, left);
                while (left != 0 && right != 0 && at(first_place(run, right)) < at(last_place(other, left))) {
                    left ^= highest_bit(left);
                    right &= right - 1;
                }
            }
            const bool changed = left != left_kept;
            if (!__syncthreads_or(changed)) return true;
            if (changed) {
                atomicAnd(&shared.kept[other], ~(left_kept ^ left));
                atomicAnd(&shared.kept[run], ~(kept ^ right));
            }
            __syncthreads();
        }
        return false;
    }

    // The sum of `number` over the threads before this one; `total` is that of all.
    __device__ __forceinline__ uint32_t sum_before(uint32_t number, uint32_t& total) const {
        const uint32_t up_to = warp_inclusive_sum(number, lane);
        if (lane == WARP - 1) shared.sums[warp] = up_to;
        __syncthreads();
        const uint32_t sums = warp_inclusive_sum(lane < WARPS ? shared.sums[lane] : 0, lane);
        total = __shfl_sync(ALL_LANES, sums, WARPS - 1);
        const uint32_t before = __shfl_sync(ALL_LANES, sums, warp == 0 ? 0 : warp - 1);
        return (warp == 0 ? 0 : before) + up_to - number;
    }

    // 3. Where a step and the next one stay within the elements of each warp, 64 of them, no block-wide barrier is needed.
    __device__ __forceinline__ void sort_removed(uint32_t count) const {
        uint32_t size = 2;
        while (size < count) size *= 2;
        for (uint32_t i = count + threadIdx.x; i < size; i += THREADS) shared.removed[i] = {~Key(0), NONE};
        __syncthreads();
        for (uint32_t length = 2; length <= size; length *= 2) {
            for (uint32_t step = length / 2; step > 0; step /= 2) {
                if (threadIdx.x < size / 2) {
                    const uint32_t i = 2 * threadIdx.x - (threadIdx.x & (step - 1));
                    const Element a = shared.removed[i], b = shared.removed[i + step];
                    if ((b < a) == ((i & length) == 0)) {
                        shared.removed[i] = b;
                        shared.removed[i + step] = a;
                    }
                }
                if (step > WARP || (step == 1 && length > WARP)) __syncthreads();
                else __syncwarp();
            }
        }
        __syncthreads();
    }

    // 4. `before` as `extract_at_seams` leaves it, `rank` the keys kept in the runs before.
    __device__ __forceinline__ void merge(uint32_t kept, uint32_t before, uint32_t rank, uint32_t count) const {
        const bool is_last = rank + __popc(kept) == WIDTH - count;
        if (kept == 0) return;
        uint32_t next = 0;             // among those taken out: the first behind `before`
        if (before != NONE) {
            const Element last = element(before);
            for (uint32_t end = count; next < end;) {
                const uint32_t middle = (next + end) / 2;
                if (shared.removed[middle] < last) next = middle + 1;
                else end = middle;
            }
        }
        const Element none{~Key(0), NONE};
        Element removed = next < count ? shared.removed[next] : none;
        uint16_t* to = shared.sources + rank + next;
#pragma unroll 1
        for (uint32_t i = 0; i < ITEMS; i++) {
            if ((kept >> i & 1) == 0) continue;
            const Element here = element(run * ITEMS + i);
            while (removed < here) {
                *to++ = uint16_t(removed.place);
                next++;
                removed = next < count ? shared.removed[next] : none;
            }
            *to++ = uint16_t(here.place);
        }
        if (is_last) {
            for (; next < count; next++) *to++ = uint16_t(shared.removed[next].place);
        }
    }

    // 5.
    template <bool FULL>
    __device__ __forceinline__ void write() const {
        constexpr uint32_t EACH = (CORE + THREADS - 1) / THREADS;
        const uint32_t count = core_count();
        const bool with_keys = !VALUES || !array.drop_keys();
        const Value* const from = static_cast<const Value*>(array.values_in());
        Value* const values_to = static_cast<Value*>(array.values_out()) + core;
        Key* const keys_to = array.keys_out() + core;
        Value values[EACH];
#pragma unroll
        for (uint32_t i = 0; i < EACH; i++) {
            const uint32_t to = threadIdx.x + i * THREADS;
            if (to >= (FULL ? CORE : count)) break;
            const uint32_t place = shared.sources[HALO + to];
            const uint64_t index = core + place - HALO;
            if (VALUES) values[i] = from != nullptr ? from[index] : Value(index);
            if (with_keys) keys_to[to] = shared.keys[place];
        }
        if constexpr (VALUES) {
#pragma unroll
            for (uint32_t i = 0; i < EACH; i++) {
                const uint32_t to = threadIdx.x + i * THREADS;
                if (to >= (FULL ? CORE : count)) break;
                values_to[to] = values[i];
            }
        }
    }

    // The bounds of the core's keys, a warp each; elements behind the input make them larger only where nobody asks.
    __device__ __forceinline__ void find_bounds() const {
        if (warp >= 4) return;
        const bool most = warp < 2;
        const uint32_t begin = warp == 3 ? 2 * HALO_RUNS : HALO_RUNS, end = THREADS - (warp == 1 ? 2 : 1) * HALO_RUNS;
        Key bound = most ? 0 : ~Key(0);
        for (uint32_t r = begin + lane; r < end; r += WARP) {
            bound = most ? larger(bound, run_max()[r]) : smaller(bound, run_min()[r]);
        }
#pragma unroll
        for (uint32_t step = WARP / 2; step > 0; step /= 2) {
            const Key other = __shfl_xor_sync(ALL_LANES, bound, step);
            bound = most ? larger(bound, other) : smaller(bound, other);
        }
        if (lane == 0) shared.bounds[warp] = bound;
    }

    // Whether this block is the last to have sorted its window.
    __device__ __forceinline__ bool publish(uint32_t removed) const {
        if (threadIdx.x == 0) {
            WindowRecord& record = array.records()[number];
            record.all_max = shared.bounds[0];
            record.head_max = shared.bounds[1];
            record.all_min = shared.bounds[2];
            record.tail_min = shared.bounds[3];
            record.first = at(shared.sources[HALO]);
            record.last = at(shared.sources[HALO + core_count() - 1]);
            record.removed = removed;
            __threadfence();
            shared.ends_last = atomicAdd(&state().finished, 1) == array.windows() - 1;
        }
        __syncthreads();
        return shared.ends_last != 0;
    }

    // The largest `key` of the threads before this one, 0 for the first; REVERSED: the smallest of those behind, or all ones.
    template <bool REVERSED>
    __device__ __forceinline__ Key bound_beyond(Key key) const {
        if (REVERSED) key = ~key;      // a maximum either way
        Key* const bounds = run_max();
        __syncthreads();
        bounds[REVERSED ? THREADS - 1 - threadIdx.x : threadIdx.x] = key;
        __syncthreads();
        const uint32_t thread = REVERSED ? THREADS - 1 - threadIdx.x : threadIdx.x;
        for (uint32_t step = 1; step < THREADS; step *= 2) {
            const Key other = thread >= step ? bounds[thread - step] : 0;
            __syncthreads();
            bounds[thread] = larger(bounds[thread], other);
            __syncthreads();
        }
        const Key bound = thread > 0 ? bounds[thread - 1] : 0;
        return REVERSED ? ~bound : bound;
    }

    // 6. A window's core is right if (a) no key before the window is larger than the core's first, and (b) none behind the window is
    // smaller than its last. For then, ties being in the input's order, every element before the window precedes the whole core and
    // every element behind it follows: so an element of the core has the global rank (elements before the window) + (its rank in the
    // window), and there it was written. Cores cover all ranks, so if all are right the output is.
    //
    // Before window w are the cores of windows up to w - 2, and that of w - 1 but for its last HALO elements; behind it the core of
    // w + 1 but for its first HALO, and all from w + 2 on. (Halos are shorter than cores.)
    __device__ __forceinline__ void verify() const {
        __threadfence();
        const WindowRecord* const all = array.records();
        const uint32_t windows = array.windows(), each = (windows + THREADS - 1) / THREADS;
        const uint32_t begin = smaller(threadIdx.x * each, windows), end = smaller(begin + each, windows);
        Key most = 0, least = ~Key(0);
        uint32_t removed = 0;
        for (uint32_t w = begin; w < end; w++) {
            if (w >= 1) most = larger(most, load_relaxed(&all[w - 1].all_max));
            if (w + 1 < windows) least = smaller(least, load_relaxed(&all[w + 1].all_min));
            removed += load_relaxed(&all[w].removed);
        }
        most = bound_beyond<false>(most);        // over the windows up to begin - 2
        least = bound_beyond<true>(least);       // over the windows from end + 1 on
        bool right = true;
        for (uint32_t w = begin; w < end; w++) {
            if (w >= 1) right &= larger(most, load_relaxed(&all[w - 1].head_max)) <= load_relaxed(&all[w].first);
            if (w >= 1) most = larger(most, load_relaxed(&all[w - 1].all_max));
        }
        for (uint32_t w = end; w-- > begin;) {
            if (w + 1 < windows) right &= smaller(least, load_relaxed(&all[w + 1].tail_min)) >= load_relaxed(&all[w].last);
            if (w + 1 < windows) least = smaller(least, load_relaxed(&all[w + 1].all_min));
        }
        if (__syncthreads_or(!right)) return;
        uint32_t total = 0;
        sum_before(removed, total);
        if (threadIdx.x != 0) return;
        const uint32_t passes = (array.order().end - array.order().begin + 7) / 8;
        *reinterpret_cast<Outcome*>(array.header()) = Outcome{ONESWEEP, passes, 0, ADAPTIVE | (total == 0 ? EARLY_EXIT : 0), array.n(), total};
        state().done = 1;
    }

    __device__ __forceinline__ void sort() const {
        load();
        shared.kept[run] = extract_from_run();
        __syncthreads();
        uint32_t before;
        if (!extract_at_seams(before)) {
            give_up();
            return;
        }
        find_bounds();
        const uint32_t kept = shared.kept[run];
        uint32_t total;
        const uint32_t rank = sum_before(__popc(kept), total), count = WIDTH - total;
        if (count > REMOVED) {
            give_up();
            return;
        }
        uint32_t to = run * ITEMS - rank;
        for (uint32_t out = WHOLE_RUN & ~kept; out != 0; out &= out - 1) shared.removed[to++] = element(first_place(run, out));
        if (count != 0) sort_removed(count);     // the barrier before `merge` is in it
        else __syncthreads();
        merge(kept, before, rank, count);
        __syncthreads();
        if (core_count() == CORE) write<true>();
        else write<false>();
        if (publish(count)) verify();
    }
};

// The shapes that are compiled: threads, items, runs of a halo. The halos are wider than 1000 places, as neighbours that move as
// well push an element further. By prediction: no other shape was measured.
#if KEY_BITS == 32
constexpr uint32_t WINDOW_THREADS = 512, WINDOW_ITEMS = 21, WINDOW_HALO_RUNS = 64;
#else
constexpr uint32_t WINDOW_THREADS = 512, WINDOW_ITEMS = 17, WINDOW_HALO_RUNS = 64;
#endif

}  // namespace radsweep
