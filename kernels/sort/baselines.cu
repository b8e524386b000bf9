// Sorts that the papers compare theirs with, for keys of 32 bits: for the bench of the papers alone, simple and whole, not tuned.
//
//   split     radix sort by one bit at a time (the CUDPP sort of Ha, Krüger, Silva 2009, section 5): ha_radix.cuh with two digits,
//             32 passes
//   radix16   4-bit digits without the local sort (Le Grand 2007, as compared with there): each key is written straight from
//             where it was read, wherever it goes
//   bitonic   Batcher's network over the whole array, padded to a power of two; pairs are words of 64 bits, the key on top

#include "ha_radix.cuh"

using namespace radsweep;

// ---- One bit at a time. The shapes: crates/gpusort/src/cuda/ha_radix/tuning.rs ----

extern "C" __global__ void __launch_bounds__(256) ha_start_integer(const ha::Args args) { ha::start<false>(args); }

#define SPLIT(VALUE_BYTES, BLOCKS)                                                                                     \
    extern "C" __global__ void __launch_bounds__(256, BLOCKS)                                                          \
        ha_sort_1_integer_##VALUE_BYTES##_256x16(const ha::Args args, const uint32_t first, const uint32_t end) {      \
        ha::sort<1, false, VALUE_BYTES, 256, 16>(args, first, end);                                                    \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256) ha_copy_##VALUE_BYTES(const ha::Args args) { ha::copy<VALUE_BYTES>(args); }
SPLIT(0, 4)
SPLIT(4, 3)

namespace {

// ---- Radix 16 ----

constexpr uint32_t DIGITS = 16, THREADS = 256, WARPS = THREADS / WARP, ITEMS = 8, TILE = THREADS * ITEMS;

__device__ __forceinline__ uint32_t digit(uint32_t key, uint32_t shift) { return key >> shift & (DIGITS - 1); }

// Counts, for each warp, its keys of each digit. Rows of a warp are consecutive.
__device__ __forceinline__ void count_digits(const uint32_t* keys, uint32_t n, uint32_t shift, uint32_t (&counts)[WARPS][DIGITS]) {
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (threadIdx.x < WARPS * DIGITS) counts[threadIdx.x / DIGITS][threadIdx.x % DIGITS] = 0;
    __syncthreads();
    const uint64_t first = uint64_t(blockIdx.x) * TILE + warp * WARP * ITEMS + lane;
    for (uint32_t i = 0; i < ITEMS; i++) {
        if (first + i * WARP < n) atomicAdd(&counts[warp][digit(keys[first + i * WARP], shift)], 1);
    }
    __syncthreads();
}

}  // namespace

// To the block-sum array, [digit][block].
extern "C" __global__ void __launch_bounds__(256) radix16_count(const uint32_t* keys, uint32_t n, uint32_t shift, uint32_t* sums) {
    __shared__ uint32_t counts[WARPS][DIGITS];
    count_digits(keys, n, shift, counts);
    if (threadIdx.x >= DIGITS) return;
    uint32_t sum = 0;
    for (uint32_t w = 0; w < WARPS; w++) sum += counts[w][threadIdx.x];
    sums[threadIdx.x * gridDim.x + blockIdx.x] = sum;
}

// Exclusive prefix sum over the array, by one block of 1024 threads.
extern "C" __global__ void __launch_bounds__(1024) radix16_scan(uint32_t* sums, uint32_t count) {
    __shared__ uint32_t warps[WARP];
    const uint32_t lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    uint32_t before = 0;
    for (uint32_t first = 0; first < count; first += 4096) {
        const uint32_t at = first + threadIdx.x * 4;
        uint32_t values[4], sum = 0;
        for (uint32_t i = 0; i < 4; i++) sum += values[i] = at + i < count ? sums[at + i] : 0;
        const uint32_t up_to = warp_inclusive_sum(sum, lane);
        if (lane == WARP - 1) warps[warp] = up_to;
        __syncthreads();
        uint32_t exclusive = before + up_to - sum;
        for (uint32_t w = 0; w < WARP; w++) {
            if (w < warp) exclusive += warps[w];
            before += warps[w];
        }
        for (uint32_t i = 0; i < 4; i++) {
            if (at + i < count) sums[at + i] = exclusive;
            exclusive += values[i];
        }
        __syncthreads();
    }
}

// `values_out` may be null: keys alone.
extern "C" __global__ void __launch_bounds__(256)
    radix16_scatter(const uint32_t* keys, const uint32_t* values, uint32_t* keys_out, uint32_t* values_out, uint32_t n, uint32_t shift,
                    const uint32_t* sums, uint32_t minus_one) {
    __shared__ uint32_t counts[WARPS][DIGITS];
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, up_to_me = lane_mask_le();
    count_digits(keys, n, shift, counts);
    if (threadIdx.x < DIGITS) {
        uint32_t next = sums[threadIdx.x * gridDim.x + blockIdx.x];
        for (uint32_t w = 0; w < WARPS; w++) {
            const uint32_t count = counts[w][threadIdx.x];
            counts[w][threadIdx.x] = next;
            next += count;
        }
    }
    __syncthreads();
    const uint64_t first = uint64_t(blockIdx.x) * TILE + warp * WARP * ITEMS + lane;
    for (uint32_t i = 0; i < ITEMS; i++) {
        const uint64_t at = first + i * WARP;
        const uint32_t key = at < n ? keys[at] : 0;
        const uint32_t d = at < n ? digit(key, shift) : DIGITS;   // a digit of their own for the lanes behind the end
        const uint32_t peers = match_digit(d, minus_one);
        uint32_t to = 0;
        if (at < n) to = counts[warp][d] + __popc(peers & up_to_me);
        __syncwarp();
        if (at < n && (peers & ~up_to_me) == 0) counts[warp][d] = to;
        __syncwarp();
        if (at >= n) continue;
        keys_out[to - 1] = key;
        if (values_out != nullptr) values_out[to - 1] = values[at];
    }
}

// ---- Bitonic ----

namespace {

constexpr uint32_t BITONIC_TILE = 2048, BITONIC_THREADS = BITONIC_TILE / 2;

template <class Word>
__device__ __forceinline__ void exchange(Word& low, Word& high, bool ascending) {
    if (low > high == ascending) {
        const Word word = low;
        low = high;
        high = word;
    }
}

// Steps of stage `size` with distances from `distance` down to 1, on the tile of a block. Pair p is of places i and i + distance.
template <class Word>
__device__ __forceinline__ void tile_steps(Word* tile, uint64_t first, uint64_t size, uint32_t distance) {
    for (; distance != 0; distance /= 2) {
        __syncthreads();
        const uint32_t i = 2 * threadIdx.x - (threadIdx.x & (distance - 1));
        exchange(tile[i], tile[i + distance], ((first + i) & size) == 0);
    }
}

// All stages up to `last`, from `size` on, within tiles.
template <class Word>
__device__ __forceinline__ void bitonic_tile(Word* words, uint64_t size, uint64_t last) {
    extern __shared__ uint4 shared_memory[];
    Word* const tile = reinterpret_cast<Word*>(shared_memory);
    const uint64_t first = uint64_t(blockIdx.x) * BITONIC_TILE;
    for (uint32_t i = threadIdx.x; i < BITONIC_TILE; i += BITONIC_THREADS) tile[i] = words[first + i];
    for (; size <= last; size *= 2) tile_steps(tile, first, size, uint32_t(size < BITONIC_TILE ? size : BITONIC_TILE) / 2);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < BITONIC_TILE; i += BITONIC_THREADS) words[first + i] = tile[i];
}

template <class Word>
__device__ __forceinline__ void bitonic_step(Word* words, uint64_t size, uint64_t distance) {
    const uint64_t pair = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x, i = 2 * pair - (pair & (distance - 1));
    exchange(words[i], words[i + distance], (i & size) == 0);
}

}  // namespace

// Launched for all words of the padded array.
extern "C" __global__ void __launch_bounds__(256) bitonic_pad_4(const uint32_t* keys, const uint32_t*, uint32_t* words, uint64_t n) {
    const uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    words[i] = i < n ? keys[i] : ~0u;
}
extern "C" __global__ void __launch_bounds__(256) bitonic_pad_8(const uint32_t* keys, const uint32_t* values, uint64_t* words, uint64_t n) {
    const uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    words[i] = i < n ? uint64_t(keys[i]) << 32 | values[i] : ~uint64_t(0);
}
extern "C" __global__ void __launch_bounds__(256) bitonic_unpad_4(const uint32_t* words, uint32_t* keys, uint32_t*, uint64_t n) {
    const uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) keys[i] = words[i];
}
extern "C" __global__ void __launch_bounds__(256) bitonic_unpad_8(const uint64_t* words, uint32_t* keys, uint32_t* values, uint64_t n) {
    const uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    keys[i] = uint32_t(words[i] >> 32);
    values[i] = uint32_t(words[i]);
}

#define BITONIC(BYTES, WORD)                                                                                                   \
    extern "C" __global__ void __launch_bounds__(BITONIC_THREADS) bitonic_tile_##BYTES(WORD* words, uint64_t size, uint64_t last) { \
        bitonic_tile(words, size, last);                                                                                       \
    }                                                                                                                          \
    extern "C" __global__ void __launch_bounds__(256) bitonic_step_##BYTES(WORD* words, uint64_t size, uint64_t distance) {     \
        bitonic_step(words, size, distance);                                                                                   \
    }
BITONIC(4, uint32_t)
BITONIC(8, uint64_t)
