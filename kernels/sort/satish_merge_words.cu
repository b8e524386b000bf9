// Merge sort of keys of many words, compared word by word from the first on: an index sort, and nothing is known of the keys but
// their order. The steps are those of satish_merge.cu, with Satish, Harris and Garland 2009, section IV beside them.
//
// Compiled with KEY_BITS 64. What is moved is a key's first 64 bits and its place in the input, 12 bytes; the words after those 64
// bits are read from the input, and only to compare two keys that agree in them. So keys cost what u64 keys do unless many agree,
// and then a read of each a comparison.
//
// Bytes a key of W words: its first two read once (sectors of 32 bytes), 12 written; 24 a pass.

#include "../common/layout.cuh"
#include "outcome.cuh"
#include "satish_merge_items.cuh"

namespace {

using namespace radsweep;
using namespace radsweep::satish_merge;

constexpr uint32_t LAST = 1;

// The host's copy: crates/gpusort/src/cuda/satish_merge/words.rs.
struct Args {
    const void* words;            // the keys
    const uint64_t* prefixes_in;
    uint64_t* prefixes_out;
    const uint32_t* index_in;
    uint32_t* index_out;
    uint64_t* sample_prefixes;
    uint32_t* sample_index;
    uint32_t* splits;
    Outcome* outcome;
    uint64_t n;
    uint64_t flip;                // all ones: descending
    Level level;
    uint32_t words_each;
    uint32_t passes;
    uint32_t flags;
    uint32_t unused;
};
ASSERT_LAYOUT(Args, 128,
    AT(words, 0) AT(prefixes_in, 8) AT(prefixes_out, 16) AT(index_in, 24) AT(index_out, 32) AT(sample_prefixes, 40)
    AT(sample_index, 48) AT(splits, 56) AT(outcome, 64) AT(n, 72) AT(flip, 80) AT(level, 88) AT(words_each, 112) AT(passes, 116)
    AT(flags, 120) AT(unused, 124));

template <class Word>
struct ByWords {
    using Item = Tagged;
    using Rank = Tagged;
    static constexpr uint32_t IN_PREFIX = 8 / sizeof(Word);

    const Word* const words;
    const Word flip;
    const uint32_t words_each, n;

    __device__ __forceinline__ explicit ByWords(const Args& args)
        : words(static_cast<const Word*>(args.words)), flip(Word(args.flip)), words_each(args.words_each), n(uint32_t(args.n)) {}

    __device__ __forceinline__ Tagged rank(Tagged item) const { return item; }
    __device__ __forceinline__ Tagged rank_at(const Store<Tagged>& store, uint32_t place) const { return store.get(place); }

    __device__ __forceinline__ uint64_t prefix(uint64_t place) const {
        const Word* const key = words + place * words_each;
        uint64_t bits = Word(key[0] ^ flip);
        if (IN_PREFIX == 2) bits = bits << 32 | (words_each > 1 ? Word(key[1] ^ flip) : 0);
        return bits;
    }
    // Below, equal or above by the words after the prefix.
    __device__ __forceinline__ int rest(uint32_t a, uint32_t b) const {
        for (uint32_t w = IN_PREFIX; w < words_each; w++) {
            const Word of_a = words[uint64_t(a) * words_each + w] ^ flip, of_b = words[uint64_t(b) * words_each + w] ^ flip;
            if (of_a != of_b) return of_a < of_b ? -1 : 1;
        }
        return 0;
    }
    __device__ __forceinline__ bool less(Tagged a, Tagged b) const {
        if (a.key != b.key) return a.key < b.key;
        return words_each > IN_PREFIX && rest(a.tag, b.tag) < 0;
    }
    __device__ __forceinline__ bool before(Tagged a, Tagged b) const {
        if (a.key != b.key) return a.key < b.key;
        // Behind the end there are no words; their prefix is the greatest.
        const int order = words_each > IN_PREFIX && a.tag < n && b.tag < n ? rest(a.tag, b.tag) : 0;
        return order < 0 || (order == 0 && a.tag < b.tag);
    }
};

__device__ __forceinline__ void put(const Args& args, uint64_t at, Tagged item) {
    args.index_out[at] = item.tag;
    if (args.flags & LAST) return;
    args.prefixes_out[at] = item.key;
    if (at % SAMPLE != 0) return;
    args.sample_prefixes[at / SAMPLE] = item.key;
    args.sample_index[at / SAMPLE] = item.tag;
}

// ---- Steps 1 and 2 ----

template <class Word>
__device__ __forceinline__ void sort_tile(const Args& args) {
    extern __shared__ uint4 shared_memory[];
    const uint64_t base = uint64_t(blockIdx.x) * TILE;
    if (blockIdx.x == 0 && threadIdx.x == 0) *args.outcome = {SATISH_MERGE, args.passes + 1, args.passes + 1, 0, args.n, 0};
    const uint32_t count = args.n - base < TILE ? uint32_t(args.n - base) : TILE;
    const ByWords<Word> order(args);
    uint64_t* const prefixes = reinterpret_cast<uint64_t*>(shared_memory);
    for (uint32_t place = threadIdx.x; place < count; place += THREADS) prefixes[place] = order.prefix(base + place);
    __syncthreads();
    Tagged items[ITEMS];
#pragma unroll
    for (uint32_t i = 0; i < ITEMS; i++) {
        const uint32_t place = threadIdx.x * ITEMS + i;
        // Behind the end: the greatest number stands for it, as base + place might not fit.
        items[i] = place < count ? Tagged{prefixes[place], uint32_t(base) + place} : Tagged{~uint64_t(0), ~0u};
    }
    __syncthreads();
    const Store<Tagged> store(shared_memory);
    const Chip<ByWords<Word>, Store<Tagged>, THREADS, ITEMS> chip{order, store};
    chip.sort(items, count);
    for (uint32_t place = threadIdx.x; place < count; place += THREADS) put(args, base + place, store.get(place));
}

// ---- Step 3 ----

template <class Word>
struct WordsInMemory {
    using Rank = Tagged;
    const Args& args;
    const ByWords<Word> order;

    __device__ __forceinline__ Tagged sample(uint64_t i) const { return {args.sample_prefixes[i], args.sample_index[i]}; }
    __device__ __forceinline__ Tagged element(uint64_t i) const { return {args.prefixes_in[i], args.index_in[i]}; }
    __device__ __forceinline__ bool less(Tagged a, Tagged b) const { return order.less(a, b); }
};

template <class Word>
__device__ __forceinline__ void merge_piece(const Args& args) {
    extern __shared__ uint4 shared_memory[];
    using ThisPiece = Piece<THREADS, ITEMS>;
    typename ThisPiece::Shared& shared = *reinterpret_cast<typename ThisPiece::Shared*>(shared_memory);
    ThisPiece piece(shared);
    if (!piece.find(args.level, args.n, args.splits)) return;
    if (threadIdx.x == 0) atomicMax(reinterpret_cast<unsigned long long*>(&args.outcome->detail), (unsigned long long)piece.count);
    const Store<Tagged> store(&shared + 1);
    {
        Tagged items[ThisPiece::WARP_ROWS];
        piece.each([&](uint32_t from, uint32_t, uint32_t i) { items[i] = {args.prefixes_in[from], args.index_in[from]}; });
        piece.each([&](uint32_t, uint32_t place, uint32_t i) { store.put(place, items[i]); });
    }
    __syncthreads();
    const Chip<ByWords<Word>, Store<Tagged>, THREADS, ITEMS> chip{ByWords<Word>(args), store};
    chip.merge_runs(shared.at, args.level.runs);
    for (uint32_t place = threadIdx.x; place < piece.count; place += THREADS) put(args, piece.to + place, store.get(place));
}

}  // namespace

#define BY_WORD(BITS, WORD)                                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) satish_merge_tile_words_##BITS(const Args args) { sort_tile<WORD>(args); } \
    extern "C" __global__ void __launch_bounds__(RANK_THREADS) satish_merge_rank_words_##BITS(const Args args) {                \
        rank_splitters(WordsInMemory<WORD>{args, ByWords<WORD>(args)}, args.level, args.n, args.splits);                       \
    }                                                                                                                         \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) satish_merge_pieces_words_##BITS(const Args args) { merge_piece<WORD>(args); }
BY_WORD(32, uint32_t)
BY_WORD(64, uint64_t)
