// The first kernel of onesweep.cu: counts of all digits, the order check, and the plan of the
// passes.
//
// H200, 2^28 u32 keys: 337 us, before 457 with half the copies of counts: three wavefronts of
// shared memory an atomic, now two. Their 257 us and the 250 of reading are what bounds it.
// Instructions for 32 keys: 27, before 39, which made no difference.
#pragma once

#include <cooperative_groups.h>

#include "block/last_block.cuh"
#include "onesweep_types.cuh"

namespace radsweep::onesweep {

constexpr u32 HISTOGRAM_THREADS = 1024;
constexpr u32 HISTOGRAM_UNROLL = 1;
constexpr u32 VECTOR = 16 / sizeof(Key);
constexpr u32 CHUNK = HISTOGRAM_THREADS * HISTOGRAM_UNROLL;  // vectors that a block reads at once
// Max keys of a segment in the sample, where a block is expected to hold the segment; a few more,
// so that chance does not make one seem too large.
DEVICE u32 sample_limit(const Args& args) { return args.finish_keys / 16 * 15 / args.sample + 8; }

union KeyVector {
    uint4 words;
    Key keys[VECTOR];
};

// COPIES of each count, for different lanes: fewer of a warp's atomics meet in a bank.
template <bool FLOAT, u32 COPIES>
struct Histogram {
    static constexpr u32 COUNT_BYTES = COPIES * sizeof(u32);
    static constexpr u32 COUNT_SHIFT = COPIES == 4 ? 4 : COPIES == 8 ? 5 : 6;
    static_assert(1 << COUNT_SHIFT == COUNT_BYTES);

    const Args& args;
    u32* const counts;  // [pass][digit][copy]
    const u64 n;
    const Compared<FLOAT> compared;
    const Key* const keys;
    const u64 lead;     // keys between the 16-byte boundary before the first key and that key
    bool check = true;  // uniform over the warp
    bool unsorted = false;

    __device__ Histogram(const Args& args, u32* counts)
        : args(args), counts(counts), n(key_count(args)), compared(args.order),
          keys(args.keys[INPUT]), lead(reinterpret_cast<u64>(args.keys[INPUT]) % 16 / sizeof(Key)) {
    }

    // Counts a chunk of vectors from `first`; INSIDE: it has keys only. Vector v holds the keys
    // from v * VECTOR - lead on; an index before the first key wraps to a large one, so that `index
    // < n` holds for keys only at both ends.
    template <bool INSIDE>
    DEVICE void count_chunk(u64 first) {
        KeyVector vectors[HISTOGRAM_UNROLL];
        const u32 lane = threadIdx.x % WARP;
#pragma unroll
        for (u32 u = 0; u < HISTOGRAM_UNROLL; u++) {
            const u64 vector = first + u * HISTOGRAM_THREADS + threadIdx.x;
            if (INSIDE) {
                vectors[u].words = reinterpret_cast<const uint4*>(keys - lead)[vector];
            } else {
#pragma unroll
                for (u32 e = 0; e < VECTOR; e++) {
                    const u64 index = vector * VECTOR + e - lead;
                    vectors[u].keys[e] = index < n ? keys[index] : 0;
                }
            }
        }
        u32 valid = 0;  // a bit for each key
#pragma unroll
        for (u32 u = 0; u < HISTOGRAM_UNROLL; u++) {
            const u64 index = (first + u * HISTOGRAM_THREADS + threadIdx.x) * VECTOR - lead;
            if (check) check_order<INSIDE>(vectors[u], index, lane);
#pragma unroll
            for (u32 e = 0; e < VECTOR; e++) valid |= (INSIDE || index + e < n) << (u * VECTOR + e);
        }
        if (INSIDE && !check && args.segment_bits != 0) sample(vectors[0].keys[0], first);
        // Integers are counted by their own bits: the flush turns these into digits.
        const u32 own = lane % COPIES * sizeof(u32);
        const u32 passes = pass_count<BITS>(args.order);
#pragma unroll
        for (u32 i = 0; FLOAT && i < HISTOGRAM_UNROLL * VECTOR; i++) {
            Key& key = vectors[i / VECTOR].keys[i % VECTOR];
            key = compared.ordering(key);
        }
#pragma unroll
        for (u32 pass = 0; pass < MAX_PASSES; pass++) {
            if (pass >= passes) break;
            const u32 shift = args.order.begin + BITS * pass;
#pragma unroll
            for (u32 i = 0; i < HISTOGRAM_UNROLL * VECTOR; i++) {
                const u32 moved = move_digit(vectors[i / VECTOR].keys[i % VECTOR], shift, pass);
                const u32 offset = moved & (DIGITS - 1) << COUNT_SHIFT | own;
                char* const count =
                    reinterpret_cast<char*>(counts) + pass * DIGITS * COUNT_BYTES + offset;
                if (valid >> i & 1) atomicAdd(reinterpret_cast<u32*>(count), 1);
            }
        }
    }

    // Returns a key whose digit of a pass, at bit `shift`, is at bit COUNT_SHIFT: the other bits
    // are any.
    static DEVICE u32 move_digit(Key key, u32 shift, u32 pass) {
        if (KEY_BITS == 32) return __funnelshift_r(u32(key), u32(key), shift - COUNT_SHIFT);
        if (pass == 0) return u32(key >> shift) << COUNT_SHIFT;
        return u32(key >> (shift - COUNT_SHIFT));
    }

    // Counts a key for its segment if it is one of the sample: other threads for other chunks. A
    // segment that is crowded is not counted further, since many would wait for its counter. So
    // would neighbours in order: warps that have seen only such do not count (2^24 sorted keys take
    // 0.14 ms, else 0.24). If their keys crowd a segment, `find_segments` sees it.
    DEVICE void sample(Key key, u64 first) {
        if ((threadIdx.x + u32(first / CHUNK) * 5) & (args.sample / VECTOR - 1)) return;
        Offset* const counter = args.segments + segment_of(args, compared(key));
        if (load_relaxed(counter) <= sample_limit(args)) atomicAdd(counter, 1);
    }

    // Compares each key with the next. Neighbouring lanes hold neighbouring vectors; the last lane
    // fetches its next key.
    template <bool INSIDE>
    DEVICE void check_order(const KeyVector& vector, u64 index, u32 lane) {
        Key next = __shfl_down_sync(ALL_LANES, vector.keys[0], 1);
        if (lane == WARP - 1 && index + VECTOR < n) next = keys[index + VECTOR];
#pragma unroll
        for (u32 e = 0; e < VECTOR; e++) {
            const Key after = e + 1 < VECTOR ? vector.keys[(e + 1) % VECTOR] : next;
            const bool both =
                (INSIDE || index + e < n) && (INSIDE && e + 1 < VECTOR || index + e + 1 < n);
            if (both && compared(after) < compared(vector.keys[e])) unsorted = true;
        }
        check = !__any_sync(ALL_LANES, unsorted);
    }

    DEVICE void count_all() {
        const u64 vectors = (lead + n + VECTOR - 1) / VECTOR;
        for (u64 first = u64(blockIdx.x) * CHUNK; first < vectors;
             first += u64(gridDim.x) * CHUNK) {
            if (first * VECTOR >= lead && (first + CHUNK) * VECTOR <= lead + n)
                count_chunk<true>(first);
            else count_chunk<false>(first);
        }
    }
};

// Tells whether a segment seems to have more keys than a block sorts. By all threads.
DEVICE bool is_crowded(const Args& args) {
    bool crowded = false;
    for (u32 i = threadIdx.x; i < 1u << args.segment_bits; i += HISTOGRAM_THREADS)
        crowded |= load_relaxed(args.segments + i) > sample_limit(args);
    return __syncthreads_or(crowded);
}

// Turns the counts of all passes into exclusive sums, a warp a pass, and writes which passes run
// between which buffers.
__device__ void make_plan(const Args& args, const adaptive::Memory& memory, u64 n) {
    __shared__ u32 one_digit[MAX_PASSES], fits[MAX_PASSES];
    const u32 lane = threadIdx.x % WARP, pass = threadIdx.x / WARP,
              passes = pass_count<BITS>(args.order);
    constexpr u32 EACH = DIGITS / WARP;
    static_assert(HISTOGRAM_THREADS / WARP >= MAX_PASSES, "a warp for each pass");

    if (pass < passes) {
        Offset* const bins = args.bins + pass * DIGITS + lane * EACH;
        Offset counts[EACH], sum = 0;
        bool all = false, small = true;
#pragma unroll
        for (u32 e = 0; e < EACH; e++) {
            counts[e] = load_relaxed(bins + e);
            sum += counts[e];
            all |= counts[e] == n;
            small &= counts[e] <= args.finish_keys;
        }
        Offset before = warp_inclusive_sum(sum, lane) - sum;
#pragma unroll
        for (u32 e = 0; e < EACH; e++) {
            bins[e] = before;
            before += counts[e];
        }
        all = __any_sync(ALL_LANES, all);
        small = __all_sync(ALL_LANES, small);
        if (lane == 0) {
            one_digit[pass] = all;
            fits[pass] = small;
        }
    }
    const bool divides = args.segment_bits != 0 && !is_crowded(args);
    __syncthreads();
    if (threadIdx.x != 0) return;

    memory.count();
    Header& header = *args.header;
    const bool in_place = args.flags & IN_PLACE, sorted = load_relaxed(&header.unsorted) == 0;
    u32 active = 0, mask = 0, top = 0;
    for (u32 p = 0; p < passes; p++) {
        if (sorted || one_digit[p]) continue;
        active++;
        mask |= 1u << p;
        top = p;
    }
    header.outcome = Outcome{ONESWEEP, passes, active, sorted, n, 0};
    if (active > 1 && fits[top] && args.segment_bits == 0) {
        header.state[top] = RUN | INPUT << SOURCE_SHIFT | TEMP << TARGET_SHIFT;
        header.finish = FINISH | top << TOP_SHIFT | (mask & ~(1u << top));
        return;
    }
    // The passes by each digit then run only if a segment is too large.
    const bool segments = active > 2 && divides && top + 1 == passes && !one_digit[top - 1];
    if (segments) {
        const u32 first = in_place ? TEMP : OUTPUT, second = in_place ? OUTPUT : TEMP;
        two_passes(args).state[top - 1] = RUN | INPUT << SOURCE_SHIFT | first << TARGET_SHIFT;
        two_passes(args).state[top] = RUN | TURNED | first << SOURCE_SHIFT | second << TARGET_SHIFT;
        header.finish = FINISH | SEGMENTS | (in_place ? IN_OUTPUT : 0) | top << TOP_SHIFT |
                        (mask & ~(1u << top));
    }
    u32 source = INPUT;
    for (u32 p = 0, k = 0; p < passes; p++) {
        if (sorted || one_digit[p]) continue;
        // In place, from the output and back. Else so that the last pass writes the output.
        const bool odd = in_place ? k % 2 == 0 : (active - 1 - k) % 2 == 1;
        const u32 target = odd ? TEMP : OUTPUT;
        header.state[p] = (segments ? 0 : RUN) | (k + 1 == active ? LAST : 0) |
                          (k % 2 ? TURNED : 0) | source << SOURCE_SHIFT | target << TARGET_SHIFT;
        source = target;
        k++;
    }
    if (active == 0 && !in_place)
        header.state[0] = RUN | COPY | LAST | INPUT << SOURCE_SHIFT | OUTPUT << TARGET_SHIFT;
    if (source == TEMP) header.copy_back = segments ? IF_TOO_LARGE : COPY_BACK;
}

// Whether a kernel of adaptive.cu has sorted. Then no pass is planned; a sort in place has yet to
// be copied back.
DEVICE bool is_done(const Args& args) {
    Header* const header = args.header;
    if (!(args.flags & NEARLY_SORTED) || adaptive::state_of(header)->done == 0) return false;
    if (blockIdx.x == 0 && threadIdx.x < MAX_PASSES) {
        header->state[threadIdx.x] = 0;
        two_passes(args).state[threadIdx.x] = 0;
        header->finish = 0;
        header->copy_back = args.flags & IN_PLACE ? COPY_BACK : 0;
    }
    return true;
}

// Clears header, bins and look-back words, by all blocks.
DEVICE void clear(const Args& args) {
    uint4* const words = reinterpret_cast<uint4*>(args.header);
    const u64 count = args.control_bytes / sizeof(uint4);
    for (u64 i = u64(blockIdx.x) * HISTOGRAM_THREADS + threadIdx.x; i < count;
         i += u64(gridDim.x) * HISTOGRAM_THREADS) {
        words[i] = make_uint4(0, 0, 0, 0);
    }
}

// The host gives the shared memory for the counts (tuning.rs: HISTOGRAM_SHARED).
template <bool FLOAT, u32 COPIES>
DEVICE void histogram(const Args& args, const adaptive::Memory& memory) {
    if (is_done(args)) return;
    extern __shared__ uint4 shared_memory[];
    u32* const counts = reinterpret_cast<u32*>(shared_memory);
    const u32 used = pass_count<BITS>(args.order) * DIGITS;

    for (u32 i = threadIdx.x; i < used * COPIES / 4; i += HISTOGRAM_THREADS)
        shared_memory[i] = make_uint4(0, 0, 0, 0);
    const auto grid = cooperative_groups::this_grid();
    const bool clears = !(args.flags & CLEARED);
    u32 arrived = 0;
    if (clears) {
        clear(args);
        arrived = grid.barrier_arrive();
    } else {
        __syncthreads();
    }
    Histogram<FLOAT, COPIES> block(args, counts);
    block.count_all();
    if (clears) grid.barrier_wait(std::move(arrived));
    const bool unsorted = __syncthreads_or(block.unsorted);

    for (u32 i = threadIdx.x; i < used; i += HISTOGRAM_THREADS) {
        u32 count = 0;
#pragma unroll
        for (u32 c = 0; c < COPIES; c++) count += counts[i * COPIES + (c + i) % COPIES];
        const u32 pass = i / DIGITS;
        const Digit<FLOAT> digit = digit_of<BITS, FLOAT>(args.order, pass);
        const u32 d = (i ^ (FLOAT ? 0 : digit.flip)) & digit.mask;
        if (count != 0) atomicAdd(args.bins + pass * DIGITS + d, Offset(count));
    }
    if (unsorted && threadIdx.x == 0) atomicOr(&args.header->unsorted, 1);

    if (!arrives_last(&args.header->finished, gridDim.x)) return;
    make_plan(args, memory, block.n);
}

}  // namespace radsweep::onesweep
