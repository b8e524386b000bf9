// A window of nearly sorted input: a core of CORE elements and a halo of HALO before and behind it.
// Where every element is at most HALO from its rank, the element of rank r in the sorted window is
// the one of global rank (window's start + r), for all r in the core. So there is no histogram, no
// look-back and no second pass: one read and one write of each element.
//
//     1  load the keys
//     2  extract: each thread goes through a run of ITEMS keys and removes both keys of each
//        descent, the last one kept and the one less than it (C. Cook, D. Kim: Best Sorting
//        Algorithm for Nearly Sorted Lists, CACM 23 (11), 1980); then the same at the seams of
//        runs, until what is left is in order over the whole window. About two keys for each
//        displaced one
//     3  sort the removed keys by (key, offset), bitonic, in shared memory
//     4  merge by rank: a kept key goes to its rank among the kept ones plus the removed keys that
//        precede it, and these go in between. Only offsets, of 16 bits, are moved
//     5  write the core, its values read from where they are: neighbours stay neighbours, so both
//        sides are coalesced
//     6  the block that ends last checks that each core has the elements of its ranks (`verify`)
//
// A window with more than REMOVED removed keys ends the attempt.
//
// Bytes an element of B bytes with a value of V: 2 (B + V) of DRAM, and WIDTH / CORE as much for
// the keys' read from the level-two cache; pairs of u32 16, where Onesweep moves 68. Predicted
// instructions for each of the WIDTH / CORE elements (u32 pairs): 3 to load, 14 to extract, 12 to
// merge, 12 to write, and about 3 for sort, scans and barriers.
// Measured on an H200: 0.083 and 0.120 ms for 2^22 and 2^23 pairs of u32, where 1 % are moved by up
// to 1000 places.
//
// The other ways, by their predicted cost for u32 pairs:
//  - Tiles sorted twice, the second time shifted by half a tile, with flags at the borders: two
//    reads and writes (32 bytes) and two sorts of a tile instead of one extraction; a displacement
//    of half a tile at most, where here it is HALO.
//  - Extract and merge over the whole array: takes any displacement, but needs a scan over all
//    blocks to compact what is kept (read 8, write 8), a sort of the rest, and a merge (read 8,
//    write 8): 32 bytes and three dependent launches.
//  - A full radix sort of each window on chip moves the same bytes as this, but a digit's pass over
//    shared memory takes about as long as one over DRAM (Onesweep's is bound by the ranking, not by
//    bytes), times four digits and WIDTH / CORE.

#pragma once

#include "adaptive.cuh"
#include "block/bitonic.cuh"
#include "block/last_block.cuh"
#include "block/scan.cuh"
#include "common/layout.cuh"
#include "common/ptx.cuh"
#include "common/radix_key.cuh"
#include "common/search.cuh"
#include "common/sort_args.cuh"
#include "outcome.cuh"

namespace radsweep::adaptive {

constexpr u32 REMOVED = 1024;  // keys removed from a window, at most
constexpr u32 ROUNDS = 48;     // over the seams of runs, at most
constexpr u32 NONE = 0xffffffffu;

// The bounds of a window that `verify` needs, in ordered bits.
struct WindowRecord {
    Key all_max, head_max;  // over the core's elements; over all but its last HALO
    Key all_min, tail_min;  // over the core's elements; over all but its first HALO
    Key first, last;        // that the core was sorted to
    u32 removed;
    u32 unused;
};
static_assert(sizeof(WindowRecord) == 6 * sizeof(Key) + 8, "as the host counts");

// ---- Shared with the host: crates/gpusort/src/cuda/adaptive.rs ----

struct Buffers {
    const Key* keys_in;
    Key* keys_out;          // never the input
    const void* values_in;  // null means 0, 1, 2, ...
    void* values_out;
};
ASSERT_LAYOUT(Buffers, 32, AT(keys_in, 0) AT(keys_out, 8) AT(values_in, 16) AT(values_out, 24));

struct Args {
    Buffers buffers;
    char* header;           // begins with Outcome; has the State
    WindowRecord* records;  // [window]
    u64 n;
    KeyOrder order;
    u32 flags;
    u32 windows;
};
ASSERT_LAYOUT(Args, 104,
    AT(buffers, 0) AT(header, 32) AT(records, 40) AT(n, 48) AT(order, 56) AT(flags, 96)
    AT(windows, 100));

// A key, in ordered bits, and its offset in the window: no two are equal, and their order is the
// stable one.
struct alignas(2 * sizeof(Key)) Element {
    Key key;
    u32 offset;

    DEVICE bool operator<(const Element& other) const {
        return key < other.key || (key == other.key && offset < other.offset);
    }
};

// A window of the input, which a block sorts.
template <bool FLOAT, u32 VALUE_BYTES, u32 THREADS, u32 ITEMS, u32 HALO_RUNS>
struct Window {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    static constexpr bool VALUES = VALUE_BYTES != 0;
    static constexpr u32 WARPS = THREADS / WARP, WIDTH = THREADS * ITEMS;
    static constexpr u32 HALO = HALO_RUNS * ITEMS, CORE = WIDTH - 2 * HALO;
    static constexpr u32 WHOLE_RUN = 0xffffffffu >> (32 - ITEMS);
    static_assert(ITEMS % 2 == 1 && ITEMS < 32, "runs without bank conflicts, a bit for each key");
    static_assert(CORE > HALO, "the windows next to a window reach up to it");
    static_assert(
        REMOVED % 64 == 0 && REMOVED <= 2 * THREADS && WIDTH <= 65536 && WARPS <= WARP, "shape");

    // The host gives this many bytes (adaptive.rs: shared_bytes).
    struct Shared {
        Element removed[REMOVED];
        Key keys[WIDTH];  // by offset
        // By rank: offsets; before and after that, bounds of runs and of windows.
        u16 sources[WIDTH];
        u32 kept[THREADS];  // by run, a bit for each key that is kept
        u32 sums[WARP];
        u32 last_runs[WARP];  // of each warp the last run in which some key is kept
        Key bounds[4];
        u32 next;  // window of the block
        u32 padding[3];
    };
    static_assert(
        sizeof(Shared) == REMOVED * 2 * sizeof(Key) + WIDTH * (sizeof(Key) + 2) + THREADS * 4 +
                              WARP * 8 + 4 * sizeof(Key) + 16,
        "as the host counts");
    static_assert(
        2 * THREADS * sizeof(Key) <= WIDTH * sizeof(u16), "the runs' bounds where the sources are");

    const Args& args;
    Shared& shared;
    const Compared<FLOAT> compared;
    const u32 run;  // the thread's run of offsets, from run * ITEMS on
    const u32 lane, warp;
    const u32 number;  // of the window
    const u64 core;    // where the core begins; its first offset is HALO

    DEVICE Window(const Args& args, Shared& shared, u32 number)
        : args(args), shared(shared), compared(args.order), run(this_thread()), lane(run % WARP),
          warp(run / WARP), number(number), core(u64(number) * CORE) {}

    // Where one thread has several windows, the compiler does not know that it is the same thread:
    // addresses kept from one to the next would take the registers of the keys.
    static DEVICE u32 this_thread() {
        u32 thread = threadIdx.x;
        asm volatile("" : "+r"(thread));
        return thread;
    }

    DEVICE Key at(u32 offset) const { return compared(shared.keys[offset]); }
    DEVICE Element element(u32 offset) const { return {at(offset), offset}; }
    DEVICE u32 core_count() const { return args.n - core < CORE ? u32(args.n - core) : CORE; }
    DEVICE State& state() const { return *state_of(args.header); }
    DEVICE Key* run_max() const { return reinterpret_cast<Key*>(shared.sources); }
    DEVICE Key* run_min() const { return run_max() + THREADS; }

    // Returns a key that stands for those beyond the input: ordered bits of 0 before it, of ones
    // behind it. Both stay there.
    DEVICE Key beyond(bool before) const {
        if (!before) return Key(args.order.padding);
        const Ordering<FLOAT>& ordering = compared.ordering;
        return ordering.flip ^ (FLOAT && SignedKey(ordering.flip) < 0 ? ordering.fold : 0);
    }

    // Returns the key at an offset, or what stands for it beyond the input.
    DEVICE Key load_key(u32 offset) const {
        const u64 index = core + offset;  // HALO too many
        if (index < HALO || index - HALO >= args.n) return beyond(index < HALO);
        return args.buffers.keys_in[index - HALO];
    }

    // Takes the block's next window, `shared.next`. Returns whether the attempt goes on: no window
    // was given up, and a sample of neighbours in this one has few descents.
    DEVICE bool begin() const {
        const Key sample = compared(load_key(run + ITEMS / 2 * THREADS)),
                  after = __shfl_down_sync(ALL_LANES, sample, 1);
        const bool descends = lane < WARP - 1 && after < sample;
        if (run == 0) {
            const u32 taken = atomicAdd(&state().taken, 1);
            shared.next = load_relaxed(&state().gave_up) != 0 ? NONE : gridDim.x + taken;
        }
        if (__syncthreads_count(descends) > THREADS / 8) return give_up();
        return shared.next != NONE;
    }

    // 1.
    DEVICE void load() const {
        Key keys[ITEMS];
        if (core >= HALO && core + CORE + HALO <= args.n) {
            const Key* const from = args.buffers.keys_in + (core - HALO) + run;
#pragma unroll
            for (u32 i = 0; i < ITEMS; i++) keys[i] = from[i * THREADS];
        } else {
#pragma unroll
            for (u32 i = 0; i < ITEMS; i++) keys[i] = load_key(run + i * THREADS);
        }
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) shared.keys[run + i * THREADS] = keys[i];
        __syncthreads();
    }

    DEVICE bool give_up() const {
        if (run == 0) store_relaxed(&state().gave_up, 1);
        return false;
    }

    // 2, within the run. Returns the keys kept, which are in order.
    DEVICE u32 extract_from_run() const {
        u32 kept = 0;
        Key last = 0, most = 0, least = ~Key(0);
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            const Key key = at(run * ITEMS + i);
            most = max(most, key);
            least = min(least, key);
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

    static DEVICE u32 highest_bit(u32 word) { return 0x80000000u >> __clz(int(word)); }
    static DEVICE u32 first_offset(u32 run, u32 kept) { return run * ITEMS + __ffs(int(kept)) - 1; }
    static DEVICE u32 last_offset(u32 run, u32 kept) { return run * ITEMS + 31 - __clz(int(kept)); }

    // 2, between runs: each thread whose run has kept keys compares its first with the last one
    // kept before, and removes pairs of them, from what both runs had when the round began. Returns
    // false after too many rounds. `before` is the offset of the last key kept before the run, NONE
    // for the first.
    DEVICE bool extract_at_seams(u32& before) const {
        for (u32 round = 0; round < ROUNDS; round++) {
            const u32 kept = shared.kept[run];
            const u32 filled = __ballot_sync(ALL_LANES, kept != 0),
                      below = filled & ((1u << lane) - 1);
            if (lane == 0)
                shared.last_runs[warp] = filled != 0 ? warp * WARP + 31 - __clz(int(filled)) : NONE;
            __syncthreads();
            u32 other = below != 0 ? warp * WARP + 31 - __clz(int(below)) : NONE;
            for (u32 w = warp; other == NONE && w > 0; w--) other = shared.last_runs[w - 1];
            before = NONE;
            u32 left = 0, right = kept, left_kept = 0;
            if (other != NONE) {
                left = left_kept = shared.kept[other];
                before = last_offset(other, left);
                while (left != 0 && right != 0 &&
                       at(first_offset(run, right)) < at(last_offset(other, left))) {
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

    // 3.
    DEVICE void sort_removed(u32 count) const {
        u32 size = 2;
        while (size < count) size *= 2;
        for (u32 i = count + run; i < size; i += THREADS) shared.removed[i] = {~Key(0), NONE};
        __syncthreads();
        bitonic_sort(shared.removed, size);
    }

    // 4. `before` as `extract_at_seams` leaves it, `rank` the keys kept in the runs before.
    DEVICE void merge(u32 kept, u32 before, u32 rank, u32 count) const {
        const bool is_last = rank + __popc(kept) == WIDTH - count;
        if (kept == 0) return;
        u32 next = 0;  // among the removed: the first behind `before`
        if (before != NONE) {
            const Element last = element(before);
            next = partition_point(0u, count, [&](u32 at) { return shared.removed[at] < last; });
        }
        const Element none{~Key(0), NONE};
        Element removed = next < count ? shared.removed[next] : none;
        u16* to = shared.sources + rank + next;
#pragma unroll 1
        for (u32 i = 0; i < ITEMS; i++) {
            if ((kept >> i & 1) == 0) continue;
            const Element here = element(run * ITEMS + i);
            while (removed < here) {
                *to++ = u16(removed.offset);
                next++;
                removed = next < count ? shared.removed[next] : none;
            }
            *to++ = u16(here.offset);
        }
        if (is_last) {
            for (; next < count; next++) *to++ = u16(shared.removed[next].offset);
        }
    }

    // 5.
    template <bool FULL>
    DEVICE void write() const {
        constexpr u32 EACH = (CORE + THREADS - 1) / THREADS, AT_ONCE = 8;
        const u32 count = core_count();
        const bool with_keys = !VALUES || !(args.flags & DROP_KEYS);
        const Value* const from = static_cast<const Value*>(args.buffers.values_in);
        Value* const values_to = static_cast<Value*>(args.buffers.values_out) + core;
        Key* const keys_to = args.buffers.keys_out + core;
#pragma unroll
        for (u32 first = 0; first < EACH; first += AT_ONCE) {
            Value values[AT_ONCE];
#pragma unroll
            for (u32 i = 0; i < AT_ONCE && first + i < EACH; i++) {
                const u32 to = run + (first + i) * THREADS;
                if (to >= (FULL ? CORE : count)) break;
                const u32 offset = shared.sources[HALO + to];
                const u64 index = core + offset - HALO;
                if (VALUES) values[i] = from != nullptr ? from[index] : Value(index);
                if (with_keys) keys_to[to] = shared.keys[offset];
            }
            if constexpr (VALUES) {
#pragma unroll
                for (u32 i = 0; i < AT_ONCE && first + i < EACH; i++) {
                    const u32 to = run + (first + i) * THREADS;
                    if (to >= (FULL ? CORE : count)) break;
                    values_to[to] = values[i];
                }
            }
        }
    }

    // Finds the bounds of the core's keys, a warp each. Elements behind the input raise only bounds
    // that are not used.
    DEVICE void find_bounds() const {
        if (warp >= 4) return;
        const bool most = warp < 2;
        const u32 begin = warp == 3 ? 2 * HALO_RUNS : HALO_RUNS,
                  end = THREADS - (warp == 1 ? 2 : 1) * HALO_RUNS;
        Key bound = most ? 0 : ~Key(0);
        for (u32 r = begin + lane; r < end; r += WARP) {
            bound = most ? max(bound, run_max()[r]) : min(bound, run_min()[r]);
        }
        bound = most ? warp_max(bound) : warp_min(bound);
        if (lane == 0) shared.bounds[warp] = bound;
    }

    DEVICE void write_record(u32 removed) const {
        if (run != 0) return;
        WindowRecord& record = args.records[number];
        record.all_max = shared.bounds[0];
        record.head_max = shared.bounds[1];
        record.all_min = shared.bounds[2];
        record.tail_min = shared.bounds[3];
        record.first = at(shared.sources[HALO]);
        record.last = at(shared.sources[HALO + core_count() - 1]);
        record.removed = removed;
    }

    // Returns the largest `key` of the threads before this one, 0 for the first; REVERSED: the
    // smallest of those behind, or all ones.
    template <bool REVERSED>
    DEVICE Key bound_beyond(Key key) const {
        if (REVERSED) key = ~key;  // a maximum either way
        Key* const bounds = run_max();
        __syncthreads();
        bounds[REVERSED ? THREADS - 1 - run : run] = key;
        __syncthreads();
        const u32 thread = REVERSED ? THREADS - 1 - run : run;
        for (u32 step = 1; step < THREADS; step *= 2) {
            const Key other = thread >= step ? bounds[thread - step] : 0;
            __syncthreads();
            bounds[thread] = max(bounds[thread], other);
            __syncthreads();
        }
        const Key bound = thread > 0 ? bounds[thread - 1] : 0;
        return REVERSED ? ~bound : bound;
    }

    // 6. A window's core is right if (a) no key before the window is larger than the core's first,
    // and (b) none behind the window is smaller than its last. For then, ties being in the input's
    // order, every element before the window precedes the whole core and every element behind it
    // follows: so an element of the core has the global rank (elements before the window) + (its
    // rank in the window), and there it was written. Cores cover all ranks, so if all are right the
    // output is.
    //
    // Before window w are the cores of windows up to w - 2, and that of w - 1 but for its last HALO
    // elements; behind it the core of w + 1 but for its first HALO, and all from w + 2 on. (Halos
    // are shorter than cores.)
    DEVICE bool verify() const {
        const WindowRecord* const all = args.records;
        const u32 windows = args.windows, each = (windows + THREADS - 1) / THREADS;
        const u32 begin = min(run * each, windows), end = min(begin + each, windows);
        Key most = 0, least = ~Key(0);
        u32 removed = 0;
        for (u32 w = begin; w < end; w++) {
            if (w >= 1) most = max(most, load_relaxed(&all[w - 1].all_max));
            if (w + 1 < windows) least = min(least, load_relaxed(&all[w + 1].all_min));
            removed += load_relaxed(&all[w].removed);
        }
        most = bound_beyond<false>(most);   // over the windows up to begin - 2
        least = bound_beyond<true>(least);  // over the windows from end + 1 on
        bool right = true;
        for (u32 w = begin; w < end; w++) {
            if (w >= 1)
                right &=
                    max(most, load_relaxed(&all[w - 1].head_max)) <= load_relaxed(&all[w].first);
            if (w >= 1) most = max(most, load_relaxed(&all[w - 1].all_max));
        }
        for (u32 w = end; w-- > begin;) {
            if (w + 1 < windows)
                right &=
                    min(least, load_relaxed(&all[w + 1].tail_min)) >= load_relaxed(&all[w].last);
            if (w + 1 < windows) least = min(least, load_relaxed(&all[w + 1].all_min));
        }
        if (__syncthreads_or(!right)) return false;
        u32 total = 0;
        block_exclusive_sum<WARPS>(removed, shared.sums, total);
        if (run != 0) return true;
        const u32 passes = pass_count<8>(args.order);
        *reinterpret_cast<Outcome*>(args.header) =
            Outcome{ONESWEEP, passes, 0, ADAPTIVE | (total == 0 ? EARLY_EXIT : 0), args.n, total};
        state().done = 1;
        return true;
    }

    // Sorts the window, or gives up.
    DEVICE void sort() const {
        load();
        shared.kept[run] = extract_from_run();
        __syncthreads();
        u32 before;
        if (!extract_at_seams(before)) {
            give_up();
            return;
        }
        find_bounds();
        const u32 kept = shared.kept[run];
        u32 total;
        const u32 rank = block_exclusive_sum<WARPS>(u32(__popc(kept)), shared.sums, total),
                  count = WIDTH - total;
        if (count > REMOVED) {
            give_up();
            return;
        }
        u32 to = run * ITEMS - rank;
        for (u32 out = WHOLE_RUN & ~kept; out != 0; out &= out - 1)
            shared.removed[to++] = element(first_offset(run, out));
        if (count != 0) sort_removed(count);  // includes the barrier before `merge`
        else __syncthreads();
        merge(kept, before, rank, count);
        __syncthreads();
        if (core_count() == CORE) write<true>();
        else write<false>();
        write_record(count);
    }

    // Ends an attempt, by each of `blocks` blocks that has no more windows to sort.
    DEVICE void end(u32 blocks, const Memory& memory) const {
        if (!arrives_last(&state().finished, blocks)) return;
        const bool gave_up = __syncthreads_or(run == 0 && load_relaxed(&state().gave_up));
        const bool sorted = !gave_up && verify();
        if (run == 0) memory.tried(sorted);
    }
};

}  // namespace radsweep::adaptive
