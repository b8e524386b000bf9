// GPU-Quicksort: sequences partitioned by pivots, first by many blocks together, then by one block each.
// D. Cederman, P. Tsigas: GPU-Quicksort: A Practical Quicksort Algorithm for Graphics Processors, ACM JEA 14, 2009.
//
// Compiled with KEY_BITS (32, 64). Launched in this order, always the same for a number of keys, without the host waiting:
//
//   phase one (§3.2.1, Algorithms 1 and 2), once per level; a level without sequences ends at once
//     pivots      one block a sequence: sort a sample of 1024 keys (bitonic), take pivots from it; divide the sequence into sections
//     count       first pass, a block a section: count the keys on either side of the pivots. The block that counts a sequence's last
//                 section makes the cumulative sums over its sections, which is the allocation, and puts the sequences that
//                 result on the lists: to be partitioned at the next level, short enough to be sorted on chip, or done with phase one
//     move        second pass, a block a section: move the keys to the other buffer
//   phase two (§3.2.2, Algorithm 3)
//     alone       a block takes the next sequence that phase one left too long, pushes it on its stack and works the stack off, the
//                 smallest on top: what fits on chip is sorted there, the rest partitioned by the same two passes
//     leaves      a block sorts a short sequence on chip (quicksort_leaf.cuh)
//
// quicksort_partition.cuh holds the pieces of a partition that both phases share.
//
// Bytes a key of B bytes with a value of V bytes: a level reads the keys twice, the values once and writes both, 3 B + 2 V; the sort
// on chip reads and writes once, 2 (B + V). 2^26 keys take three levels: 44 for u32 keys, 76 for pairs. The paper's partition, one pivot
// a level down to the same 7680 keys, takes 13 levels: 164, pairs 276.
//
// Instructions a key, by the profiler on an H200 (u32): move 63, pairs 73; leaves 248, pairs 391. Predicted were 46 and 210. move issues
// 43 % of the time and leaves 59 %, the rest is barriers and loads: 2 blocks of 512 threads share a multiprocessor, 4 in count.
//
// Measured there, 2^26 random keys: u32 2.22 ms (30.3 G/s: 31 % of its own byte limit, 117 % of the paper's 164 bytes), u32 pairs 3.45 ms
// (19.5 G/s), u64 3.68 ms (18.3 G/s), u64 with u32 values 4.67 ms (14.4 G/s). u32: pivots 0.07, count 0.34, move 0.90, leaves 0.91.
//
// Departures from the paper, with what each gains:
//  - 31 pivots a level, not one: a level replaces five, at five comparisons a key and a fifth of the bytes. The comparisons of a warp
//    are at once the ballots that rank its keys.
//  - Keys equal to a pivot get a part of their own where the sample shows them to be frequent, and are done, as in the paper; they are
//    moved like all others, not filled in, because keys that compare equal may differ (values, zeros, bits outside the window).
//  - The sort is stable and the same every time: blocks get their room by a prefix sum over the sections of a sequence, not by
//    fetch-and-add in the order in which blocks happen to finish, and keys stay in order on the way through shared memory.
//  - The lists of sequences stay on the device: the host neither waits nor reads between levels.
//  - Pivots come from a sample of 1024 keys, not from three keys or from minimum and maximum, so that levels hardly ever go amiss (512
//    keys: 50 us more at 2^26, for a few sequences that stayed too long). The paper's minimum and maximum remain as what bounds the
//    worst case: after MAX_SAMPLED partitions of a sequence in phase two its range of values is cut into 31 equal parts each
//    time, so that at most 14 more partitions follow for keys of 64 bits.
//  - Neighbouring parts that fit on chip together become one sequence.
//  - On chip, merging of runs that were sorted in registers instead of bitonic sort: stable, and far fewer comparisons.
//  - Short sequences have a kernel of their own: a partition in the same kernel costs registers (2^26: 1.09 to 0.93 ms, pairs 2.22 to
//    1.60). The paper's sections have a fixed number; here of keys, which keeps counts and sums few (2^26,
//    count of a level: 0.29 to 0.17 ms, and 0.12 with 4 blocks a multiprocessor).

#include "quicksort_leaf.cuh"
#include "quicksort_partition.cuh"

using namespace radsweep;

namespace {

// ---- Phase one ----

// The first level's block also starts the header and the lists.
__device__ void start(const Args& args) {
    Header& header = *args.header;
    const uint64_t given = args.device_count == nullptr ? args.n : *args.device_count;
    const uint32_t n = uint32_t(given < args.n ? given : args.n);
    if (threadIdx.x <= MAX_LEVELS) header.sequences[threadIdx.x] = header.sections[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        header.outcome = Outcome{QUICKSORT, args.levels, 0, 0, n, 0};
        header.next = 0;
        const bool together = args.levels != 0 && n > args.min_length;
        header.sequences[0] = together;
        header.shorts = !together && n != 0 && n <= LEAF;
        header.done = !together && n > LEAF;
        if (together) args.sequences[0][0] = Sequence{0, n, 0, 0, 0, {}};
        else (n <= LEAF ? args.shorts : args.done)[0] = Work{0, n, INPUT, 0};
    }
    __syncthreads();
}

template <bool FLOAT>
__device__ __forceinline__ void pivots(const Args& args, uint32_t level) {
    __shared__ Key sample[SAMPLE];
    __shared__ uint32_t first_section;
    if (level == 0) start(args);
    Header& header = *args.header;
    const Compared<FLOAT> compared(args.order);
    const Key* const keys = args.keys[source_of_level(args, level)];
    for (uint32_t s = blockIdx.x; s < header.sequences[level]; s += gridDim.x) {
        Sequence& sequence = args.sequences[level % 2][s];
        const uint32_t sections = (sequence.size - 1) / uint32_t(args.section) + 1;
        if (threadIdx.x == 0) {
            first_section = atomicAdd(&header.sections[level], sections);
            sequence.first_section = first_section;
            sequence.sections = sections;
            atomicAdd(reinterpret_cast<unsigned long long*>(&header.outcome.detail), (unsigned long long)sequence.size);
            atomicMax(&header.outcome.passes_run, level + 1);
        }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < sections; i += blockDim.x) args.section_sequence[first_section + i] = s;
        sample_bounds(compared, keys, sequence.begin, sequence.size, sample, args.bounds + s * CLASSES);
    }
}

// Where a section lies.
struct SectionPlace {
    uint32_t sequence, begin, size;

    __device__ __forceinline__ SectionPlace(const Args& args, uint32_t level, uint32_t section)
        : sequence(args.section_sequence[section]) {
        const Sequence& of = args.sequences[level % 2][sequence];
        const uint32_t most = uint32_t(args.section), before = (section - of.first_section) * most;
        begin = of.begin + before;
        size = min(of.size - before, most);
    }
};

// Room for each lane's entries at the end of a list.
__device__ __forceinline__ uint32_t append(uint32_t* length, uint32_t entries, uint32_t lane) {
    const uint32_t sum = warp_inclusive_sum(entries, lane);
    uint32_t first = 0;
    if (lane == WARP - 1 && sum != 0) first = atomicAdd(length, sum);
    return __shfl_sync(ALL_LANES, first, WARP - 1) + sum - entries;
}

// Steps d and e of figure 3, and the end of Algorithm 2: from counts of sections to places, and the sequences that result.
template <bool FLOAT, uint32_t VALUE_BYTES>
__device__ void allocate(const Partition<FLOAT, VALUE_BYTES>& block, const Sequence& sequence, uint32_t level) {
    const Args& args = block.args;
    PartitionShared& shared = block.shared;
    const uint32_t lane = block.lane, each = (sequence.sections + WARPS - 1) / WARPS;  // for a warp
    const uint32_t from = min(block.warp * each, sequence.sections), to = min(from + each, sequence.sections);
    uint32_t* const column = args.offsets + sequence.first_section * CLASSES + lane;

    uint32_t sum = 0;
#pragma unroll 8
    for (uint32_t i = from; i < to; i++) sum += load_relaxed(column + i * CLASSES);
    shared.warps[block.warp][lane] = sum;
    __syncthreads();
    uint32_t before = 0, size = 0;
    for (uint32_t w = 0; w < WARPS; w++) {
        if (w == block.warp) before = size;
        size += shared.warps[w][lane];
    }
    const uint32_t begin = sequence.begin + warp_inclusive_sum(size, lane) - size;
    uint32_t place = begin + before;
#pragma unroll 8
    for (uint32_t i = from; i < to; i++) {
        const uint32_t count = load_relaxed(column + i * CLASSES);
        column[i * CLASSES] = place;
        place += count;
    }
    if (block.warp != 0) return;

    const Kind kind = gather_classes(lane, one_value(shared.bounds, lane, block.compared.window), size);
    const bool next_level = kind == LONG && size > args.min_length && level + 1 < args.levels;
    const bool copy = kind == EQUAL && block.target != OUTPUT;
    const uint32_t entries = copy ? (size - 1) / COPY_PIECE + 1 : kind == LONG && !next_level;
    const uint32_t first_long = append(&args.header->sequences[level + 1], next_level, lane);
    const uint32_t first_short = append(&args.header->shorts, kind == SHORT, lane);
    const uint32_t first_done = append(&args.header->done, entries, lane);
    if (next_level) args.sequences[(level + 1) % 2][first_long] = Sequence{begin, size, 0, 0, 0, {}};
    if (kind == SHORT) args.shorts[first_short] = Work{begin, size, block.target, 0};
    for (uint32_t e = 0; e < entries; e++) {
        const uint32_t piece = copy ? e * COPY_PIECE : 0;
        args.done[first_done + e] =
            Work{begin + piece, copy ? min(COPY_PIECE, size - piece) : size, block.target, copy ? COPY_ONLY : 0};
    }
}

template <bool FLOAT>
__device__ __forceinline__ void count(const Args& args, uint32_t level) {
    extern __shared__ uint4 shared_memory[];
    __shared__ bool counted_last;
    PartitionShared& shared = *reinterpret_cast<PartitionShared*>(shared_memory);
    const Partition<FLOAT, 0> block(args, shared, source_of_level(args, level));
    const uint32_t sections = args.header->sections[level];
    for (uint32_t section = blockIdx.x; section < sections; section += gridDim.x) {
        const SectionPlace place(args, level, section);
        Sequence& sequence = args.sequences[level % 2][place.sequence];
        if (threadIdx.x < CLASSES) shared.bounds[threadIdx.x] = args.bounds[place.sequence * CLASSES + threadIdx.x];
        block.clear_counts();
        __syncthreads();
        block.count(place.begin, place.size);
        __syncthreads();
        block.sum_counts([&](uint32_t c, uint32_t sum) { args.offsets[section * CLASSES + c] = sum; });
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) counted_last = atomicAdd(&sequence.finished, 1) == sequence.sections - 1;
        __syncthreads();
        if (!counted_last) continue;
        __threadfence();
        allocate(block, sequence, level);
        __syncthreads();
    }
}

template <bool FLOAT, uint32_t VALUE_BYTES>
__device__ __forceinline__ void move(const Args& args, uint32_t level) {
    extern __shared__ uint4 shared_memory[];
    PartitionShared& shared = *reinterpret_cast<PartitionShared*>(shared_memory);
    const Partition<FLOAT, VALUE_BYTES> block(args, shared, source_of_level(args, level));
    const uint32_t sections = args.header->sections[level];
    for (uint32_t section = blockIdx.x; section < sections; section += gridDim.x) {
        const SectionPlace place(args, level, section);
        if (threadIdx.x < CLASSES) {
            shared.bounds[threadIdx.x] = args.bounds[place.sequence * CLASSES + threadIdx.x];
            shared.next[threadIdx.x] = args.offsets[section * CLASSES + threadIdx.x];
        }
        __syncthreads();
        block.move_all(place.begin, place.size);
    }
}

// ---- Phase two ----

// With the smallest sequence on top, the r siblings below a sequence of size s are each at least as large: s <= parent / (r + 1).
// The product of all r + 1 is thus at most 2^32 / LEAF < 2^20, and their sum at most 4 x 31.
constexpr uint32_t STACK = 160;
constexpr uint32_t MAX_SAMPLED = 6;      // partitions of a sequence by sampled pivots

template <bool FLOAT, uint32_t VALUE_BYTES>
struct Alone {
    struct Shared {
        Work stack[STACK];
        uint32_t entry, pushed;
        uint32_t totals[CLASSES];
        Key extremes[2][WARPS];
        union {
            LeafShared leaf;
            PartitionShared partition;
        };
    };

    const Args& args;
    Shared& shared;
    const uint32_t lane, warp;

    __device__ __forceinline__ Alone(const Args& args, Shared& shared)
        : args(args), shared(shared), lane(threadIdx.x % WARP), warp(threadIdx.x / WARP) {}

    __device__ __forceinline__ void run() const {
        const uint32_t entries = args.header->done;
        while (true) {
            if (threadIdx.x == 0) {
                shared.entry = atomicAdd(&args.header->next, 1);
                if (shared.entry < entries) shared.stack[0] = args.done[shared.entry];
            }
            __syncthreads();
            if (shared.entry >= entries) return;
            uint32_t depth = 1;
            while (depth != 0) {
                const Work work = shared.stack[--depth];
                if (work.state == COPY_ONLY) {
                    copy(work);
                } else if (work.size <= LEAF) {
                    Leaf<FLOAT, VALUE_BYTES>(args, shared.leaf, work).sort();
                } else {
                    partition(work, depth);
                    depth += shared.pushed;
                }
                __syncthreads();
            }
        }
    }

    // Keys that are in their places, but not in the output.
    __device__ __forceinline__ void copy(const Work& work) const {
        using Value = typename ValueOf<VALUE_BYTES>::Type;
        for (uint32_t i = work.begin + threadIdx.x; i < work.begin + work.size; i += THREADS) {
            args.keys[OUTPUT][i] = args.keys[work.source][i];
            if (VALUE_BYTES != 0) {
                static_cast<Value*>(args.values[OUTPUT])[i] = static_cast<const Value*>(args.values[work.source])[i];
            }
        }
    }

    __device__ __forceinline__ void partition(const Work& work, uint32_t depth) const {
        PartitionShared& part = shared.partition;
        const Partition<FLOAT, VALUE_BYTES> block(args, part, work.source);
        const Key* const keys = args.keys[work.source];
        if (work.state < MAX_SAMPLED) {
            sample_bounds(block.compared, keys, work.begin, work.size, reinterpret_cast<Key*>(part.exchange), part.bounds);
        } else {
            range_bounds(block.compared, keys + work.begin, work.size);
        }
        block.clear_counts();
        __syncthreads();
        block.count(work.begin, work.size);
        __syncthreads();
        block.sum_counts([&](uint32_t c, uint32_t sum) { shared.totals[c] = sum; });
        __syncthreads();
        if (warp == 0) push(work, depth, block);
        __syncthreads();
        block.move_all(work.begin, work.size);
    }

    // Where the classes go, and the sequences that they make, the largest first on the stack.
    __device__ __forceinline__ void push(const Work& work, uint32_t depth, const Partition<FLOAT, VALUE_BYTES>& block) const {
        PartitionShared& part = shared.partition;
        uint32_t size = shared.totals[lane];
        const uint32_t begin = work.begin + warp_inclusive_sum(size, lane) - size;
        part.next[lane] = begin;
        const Kind kind = gather_classes(lane, one_value(part.bounds, lane, block.compared.window), size);
        const bool mine = kind == SHORT || kind == LONG || (kind == EQUAL && block.target != OUTPUT);
        const uint32_t own = mine ? size : 0;
        uint32_t rank = 0;
        for (uint32_t c = 0; c < CLASSES; c++) {
            const uint32_t other = __shfl_sync(ALL_LANES, own, c);
            rank += other > own || (other == own && c < lane);
        }
        if (mine) shared.stack[depth + rank] = Work{begin, size, block.target, kind == EQUAL ? COPY_ONLY : work.state + 1};
        const uint32_t pushed = __popc(__ballot_sync(ALL_LANES, mine));
        if (lane == 0) {
            shared.pushed = pushed;
            atomicAdd(reinterpret_cast<unsigned long long*>(&args.header->outcome.detail), (unsigned long long)work.size);
            atomicMax(&args.header->outcome.passes_run, args.levels + work.state + 1);
        }
    }

    // Pivots at equal distances between minimum and maximum (§5.2, phase one): no value range survives more than 13 of these.
    __device__ __forceinline__ void range_bounds(const Compared<FLOAT>& compared, const Key* keys, uint32_t size) const {
        Key low = Key(~Key(0)), high = 0;
        for (uint32_t i = threadIdx.x; i < size; i += THREADS) {
            const Key key = compared(keys[i]);
            low = key < low ? key : low;
            high = key > high ? key : high;
        }
        for (uint32_t step = WARP / 2; step > 0; step /= 2) {
            const Key other_low = __shfl_xor_sync(ALL_LANES, low, step), other_high = __shfl_xor_sync(ALL_LANES, high, step);
            low = other_low < low ? other_low : low;
            high = other_high > high ? other_high : high;
        }
        if (lane == 0) {
            shared.extremes[0][warp] = low;
            shared.extremes[1][warp] = high;
        }
        __syncthreads();
        for (uint32_t w = 0; w < WARPS; w++) {
            low = shared.extremes[0][w] < low ? shared.extremes[0][w] : low;
            high = shared.extremes[1][w] > high ? shared.extremes[1][w] : high;
        }
        if (threadIdx.x < PIVOTS) {
            const Key range = high - low, above = Key(threadIdx.x) * (range / PIVOTS + 1);
            shared.partition.bounds[threadIdx.x] = above < range ? low + above : high;
        }
        __syncthreads();
    }
};

// What phase one made short enough: a kernel of its own, because the partition beside it costs the sort on chip registers.
template <bool FLOAT, uint32_t VALUE_BYTES>
__device__ __forceinline__ void leaves(const Args& args) {
    extern __shared__ uint4 shared_memory[];
    LeafShared& shared = *reinterpret_cast<LeafShared*>(shared_memory);
    const uint32_t entries = args.header->shorts;
    for (uint32_t entry = blockIdx.x; entry < entries; entry += gridDim.x) {
        Leaf<FLOAT, VALUE_BYTES>(args, shared, args.shorts[entry]).sort();
        __syncthreads();
    }
}

template <bool FLOAT, uint32_t VALUE_BYTES>
__device__ __forceinline__ void alone(const Args& args) {
    extern __shared__ uint4 shared_memory[];
    using Block = Alone<FLOAT, VALUE_BYTES>;
    Block(args, *reinterpret_cast<typename Block::Shared*>(shared_memory)).run();
}

}  // namespace

// ---- Entry points. They carry the shapes in their names, so that host and device cannot disagree about them. ----

#define NAMED2(NAME, SHAPE) quicksort_##NAME##_##SHAPE
#define NAMED(NAME, SHAPE) NAMED2(NAME, SHAPE)

#define KIND(KIND, FLOAT)                                                                                              \
    extern "C" __global__ void __launch_bounds__(SAMPLE / 2)                                                           \
        NAMED(pivots_##KIND, QUICKSORT_SHAPE)(const Args args, const uint32_t level) {                                 \
        pivots<FLOAT>(args, level);                                                                                    \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS, 4)                                                           \
        NAMED(count_##KIND, QUICKSORT_SHAPE)(const Args args, const uint32_t level) {                                  \
        count<FLOAT>(args, level);                                                                                     \
    }
KIND(integer, false)
KIND(float, true)

#define PAYLOAD(KIND, FLOAT, VALUE_BYTES)                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS, 2)                                                           \
        NAMED(move_##KIND##_##VALUE_BYTES, QUICKSORT_SHAPE)(const Args args, const uint32_t level) {                   \
        move<FLOAT, VALUE_BYTES>(args, level);                                                                         \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS, 2)                                                           \
        NAMED(leaves_##KIND##_##VALUE_BYTES, QUICKSORT_SHAPE)(const Args args) {                                       \
        leaves<FLOAT, VALUE_BYTES>(args);                                                                              \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS, 2)                                                           \
        NAMED(alone_##KIND##_##VALUE_BYTES, QUICKSORT_SHAPE)(const Args args) {                                        \
        alone<FLOAT, VALUE_BYTES>(args);                                                                               \
    }
PAYLOAD(integer, false, 0)
PAYLOAD(integer, false, 4)
PAYLOAD(integer, false, 8)
PAYLOAD(float, true, 0)
PAYLOAD(float, true, 4)
PAYLOAD(float, true, 8)
