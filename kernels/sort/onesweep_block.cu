// The fewest keys, up to 4096, in place of Onesweep: one block sorts them by bins, as many as it
// has places for keys, or by merging where these are uneven. Passes by digits need three barriers
// each, and counts of 256 digits that few keys do not fill.
//
//   1  Each warp loads ITEMS keys a lane; order check; the bits in which keys differ. Values wait
//      in shared memory.
//   2  A bin is as many of the bits from the highest of these on as tell the bins apart. Each key
//      counts in its bin, and gets its rank there.
//   3  If no bin has more than MAX_IN_BIN keys, a prefix sum over the bins tells where each begins,
//      keys go there, and are compared with those of their bin.
//   4  Otherwise a thread sorts its keys by Batcher's network (block/odd_even.cuh), the lanes of a
//      warp merge theirs by a bitonic network, through shuffles, and the runs of warps are merged
//      two by two in shared memory: merge path tells a thread where its ITEMS merged keys begin in
//      both (block/merge_path.cuh), and it merges them in turn.
//   5  All is read before anything is written, so input and output may be one.
//
// Neither bins nor merges keep the order of equal keys, so a key has its index with it, by which
// they are compared; only integers alone, all of whose bits count, do without.
//
// H200, 2026-11-29, microseconds between two events, u32 keys also replayed from a graph, beside
// merging alone (pairs from 3073 on by a grid), which was here before, and CUB 3.5, in one run. An
// empty kernel between two events takes 6.5. Others: crates/gpusort/src/cuda/onesweep/block.rs.
//
//             u32 keys                             u32 + u32
//             1024         2048         4096       1024   2048   4096
//   this      9.9, 7.0     10.1, 7.3    10.8, 8.0  11.0   11.3   12.4
//   before    9.5, 7.0     11.1, 8.7    14.0, 11.7 12.9   15.4   18.8
//   CUB       13.6         14.1         14.9       15.2   16.3   17.6
//
// Instructions of a thread, 4096 u32 keys: 1,250, of which comparisons within bins are a third: a
// bin has one key on average, but a warp goes on until its lane with the most, mostly 3 or 4, is
// done. Merging takes 2,900 with 4096 pairs: own keys 114, in a warp 1,200, each of 4 merges 400.
// Keys in few bins, such as floats of both signs, are counted in vain before they are merged.
// Tried for merging pairs, and slower: 4 keys a thread, which search twice as often, 2 us; 16,
// which leave 8 warps, 1 us; values read at the end, 0.7 us; a merge of 8 and 8 loaded keys by a
// bitonic network, 1.4 us; an index beside its key and not in its word, 2 us.

#include "block/bitonic.cuh"
#include "block/merge_path.cuh"
#include "block/odd_even.cuh"
#include "block/scan.cuh"
#include "common/layout.cuh"
#include "common/radix_key.cuh"
#include "common/sort_args.cuh"
#include "outcome.cuh"

namespace radsweep::onesweep_block {

constexpr u32 ITEMS = 8, MAX_THREADS = 512, HEADER_BYTES = 80;
// Keys of a bin that are compared with each other, at most.
constexpr u32 MAX_IN_BIN = 32;
static_assert((MAX_IN_BIN & (MAX_IN_BIN - 1)) == 0, "ranks are compared with it by their bits");

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

// The bits up to the highest one that is set; some is.
DEVICE u32 bit_length(Key bits) {
    return sizeof(Key) == 8 ? 64 - __clzll(bits) : 32 - __clz(u32(bits));
}

// The place of a word of sorted runs in shared memory: one of each ITEMS + 1 stays empty, so that
// threads begin in different banks.
DEVICE u32 place(u32 i) { return i + i / ITEMS; }

template <bool FLOAT, bool INDEXED, u32 VALUE_BYTES>
struct Block {
    using Value = typename ValueOf<VALUE_BYTES>::Type;
    static constexpr bool VALUES = VALUE_BYTES != 0;
    // A word is what is compared of a key, with its index below it if both fit.
    static constexpr bool APART = INDEXED && sizeof(Key) == 8;  // the index is not in the word
    using Word = typename ValueOf<INDEXED ? 8 : sizeof(Key)>::Type;

    const Args& args;
    const u32 n, total;  // keys, with padding
    // Of all, in dynamic shared memory; see `shared_bytes` of the host.
    Key& seen;
    u32* const warp_sums;  // one for each warp
    u16* const bins;       // their keys, then the keys before them; one more than there are places
    Word* const all_words;
    Value* const all_values;
    u16* const all_indices;
    // The thread's.
    Word words[ITEMS];
    u32 indices[ITEMS];
    u32 places[ITEMS];  // where they are written

    DEVICE Block(const Args& args, char* memory)
        : args(args), n(u32(key_count(args))), total(blockDim.x * ITEMS),
          seen(*reinterpret_cast<Key*>(memory)), warp_sums(reinterpret_cast<u32*>(memory) + 4),
          bins(reinterpret_cast<u16*>(memory + HEADER_BYTES)),
          all_words(reinterpret_cast<Word*>(bins + total + ITEMS)),
          all_values(reinterpret_cast<Value*>(all_words + place(total) + ITEMS)),
          all_indices(reinterpret_cast<u16*>(all_values + (VALUES ? total : 0))) {}

    // The key that a thread loads, and later writes: neighbouring lanes have neighbouring keys, a
    // warp those that follow the last warp's.
    static DEVICE u32 nth(u32 k) {
        return threadIdx.x / WARP * WARP * ITEMS + k * WARP + lane_index();
    }
    static DEVICE Key key_of(Word word) {
        return INDEXED && !APART ? Key(u64(word) >> 32) : Key(word);
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
        reinterpret_cast<uint4*>(bins)[threadIdx.x] = make_uint4(0, 0, 0, 0);
        if (threadIdx.x == 0) {
            seen = 0;
            bins[total] = u16(n);
        }
        Key keys[ITEMS];
        Value own[ITEMS];
        // All loads, before anything is stored: a store could change what the next one reads, for
        // all that the compiler knows.
#pragma unroll
        for (u32 k = 0; k < ITEMS; k++) {
            const u32 at = nth(k);
            keys[k] = at < n ? compared(args.keys_in[at]) : last;
            if (VALUES && at < n) own[k] = values != nullptr ? values[at] : Value(at);
        }
        const u32 behind = nth(0) + WARP * ITEMS - lane_index();
        const Key after = behind < n ? compared(args.keys_in[behind]) : last;
        differing = 0;
        bool descent = false;
        const u32 lane = lane_index();
        Key next = __shfl_sync(ALL_LANES, keys[0], lane + 1);
#pragma unroll
        for (u32 k = 0; k < ITEMS; k++) {
            // What the next lane has, or the first one as its next key.
            const Key following =
                k + 1 < ITEMS ? __shfl_sync(ALL_LANES, keys[k + 1 < ITEMS ? k + 1 : k], lane + 1)
                              : after;
            descent |= (lane == WARP - 1 ? following : next) < keys[k];
            next = following;
            const u32 at = nth(k);
            if (VALUES) all_values[at] = own[k];
            indices[k] = at;
            words[k] = INDEXED && !APART ? Word(u64(keys[k]) << 32 | at) : Word(keys[k]);
            if (at < n) differing |= keys[k] ^ first;
        }
        __syncthreads();
        differing = warp_or(differing);
        if (lane == 0 && differing != 0) atomicOr(&seen, differing);
        const bool sorted = !__syncthreads_or(descent);
        differing = seen;
        return sorted;
    }

    // Finds the places of the keys, by bins of the highest of these bits. Returns false, and
    // leaves the thread's words, if there are too many keys in one.
    DEVICE bool sort_by_bins(Key differing) {
        const u32 bits = bit_length(differing), bin_bits = bit_length(total - 1);
        const u32 shift = bits < bin_bits ? 0 : bits - bin_bits;
        const auto bin_of = [&](Word word) { return u32(key_of(word) >> shift) & (total - 1); };
        u32 ranks[ITEMS], rank_bits = 0;
        // Two bins share a word.
        const auto count = [&](u32 k) {
            const u32 bin = bin_of(words[k]), half = bin % 2 * 16;
            ranks[k] = 0;
            if (nth(k) < n) {
                ranks[k] =
                    atomicAdd(reinterpret_cast<u32*>(bins) + bin / 2, 1u << half) >> half & 0xffff;
            }
            rank_bits |= ranks[k];
        };
        // If most keys have one bin, this is known before all have counted there in turn.
        count(0);
        if (!__any_sync(ALL_LANES, rank_bits >= MAX_IN_BIN)) {
#pragma unroll
            for (u32 k = 1; k < ITEMS; k++) count(k);
        }
        if (__syncthreads_or(rank_bits >= MAX_IN_BIN)) return false;

        uint4& own = reinterpret_cast<uint4*>(bins)[threadIdx.x];
        u32 counts[ITEMS / 2] = {own.x, own.y, own.z, own.w}, sum = 0, unused;
#pragma unroll
        for (u32 k = 0; k < ITEMS / 2; k++) {
            // Before either half, in the thread.
            const u32 low = counts[k] & 0xffff, high = counts[k] >> 16;
            counts[k] = sum | (sum + low) << 16;
            sum += low + high;
        }
        const u32 before = block_exclusive_sum<MAX_THREADS / WARP>(sum, warp_sums, unused);
        const u32 both = before << 16 | before;
        own = make_uint4(counts[0] + both, counts[1] + both, counts[2] + both, counts[3] + both);
        __syncthreads();
#pragma unroll
        for (u32 k = 0; k < ITEMS; k++) {
            if (nth(k) >= n) break;
            const u32 at = bins[bin_of(words[k])] + ranks[k];
            all_words[at] = words[k];
            if (APART) all_indices[at] = u16(indices[k]);
        }
        __syncthreads();
#pragma unroll
        for (u32 k = 0; k < ITEMS; k++) {
            const u32 at = nth(k);
            if (at >= n) break;
            const Word word = all_words[at];
            const u32 index = APART ? all_indices[at] : at, bin = bin_of(word);
            const u32 begin = bins[bin], end = bins[bin + 1];
            u32 before = begin;
            for (u32 i = begin; i < end; i++) {
                const Word other = all_words[i];
                before += other < word;
                // Words that have an index in them are not equal.
                const u32 its_index = APART ? all_indices[i] : i;
                if (APART || !INDEXED) before += other == word && its_index < index;
            }
            words[k] = word;
            indices[k] = index;
            places[k] = before;
        }
        return true;
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

    // Puts the words, which follow each other, into shared memory.
    DEVICE void put() const {
#pragma unroll
        for (u32 k = 0; k < ITEMS; k++) {
            const u32 at = place(threadIdx.x * ITEMS + k);
            all_words[at] = words[k];
            if (APART) all_indices[at] = u16(indices[k]);
        }
    }

    // Merges two runs each of that length, which are in shared memory. Of equal keys those of the
    // first run have the smaller indices, so that only keys are compared.
    DEVICE void merge(u32 run) {
        const u32 begin = threadIdx.x * ITEMS;
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

    // Sorts the keys by merging.
    DEVICE void sort_by_merging() {
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
#pragma unroll
        for (u32 k = 0; k < ITEMS; k++) {
            places[k] = nth(k);
            words[k] = all_words[place(places[k])];
            if (APART) indices[k] = all_indices[place(places[k])];
        }
    }

    // Writes the words to their places, a key that cannot be told from its ordered bits from the
    // input.
    DEVICE void write(bool with_keys) const {
        const Ordering<FLOAT> ordering = ordering_of<FLOAT>(args.order);
        const bool read = INDEXED && (FLOAT || Key(~args.order.window) != 0);
        const auto index = [this](u32 k) { return APART ? indices[k] : u32(words[k]); };
        Key sorted[ITEMS];
#pragma unroll
        for (u32 k = 0; k < ITEMS; k++) {
            if (nth(k) >= n || !with_keys) break;
            sorted[k] = read ? args.keys_in[index(k)] : ordering.key_of(key_of(words[k]));
        }
        if (read) __syncthreads();
#pragma unroll
        for (u32 k = 0; k < ITEMS; k++) {
            if (nth(k) >= n) break;
            if (with_keys) args.keys_out[places[k]] = sorted[k];
            if (VALUES) static_cast<Value*>(args.values_out)[places[k]] = all_values[index(k)];
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
            if (!sort_by_bins(differing)) sort_by_merging();
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
