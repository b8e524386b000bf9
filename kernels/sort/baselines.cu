// Sorts that the papers compare theirs with, for keys of 32 bits. For the bench of the papers
// alone: simple and complete, not tuned.
//
//   split     radix sort by one bit at a time (the CUDPP sort of Ha, Krüger, Silva 2009, section
//             5): ha_radix.cuh with two digits, 32 passes
//   radix16   4-bit digits without the local sort (Le Grand 2007, as compared with there): each key
//             is written from registers to wherever it goes
//   bitonic   Batcher's network over the whole array, padded to a power of two; pairs are words of
//             64 bits, the key on top
//
// 2^20 keys by radix16: count 6.2 us, scan 3.6, scatter 10.3 a pass, where bytes take 1 to 2. With
// 256 blocks they wait for launches and for memory.

#include "ha_radix.cuh"

namespace radsweep::baselines {

namespace ha = ha_radix;

// ---- One bit at a time. The shapes: crates/gpusort/src/cuda/ha_radix/tuning.rs ----

extern "C" __global__ void __launch_bounds__(256) ha_start_integer(const ha::Args args) {
    ha::start<false>(args);
}

#define SPLIT(VALUE_BYTES, BLOCKS)                                                                 \
    extern "C" __global__ void                                                                     \
        __launch_bounds__(256, BLOCKS) ha_sort_1_integer_##VALUE_BYTES##_256x16(                   \
            const ha::Args args, const u32 first, const u32 end) {                                 \
        ha::sort<1, false, VALUE_BYTES, 256, 16>(args, first, end);                                \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(256) ha_copy_##VALUE_BYTES(const ha::Args args) { \
        ha::copy<VALUE_BYTES>(args);                                                               \
    }
SPLIT(0, 4)
SPLIT(4, 3)

// ---- Radix 16 ----

constexpr u32 DIGITS = 16, THREADS = 256, WARPS = THREADS / WARP, ITEMS = 8, TILE = THREADS * ITEMS;

DEVICE u32 digit(u32 key, u32 shift) { return key >> shift & (DIGITS - 1); }

// Counts, for each warp, its keys of each digit. Rows of a warp are consecutive.
DEVICE void count_digits(const u32* keys, u32 n, u32 shift, u32 (&counts)[WARPS][DIGITS]) {
    const u32 warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (threadIdx.x < WARPS * DIGITS) counts[threadIdx.x / DIGITS][threadIdx.x % DIGITS] = 0;
    __syncthreads();
    const u64 first = u64(blockIdx.x) * TILE + warp * WARP * ITEMS + lane;
    for (u32 i = 0; i < ITEMS; i++) {
        if (first + i * WARP < n) atomicAdd(&counts[warp][digit(keys[first + i * WARP], shift)], 1);
    }
    __syncthreads();
}

// Writes the block's counts to the block-sum array, [digit][block].
extern "C" __global__ void __launch_bounds__(256) radix16_count(
    const u32* keys, u32 n, u32 shift, u32* sums) {
    __shared__ u32 counts[WARPS][DIGITS];
    count_digits(keys, n, shift, counts);
    if (threadIdx.x >= DIGITS) return;
    u32 sum = 0;
    for (u32 w = 0; w < WARPS; w++) sum += counts[w][threadIdx.x];
    sums[threadIdx.x * gridDim.x + blockIdx.x] = sum;
}

// Exclusive prefix sum over the array, by one block of 1024 threads.
extern "C" __global__ void __launch_bounds__(1024) radix16_scan(u32* sums, u32 count) {
    __shared__ u32 warps[WARP];
    u32 before = 0;
    for (u32 first = 0; first < count; first += 4096) {
        const u32 at = first + threadIdx.x * 4;
        u32 values[4], sum = 0;
        for (u32 i = 0; i < 4; i++) sum += values[i] = at + i < count ? sums[at + i] : 0;
        u32 total, exclusive = before + block_exclusive_sum<WARP>(sum, warps, total);
        before += total;
        for (u32 i = 0; i < 4; i++) {
            if (at + i < count) sums[at + i] = exclusive;
            exclusive += values[i];
        }
        __syncthreads();
    }
}

// `values_out` may be null: keys alone.
extern "C" __global__ void __launch_bounds__(256) radix16_scatter(
    const u32* keys, const u32* values, u32* keys_out, u32* values_out, u32 n, u32 shift,
    const u32* sums, u32 minus_one) {
    __shared__ u32 counts[WARPS][DIGITS];
    const u32 warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, up_to_me = lane_mask_le();
    count_digits(keys, n, shift, counts);
    if (threadIdx.x < DIGITS) {
        u32 next = sums[threadIdx.x * gridDim.x + blockIdx.x];
        for (u32 w = 0; w < WARPS; w++) {
            const u32 count = counts[w][threadIdx.x];
            counts[w][threadIdx.x] = next;
            next += count;
        }
    }
    __syncthreads();
    const u64 first = u64(blockIdx.x) * TILE + warp * WARP * ITEMS + lane;
    for (u32 i = 0; i < ITEMS; i++) {
        const u64 at = first + i * WARP;
        const u32 key = at < n ? keys[at] : 0;
        const u32 d = at < n ? digit(key, shift)
                             : DIGITS;  // a digit of their own for the lanes behind the end
        const u32 peers = match_digit(d, minus_one);
        u32 to = 0;
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

constexpr u32 BITONIC_TILE = 2048, BITONIC_THREADS = BITONIC_TILE / 2;

template <class Word>
DEVICE void exchange(Word& low, Word& high, bool ascending) {
    if (low > high == ascending) {
        const Word word = low;
        low = high;
        high = word;
    }
}

// Does the steps of stage `size` with distances from `distance` down to 1, on the tile of a block.
// Pair p has the indices i and i + distance.
template <class Word>
DEVICE void tile_steps(Word* tile, u64 first, u64 size, u32 distance) {
    for (; distance != 0; distance /= 2) {
        __syncthreads();
        const u32 i = 2 * threadIdx.x - (threadIdx.x & (distance - 1));
        exchange(tile[i], tile[i + distance], ((first + i) & size) == 0);
    }
}

// Does all stages from `size` up to `last`, within tiles.
template <class Word>
DEVICE void bitonic_tile(Word* words, u64 size, u64 last) {
    extern __shared__ uint4 shared_memory[];
    Word* const tile = reinterpret_cast<Word*>(shared_memory);
    const u64 first = u64(blockIdx.x) * BITONIC_TILE;
    for (u32 i = threadIdx.x; i < BITONIC_TILE; i += BITONIC_THREADS) tile[i] = words[first + i];
    for (; size <= last; size *= 2)
        tile_steps(tile, first, size, u32(size < BITONIC_TILE ? size : BITONIC_TILE) / 2);
    __syncthreads();
    for (u32 i = threadIdx.x; i < BITONIC_TILE; i += BITONIC_THREADS) words[first + i] = tile[i];
}

template <class Word>
DEVICE void bitonic_step(Word* words, u64 size, u64 distance) {
    const u64 pair = u64(blockIdx.x) * blockDim.x + threadIdx.x,
              i = 2 * pair - (pair & (distance - 1));
    exchange(words[i], words[i + distance], (i & size) == 0);
}

// One thread a word of the padded array.
extern "C" __global__ void __launch_bounds__(256) bitonic_pad_4(
    const u32* keys, const u32*, u32* words, u64 n) {
    const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    words[i] = i < n ? keys[i] : ~0u;
}
extern "C" __global__ void __launch_bounds__(256) bitonic_pad_8(
    const u32* keys, const u32* values, u64* words, u64 n) {
    const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    words[i] = i < n ? u64(keys[i]) << 32 | values[i] : ~u64(0);
}
extern "C" __global__ void __launch_bounds__(256) bitonic_unpad_4(
    const u32* words, u32* keys, u32*, u64 n) {
    const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) keys[i] = words[i];
}
extern "C" __global__ void __launch_bounds__(256) bitonic_unpad_8(
    const u64* words, u32* keys, u32* values, u64 n) {
    const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    keys[i] = u32(words[i] >> 32);
    values[i] = u32(words[i]);
}

#define BITONIC(BYTES, WORD)                                                                       \
    extern "C" __global__ void                                                                     \
        __launch_bounds__(BITONIC_THREADS) bitonic_tile_##BYTES(WORD* words, u64 size, u64 last) { \
        bitonic_tile(words, size, last);                                                           \
    }                                                                                              \
    extern "C" __global__ void                                                                     \
        __launch_bounds__(256) bitonic_step_##BYTES(WORD* words, u64 size, u64 distance) {         \
        bitonic_step(words, size, distance);                                                       \
    }
BITONIC(4, u32)
BITONIC(8, u64)

}  // namespace radsweep::baselines
