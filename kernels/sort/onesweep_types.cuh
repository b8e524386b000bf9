// What the kernels of onesweep.cu share with the host and with each other. Included with KEY_BITS
// and OFFSET_BITS defined.
#pragma once

#include "adaptive.cuh"
#include "block/exchange.cuh"
#include "block/scan.cuh"
#include "common/layout.cuh"
#include "common/radix_key.cuh"
#include "common/sort_args.cuh"
#include "outcome.cuh"

namespace radsweep::onesweep {

constexpr u32 BITS = 8, DIGITS = 1 << BITS;
constexpr u32 MAX_PASSES = KEY_BITS / BITS;

#if OFFSET_BITS == 32
using Offset = u32;
#elif OFFSET_BITS == 64
using Offset = u64;
#else
#error "OFFSET_BITS must be 32 or 64"
#endif

// ---- Shared with the host: crates/gpusort/src/cuda/onesweep/layout.rs ----

constexpr u32 NEARLY_SORTED = 4;  // Args::flags: a kernel of adaptive.cu ran before
constexpr u32 CLEARED = 8;  // Args::flags: the host has set header, bins and look-back words to 0

struct Args {
    Key* keys[3];       // by Buffer
    void* values[3];    // by Buffer; a null input means 0, 1, 2, ...
    u64 control_bytes;  // of the next four, which lie one behind the other
    struct Header* header;
    Offset* bins;             // [pass][digit]: counts, then where the digit's keys begin
    Offset* own;              // [tile][digit]: the keys of each tile
    Offset* groups;           // [group][digit]: the look-back words
    const u64* device_count;  // null, or the address of the number of keys, at most n
    u64 n;
    KeyOrder order;
    KeyOrder order_again;  // the same; see Pass::rank
    u32 flags;
    u32 minus_one;    // 0xffffffff, see match_digit
    u32 finish_keys;  // that a block of onesweep_finish.cuh sorts; 0: it is not launched
    u32 unused;
    u32 stall_tile;  // for tests: this tile waits before its counts and before its sums
    u32 stall_cycles;
};
ASSERT_LAYOUT(Args, 208,
    AT(keys, 0) AT(values, 24) AT(control_bytes, 48) AT(header, 56) AT(bins, 64) AT(own, 72)
    AT(groups, 80) AT(device_count, 88) AT(n, 96) AT(order, 104) AT(order_again, 144) AT(flags, 184)
    AT(minus_one, 188) AT(finish_keys, 192) AT(unused, 196) AT(stall_tile, 200) AT(stall_cycles, 204));

// PassState bits.
constexpr u32 RUN = 1, COPY = 2, LAST = 4, TURNED = 8;
constexpr u32 SOURCE_SHIFT = 8, TARGET_SHIFT = 12;

// Bits of Header::finish: the digits that are left, a bit each; the highest digit, by which keys
// are in order then; and that there is work.
constexpr u32 LOWER = 255, TOP_SHIFT = 8, FINISH = 1u << 16;

struct Header {
    Outcome outcome;
    u32 unsorted;      // 1: some key is less than the one before
    u32 finished;      // blocks of the histogram kernel that ended
    u32 copy_back;     // 1: the result is in the temporary buffer
    u32 finish;        // 0, or how onesweep_finish.cuh ends the sort, as below
    u32 next_tile[8];  // by pass
    u32 state[8];      // by pass
};
ASSERT_LAYOUT(Header, 112,
    AT(outcome, 0) AT(unsorted, 32) AT(finished, 36) AT(copy_back, 40) AT(finish, 44)
    AT(next_tile, 48) AT(state, 80));

}  // namespace radsweep::onesweep
