// The sort of keys of 32 bits of all ranks, by segments (crates/sap-dist/src/device/sort.rs). A
// segment is the keys with the same highest bits. Each rank has sorted its own by these. A rank
// gets whole segments, and a block sorts one, of all ranks, in shared memory: a key is moved once
// more, whatever the number of ranks.
//
//   starts   where each segment of a rank's keys begins, for all ranks
//   cuts     the segment that each part of all keys begins with, and the largest one
//   finish   sorts segments
//
// Bytes of an element in `finish`: read and written once. Values are read a second time, from the
// cache. Its instructions are those of kernels/sort/onesweep_finish.cuh, and two more a key for
// each rank that the warp has elements of. SEGMENT_VALUE_BYTES are those of a value, or 0: an image
// for each, as the driver takes seconds to compile all.
//
// Two H200s, 2026-11-30, 2^28 u32 keys on each, with values of 4 bytes in brackets. Predicted 4.1
// ms [6.8], measured 3.97 [6.9]; by sorting and merging 6.3 [10.0]. A rank's own sort by 16 bits
// takes 2.1 [3.45], and travelling 1.4 [2.75] if copies run at 390 GB/s as they do alone. `finish`
// is hidden behind that but for its last piece, of eight.
#include "common/search.cuh"
#include "sort/onesweep_finish.cuh"

namespace radsweep::dist {

constexpr u32 THREADS = 256;

// What segments are found in: the tables of all ranks, one behind the other.
struct Tables {
    u32* starts;   // for each segment of a rank where it begins, and the end of the last
    u64* cuts;     // for each part, and behind the last: its first segment, then where it begins
    u64* largest;  // the most keys of a segment; 0 before
    u32 bits;      // of a segment
    u32 ranks, parts;
    u32 padding;
    DEVICE u32 segments() const { return 1u << bits; }
    DEVICE u32* of_rank(u32 rank) const { return starts + u64(rank) * (segments() + 1); }
    // Returns the keys of all ranks before a segment.
    DEVICE u64 before(u32 segment) const {
        u64 sum = 0;
        for (u32 rank = 0; rank < ranks; rank++) sum += of_rank(rank)[segment];
        return sum;
    }
};
ASSERT_LAYOUT(Tables, 40,
    AT(starts, 0) AT(cuts, 8) AT(largest, 16) AT(bits, 24) AT(ranks, 28) AT(parts, 32));

// Finds where the segments of a rank's keys begin. A thread a segment. A rank has less than 2^31
// keys (`Division::new`), so the search does not overflow.
extern "C" __global__ void __launch_bounds__(THREADS) dist_segments_starts(
    const Key* keys, u32 n, const __grid_constant__ KeyOrder order,
    const __grid_constant__ Tables tables, u32 rank) {
    const u32 segment = blockIdx.x * THREADS + threadIdx.x;
    if (segment > tables.segments()) return;
    const auto ordered = [&](Key key) {
        return order.fold != 0 ? ordering_of<true>(order)(key) : ordering_of<false>(order)(key);
    };
    tables.of_rank(rank)[segment] =
        segment == tables.segments() ? n : partition_point(u32(0), n, [&](u32 i) {
            return ordered(keys[i]) >> (KEY_BITS - tables.bits) < segment;
        });
}

// Divides segments among parts, each of which begins where its share of all keys is reached. A
// thread a segment or a part.
extern "C" __global__ void __launch_bounds__(THREADS) dist_segments_cuts(
    const __grid_constant__ Tables tables) {
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i <= tables.parts) {
        const u64 n = tables.before(tables.segments());
        const u64 goal = n / tables.parts * i + n % tables.parts * i / tables.parts;
        const u32 cut = i == tables.parts ? tables.segments()
                                          : partition_point(u32(0), tables.segments(), [&](u32 k) {
                                                return tables.before(k) < goal;
                                            });
        u64* const to = tables.cuts + u64(i) * (tables.ranks + 1);
        to[0] = cut;
        for (u32 rank = 0; rank < tables.ranks; rank++) to[rank + 1] = tables.of_rank(rank)[cut];
    }
    u64 own = 0;
    if (i < tables.segments()) own = tables.before(i + 1) - tables.before(i);
    const u64 most = warp_max(own);
    if (lane_index() == 0) atomicMax(tables.largest, most);
}

// Where the elements of a rank are: that at place `p` of its sorted ones is at `keys[p]`.
struct Source {
    const Key* keys;
    const void* values;
    const u32* starts;  // of its segments
};
ASSERT_LAYOUT(Source, 24, AT(keys, 0) AT(values, 8) AT(starts, 16));

// A segment's elements of one rank.
template <class Value>
struct Run {
    const Key* keys;
    const Value* values;
    u32 begin;  // the first among all of the rank
    u32 length;
};

// Segments of all ranks, from `first` on, a block each, and where they go. This is what
// `onesweep::Finish` reads, and finds the runs of a segment by.
struct Segments {
    static constexpr bool ONE_RUN = false;
    const Source* sources;
    Key* keys[3];     // by onesweep::Buffer; only OUTPUT is used
    void* values[3];  // the same
    KeyOrder order;
    u64 before;  // the keys of all ranks that are before those that the output begins with
    u32 ranks, first;
    u32 segment_bits;
    u32 flags;      // 0
    u32 minus_one;  // 0xffffffff, see match_digit
    u32 padding;

    // The runs lie behind the shared memory of `Finish`, where a rank has sizeof(Run).
    template <class Value>
    static DEVICE Run<Value>* runs(void* behind) {
        return static_cast<Run<Value>*>(behind);
    }

    // Finds the runs, and where the segment's elements begin and end in the output.
    template <class Value>
    DEVICE void find(void* behind, u32& begin, u32& end) const {
        Run<Value>* const found = runs<Value>(behind);
        const u32 segment = first + blockIdx.x;
        for (u32 rank = threadIdx.x; rank < ranks; rank += blockDim.x) {
            const Source source = sources[rank];
            const u32 at = source.starts[segment], next = source.starts[segment + 1];
            const Value* const values = static_cast<const Value*>(source.values) + at;
            found[rank] = {source.keys + at, values, at, next - at};
        }
        __syncthreads();
        begin = u32(0 - before);
        u32 count = 0;
        for (u32 rank = 0; rank < ranks; rank++) {
            begin += found[rank].begin;
            count += found[rank].length;
        }
        end = begin + count;
    }
};
ASSERT_LAYOUT(Segments, 128,
    AT(sources, 0) AT(keys, 8) AT(values, 32) AT(order, 56) AT(before, 96) AT(ranks, 104)
    AT(first, 108) AT(segment_bits, 112) AT(flags, 116) AT(minus_one, 120) AT(padding, 124));

// Sorts a segment.
template <bool FLOAT, u32 BLOCK, u32 ITEMS>
DEVICE void finish(const Segments& all) {
    extern __shared__ uint4 shared_memory[];
    using Finish = onesweep::Finish<FLOAT, SEGMENT_VALUE_BYTES, BLOCK, ITEMS, true, Segments>;
    constexpr u32 EXCHANGE =
        SEGMENT_VALUE_BYTES == 8 ? 8 * Finish::TILE : 4 * (Finish::TILE + Finish::WINDOW);
    static_assert(
        sizeof(typename Finish::Shared) ==
            4 * (Finish::BINS + WARP) + 4 * Finish::WARPS + 32 + EXCHANGE,
        "as the host counts");
    const u32 from = KEY_BITS - all.segment_bits;
    Finish(all, *reinterpret_cast<typename Finish::Shared*>(shared_memory))
        .sort((1u << (from + onesweep::BITS - 1) / onesweep::BITS) - 1);
}

#define FINISH(KIND, FLOAT, BLOCK, ITEMS, BLOCKS)                                         \
    extern "C" __global__ void                                                            \
        __launch_bounds__(BLOCK, BLOCKS) dist_segments_finish_##KIND##_##BLOCK##x##ITEMS( \
            const __grid_constant__ Segments all) {                                       \
        finish<FLOAT, BLOCK, ITEMS>(all);                                                 \
    }
// Shapes of blocks (crates/sap-dist/src/device/tuning.rs).
FINISH(integer, false, 256, 32, 4)
FINISH(integer, false, 512, 24, 2)
FINISH(integer, false, 1024, 24, 1)
#if SEGMENT_VALUE_BYTES > 0
FINISH(float, true, 256, 32, 4)
FINISH(float, true, 512, 24, 2)
FINISH(float, true, 1024, 24, 1)
#endif

}  // namespace radsweep::dist
