// Merge sort of keys of many words, compared word by word from the first on: an index sort that
// needs only an order on the keys. The steps are those of satish_merge.cu, with Satish, Harris and
// Garland 2009, section IV beside them.
//
// Compiled with KEY_BITS 64. It moves a key's first 64 bits and its index in the input, 12 bytes.
// The words after those 64 bits are read from the input, and only to compare two keys that agree in
// the first. So keys cost as much as u64 keys unless many agree; those cost a read of both keys for
// a comparison.
//
// Bytes a key of W words: its first two read once (sectors of 32 bytes), 12 written; 24 a pass.
//
// H200, 2026-12-01: 100,000 keys of five words that agree in all but the last, so that each
// comparison reads both keys, have 27 tiles, which take 88 us; two passes take 64 and 41 to rank
// splitters and 70 and 53 to merge. By bytes all of it is 3 us. So few blocks wait for memory: they
// issue in 11 to 27 % of all cycles. More keys were not timed.

#include "common/layout.cuh"
#include "outcome.cuh"
#include "satish_merge_items.cuh"

namespace radsweep::satish_merge {

// The host's copy: crates/gpusort/src/cuda/satish_merge/words.rs.
struct Args {
    const void* words;  // the keys
    const u64* prefixes_in;
    u64* prefixes_out;
    const u32* index_in;
    u32* index_out;
    u64* sample_prefixes;
    u32* sample_index;
    u32* splits;
    Outcome* outcome;
    u64 n;
    u64 flip;  // all ones: descending
    Level level;
    u32 words_each;
    u32 passes;
    u32 flags;
    u32 unused;
};
ASSERT_LAYOUT(Args, 128,
    AT(words, 0) AT(prefixes_in, 8) AT(prefixes_out, 16) AT(index_in, 24) AT(index_out, 32)
    AT(sample_prefixes, 40) AT(sample_index, 48) AT(splits, 56) AT(outcome, 64) AT(n, 72)
    AT(flip, 80) AT(level, 88) AT(words_each, 112) AT(passes, 116) AT(flags, 120) AT(unused, 124));

template <class Word>
struct ByWords {
    using Item = Tagged;
    using Rank = Tagged;
    static constexpr u32 IN_PREFIX = 8 / sizeof(Word);

    const Word* const words;
    const Word flip;
    const u32 words_each, n;

    DEVICE explicit ByWords(const Args& args)
        : words(static_cast<const Word*>(args.words)), flip(Word(args.flip)),
          words_each(args.words_each), n(u32(args.n)) {}

    DEVICE Tagged rank(Tagged item) const { return item; }
    DEVICE Tagged rank_at(const Store<Tagged>& store, u32 index) const { return store.get(index); }

    DEVICE u64 prefix(u64 index) const {
        const Word* const key = words + index * words_each;
        u64 bits = Word(key[0] ^ flip);
        if (IN_PREFIX == 2) bits = bits << 32 | (words_each > 1 ? Word(key[1] ^ flip) : 0);
        return bits;
    }
    // Compares by the words after the prefix: -1, 0 or 1.
    DEVICE int rest(u32 a, u32 b) const {
        for (u32 w = IN_PREFIX; w < words_each; w++) {
            const Word of_a = words[u64(a) * words_each + w] ^ flip,
                       of_b = words[u64(b) * words_each + w] ^ flip;
            if (of_a != of_b) return of_a < of_b ? -1 : 1;
        }
        return 0;
    }
    DEVICE bool less(Tagged a, Tagged b) const {
        if (a.key != b.key) return a.key < b.key;
        return words_each > IN_PREFIX && rest(a.tag, b.tag) < 0;
    }
    DEVICE bool before(Tagged a, Tagged b) const {
        if (a.key != b.key) return a.key < b.key;
        // Items behind the end have no words; their prefix is the greatest.
        const int order = words_each > IN_PREFIX && a.tag < n && b.tag < n ? rest(a.tag, b.tag) : 0;
        return order < 0 || (order == 0 && a.tag < b.tag);
    }
};

DEVICE void put(const Args& args, u64 at, Tagged item) {
    args.index_out[at] = item.tag;
    if (args.flags & LAST) return;
    args.prefixes_out[at] = item.key;
    if (at % SAMPLE != 0) return;
    args.sample_prefixes[at / SAMPLE] = item.key;
    args.sample_index[at / SAMPLE] = item.tag;
}

// ---- Steps 1 and 2 ----

template <class Word>
DEVICE void sort_tile(const Args& args) {
    extern __shared__ uint4 shared_memory[];
    const u64 base = u64(blockIdx.x) * TILE;
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *args.outcome = {SATISH_MERGE, args.passes + 1, args.passes + 1, 0, args.n, 0};
    const u32 count = args.n - base < TILE ? u32(args.n - base) : TILE;
    const ByWords<Word> order(args);
    u64* const prefixes = reinterpret_cast<u64*>(shared_memory);
    for (u32 index = threadIdx.x; index < count; index += THREADS)
        prefixes[index] = order.prefix(base + index);
    __syncthreads();
    Tagged items[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        const u32 index = threadIdx.x * ITEMS + i;
        // Behind the end the tag is the greatest number, as base + index might not fit.
        items[i] =
            index < count ? Tagged{prefixes[index], u32(base) + index} : Tagged{~u64(0), ~0u};
    }
    __syncthreads();
    const Store<Tagged> store(shared_memory);
    const Chip<ByWords<Word>, Store<Tagged>, THREADS, ITEMS> chip{order, store};
    chip.sort(items, count);
    for (u32 index = threadIdx.x; index < count; index += THREADS)
        put(args, base + index, store.get(index));
}

// ---- Step 3 ----

template <class Word>
struct WordsInMemory {
    using Rank = Tagged;
    const Args& args;
    const ByWords<Word> order;

    DEVICE Tagged sample(u64 i) const { return {args.sample_prefixes[i], args.sample_index[i]}; }
    DEVICE Tagged element(u64 i) const { return {args.prefixes_in[i], args.index_in[i]}; }
    DEVICE bool less(Tagged a, Tagged b) const { return order.less(a, b); }
};

template <class Word>
DEVICE void merge_piece(const Args& args) {
    extern __shared__ uint4 shared_memory[];
    using ThisPiece = Piece<THREADS, ITEMS>;
    typename ThisPiece::Shared& shared =
        *reinterpret_cast<typename ThisPiece::Shared*>(shared_memory);
    ThisPiece piece(shared);
    if (!piece.find(args.level, args.n, args.splits)) return;
    if (threadIdx.x == 0) atomicMax(&args.outcome->detail, u64(piece.count));
    const Store<Tagged> store(&shared + 1);
    {
        Tagged items[ThisPiece::WARP_ROWS];
        piece.each([&](u32 from, u32, u32 i) {
            items[i] = {args.prefixes_in[from], args.index_in[from]};
        });
        piece.each([&](u32, u32 index, u32 i) { store.put(index, items[i]); });
    }
    __syncthreads();
    const Chip<ByWords<Word>, Store<Tagged>, THREADS, ITEMS> chip{ByWords<Word>(args), store};
    chip.merge_runs(shared.at, args.level.runs);
    for (u32 index = threadIdx.x; index < piece.count; index += THREADS)
        put(args, piece.to + index, store.get(index));
}

#define BY_WORD(BITS, WORD)                                                                    \
    extern "C" __global__ void                                                                 \
        __launch_bounds__(THREADS, BLOCKS) satish_merge_tile_words_##BITS(const Args args) {   \
        sort_tile<WORD>(args);                                                                 \
    }                                                                                          \
    extern "C" __global__ void                                                                 \
        __launch_bounds__(RANK_THREADS) satish_merge_rank_words_##BITS(const Args args) {      \
        rank_splitters(                                                                        \
            WordsInMemory<WORD>{args, ByWords<WORD>(args)}, args.level, args.n, args.splits);  \
    }                                                                                          \
    extern "C" __global__ void                                                                 \
        __launch_bounds__(THREADS, BLOCKS) satish_merge_pieces_words_##BITS(const Args args) { \
        merge_piece<WORD>(args);                                                               \
    }
BY_WORD(32, u32)
BY_WORD(64, u64)

}  // namespace radsweep::satish_merge
