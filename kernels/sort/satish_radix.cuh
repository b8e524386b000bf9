// What the kernels of satish_radix.cu share: what the host passes, and the sort of a tile by one digit. Included by it alone.
#pragma once

#include "../common/layout.cuh"
#include "../common/warp.cuh"
#include "../common/radix_key.cuh"
#include "outcome.cuh"

using namespace radsweep;

namespace {

constexpr uint32_t BITS = 4, DIGITS = 1 << BITS;

// ---- What the host passes, and what stays in the scratch memory. The host's copies: crates/gpusort/src/cuda/satish_radix/. ----

enum Buffer : uint32_t { INPUT, OUTPUT, TEMP };

constexpr uint32_t IN_PLACE = 1;   // Args::flags: input and output are one buffer
constexpr uint32_t DROP_KEYS = 2;  // the sorted keys are not wanted
constexpr uint32_t SCANNED = 4;    // the scan kernel runs between tile and scatter

struct Header {
    Outcome outcome;
    uint64_t varying;              // bits of the window in which keys differ; known from the end of pass 0 on
};
ASSERT_LAYOUT(Header, 40, AT(outcome, 0) AT(varying, 32));

struct Args {
    Key* keys[3];                  // by Buffer; TEMP has room for full tiles
    void* values[3];               // by Buffer; a null input means 0, 1, 2, ...
    Header* header;
    uint32_t* table;               // [digit][tile]: counts; scanned: the sum over the tiles before, and behind the last of all
    Key* varying;                  // [tile]: bits in which its keys differ from the first key of all
    const uint64_t* device_count;  // null, or where the number of keys stands, at most n
    uint64_t n;
    KeyOrder order;
    uint32_t stride;               // words of a row of the table: a multiple of SCAN_ITEMS, greater than the number of tiles
    uint32_t flags;
};
ASSERT_LAYOUT(Args, 136,
    AT(keys, 0) AT(values, 24) AT(header, 48) AT(table, 56) AT(varying, 64) AT(device_count, 72) AT(n, 80) AT(order, 88)
    AT(stride, 128) AT(flags, 132));

__device__ __forceinline__ uint32_t key_count(const Args& args) {
    if (args.device_count == nullptr) return uint32_t(args.n);
    const uint64_t count = *args.device_count;
    return uint32_t(count < args.n ? count : args.n);
}

__device__ __forceinline__ uint32_t pass_count(const KeyOrder& order) { return (order.end - order.begin + BITS - 1) / BITS; }
__device__ __forceinline__ uint32_t shift_of(const KeyOrder& order, uint32_t pass) { return order.begin + BITS * pass; }

template <bool FLOAT>
__device__ __forceinline__ Digit<FLOAT> digit_of(const KeyOrder& order, uint32_t pass) {
    const uint32_t shift = shift_of(order, pass), bits = order.end - shift;
    return Digit<FLOAT>(ordering_of<FLOAT>(order), shift, bits < BITS ? (1u << bits) - 1 : DIGITS - 1);
}

// What the bits that vary say of a pass.
struct Plan {
    uint64_t varying;
    uint32_t shift;

    __device__ __forceinline__ bool runs() const { return varying >> shift & (DIGITS - 1); }
    __device__ __forceinline__ bool moved_before() const { return varying & ((uint64_t(1) << shift) - 1); }
    __device__ __forceinline__ bool last() const { return varying >> shift >> BITS == 0; }
};

template <uint32_t BYTES>
struct ValueOf {
    using Type = uint32_t;
};
template <>
struct ValueOf<8> {
    using Type = uint64_t;
};

template <class T>
__device__ __forceinline__ T warp_or(T bits) {
#pragma unroll
    for (uint32_t step = WARP / 2; step != 0; step /= 2) bits |= __shfl_xor_sync(ALL_LANES, bits, step);
    return bits;
}
__device__ __forceinline__ uint32_t warp_sum(uint32_t sum) {
#pragma unroll
    for (uint32_t step = WARP / 2; step != 0; step /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, step);
    return sum;
}

// Sum over the digits below this lane's, lane % 16.
__device__ __forceinline__ uint32_t sum_of_digits_below(uint32_t count, uint32_t lane) {
    uint32_t sum = count;
#pragma unroll
    for (uint32_t step = 1; step < DIGITS; step *= 2) {
        const uint32_t below = __shfl_up_sync(ALL_LANES, sum, step, DIGITS);
        if (lane % DIGITS >= step) sum += below;
    }
    return sum - count;
}

// ---- Step 1: the sort of a tile by one digit ----

// A warp's keys are rows of 32, one behind the other. Places and counts are in bytes of keys, as shared memory is addressed.
template <bool FLOAT, uint32_t THREADS, uint32_t ITEMS>
struct Split {
    static constexpr uint32_t WARPS = THREADS / WARP, PER_VECTOR = 8;
    static constexpr uint32_t VECTORS = WARPS / PER_VECTOR | 1;  // an odd stride: no two digits in one bank
    static_assert(WARPS % PER_VECTOR == 0 && THREADS * ITEMS * sizeof(Key) < 65536, "tile shape");

    union Shared {
        uint16_t counts[DIGITS][VECTORS * PER_VECTOR];           // of a warp
        uint4 vectors[DIGITS][VECTORS];
    };

    // Finds where each key of the first `rows` rows goes in the sorted tile. Returns the tile's keys with the digit lane % 16.
    __device__ static __forceinline__ uint32_t places(const Key (&keys)[ITEMS], uint32_t rows, const Digit<FLOAT>& digit,
                                                      Shared& shared, uint32_t (&place)[ITEMS]) {
        const uint32_t lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, below_me = (1u << lane) - 1;
        // The four bits, as numbers that the compiler does not know: one instruction tests a bit.
        const uint32_t test0 = digit.mask & 1, test1 = digit.mask & 2, test2 = digit.mask & 4, test3 = digit.mask & 8;
        // Of the lane's own digit: all ones where the bit is 0.
        const uint32_t not0 = (lane & 1) - 1, not1 = (lane >> 1 & 1) - 1, not2 = (lane >> 2 & 1) - 1, not3 = (lane >> 3 & 1) - 1;

        // A place is at first one among the warp's keys of its digit; the digit stands above it, in the upper half of the word.
        uint32_t next = lane % DIGITS << 16;
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            if (i >= rows) break;
            const uint32_t d = digit(keys[i]);
            // The flags of the four splits, and of them the lanes that have this lane's digit.
            const uint32_t bit0 = __ballot_sync(ALL_LANES, d & test0), bit1 = __ballot_sync(ALL_LANES, d & test1);
            const uint32_t bit2 = __ballot_sync(ALL_LANES, d & test2), bit3 = __ballot_sync(ALL_LANES, d & test3);
            const uint32_t mine = (bit0 ^ not0) & (bit1 ^ not1) & (bit2 ^ not2) & (bit3 ^ not3);
            // The scans: keys of the digit in the rows before, and in the lanes below.
            const uint32_t peers = __shfl_sync(ALL_LANES, mine, d);
            place[i] = __shfl_sync(ALL_LANES, next, d) + __popc(peers & below_me) * uint32_t(sizeof(Key));
            next += __popc(mine) * uint32_t(sizeof(Key));
        }
        if (lane < DIGITS) shared.counts[lane][warp] = uint16_t(next);
        __syncthreads();

        // Over the warps, two counts in a word.
        uint32_t all = 0, before = 0;
#pragma unroll
        for (uint32_t v = 0; v < WARPS / PER_VECTOR; v++) {
            const uint4 vector = shared.vectors[lane % DIGITS][v];
            const uint32_t words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
            for (uint32_t w = 0; w < 4; w++) {
                const uint32_t low = v * PER_VECTOR + 2 * w;     // the warp in the lower half
                all += words[w];
                before += words[w] & (low + 1 < warp ? ~0u : low < warp ? 0xffffu : 0u);
            }
        }
        const uint32_t total = (all & 0xffff) + (all >> 16);
        const uint32_t start = sum_of_digits_below(total, lane) + (before & 0xffff) + (before >> 16) - (lane % DIGITS << 16);
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            if (i < rows) place[i] += __shfl_sync(ALL_LANES, start, place[i] >> 16);
        }
        return total / uint32_t(sizeof(Key));
    }
};

// Where an element of `to` lies, from the place of its key.
template <class T>
__device__ __forceinline__ T& at_place(void* to, uint32_t place) {
    return *reinterpret_cast<T*>(static_cast<char*>(to) + place / uint32_t(sizeof(Key)) * uint32_t(sizeof(T)));
}

}  // namespace
