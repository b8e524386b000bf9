// Phase 7, by bins: pairs in the order of (a, b) without a sort of their keys. The pairs of 2^shift
// smaller indices next to each other are a bin, some hundred pairs. A search puts each pair it
// finds into its bin (emit.cuh). The bins of the last frame tell how much room each needs. A
// warp orders a bin on chip, and needs no other warp:
//
//   starts  where each bin begins in the list (offsets.cuh)
//   count   entries by row, in shared memory: the keys of a bin are divided into equal ranges, the
//           rows, about one for an entry
//   place   entries to their rows
//   rank    an entry's rank in its row is the number of smaller ones there
//
// A bin longer than LONGEST_BIN takes a block. These begin first. There are such blocks only where
// the last frame had bins about as long. One longer than LONGEST_LONG_BIN does not fit on chip as
// entries. Its block orders it by bits (block/bit_order.cuh), if the keys that the bin may have are
// of at most HUGE_KEY_BITS bits. Where a bin has no room for all its pairs, is long without such
// blocks, or is longer than LONGEST_LONG_BIN and its keys have more bits, the list is in no order
// and must not be used: the host searches again and sorts by keys.
//
// Bytes a pair: 4 written as it is found, next to those that came before, so that L2 collects whole
// lines, and a sector of 32 of its bin changed; 4 read twice, once from L1, and 8 written. Rows and
// entries take 6 KB of shared memory a warp. Predicted for 10^7 boxes: 100 us for the order, and
// nothing for the sweep, since memory does not bound it, but it takes 85 us longer. Why is not
// proven; L2 serves two random sectors a pair.
//
// Measured in us on an H200, 2026-11-28. `list` is a sweep that writes pairs to a list, `fills`
// what it takes longer to fill bins, and `order` these kernels. `sorted` is what put the list in
// order before there were bins: a sort of the top bits, and then groups on chip, or rows. So with
// bins a search takes list + fills + order, and took list + sorted. The -3 is noise. The sweep of
// the cloth takes less since (grid_sweep.cuh).
//
//   scene                        pairs     list     fills     order    sorted
//   uniform, 10^6 boxes         1.36 M       95        -3        22        56
//   the same, 10^7              13.7 M      727        85       144       438
//   the same, 3.7 times as dense   5 M      170        34        49       169
//   cloth-ball faces             4.5 M      210        59        74       227
//   cloth-ball edges             5.9 M      323        71       111       287
//
// In the cloth the longest bin is 13 times as long as the mean, and rows have 10 to 25 entries. Its
// edges took 202 with long bins in a launch behind the others, eight next to each other by one
// block, and of at most 2,048 pairs, so that bins were narrower; 123 with wider ones in one launch;
// 111 since four entries of a row are compared at a time. Compared on an H100: a load of a bin's
// room for each pair, 885 for the sweep of 10^7 boxes instead of 836; one atomic for all lanes with
// the same bin, 901, for the registers that it takes; counters without sectors of their own, 27
// instead of 17 for 10^5 boxes.
//
// A graph cannot search again, so its bins are counted: the search lists pairs, counts them by bin
// and notes which of its bin each is. `starts` then tells where bins begin, `fill` puts entries
// there, a thread a pair, and the same kernel orders them. So bins have room for whatever comes,
// and those of more than 4,096 are ordered by bits, by up to 1,024 blocks. Bytes a pair: 12 written
// with the list and 12 read, 4 written to one of some sectors that are open for each bin; then as
// above. Predicted for 10^6 boxes: 36 us, and with the sweep 20 us less than by rows (rows.cuh).
// The whole graph takes 209 us instead of 230. Up to some 500,000 pairs rows are faster, by 1 to 4
// us. If one box comes to overlap all 10^6, its atomics wait for each other: 1.6 ms. One atomic for
// all lanes with the same bin makes that 0.94, but the sweep of any scene 4 us slower. Bins of some
// 20 pairs, in which a warp compares all with all, are no faster than rows either. (H200,
// 2026-11-30, when all blocks shared huge bins and looked for them one by one.)
//
// Where sizes have a heavy tail (200,000 boxes, 21.9 M pairs) 165 bins are longer than 10,208. The
// list was sorted for them, 1,025 us. By bits the order takes 375 (200 were predicted), and filling
// the bins 180 to 210. Half of the 375 are short bins, of 219 pairs in the mean, and a quarter are
// huge.
#pragma once
#include "block/bit_order.cuh"
#include "common/search.cuh"
#include "offsets.cuh"
#include "types.cuh"

namespace radsweep::sap {

constexpr u32 BIN_THREADS = 64, LONG_BIN_THREADS = 256;
constexpr u32 LONGEST_BIN = 1024, LONGEST_LONG_BIN = 10208;
constexpr u32 BIN_ROWS = 512, LONG_BIN_ROWS = 2048;
constexpr u32 BIN_SLACK = 32;  // entries that each bin has room for beyond a quarter more
constexpr u32 HUGE_STRIP = 45, HUGE_KEY_BITS = 20;
// Counted bins longer than this are put in order by bits, by so many blocks. Each of these looks
// for such bins, and at so many with a thread before it waits for the others.
constexpr u32 LONGEST_COUNTED = 4096, SHARING_BLOCKS = 1024, BIN_LOOKS = 8;

// A bin: where its room begins and ends, and the next entry. It has a sector of its own, since
// atomics on one sector wait for each other.
struct Bin {
    u32 next, begin, end, pad[5];

    DEVICE u32 count() const { return next - begin; }
    DEVICE bool has_room() const { return count() <= end - begin; }
};
ASSERT_LAYOUT(Bin, 32, AT(next, 0) AT(begin, 4) AT(end, 8));

// The bins of a search. An entry is a pair's key without the bits that all keys of its bin share.
struct Bins {
    Bin* bins;
    u32* entries;  // null = pairs are listed
    u32 len;       // entries that all bins have room for, below 2^31
    u32 shift;

    // Counts a key in its bin, and returns its place. What a bin has no room for is written over
    // the next one: the order will tell that it is too full.
    DEVICE u32 place(u64 key, u32 bits) const {
        return atomicAdd(&bins[u32(key >> (bits + shift))].next, 1u);
    }

    DEVICE u32 entry_of(u64 key, u32 bits) const {
        return u32(key & ((1ull << (bits + shift)) - 1));
    }

    DEVICE void store(u32 at, u64 key, u32 bits) const {
        if (at < len) entries[at] = entry_of(key, bits);
    }
};
ASSERT_LAYOUT(Bins, 24, AT(bins, 0) AT(entries, 8) AT(len, 16) AT(shift, 20));

// The pairs that a search finds, as keys `a * 2^bits + b`.
struct Keys {
    u64* keys;
    u64 capacity;
    u32* counts;  // of what is listed, by bin: one in 2^spread words
    u32* ranks;   // of each listed, how many of its bin came before; null = they are not counted
    Bins bins;    // if these have entries, pairs go there and are not listed
    u32 bits, spread;

    DEVICE bool are_listed() const { return !bins.entries; }

    // Writes a pair to the list, if it is within the capacity, and counts it; or into its bin.
    DEVICE void put(u64 at, u64 key) const {
        if (!are_listed()) return bins.store(bins.place(key, bits), key, bits);
        if (at >= capacity) return;
        keys[at] = key;
        if (ranks) ranks[at] = atomicAdd(counts + ((key >> (bits + bins.shift)) << spread), 1u);
    }
};
ASSERT_LAYOUT(Keys, 64,
    AT(keys, 0) AT(capacity, 8) AT(counts, 16) AT(ranks, 24) AT(bins, 32) AT(bits, 56)
    AT(spread, 60));

// Returns where the next frame's room for a bin begins: by where `count` bins begin in the list of
// this one. Bins beyond these have the mean.
DEVICE u32 room_begin(const u32* starts, u32 count, u32 bin) {
    const u32 known = min(bin, count), before = starts[known];
    const u32 fresh = bin > count ? BIN_SLACK + 2 * (starts[count] / count) : 0;
    return before + before / 4 + BIN_SLACK * known + fresh * (bin - known);
}

// Returns a bin of the next frame, which is empty.
DEVICE Bin make_room(const u32* starts, u32 count, u32 bin) {
    const u32 begin = room_begin(starts, count, bin);
    return Bin{begin, begin, room_begin(starts, count, bin + 1), {0, 0, 0, 0, 0}};
}

struct BinOrder {
    Bins bins;
    const u32* starts;  // where each bin begins in the list, and where the last one ends
    Bin* next;          // the bins of the next frame, which are written; null = bins are counted
    uint2* pairs;
    State* state;
    u64 capacity;  // of pairs
    u32 count;     // bins
    u32 len;       // bins of the next frame
    u32 bits;
    // Blocks for bins longer than LONGEST_BIN, at least one for each WARP bins; 0 = there are none
    // such, or bins are counted.
    u32 long_blocks;

    DEVICE u32 key_bits() const { return bits + bins.shift; }

    DEVICE uint2 pair_of(u32 bin, u32 entry) const {
        const u64 key = u64(bin) << key_bits() | entry;
        return make_uint2(u32(key >> bits), u32(key & ((1ull << bits) - 1)));
    }

    DEVICE bool are_counted() const { return !next; }

    DEVICE u32 len_of(u32 bin) const { return starts[bin + 1] - starts[bin]; }

    DEVICE const u32* entries_of(u32 bin) const {
        return bins.entries + (are_counted() ? starts[bin] : bins.bins[bin].begin);
    }

    // Returns the length of bins beyond which they are put in order by bits. Where bins are counted
    // blocks share these, which takes less time than one block that orders as many as it can hold.
    DEVICE u32 longest_on_chip() const {
        return are_counted() ? LONGEST_COUNTED : LONGEST_LONG_BIN;
    }

    // Returns whether a bin has all its entries, and can be put in order.
    DEVICE bool is_whole(u32 bin, u32 len) const {
        if (are_counted()) return true;
        const u32 longest = long_blocks == 0             ? LONGEST_BIN
                            : key_bits() > HUGE_KEY_BITS ? LONGEST_LONG_BIN
                                                         : ~0u;
        return bins.bins[bin].has_room() && state->pairs <= bins.len && len <= longest;
    }

    // Returns whether the list has room for all pairs.
    DEVICE bool has_room() const { return are_counted() || state->pairs <= capacity; }

    // Makes room for a bin in the next frame.
    DEVICE void prepare(u32 bin) const {
        if (are_counted()) {
            bins.bins[bin] = Bin{};
        } else {
            next[bin] = make_room(starts, count, bin);
        }
    }

    // Puts a huge bin in order by some blocks, of which this is one.
    DEVICE void order_huge(
        BitOrder<LONG_BIN_THREADS, HUGE_STRIP>& bits, u32 bin, u32 part, u32 parts) const {
        const u32* entries = entries_of(bin);
        uint2* to = pairs + starts[bin];
        bits.order<16>(
            len_of(bin), key_bits(), part, parts, [&](u32 k) { return entries[k]; },
            [&](u32 rank, u32 entry) { to[rank] = pair_of(bin, entry); });
    }
};
ASSERT_LAYOUT(BinOrder, 80,
    AT(bins, 0) AT(starts, 24) AT(next, 32) AT(pairs, 40) AT(state, 48) AT(capacity, 56)
    AT(count, 64) AT(len, 68) AT(bits, 72) AT(long_blocks, 76));

// The shared memory that a bin takes.
template <u32 ROWS, u32 LONGEST>
struct BinRows {
    // The entries of each row, then where it begins, then where it ends.
    alignas(16) u32 ends[ROWS];
    alignas(16) u32 entries[LONGEST];
};

// Puts a bin of `count` entries in order, by THREADS threads, of which this is number `thread`.
// `sync` is their barrier, and `exclusive_sum` the sum of what those before this one give.
template <u32 THREADS, u32 ROWS, u32 LONGEST, class Sync, class Sum>
DEVICE void order_bin(
    const BinOrder& p, BinRows<ROWS, LONGEST>& rows, u32 thread, u32 bin, u32 count, Sync sync,
    Sum exclusive_sum) {
    constexpr u32 EACH = ROWS / THREADS / 4, LOADS = 4, ROW_BITS = ROWS == 512 ? 9 : 11;
    static_assert(ROWS == 1 << ROW_BITS, "a row is the top bits of an entry");
    static_assert(LONGEST % 4 == 0, "entries are read by fours");
    const u32* entries = p.entries_of(bin);
    const u32 key_bits = p.key_bits();
    const u32 row_shift = key_bits > ROW_BITS ? key_bits - ROW_BITS : 0;
    const auto each_entry = [&](auto f) {
        for (u32 k = thread; k < count; k += LOADS * THREADS) {
            u32 entry[LOADS];
#pragma unroll
            for (u32 i = 0; i < LOADS; i++)
                entry[i] = k + i * THREADS < count ? entries[k + i * THREADS] : 0;
#pragma unroll
            for (u32 i = 0; i < LOADS; i++) {
                if (k + i * THREADS < count) f(entry[i]);
            }
        }
        sync();
    };

#pragma unroll
    for (u32 k = 0; k < 4 * EACH; k++) rows.ends[k * THREADS + thread] = 0;
    sync();
    each_entry([&](u32 entry) { atomicAdd(&rows.ends[entry >> row_shift], 1u); });
    uint4 each[EACH], *ends = reinterpret_cast<uint4*>(rows.ends) + thread * EACH;
    u32 own = 0;
#pragma unroll
    for (u32 k = 0; k < EACH; k++) {
        each[k] = ends[k];
        own += each[k].x + each[k].y + each[k].z + each[k].w;
    }
    u32 begin = exclusive_sum(own);
#pragma unroll
    for (u32 k = 0; k < EACH; k++) {
        const u32 y = begin + each[k].x, z = y + each[k].y, w = z + each[k].z;
        ends[k] = make_uint4(begin, y, z, w);
        begin = w + each[k].w;
    }
    sync();
    // Behind the last entry are some that are not smaller.
    if (thread < 3 && count + thread < LONGEST) rows.entries[count + thread] = ~0u;
    each_entry(
        [&](u32 entry) { rows.entries[atomicAdd(&rows.ends[entry >> row_shift], 1u)] = entry; });
    uint2* pairs = p.pairs + p.starts[bin];
    for (u32 k = thread; k < count; k += THREADS) {
        const u32 entry = rows.entries[k], row = entry >> row_shift, end = rows.ends[row];
        // Four entries are read at once. Those before the row are smaller, those behind it are not.
        u32 other = row > 0 ? rows.ends[row - 1] & ~3u : 0, rank = other;
        for (; other < end; other += 4) {
            const uint4 four = *reinterpret_cast<const uint4*>(rows.entries + other);
            rank += (four.x < entry) + (four.y < entry) + (four.z < entry) + (four.w < entry);
        }
        pairs[rank] = p.pair_of(bin, entry);
    }
    sync();
}

// Where bins begin in the list. `longest` is raised to the length of the longest one.
extern "C" __global__ void __launch_bounds__(OFFSET_THREADS) sap_bin_starts(
    const Bin* bins, u32 n, u64* words, u64* longest, u32* starts) {
    wait_for_stream();
    offsets([&](u64 k) { return bins[k].count(); }, starts, n, words, longest, nullptr);
}

// Puts a bin in order by a warp, unless it is longer than LONGEST_BIN, and makes room for it in the
// next frame.
DEVICE void order_short_bin(const BinOrder& p, BinRows<BIN_ROWS, LONGEST_BIN>& rows, u32 bin) {
    const u32 lane = lane_index();
    // A search of boxes that are all unchanged has found nothing, and leaves the bins as they are.
    if (bin >= p.len || p.state->pairs == 0) return;
    if (lane == 0) p.prepare(bin);
    if (bin >= p.count || !p.has_room()) return;
    const u32 count = p.len_of(bin);
    if (count == 0) return;
    if (!p.is_whole(bin, count)) {
        if (lane == 0) p.state->longest = ~0ull;
        return;
    }
    if (count > LONGEST_BIN) return;
    order_bin<WARP>(
        p, rows, lane, bin, count, [] { __syncwarp(); },
        [](u32 own) { return warp_inclusive_sum(own) - own; });
}

extern "C" __global__ void __launch_bounds__(BIN_THREADS, 18) sap_order_bins(
    const __grid_constant__ BinOrder p) {
    wait_for_stream();
    __shared__ BinRows<BIN_ROWS, LONGEST_BIN> rows[BIN_THREADS / WARP];
    order_short_bin(p, rows[threadIdx.x / WARP], (blockIdx.x * BIN_THREADS + threadIdx.x) / WARP);
}

// The same with bins that are too long for a warp: a block takes each. In updates the first
// `long_blocks` blocks do, as these take longest. Counted bins are seldom long, so all blocks take
// those after others, and then many blocks share the huge ones.
extern "C" __global__ void __launch_bounds__(LONG_BIN_THREADS, 4) sap_order_long_bins(
    const __grid_constant__ BinOrder p) {
    wait_for_stream();
    constexpr u32 WARPS = LONG_BIN_THREADS / WARP;
    __shared__ union {
        BinRows<BIN_ROWS, LONGEST_BIN> of_warps[WARPS];
        struct {
            BinRows<LONG_BIN_ROWS, LONGEST_LONG_BIN> rows;
            u32 sums[WARPS];
        } of_block;
        struct {
            BitOrder<LONG_BIN_THREADS, HUGE_STRIP> bits;
            u32 bin;
        } of_huge;
    } shared;
    const u32 warp = threadIdx.x / WARP, lane = lane_index();
    const u32 blocks = p.are_counted() ? gridDim.x : p.long_blocks;
    if (p.are_counted() || blockIdx.x >= blocks) {
        const u32 block = p.are_counted() ? blockIdx.x : blockIdx.x - blocks;
        order_short_bin(p, shared.of_warps[warp], block * WARPS + warp);
        if (!p.are_counted() || p.state->longest <= LONGEST_BIN) return;
        __syncthreads();
    }
    if (p.state->pairs == 0 || !p.has_room()) return;
    // Long bins are next to each other, so a block looks at some that are not, a lane at each.
    const u32 own = blockIdx.x + lane * blocks;
    const u32 own_count = own < p.count ? p.len_of(own) : 0;
    u32 longs = __ballot_sync(ALL_LANES, own_count > LONGEST_BIN && p.is_whole(own, own_count));
    for (; longs != 0; longs &= longs - 1) {
        const u32 from = __ffs(int(longs)) - 1, bin = blockIdx.x + from * blocks;
        const u32 count = __shfl_sync(ALL_LANES, own_count, from);
        if (count > p.longest_on_chip()) {
            if (!p.are_counted()) p.order_huge(shared.of_huge.bits, bin, 0, 1);
            continue;
        }
        order_bin<LONG_BIN_THREADS>(
            p, shared.of_block.rows, threadIdx.x, bin, count, [] { __syncthreads(); },
            [&](u32 own) {
                u32 total;
                return block_exclusive_sum<WARPS>(own, shared.of_block.sums, total);
            });
    }
    if (!p.are_counted() || p.state->longest <= LONGEST_COUNTED) return;
    const u32 parts = min(blocks, SHARING_BLOCKS);
    if (blockIdx.x >= parts) return;
    for (u32 first = threadIdx.x; first < p.count + threadIdx.x;
         first += BIN_LOOKS * LONG_BIN_THREADS) {
        u32 huge = 0;  // a bit for each bin that this thread looks at
#pragma unroll
        for (u32 k = 0; k < BIN_LOOKS; k++) {
            const u32 bin = first + k * LONG_BIN_THREADS;
            if (bin < p.count && p.len_of(bin) > LONGEST_COUNTED) huge |= 1u << k;
        }
        while (__syncthreads_or(huge)) {
            const u32 own = huge ? first + (__ffs(int(huge)) - 1) * LONG_BIN_THREADS : ~0u;
            if (threadIdx.x == 0) shared.of_huge.bin = ~0u;
            __syncthreads();
            if (huge) atomicMin(&shared.of_huge.bin, own);
            __syncthreads();
            const u32 bin = shared.of_huge.bin;
            if (own == bin) huge &= huge - 1;
            p.order_huge(shared.of_huge.bits, bin, (blockIdx.x + bin) % parts, parts);
        }
    }
}

// Puts the pairs of a list into the bins that counted them: a thread a pair.
extern "C" __global__ void __launch_bounds__(256) sap_fill_bins(
    const __grid_constant__ Keys from, const u32* starts, const State* state, u32* entries) {
    wait_for_stream();
    const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= min(from.capacity, state->pairs)) return;
    const u64 key = from.keys[i];
    const u32 bin = u32(key >> (from.bits + from.bins.shift));
    entries[starts[bin] + from.ranks[i]] = from.bins.entry_of(key, from.bits);
}

// Finds where the bins of a list of pairs begin that is in order.
// `longest` is raised to the length of the longest one.
extern "C" __global__ void __launch_bounds__(256) sap_find_bins(
    const uint2* pairs, u64 capacity, u32 count, u32 shift, u32* starts, State* state) {
    wait_for_stream();
    const u32 bin = blockIdx.x * blockDim.x + threadIdx.x;
    const u64 n = min(state->pairs, capacity);
    const auto start_of = [&](u32 bin) {
        return partition_point(u64(0), n, [&](u64 k) { return pairs[k].x >> shift < bin; });
    };
    u64 len = 0;
    if (bin <= count) {
        const u64 start = start_of(bin);
        starts[bin] = u32(start);
        if (bin < count) len = start_of(bin + 1) - start;
    }
    len = warp_max(len);
    if (lane_index() == 0 && len > state->longest) atomicMax(&state->longest, len);
}

// Makes room for the bins of the next frame.
extern "C" __global__ void __launch_bounds__(256) sap_make_bins(
    const u32* starts, u32 count, u32 len, Bin* next) {
    wait_for_stream();
    const u32 bin = blockIdx.x * blockDim.x + threadIdx.x;
    if (bin < len) next[bin] = make_room(starts, count, bin);
}

}  // namespace radsweep::sap
