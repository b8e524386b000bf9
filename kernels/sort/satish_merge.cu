// Merge sort of the six key types.
//
// N. Satish, M. Harris, M. Garland: Designing Efficient Sorting Algorithms for Manycore GPUs, IPDPS
// 2009, section IV.
//
// Compiled with KEY_BITS (32, 64). The parts that any order shares are in satish_merge.cuh.
// Launched without the host waiting:
//   1  satish_merge_tile      steps 1 and 2: a tile a block, sorted on chip: an odd-even merge
//                             network in each thread's registers, then a tree of merges in shared
//                             memory
//   2  satish_merge_rank      step 3, its first half (section IV.A): samples of every run ranked in
//                             all others make the splitters of a pass
//   3  satish_merge_pieces    step 3, its second half: a block merges the piece between two
//                             splitters on chip
//   2 and 3 once a pass; each pass makes one run of up to eight. Numbers here are those of
//   launches.
//
// In memory between the kernels a key is its ordered bits (floats by total order: -0.0 is before
// +0.0, and compares equal), so that no pass maps keys; the last one maps them back.
//
// Bytes a pair of 4 + 4: 16 a kernel that moves it; 2^24 pairs are 2850 tiles, so 4 passes: 80.
// Pairwise passes would be 208. Instructions a pair, counted on the H200 with tiles of 7680: 350
// for a tile, 160 a pass. Shared memory bounds both: 8 bytes from any bank an element and level,
// and the steps of the search; its pipe was 75 to 87 % busy. H200 on 2026-11-21, 2^24 random pairs:
// tiles 261 us, splitters 4 * 41, pieces 4 * 150, in all 1.024 ms (16.4 G/s; CUB 3.5's merge sort
// 1.471). Keys alone 0.713 ms (23.5 G/s; CUB 0.785). Sorted pairs 0.541 ms. gpu-suite.json has the
// last run of the pairs and of CUB's; docs/benchmarks.md has the rates at 2^26.
//
// Departures from the paper, and what each gains:
//   - A thread sorts ITEMS items by the network in registers, and the tile's tree of merges follows
//     in shared memory: a network over the tile would be O(log^2) exchanges an item through shared
//     memory.
//   - A pass merges eight runs, on chip as a tree of pairwise merges: a third of the passes over
//     memory.
//   - Splitters are ranked in all runs at once by binary search in the samples, which the pass
//     before leaves in an array of their own; the paper merges the samples by a nested run of its
//     merge.
//   - A piece is cut at every spacing-th splitter, so pieces are as even as samples allow, not
//     between 1 and t elements.
//   - On chip a thread finds where its outputs begin by one binary search and merges serially: a
//     search for each element otherwise.
//   - Neighbours that are in order already are not merged: sorted input costs its reads and writes.
//   - Values of 4 bytes move with the keys; those of 8 bytes are fetched once a kernel by their
//     offset in it.

#include "block/load.cuh"
#include "common/layout.cuh"
#include "common/radix_key.cuh"
#include "common/sort_args.cuh"
#include "outcome.cuh"
#include "satish_merge_items.cuh"

namespace radsweep::satish_merge {

// The host's copy: crates/gpusort/src/cuda/satish_merge/layout.rs.
struct Args {
    const Key* keys_in;
    Key* keys_out;
    const void* values_in;  // null: 0, 1, 2, ...
    void* values_out;
    Key* samples;  // every SAMPLE-th key of the run that it is in, in the order of memory
    u32* splits;   // of each piece: its first element in each run
    Outcome* outcome;
    const u64* device_count;
    u64 n;
    u64 flip, fold;  // from a key to its ordered bits
    // What is compared: minus_zero becomes zero, then the window's bits.
    u64 window, minus_zero, zero;
    Level level;
    u32 passes;
    u32 flags;
};
ASSERT_LAYOUT(Args, 144,
    AT(keys_in, 0) AT(keys_out, 8) AT(values_in, 16) AT(values_out, 24) AT(samples, 32)
    AT(splits, 40) AT(outcome, 48) AT(device_count, 56) AT(n, 64) AT(flip, 72) AT(fold, 80)
    AT(window, 88) AT(minus_zero, 96) AT(zero, 104) AT(level, 112) AT(passes, 136) AT(flags, 140));

// Between a key and its ordered bits, one to one.
struct Bits {
    Key flip, fold;

    DEVICE Bits(const Args& args, bool identity)
        : flip(identity ? 0 : Key(args.flip)), fold(identity ? 0 : Key(args.fold)) {}
    DEVICE Key turn(Key key, Key sign_of) const {
        return key ^ (flip ^ (Key(SignedKey(sign_of) >> (KEY_BITS - 1)) & fold));
    }
    DEVICE Key of(Key key) const { return turn(key, key); }
    DEVICE Key back(Key bits) const { return turn(bits, bits ^ flip); }
};

// What is compared. PLAIN: integers by all their bits.
template <bool PLAIN>
struct Comparable {
    Key window, minus_zero, zero;

    DEVICE explicit Comparable(const Args& args)
        : window(Key(args.window)), minus_zero(Key(args.minus_zero)), zero(Key(args.zero)) {}
    DEVICE Key operator()(Key bits) const {
        if (PLAIN) return bits;
        return (bits == minus_zero ? zero : bits) & window;
    }
};

// ---- The order ----

template <class ThisItem, bool PLAIN>
struct ByKey {
    using Item = ThisItem;
    using Rank = Key;
    const Comparable<PLAIN> comparable;

    DEVICE Key rank(Item item) const { return comparable(item.key); }
    DEVICE Key rank_at(const Store<Item>& store, u32 index) const {
        return comparable(store.key(index));
    }
    DEVICE bool less(Key a, Key b) const { return a < b; }
    DEVICE bool before(Item a, Item b) const { return satish_merge::before(a, b); }
};

// ---- What the kernels that move keys end with ----

// Calls `visit(i, index)` for a block's elements below `count`, ITEMS a thread.
template <class Visit>
DEVICE void for_elements(u32 count, Visit visit) {
    for_items<ITEMS, THREADS>(threadIdx.x, count, visit);
}

struct Output {
    Key* keys;
    Key* samples;  // null: not wanted
    u64 to;
    u32 count;

    DEVICE Output(const Args& args, u64 to, u32 count)
        : keys(args.keys_out), samples(args.flags & LAST ? nullptr : args.samples), to(to),
          count(count) {}

    DEVICE void put(u32 index, Key key) const {
        const u64 at = to + index;
        keys[at] = key;
        if (at % SAMPLE == 0 && samples != nullptr)
            samples[at / SAMPLE] = key;  // the same threads each time
    }

    // Fetches what `stage` puts into shared memory, in the order of the tags.
    template <class T, class Stage, class Put>
    DEVICE void gather(
        const u32 (&tags)[ITEMS], T* shared, const Stage& stage, const Put& put) const {
        __syncthreads();
        stage(shared);
        __syncthreads();
        for_elements(count, [&](u32 i, u32 index) { put(index, shared[tags[i]]); });
    }
};

// ---- Steps 1 and 2 ----

template <bool PLAIN, u32 VALUE_BYTES>
DEVICE void sort_tile(const Args& args) {
    extern __shared__ uint4 shared_memory[];
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    using Item = typename ItemOf<!PLAIN || VALUE_BYTES != 0>::Type;
    using Order = ByKey<Item, true>;  // items hold what is compared

    const u64 n = key_count(args), base = u64(blockIdx.x) * TILE;
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *args.outcome = {SATISH_MERGE, args.passes + 1, args.passes + 1, 0, n, 0};
    if (base >= n) return;
    const u32 count = n - base < TILE ? u32(n - base) : TILE;
    const bool writes_keys = (args.flags & (LAST | DROP_KEYS)) != (LAST | DROP_KEYS);
    // For each of the tile's elements, `read(from memory)`, to shared memory.
    const auto each_element = [&](const auto& read) {
        for_elements(count, [&](u32, u32 index) { read(index); });
    };

    Key* const keys = reinterpret_cast<Key*>(shared_memory);
    each_element([&](u32 index) { keys[index] = args.keys_in[base + index]; });
    __syncthreads();
    const Bits bits(args, false);
    const Comparable<PLAIN> comparable(args);
    Item items[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        const u32 index = threadIdx.x * ITEMS + i;
        make(items[i], index < count ? comparable(bits.of(keys[index])) : ~Key(0), index);
    }
    __syncthreads();
    const Store<Item> store(shared_memory);
    const Chip<Order, Store<Item>, THREADS, ITEMS> chip{Order{Comparable<true>(args)}, store};
    chip.sort(items, count);

    const Output output(args, base, count);
    u32 tags[ITEMS];
    const Bits turned_back(args, !(args.flags & LAST));
    for_items_in_turn<ITEMS, THREADS>(threadIdx.x, count, [&](u32 i, u32 index) {
        tags[i] = store.tag(index);
        if (PLAIN && writes_keys) output.put(index, turned_back.back(store.key(index)));
    });
    if (!PLAIN && writes_keys) {
        const Bits kept(args, args.flags & LAST);
        output.gather(
            tags, reinterpret_cast<Key*>(shared_memory),
            [&](Key* shared) {
                each_element(
                    [&](u32 index) { shared[index] = kept.of(args.keys_in[base + index]); });
            },
            [&](u32 index, Key key) { output.put(index, key); });
    }
    if (VALUE_BYTES == 0) return;
    const Value* const from = static_cast<const Value*>(args.values_in) + base;
    Value* const to = static_cast<Value*>(args.values_out) + base;
    if (args.values_in == nullptr) {
        for_elements(count, [&](u32 i, u32 index) { to[index] = Value(base + tags[i]); });
        return;
    }
    output.gather(
        tags, reinterpret_cast<Value*>(shared_memory),
        [&](Value* shared) { each_element([&](u32 index) { shared[index] = from[index]; }); },
        [&](u32 index, Value value) { to[index] = value; });
}

// ---- Step 3 ----

template <bool PLAIN>
struct KeysInMemory {
    using Rank = Key;
    const Args& args;
    const Comparable<PLAIN> comparable;

    DEVICE Key sample(u64 i) const { return comparable(args.samples[i]); }
    DEVICE Key element(u64 i) const { return comparable(args.keys_in[i]); }
    DEVICE bool less(Key a, Key b) const { return a < b; }
};

template <bool PLAIN>
DEVICE void rank(const Args& args) {
    rank_splitters(
        KeysInMemory<PLAIN>{args, Comparable<PLAIN>(args)}, args.level, key_count(args),
        args.splits);
}

template <bool PLAIN, u32 VALUE_BYTES>
DEVICE void merge_piece(const Args& args) {
    extern __shared__ uint4 shared_memory[];
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    using Item = typename ItemOf<VALUE_BYTES != 0>::Type;
    using Order = ByKey<Item, PLAIN>;
    using ThisPiece = Piece<THREADS, ITEMS>;
    static_assert(sizeof(typename ThisPiece::Shared) % 16 == 0, "the store follows");

    typename ThisPiece::Shared& shared =
        *reinterpret_cast<typename ThisPiece::Shared*>(shared_memory);
    ThisPiece piece(shared);
    if (!piece.find(args.level, key_count(args), args.splits)) return;
    if (threadIdx.x == 0) atomicMax(&args.outcome->detail, u64(piece.count));

    const Value* const values_in = static_cast<const Value*>(args.values_in);
    Value* const values_out = static_cast<Value*>(args.values_out) + piece.to;
    const bool writes_keys = (args.flags & (LAST | DROP_KEYS)) != (LAST | DROP_KEYS);
    const Store<Item> store(&shared + 1);
    {
        Item items[ThisPiece::WARP_ROWS];
        piece.each([&](u32 from, u32 index, u32 i) {
            make(items[i], args.keys_in[from], VALUE_BYTES == 4 ? u32(values_in[from]) : index);
        });
        piece.each([&](u32, u32 index, u32 i) { store.put(index, items[i]); });
    }
    __syncthreads();
    const Chip<Order, Store<Item>, THREADS, ITEMS> chip{Order{Comparable<PLAIN>(args)}, store};
    chip.merge_runs(shared.at, args.level.runs);

    const Output output(args, piece.to, piece.count);
    const Bits turned_back(args, !(args.flags & LAST));
    u32 tags[ITEMS];
    for_items_in_turn<ITEMS, THREADS>(threadIdx.x, piece.count, [&](u32 i, u32 index) {
        tags[i] = store.tag(index);
        if (writes_keys) output.put(index, turned_back.back(store.key(index)));
        if (VALUE_BYTES == 4) values_out[index] = Value(tags[i]);
    });
    if (VALUE_BYTES != 8) return;
    output.gather(
        tags, reinterpret_cast<Value*>(&shared + 1),
        [&](Value* staged) {
            piece.each([&](u32 from, u32 index, u32) { staged[index] = values_in[from]; });
        },
        [&](u32 index, Value value) { values_out[index] = value; });
}

// ---- Entry points ----

#define BY_ORDER(KIND, PLAIN)                                                       \
    extern "C" __global__ void                                                      \
        __launch_bounds__(RANK_THREADS) satish_merge_rank_##KIND(const Args args) { \
        rank<PLAIN>(args);                                                          \
    }                                                                               \
    BY_VALUE(KIND, PLAIN, 0)                                                        \
    BY_VALUE(KIND, PLAIN, 4)                                                        \
    BY_VALUE(KIND, PLAIN, 8)
#define BY_VALUE(KIND, PLAIN, VALUE_BYTES)                                             \
    extern "C" __global__ void                                                         \
        __launch_bounds__(THREADS, BLOCKS) satish_merge_tile_##KIND##_##VALUE_BYTES(   \
            const Args args) {                                                         \
        sort_tile<PLAIN, VALUE_BYTES>(args);                                           \
    }                                                                                  \
    extern "C" __global__ void                                                         \
        __launch_bounds__(THREADS, BLOCKS) satish_merge_pieces_##KIND##_##VALUE_BYTES( \
            const Args args) {                                                         \
        merge_piece<PLAIN, VALUE_BYTES>(args);                                         \
    }
BY_ORDER(plain, true)
BY_ORDER(any, false)

}  // namespace radsweep::satish_merge
