// The fewest keys, up to 4096, in place of Onesweep: one block sorts them by merging. Passes by
// digits need three barriers each, and counts of 256 digits that few keys do not fill.
//
//   1  Each thread loads ITEMS keys that follow each other; order check; the bits in which keys
//      differ. Values wait in shared memory.
//   2  It sorts these by Batcher's network (block/odd_even.cuh).
//   3  The lanes of a warp merge theirs by a bitonic network, through shuffles.
//   4  The runs of warps are merged two by two in shared memory: merge path tells a thread where
//      its ITEMS merged keys begin in both (block/merge_path.cuh), and it merges them in turn.
//   5  All is read before anything is written, so input and output may be one.
//
// Networks are not stable, so a key has its index with it, by which equal keys are compared; only
// integers alone, all of whose bits count, do without.
//
// H200, 2026-11-29, u32 keys, microseconds between two events and replayed from a graph, beside
// what was here before, one block by passes up to 2048 and a grid from there on, and CUB 3.5 in
// another run. An empty kernel between two events takes 6.5. More sizes, and up to which others are
// sorted here: crates/gpusort/src/cuda/onesweep/block.rs.
//
//             1024          2048          4096
//   this      9.7, 7.2      11.3, 8.8     14.1, 11.7
//   before    14.0, 10.3    16.1, 12.5    18.6, 14.8
//   CUB       14.1          14.5          15.2
//
// Instructions of a thread, 4096 pairs (which a grid sorts as fast): own keys 114, in a warp 1,200,
// each of four merges 400, of which the search takes 30 a step. Tried for pairs, and slower: 4 keys
// a thread, which search twice as often, 2 us; 16, which leave 8 warps, 1 us; values read at the
// end, 0.7 us; a merge of 8 and 8 loaded keys by a bitonic network, 1.4 us; an index beside its key
// and not in its word, 2 us.

#include "block/bitonic.cuh"
#include "block/merge_path.cuh"
#include "block/odd_even.cuh"
#include "common/layout.cuh"
#include "common/radix_key.cuh"
#include "common/sort_args.cuh"
#include "outcome.cuh"

namespace radsweep::onesweep_block {

constexpr u32 ITEMS = 8, MAX_THREADS = 512, SEEN_BYTES = 16;

// ---- Shared with the host: crates/gpusort/src/cuda/onesweep/block.rs ----

struct Args {
    const Key* keys_in;
    Key* keys_out;          // may be the input
    const void* values_in;  // null means 0, 1, 2, ...
    void* values_out;
    Outcome* outcome;
    const u64* device_count;  // null, or the address of the number of keys, at most n
    KeyOrder order;
    u32 n;
    u32 flags;
};
ASSERT_LAYOUT(Args, 96,
    AT(keys_in, 0) AT(keys_out, 8) AT(values_in, 16) AT(values_out, 24) AT(outcome, 32)
    AT(device_count, 40) AT(order, 48) AT(n, 88) AT(flags, 92));

// The place of a word in shared memory: one of each ITEMS + 1 stays empty, so that threads begin in
// different banks.
DEVICE u32 place(u32 i) { return i + i / ITEMS; }

template <bool FLOAT, bool INDEXED, u32 VALUE_BYTES>
struct Block {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    static constexpr bool VALUES = VALUE_BYTES != 0;
    // A word is what is compared of a key, with its index below it if both fit.
    static constexpr bool APART = INDEXED && sizeof(Key) == 8;  // the index is not in the word
    using Word = typename ValueOf<INDEXED ? 8 : sizeof(Key)>::Type;

    const Args& args;
    const u32 n, total, begin;  // keys, with padding, before those of the thread
    // Of all, in dynamic shared memory; see `shared_bytes` of the host.
    Key& seen;
    Word* const all_words;
    Value* const all_values;
    u16* const all_indices;
    // The thread's.
    Word words[ITEMS];
    u32 indices[ITEMS];

    DEVICE Block(const Args& args, char* memory)
        : args(args), n(u32(key_count(args))), total(blockDim.x * ITEMS),
          begin(threadIdx.x * ITEMS), seen(*reinterpret_cast<Key*>(memory)),
          all_words(reinterpret_cast<Word*>(memory + SEEN_BYTES)),
          all_values(reinterpret_cast<Value*>(all_words + place(total) + ITEMS)),
          all_indices(reinterpret_cast<u16*>(all_values + (VALUES ? total : 0))) {}

    static DEVICE Key key_of(Word word) {
        return INDEXED && !APART ? Key(u64(word) >> 32) : Key(word);
    }
    DEVICE u32 index_at(u32 i) const {
        return APART ? all_indices[place(i)] : u32(all_words[place(i)]);
    }

    // Whether word a with its index comes before b.
    static DEVICE bool less(Word a, u32 a_index, Word b, u32 b_index) {
        return a < b || (APART && a == b && a_index < b_index);
    }

    // Puts the lesser of two own words at `i`.
    DEVICE void compare(u32 i, u32 j) {
        const Word a = words[i], b = words[j];
        const u32 a_index = indices[i], b_index = indices[j];
        const bool swap = less(b, b_index, a, a_index);
        words[i] = APART ? (swap ? b : a) : min(a, b);
        words[j] = APART ? (swap ? a : b) : max(a, b);
        indices[i] = swap ? b_index : a_index;
        indices[j] = swap ? a_index : b_index;
    }

    // Keeps own word k or that of another lane, whichever is less, or greater.
    DEVICE void keep(u32 k, bool lesser, Word word, u32 index) {
        const bool other = less(word, index, words[k], indices[k]) == lesser;
        words[k] = APART ? (other ? word : words[k]) : lesser_or_greater(lesser, words[k], word);
        indices[k] = other ? index : indices[k];
    }

    // Loads the keys. Returns whether they are in order, and the bits in which some differ.
    DEVICE bool load(Key& differing) {
        const Compared<FLOAT> compared(args.order);
        const Key last = compared(Key(args.order.padding)), first = compared(args.keys_in[0]);
        const Value* const values = static_cast<const Value*>(args.values_in);
        if (threadIdx.x == 0) seen = 0;
        bool descent = false;
        Key keys[ITEMS];
        Value own[ITEMS];
        // All loads, before anything is stored: a store could change what the next one reads, for
        // all that the compiler knows. Neighbouring lanes read neighbouring values.
#pragma unroll
        for (u32 k = 0; k < ITEMS; k++) {
            const u32 at = k * blockDim.x + threadIdx.x;
            keys[k] = begin + k < n ? compared(args.keys_in[begin + k]) : last;
            if (VALUES && at < n) own[k] = values != nullptr ? values[at] : Value(at);
        }
        const Key next = begin + ITEMS < n ? compared(args.keys_in[begin + ITEMS]) : last;
        differing = 0;
#pragma unroll
        for (u32 k = 0; k < ITEMS; k++) {
            if (VALUES) all_values[k * blockDim.x + threadIdx.x] = own[k];
            indices[k] = begin + k;
            words[k] = INDEXED && !APART ? Word(u64(keys[k]) << 32 | (begin + k)) : Word(keys[k]);
            if (begin + k < n) differing |= keys[k] ^ first;
            if (k > 0) descent |= keys[k] < keys[k - 1];
        }
        descent |= next < keys[ITEMS - 1];
        __syncthreads();
        differing = warp_or(differing);
        if (lane_index() == 0 && differing != 0) atomicOr(&seen, differing);
        const bool sorted = !__syncthreads_or(descent);
        differing = seen;
        return sorted;
    }

    // Merges the lanes' words, which are in order, into a run of the warp.
    DEVICE void merge_in_warp() {
        const u32 lane = lane_index();
#pragma unroll 1
        for (u32 lanes = 2; lanes <= WARP; lanes *= 2) {
            // The second half backwards, so that both are bitonic together.
            Word others[ITEMS];
            u32 their[ITEMS];
#pragma unroll
            for (u32 k = 0; k < ITEMS; k++) {
                const u32 from = ITEMS - 1 - k;
                others[k] = __shfl_xor_sync(ALL_LANES, words[from], lanes - 1);
                their[k] = APART ? __shfl_xor_sync(ALL_LANES, indices[from], lanes - 1) : 0;
            }
#pragma unroll
            for (u32 k = 0; k < ITEMS; k++) keep(k, (lane & lanes / 2) == 0, others[k], their[k]);
#pragma unroll 1
            for (u32 step = lanes / 4; step > 0; step /= 2) {
#pragma unroll
                for (u32 k = 0; k < ITEMS; k++) {
                    const Word word = __shfl_xor_sync(ALL_LANES, words[k], step);
                    const u32 index = APART ? __shfl_xor_sync(ALL_LANES, indices[k], step) : 0;
                    keep(k, (lane & step) == 0, word, index);
                }
            }
            bitonic_merge<ITEMS>([this](u32 i, u32 j) { compare(i, j); });
        }
    }

    DEVICE void put() const {
#pragma unroll
        for (u32 k = 0; k < ITEMS; k++) {
            all_words[place(begin + k)] = words[k];
            if (APART) all_indices[place(begin + k)] = u16(indices[k]);
        }
    }

    // Merges two runs each of that length, which are in shared memory. Of equal keys those of the
    // first run have the smaller indices, so that only keys are compared.
    DEVICE void merge(u32 run) {
        const u32 start = begin / (2 * run) * (2 * run), diagonal = begin - start;
        const u32 middle = min(start + run, total), end = min(start + 2 * run, total);
        const auto key_at = [this](u32 i) { return key_of(all_words[place(i)]); };
        const u32 split = merge_path(middle - start, end - middle, diagonal, [&](u32 b, u32 a) {
            return key_at(middle + b) < key_at(start + a);
        });
        u32 i = start + split, j = middle + diagonal - split;
        Word a = all_words[place(i)], b = all_words[place(j)];
#pragma unroll
        for (u32 k = 0; k < ITEMS; k++) {
            // Without branches, which lanes would take differently.
            const bool second = (j < end) & ((i >= middle) | (key_of(b) < key_of(a)));
            words[k] = second ? b : a;
            if (APART) indices[k] = all_indices[place(second ? j : i)];
            i += !second;
            j += second;
            // Behind the end is a place that is read and not used.
            const Word next = all_words[place(second ? j : i)];
            a = second ? a : next;
            b = second ? next : b;
        }
    }

    // Writes what is in shared memory, a key that cannot be told from its ordered bits from the
    // input.
    DEVICE void write(bool with_keys) const {
        const Ordering<FLOAT> ordering = ordering_of<FLOAT>(args.order);
        const bool read = INDEXED && (FLOAT || Key(~args.order.window) != 0);
        Key sorted[ITEMS];
#pragma unroll
        for (u32 k = 0; k < ITEMS; k++) {
            const u32 at = k * blockDim.x + threadIdx.x;
            if (at >= n || !with_keys) break;
            sorted[k] =
                read ? args.keys_in[index_at(at)] : ordering.key_of(key_of(all_words[place(at)]));
        }
        if (read) __syncthreads();
#pragma unroll
        for (u32 k = 0; k < ITEMS; k++) {
            const u32 at = k * blockDim.x + threadIdx.x;
            if (at >= n) break;
            if (with_keys) args.keys_out[at] = sorted[k];
            if (VALUES) static_cast<Value*>(args.values_out)[at] = all_values[index_at(at)];
        }
    }

    // Copies input that is in order already.
    DEVICE void copy(bool with_keys) const {
        if (args.keys_in == args.keys_out) return;
        for (u32 at = threadIdx.x; at < n; at += blockDim.x) {
            if (with_keys) args.keys_out[at] = args.keys_in[at];
            if (VALUES) static_cast<Value*>(args.values_out)[at] = all_values[at];
        }
    }

    DEVICE void sort() {
        Key differing;
        const bool sorted = load(differing), with_keys = !VALUES || !(args.flags & DROP_KEYS);
        if (sorted) {
            copy(with_keys);
        } else {
            odd_even_merge_sort<ITEMS>([this](u32 i, u32 j) { compare(i, j); });
            merge_in_warp();
            put();
            __syncthreads();
#pragma unroll 1
            for (u32 run = WARP * ITEMS; run < total; run *= 2) {
                merge(run);
                __syncthreads();
                put();
                __syncthreads();
            }
            write(with_keys);
        }
        if (threadIdx.x != 0) return;
        // As passes by digits of 8 bits would count.
        const u32 run = sorted ? 0 : __popc(digits_with<8>(args.order, differing));
        *args.outcome = Outcome{ONESWEEP, pass_count<8>(args.order), run, sorted, n, 0};
    }
};

#define BLOCK(NAME, FLOAT, INDEXED, VALUE_BYTES)                                          \
    extern "C" __global__ void                                                            \
        __launch_bounds__(MAX_THREADS, 1) onesweep_block_##NAME##_##VALUE_BYTES(          \
            const __grid_constant__ Args args) {                                          \
        extern __shared__ uint4 memory[];                                                 \
        Block<FLOAT, INDEXED, VALUE_BYTES>(args, reinterpret_cast<char*>(memory)).sort(); \
    }
BLOCK(whole, false, false, 0)  // integers, all of whose bits count
BLOCK(integer, false, true, 0)
BLOCK(integer, false, true, 4)
BLOCK(integer, false, true, 8)
BLOCK(float, true, true, 0)
BLOCK(float, true, true, 4)
BLOCK(float, true, true, 8)

}  // namespace radsweep::onesweep_block
