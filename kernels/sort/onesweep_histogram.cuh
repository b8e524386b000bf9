// The first kernel of onesweep.cu: counts of all digits, the order check, and the plan of the passes.
#pragma once

#include <cooperative_groups.h>

#include "onesweep_types.cuh"

namespace {

constexpr uint32_t HISTOGRAM_THREADS = 512;
constexpr uint32_t HISTOGRAM_UNROLL = 2;
constexpr uint32_t COPIES = 32 / sizeof(Key);  // of each count, for different lanes: fewer of a warp's atomics meet in a bank
constexpr uint32_t VECTOR = 16 / sizeof(Key);
constexpr uint32_t CHUNK = HISTOGRAM_THREADS * HISTOGRAM_UNROLL;  // vectors that a block reads at once

union KeyVector {
    uint4 words;
    Key keys[VECTOR];
};

template <bool FLOAT>
struct Histogram {
    const Args& args;
    uint32_t (&counts)[MAX_PASSES][DIGITS][COPIES];
    const uint64_t n;
    const Ordering<FLOAT> ordering;
    const Key* const keys;
    const uint64_t lead;               // keys between the 16-byte boundary before the first key and that key
    bool check = true;                 // uniform over the warp
    bool unsorted = false;

    __device__ Histogram(const Args& args, uint32_t (&counts)[MAX_PASSES][DIGITS][COPIES])
        : args(args), counts(counts), n(key_count(args)), ordering(ordering_of<FLOAT>(args.order)), keys(args.keys[blockIdx.y][INPUT]),
          lead(reinterpret_cast<uintptr_t>(args.keys[blockIdx.y][INPUT]) % 16 / sizeof(Key)) {}

    // Chunk of vectors from `first`; INSIDE where it holds keys only. Vector v holds the keys from v * VECTOR - lead on; an
    // index before the first key wraps to a large one, so that `index < n` tells keys from the rest at both ends.
    template <bool INSIDE>
    __device__ __forceinline__ void count_chunk(uint64_t first) {
        KeyVector vectors[HISTOGRAM_UNROLL];
        const uint32_t lane = threadIdx.x % WARP;
#pragma unroll
        for (uint32_t u = 0; u < HISTOGRAM_UNROLL; u++) {
            const uint64_t vector = first + u * HISTOGRAM_THREADS + threadIdx.x;
            if (INSIDE) {
                vectors[u].words = reinterpret_cast<const uint4*>(keys - lead)[vector];
            } else {
#pragma unroll
                for (uint32_t e = 0; e < VECTOR; e++) {
                    const uint64_t index = vector * VECTOR + e - lead;
                    vectors[u].keys[e] = index < n ? keys[index] : 0;
                }
            }
        }
        uint32_t valid = 0;            // a bit for each key
#pragma unroll
        for (uint32_t u = 0; u < HISTOGRAM_UNROLL; u++) {
            const uint64_t index = (first + u * HISTOGRAM_THREADS + threadIdx.x) * VECTOR - lead;
            if (check) check_order<INSIDE>(vectors[u], index, lane);
#pragma unroll
            for (uint32_t e = 0; e < VECTOR; e++) valid |= (INSIDE || index + e < n) << (u * VECTOR + e);
        }
#pragma unroll
        for (uint32_t pass = 0; pass < MAX_PASSES; pass++) {
            if (pass >= pass_count(args.order)) break;
            const Digit<FLOAT> digit = digit_of<FLOAT>(args.order, pass);
#pragma unroll
            for (uint32_t i = 0; i < HISTOGRAM_UNROLL * VECTOR; i++) {
                const uint32_t d = digit(vectors[i / VECTOR].keys[i % VECTOR]);
                if (valid >> i & 1) atomicAdd(&counts[pass][d][lane % COPIES], 1);
            }
        }
    }

    // Compares each key with the next. Neighbouring lanes hold neighbouring vectors; the last lane fetches its next key.
    template <bool INSIDE>
    __device__ __forceinline__ void check_order(const KeyVector& vector, uint64_t index, uint32_t lane) {
        Key next = __shfl_down_sync(ALL_LANES, vector.keys[0], 1);
        if (lane == WARP - 1 && index + VECTOR < n) next = keys[index + VECTOR];
#pragma unroll
        for (uint32_t e = 0; e < VECTOR; e++) {
            const Key after = e + 1 < VECTOR ? vector.keys[(e + 1) % VECTOR] : next;
            const bool both = (INSIDE || index + e < n) && (INSIDE && e + 1 < VECTOR || index + e + 1 < n);
            if (both && (ordering(after) & Key(args.order.window)) < (ordering(vector.keys[e]) & Key(args.order.window))) unsorted = true;
        }
        check = !__any_sync(ALL_LANES, unsorted);
    }

    __device__ __forceinline__ void count_all() {
        const uint64_t vectors = (lead + n + VECTOR - 1) / VECTOR;
        for (uint64_t first = uint64_t(blockIdx.x) * CHUNK; first < vectors; first += uint64_t(gridDim.x) * CHUNK) {
            if (first * VECTOR >= lead && (first + CHUNK) * VECTOR <= lead + n) count_chunk<true>(first);
            else count_chunk<false>(first);
        }
    }
};

// Turns the counts of all passes into exclusive sums, a warp a pass, and writes which passes run between which buffers.
__device__ void make_plan(const Args& args, uint64_t n) {
    __shared__ uint32_t one_digit[MAX_PASSES];
    const uint32_t lane = threadIdx.x % WARP, pass = threadIdx.x / WARP, passes = pass_count(args.order);
    constexpr uint32_t EACH = DIGITS / WARP;
    static_assert(HISTOGRAM_THREADS / WARP >= MAX_PASSES, "a warp for each pass");

    if (pass < passes) {
        Offset* const bins = of_array(args, args.bins) + pass * DIGITS + lane * EACH;
        Offset counts[EACH], sum = 0;
        bool all = false;
#pragma unroll
        for (uint32_t e = 0; e < EACH; e++) {
            counts[e] = load_relaxed(bins + e);
            sum += counts[e];
            all |= counts[e] == n;
        }
        Offset before = warp_inclusive_sum(sum, lane) - sum;
#pragma unroll
        for (uint32_t e = 0; e < EACH; e++) {
            bins[e] = before;
            before += counts[e];
        }
        all = __any_sync(ALL_LANES, all);
        if (lane == 0) one_digit[pass] = all;
    }
    __syncthreads();
    if (threadIdx.x != 0) return;

    Header& header = *of_array(args, args.header);
    const bool in_place = args.flags & IN_PLACE, sorted = load_relaxed(&header.unsorted) == 0;
    uint32_t active = 0;
    for (uint32_t p = 0; p < passes; p++) active += !sorted && !one_digit[p];
    uint32_t source = INPUT;
    for (uint32_t p = 0, k = 0; p < passes; p++) {
        if (sorted || one_digit[p]) continue;
        // In place from the input and back; else so that the last pass writes the output.
        const bool odd = in_place ? k % 2 == 0 : (active - 1 - k) % 2 == 1;
        const uint32_t target = odd ? TEMP : OUTPUT;
        header.state[p] = RUN | (k + 1 == active ? LAST : 0) | (k % 2 ? TURNED : 0) | source << SOURCE_SHIFT
            | target << TARGET_SHIFT;
        source = target;
        k++;
    }
    if (active == 0 && !in_place) header.state[0] = RUN | COPY | LAST | INPUT << SOURCE_SHIFT | OUTPUT << TARGET_SHIFT;
    header.copy_back = in_place && active % 2;
    header.outcome = Outcome{ONESWEEP, passes, active, sorted, n, 0};
}

// Whether a kernel of adaptive.cu has sorted. Then no pass is planned; a sort in place is still to be copied back.
__device__ __forceinline__ bool is_done(const Args& args) {
    Header* const header = of_array(args, args.header);
    if (!(args.flags & NEARLY_SORTED) || adaptive_state(header)->done == 0) return false;
    if (blockIdx.x == 0 && threadIdx.x < 8) header->state[threadIdx.x] = 0;
    header->copy_back = args.flags & IN_PLACE;
    return true;
}

// All blocks together.
__device__ __forceinline__ void clear(const Args& args) {
    uint4* const words = reinterpret_cast<uint4*>(of_array(args, args.header));
    const uint64_t count = args.stride / sizeof(uint4);
    for (uint64_t i = uint64_t(blockIdx.x) * HISTOGRAM_THREADS + threadIdx.x; i < count; i += uint64_t(gridDim.x) * HISTOGRAM_THREADS) {
        words[i] = make_uint4(0, 0, 0, 0);
    }
}

template <bool FLOAT>
__device__ __forceinline__ void histogram(const Args& args) {
    if (is_done(args)) return;
    __shared__ uint32_t counts[MAX_PASSES][DIGITS][COPIES];
    __shared__ bool ends_last;
    uint32_t* const flat = &counts[0][0][0];
    const uint32_t used = pass_count(args.order) * DIGITS;

    for (uint32_t i = threadIdx.x; i < used * COPIES; i += HISTOGRAM_THREADS) flat[i] = 0;
    const auto grid = cooperative_groups::this_grid();
    const bool clears = !(args.flags & CLEARED);
    uint32_t arrived = 0;
    if (clears) {
        clear(args);
        arrived = grid.barrier_arrive();
    } else {
        __syncthreads();
    }
    Histogram<FLOAT> block(args, counts);
    block.count_all();
    if (clears) grid.barrier_wait(std::move(arrived));
    const bool unsorted = __syncthreads_or(block.unsorted);

    for (uint32_t i = threadIdx.x; i < used; i += HISTOGRAM_THREADS) {
        uint32_t count = 0;
#pragma unroll
        for (uint32_t c = 0; c < COPIES; c++) count += flat[i * COPIES + (c + i) % COPIES];
#if OFFSET_BITS == 32
        if (count != 0) atomicAdd(of_array(args, args.bins) + i, count);
#else
        if (count != 0) atomicAdd(reinterpret_cast<unsigned long long*>(of_array(args, args.bins) + i), (unsigned long long)count);
#endif
    }
    if (unsorted && threadIdx.x == 0) atomicOr(&of_array(args, args.header)->unsorted, 1);

    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) ends_last = atomicAdd(&of_array(args, args.header)->finished, 1) == gridDim.x - 1;
    __syncthreads();
    if (!ends_last) return;
    __threadfence();
    make_plan(args, block.n);
}

}  // namespace
