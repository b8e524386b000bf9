// GPU-Quicksort: sequences partitioned by pivots, first by many blocks together, then by one block
// each.
//
// D. Cederman, P. Tsigas: GPU-Quicksort: A Practical Quicksort Algorithm for Graphics Processors,
// ACM JEA 14, 2009.
//
// Compiled with KEY_BITS (32, 64). Launched in this order, always the same for a number of keys,
// without the host waiting:
//
//   phase one (§3.2.1, Algorithms 1 and 2), once per level; a level without sequences ends at once
//     pivots      one block a sequence: sort a sample of 1024 keys (bitonic), take pivots from it;
//                 divide the sequence into sections
//     count       first pass, a block a section: count the keys on either side of the pivots. The
//                 block that counts a sequence's last section makes the cumulative sums over its
//                 sections, which is the allocation, and puts the sequences that result on the
//                 lists: to be partitioned at the next level, short enough to be sorted on chip, or
//                 done with phase one
//     move        second pass, a block a section: move the keys to the other buffer
//   phase two (§3.2.2, Algorithm 3)
//     alone       a block takes the next sequence that phase one left too long, pushes it on its
//                 stack and works the stack off, the smallest on top: what fits on chip is sorted
//                 there, the rest partitioned by the same two passes
//     leaves      a block sorts a short sequence on chip (quicksort_leaf.cuh)
//
// quicksort_partition.cuh holds the pieces of a partition that both phases share.
//
// Bytes a key of B bytes with a value of V bytes: a level reads the keys twice, the values once and
// writes both, 3 B + 2 V; the sort on chip reads and writes once, 2 (B + V). 2^26 keys take three
// levels: 44 for u32 keys, 76 for pairs. The paper's partition, one pivot a level down to the same
// 7680 keys, takes 13 levels: 164, pairs 276.
//
// Instructions a key, by the profiler on an H200 (u32): move 63, pairs 73; leaves 248, pairs 391.
// Predicted were 46 and 210. move issues 43 % of the time and leaves 59 %, the rest is barriers and
// loads: 2 blocks of 512 threads share a multiprocessor, 4 in count.
//
// Measured there on 2026-11-21, 2^26 random keys: u32 2.22 ms (30.3 G/s: 31 % of its own byte
// limit, 117 % of the paper's 164 bytes), u32 pairs 3.45 ms (19.5 G/s), u64 3.68 ms (18.3 G/s), u64
// with u32 values 4.67 ms (14.4 G/s). u32: pivots 0.07, count 0.34, move 0.90, leaves 0.91.
// docs/benchmarks.md has the rates of another run, 2 % apart.
//
// Departures from the paper, with what each gains:
//  - 31 pivots a level, not one: a level replaces five, at five comparisons a key and a fifth of
//    the bytes. The comparisons of a warp are at once the ballots that rank its keys.
//  - Keys equal to a pivot get a part of their own where the sample shows them to be frequent, and
//    are done, as in the paper; they are moved like all others, not filled in, because keys that
//    compare equal may differ (values, zeros, bits outside the window).
//  - The sort is stable and the same every time: blocks get their slots by a prefix sum over the
//    sections of a sequence, not by fetch-and-add in the order in which blocks happen to finish,
//    and keys stay in order on the way through shared memory.
//  - The lists of sequences stay on the device: the host neither waits nor reads between levels.
//  - Pivots come from a sample of 1024 keys, not from three keys or from minimum and maximum, so
//    that levels rarely split badly (512 keys: 50 us more at 2^26, for a few sequences that
//    remained too long). The paper's minimum and maximum remain as what bounds the worst case:
//    after MAX_SAMPLED partitions of a sequence in phase two its range of values is cut into 31
//    equal parts each time, so that at most 14 more partitions follow for keys of 64 bits.
//  - Neighbouring parts that fit on chip together become one sequence.
//  - On chip, merging of runs that were sorted in registers instead of bitonic sort: stable, and
//    far fewer comparisons.
//  - Short sequences have a kernel of their own: a partition in the same kernel costs registers
//    (2^26: 1.09 to 0.93 ms, pairs 2.22 to 1.60). The paper's sections have a fixed number; here of
//    keys, which keeps counts and sums few (2^26, count of a level: 0.29 to 0.17 ms, and 0.12 with
//    4 blocks a multiprocessor).

#include "block/last_block.cuh"
#include "quicksort_leaf.cuh"
#include "quicksort_partition.cuh"

namespace radsweep::quicksort {

// ---- Phase one ----

// The first level's block also starts the header and the lists.
__device__ void start(const Args& args) {
    Header& header = *args.header;
    const u32 n = u32(key_count(args));
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
DEVICE void pivots(const Args& args, u32 level) {
    __shared__ Key sample[SAMPLE];
    __shared__ u32 first_section;
    if (level == 0) start(args);
    Header& header = *args.header;
    const Compared<FLOAT> compared(args.order);
    const Key* const keys = args.keys[source_of_level(args, level)];
    for (u32 s = blockIdx.x; s < header.sequences[level]; s += gridDim.x) {
        Sequence& sequence = args.sequences[level % 2][s];
        const u32 sections = (sequence.size - 1) / u32(args.section) + 1;
        if (threadIdx.x == 0) {
            first_section = atomicAdd(&header.sections[level], sections);
            sequence.first_section = first_section;
            sequence.sections = sections;
            atomicAdd(&header.outcome.detail, u64(sequence.size));
            atomicMax(&header.outcome.passes_run, level + 1);
        }
        __syncthreads();
        for (u32 i = threadIdx.x; i < sections; i += blockDim.x)
            args.section_sequence[first_section + i] = s;
        sample_bounds(
            compared, keys, sequence.begin, sequence.size, sample, args.bounds + s * CLASSES);
    }
}

// Where a section lies.
struct SectionRange {
    u32 sequence, begin, size;

    DEVICE SectionRange(const Args& args, u32 level, u32 section)
        : sequence(args.section_sequence[section]) {
        const Sequence& of = args.sequences[level % 2][sequence];
        const u32 most = u32(args.section), before = (section - of.first_section) * most;
        begin = of.begin + before;
        size = min(of.size - before, most);
    }
};

// Reserves slots for each lane's entries at the end of a list. Returns the first.
DEVICE u32 append(u32* length, u32 entries, u32 lane) {
    const u32 sum = warp_inclusive_sum(entries, lane);
    u32 first = 0;
    if (lane == WARP - 1 && sum != 0) first = atomicAdd(length, sum);
    return __shfl_sync(ALL_LANES, first, WARP - 1) + sum - entries;
}

// Steps d and e of figure 3, and the end of Algorithm 2: from counts of sections to offsets, and
// the sequences that result.
template <bool FLOAT, u32 VALUE_BYTES>
__device__ void allocate(
    const Partition<FLOAT, VALUE_BYTES>& block, const Sequence& sequence, u32 level) {
    const Args& args = block.args;
    PartitionShared& shared = block.shared;
    const u32 lane = block.lane, each = (sequence.sections + WARPS - 1) / WARPS;  // for a warp
    const u32 from = min(block.warp * each, sequence.sections),
              to = min(from + each, sequence.sections);
    u32* const column = args.offsets + sequence.first_section * CLASSES + lane;

    u32 sum = 0;
#pragma unroll 8
    for (u32 i = from; i < to; i++) sum += load_relaxed(column + i * CLASSES);
    shared.warps[block.warp][lane] = sum;
    __syncthreads();
    u32 before = 0, size = 0;
    for (u32 w = 0; w < WARPS; w++) {
        if (w == block.warp) before = size;
        size += shared.warps[w][lane];
    }
    const u32 begin = sequence.begin + warp_inclusive_sum(size, lane) - size;
    u32 slot = begin + before;
#pragma unroll 8
    for (u32 i = from; i < to; i++) {
        const u32 count = load_relaxed(column + i * CLASSES);
        column[i * CLASSES] = slot;
        slot += count;
    }
    if (block.warp != 0) return;

    const Kind kind =
        gather_classes(lane, one_value(shared.bounds, lane, block.compared.window), size);
    const bool next_level = kind == LONG && size > args.min_length && level + 1 < args.levels;
    const bool copy = kind == EQUAL && block.target != OUTPUT;
    const u32 entries = copy ? (size - 1) / COPY_PIECE + 1 : kind == LONG && !next_level;
    const u32 first_long = append(&args.header->sequences[level + 1], next_level, lane);
    const u32 first_short = append(&args.header->shorts, kind == SHORT, lane);
    const u32 first_done = append(&args.header->done, entries, lane);
    if (next_level)
        args.sequences[(level + 1) % 2][first_long] = Sequence{begin, size, 0, 0, 0, {}};
    if (kind == SHORT) args.shorts[first_short] = Work{begin, size, block.target, 0};
    for (u32 e = 0; e < entries; e++) {
        const u32 piece = copy ? e * COPY_PIECE : 0;
        args.done[first_done + e] = Work{
            begin + piece, copy ? min(COPY_PIECE, size - piece) : size, block.target,
            copy ? COPY_ONLY : 0};
    }
}

template <bool FLOAT>
DEVICE void count(const Args& args, u32 level) {
    extern __shared__ uint4 shared_memory[];
    PartitionShared& shared = *reinterpret_cast<PartitionShared*>(shared_memory);
    const Partition<FLOAT, 0> block(args, shared, source_of_level(args, level));
    const u32 sections = args.header->sections[level];
    for (u32 section = blockIdx.x; section < sections; section += gridDim.x) {
        const SectionRange range(args, level, section);
        Sequence& sequence = args.sequences[level % 2][range.sequence];
        if (threadIdx.x < CLASSES)
            shared.bounds[threadIdx.x] = args.bounds[range.sequence * CLASSES + threadIdx.x];
        block.clear_counts();
        __syncthreads();
        block.count(range.begin, range.size);
        __syncthreads();
        block.sum_counts([&](u32 c, u32 sum) { args.offsets[section * CLASSES + c] = sum; });
        if (!arrives_last(&sequence.finished, sequence.sections)) continue;
        allocate(block, sequence, level);
        __syncthreads();
    }
}

template <bool FLOAT, u32 VALUE_BYTES>
DEVICE void move(const Args& args, u32 level) {
    extern __shared__ uint4 shared_memory[];
    PartitionShared& shared = *reinterpret_cast<PartitionShared*>(shared_memory);
    const Partition<FLOAT, VALUE_BYTES> block(args, shared, source_of_level(args, level));
    const u32 sections = args.header->sections[level];
    for (u32 section = blockIdx.x; section < sections; section += gridDim.x) {
        const SectionRange range(args, level, section);
        if (threadIdx.x < CLASSES) {
            shared.bounds[threadIdx.x] = args.bounds[range.sequence * CLASSES + threadIdx.x];
            shared.next[threadIdx.x] = args.offsets[section * CLASSES + threadIdx.x];
        }
        __syncthreads();
        block.move_all(range.begin, range.size);
    }
}

// ---- Phase two ----

// With the smallest sequence on top, the r siblings below a sequence of size s are each at least as
// large: s <= parent / (r + 1). The product of all r + 1 is thus at most 2^32 / LEAF < 2^20, and
// their sum at most 4 x 31.
constexpr u32 STACK = 160;
constexpr u32 MAX_SAMPLED = 6;  // partitions of a sequence by sampled pivots

template <bool FLOAT, u32 VALUE_BYTES>
struct Alone {
    struct Shared {
        Work stack[STACK];
        u32 entry, pushed;
        u32 totals[CLASSES];
        Key extremes[2][WARPS];
        union {
            LeafShared leaf;
            PartitionShared partition;
        };
    };

    const Args& args;
    Shared& shared;
    const u32 lane, warp;

    DEVICE Alone(const Args& args, Shared& shared)
        : args(args), shared(shared), lane(threadIdx.x % WARP), warp(threadIdx.x / WARP) {}

    DEVICE void run() const {
        const u32 entries = args.header->done;
        while (true) {
            if (threadIdx.x == 0) {
                shared.entry = atomicAdd(&args.header->next, 1);
                if (shared.entry < entries) shared.stack[0] = args.done[shared.entry];
            }
            __syncthreads();
            if (shared.entry >= entries) return;
            u32 depth = 1;
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

    // Copies keys that are at their ranks, but not in the output.
    DEVICE void copy(const Work& work) const {
        using Value = typename ValueOf<VALUE_BYTES>::Type;
        for (u32 i = work.begin + threadIdx.x; i < work.begin + work.size; i += THREADS) {
            args.keys[OUTPUT][i] = args.keys[work.source][i];
            if (VALUE_BYTES != 0) {
                static_cast<Value*>(args.values[OUTPUT])[i] =
                    static_cast<const Value*>(args.values[work.source])[i];
            }
        }
    }

    DEVICE void partition(const Work& work, u32 depth) const {
        PartitionShared& part = shared.partition;
        const Partition<FLOAT, VALUE_BYTES> block(args, part, work.source);
        const Key* const keys = args.keys[work.source];
        if (work.state < MAX_SAMPLED) {
            sample_bounds(
                block.compared, keys, work.begin, work.size, reinterpret_cast<Key*>(part.exchange),
                part.bounds);
        } else {
            range_bounds(block.compared, keys + work.begin, work.size);
        }
        block.clear_counts();
        __syncthreads();
        block.count(work.begin, work.size);
        __syncthreads();
        block.sum_counts([&](u32 c, u32 sum) { shared.totals[c] = sum; });
        __syncthreads();
        if (warp == 0) push(work, depth, block);
        __syncthreads();
        block.move_all(work.begin, work.size);
    }

    // Finds where the classes go, and pushes the sequences that they form, the largest first.
    DEVICE void push(
        const Work& work, u32 depth, const Partition<FLOAT, VALUE_BYTES>& block) const {
        PartitionShared& part = shared.partition;
        u32 size = shared.totals[lane];
        const u32 begin = work.begin + warp_inclusive_sum(size, lane) - size;
        part.next[lane] = begin;
        const Kind kind =
            gather_classes(lane, one_value(part.bounds, lane, block.compared.window), size);
        const bool mine =
            kind == SHORT || kind == LONG || (kind == EQUAL && block.target != OUTPUT);
        const u32 own = mine ? size : 0;
        u32 rank = 0;
        for (u32 c = 0; c < CLASSES; c++) {
            const u32 other = __shfl_sync(ALL_LANES, own, c);
            rank += other > own || (other == own && c < lane);
        }
        if (mine)
            shared.stack[depth + rank] =
                Work{begin, size, block.target, kind == EQUAL ? COPY_ONLY : work.state + 1};
        const u32 pushed = __popc(__ballot_sync(ALL_LANES, mine));
        if (lane == 0) {
            shared.pushed = pushed;
            atomicAdd(&args.header->outcome.detail, u64(work.size));
            atomicMax(&args.header->outcome.passes_run, args.levels + work.state + 1);
        }
    }

    // Takes pivots at equal distances between minimum and maximum (§5.2, phase one): no value range
    // lasts more than 13 of these.
    DEVICE void range_bounds(const Compared<FLOAT>& compared, const Key* keys, u32 size) const {
        Key low = Key(~Key(0)), high = 0;
        for (u32 i = threadIdx.x; i < size; i += THREADS) {
            const Key key = compared(keys[i]);
            low = min(low, key);
            high = max(high, key);
        }
        low = warp_min(low);
        high = warp_max(high);
        if (lane == 0) {
            shared.extremes[0][warp] = low;
            shared.extremes[1][warp] = high;
        }
        __syncthreads();
        for (u32 w = 0; w < WARPS; w++) {
            low = min(low, shared.extremes[0][w]);
            high = max(high, shared.extremes[1][w]);
        }
        if (threadIdx.x < PIVOTS) {
            const Key range = high - low, above = Key(threadIdx.x) * (range / PIVOTS + 1);
            shared.partition.bounds[threadIdx.x] = above < range ? low + above : high;
        }
        __syncthreads();
    }
};

// Sorts what phase one made short enough. A kernel of its own, because a partition in the same
// kernel costs registers.
template <bool FLOAT, u32 VALUE_BYTES>
DEVICE void leaves(const Args& args) {
    extern __shared__ uint4 shared_memory[];
    LeafShared& shared = *reinterpret_cast<LeafShared*>(shared_memory);
    const u32 entries = args.header->shorts;
    for (u32 entry = blockIdx.x; entry < entries; entry += gridDim.x) {
        Leaf<FLOAT, VALUE_BYTES>(args, shared, args.shorts[entry]).sort();
        __syncthreads();
    }
}

template <bool FLOAT, u32 VALUE_BYTES>
DEVICE void alone(const Args& args) {
    extern __shared__ uint4 shared_memory[];
    using Block = Alone<FLOAT, VALUE_BYTES>;
    Block(args, *reinterpret_cast<typename Block::Shared*>(shared_memory)).run();
}

// ---- Entry points. A name carries the shape, so that host and device cannot disagree ----

#define NAMED2(NAME, SHAPE) quicksort_##NAME##_##SHAPE
#define NAMED(NAME, SHAPE) NAMED2(NAME, SHAPE)

#define KIND(KIND, FLOAT)                                                                          \
    extern "C" __global__ void __launch_bounds__(SAMPLE / 2) NAMED(                                \
        pivots_##KIND, QUICKSORT_SHAPE)(const Args args, const u32 level) {                        \
        pivots<FLOAT>(args, level);                                                                \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS, 4) NAMED(count_##KIND, QUICKSORT_SHAPE)( \
        const Args args, const u32 level) {                                                        \
        count<FLOAT>(args, level);                                                                 \
    }
KIND(integer, false)
KIND(float, true)

#define PAYLOAD(KIND, FLOAT, VALUE_BYTES)                                                 \
    extern "C" __global__ void __launch_bounds__(THREADS, 2) NAMED(                       \
        move_##KIND##_##VALUE_BYTES, QUICKSORT_SHAPE)(const Args args, const u32 level) { \
        move<FLOAT, VALUE_BYTES>(args, level);                                            \
    }                                                                                     \
    extern "C" __global__ void __launch_bounds__(THREADS, 2) NAMED(                       \
        leaves_##KIND##_##VALUE_BYTES, QUICKSORT_SHAPE)(const Args args) {                \
        leaves<FLOAT, VALUE_BYTES>(args);                                                 \
    }                                                                                     \
    extern "C" __global__ void __launch_bounds__(THREADS, 2) NAMED(                       \
        alone_##KIND##_##VALUE_BYTES, QUICKSORT_SHAPE)(const Args args) {                 \
        alone<FLOAT, VALUE_BYTES>(args);                                                  \
    }
PAYLOAD(integer, false, 0)
PAYLOAD(integer, false, 4)
PAYLOAD(integer, false, 8)
PAYLOAD(float, true, 0)
PAYLOAD(float, true, 4)
PAYLOAD(float, true, 8)

}  // namespace radsweep::quicksort
