// What the kernels of onesweep.cu share with the host and with each other. Included with KEY_BITS and OFFSET_BITS defined.
#pragma once

#include "../common/layout.cuh"
#include "../common/warp.cuh"
#include "../common/radix_key.cuh"
#include "adaptive.cuh"
#include "onesweep_digit.cuh"
#include "outcome.cuh"

using namespace radsweep;

#if OFFSET_BITS == 32
using Offset = uint32_t;
#elif OFFSET_BITS == 64
using Offset = uint64_t;
#else
#error "OFFSET_BITS must be 32 or 64"
#endif

namespace {

constexpr uint32_t ARRAYS = 3;         // sorted side by side, at most
constexpr uint32_t MAX_PASSES = KEY_BITS / 8;

// ---- What the host passes, and what stays in the scratch memory. The host's copies: crates/gpusort/src/cuda/onesweep/layout.rs. ----

enum Buffer : uint32_t { INPUT, OUTPUT, TEMP };

constexpr uint32_t IN_PLACE = 1;       // Args::flags: input and output are one buffer
constexpr uint32_t DROP_KEYS = 2;      // Args::flags: the sorted keys are not wanted
constexpr uint32_t NEARLY_SORTED = 4;  // Args::flags: a kernel of adaptive.cu ran before
constexpr uint32_t CLEARED = 8;        // Args::flags: the host has set header, bins and look-back words to 0

struct Args {
    Key* keys[ARRAYS][3];              // by Buffer
    void* values[ARRAYS][3];           // by Buffer; a null input means 0, 1, 2, ...
    uint64_t stride;                   // bytes of the next four of one array, which lie one behind the other
    struct Header* header;
    Offset* bins;                      // [pass][digit]: counts, then where the digit's keys begin
    Offset* own;                       // [tile][digit]: the keys of each tile
    Offset* groups;                    // [group][digit]: the look-back words
    const uint64_t* device_count;      // null, or where the number of keys stands, at most n
    uint64_t n;
    KeyOrder order;
    KeyOrder order_again;              // the same; see Pass::rank
    uint32_t flags;
    uint32_t minus_one;                // 0xffffffff, see match_digit
    uint32_t stall_tile;               // for tests: this tile waits, before publishing its counts and again before its sums
    uint32_t stall_cycles;
};
ASSERT_LAYOUT(Args, 296,
    AT(keys, 0) AT(values, 72) AT(stride, 144) AT(header, 152) AT(bins, 160) AT(own, 168) AT(groups, 176) AT(device_count, 184)
    AT(n, 192) AT(order, 200) AT(order_again, 240) AT(flags, 280) AT(minus_one, 284) AT(stall_tile, 288) AT(stall_cycles, 292));

// PassState bits.
constexpr uint32_t RUN = 1, COPY = 2, LAST = 4, TURNED = 8;
constexpr uint32_t SOURCE_SHIFT = 8, TARGET_SHIFT = 12;

struct Header {
    Outcome outcome;
    uint32_t unsorted;                 // 1: some key is less than the one before
    uint32_t finished;                 // blocks of the histogram kernel that ended
    uint32_t copy_back;                // 1: the result is in the temporary buffer
    uint32_t unused;
    uint32_t next_tile[8];             // by pass
    uint32_t state[8];                 // by pass
};
ASSERT_LAYOUT(Header, 112,
    AT(outcome, 0) AT(unsorted, 32) AT(finished, 36) AT(copy_back, 40) AT(unused, 44) AT(next_tile, 48) AT(state, 80));

__device__ __forceinline__ uint64_t key_count(const Args& args) {
    if (args.device_count == nullptr) return args.n;
    const uint64_t count = *args.device_count;
    return count < args.n ? count : args.n;
}

// Of the array that this block works for: header, bins or look-back words, given the first array's.
template <class T>
__device__ __forceinline__ T* of_array(const Args& args, T* first) {
    return reinterpret_cast<T*>(reinterpret_cast<char*>(first) + blockIdx.y * args.stride);
}

}  // namespace
