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
    static constexpr bool ONE_RUN = true;  // see Finish::for_runs
    Key* keys[3];                          // by Buffer
    void* values[3];                       // by Buffer; a null input means 0, 1, 2, ...
    u64 control_bytes;                     // of the next four, which lie one behind the other
    struct Header* header;
    Offset* bins;             // [pass][digit]: counts, then where the digit's keys begin
    Offset* own;              // [tile][digit]: the keys of each tile
    Offset* groups;           // [group][digit]: the look-back words
    const u64* device_count;  // null, or the address of the number of keys, at most n
    u64 n;
    KeyOrder order;
    KeyOrder order_again;  // the same; see Pass::rank
    u32 flags;
    u32 minus_one;     // 0xffffffff, see match_digit
    u32 finish_keys;   // that a block of onesweep_finish.cuh sorts; 0: it is not launched
    u32 segment_bits;  // 0, or the highest bits of the window that divide keys into segments
    u32 stall_tile;    // for tests: this tile waits before its counts and before its sums
    u32 stall_cycles;
    Offset* segments;  // sampled keys of each, set to 0 by the host; then where each begins
    u32 sample;        // one key of so many is sampled, a power of two
    u32 padding;
};
ASSERT_LAYOUT(Args, 224,
    AT(keys, 0) AT(values, 24) AT(control_bytes, 48) AT(header, 56) AT(bins, 64) AT(own, 72)
    AT(groups, 80) AT(device_count, 88) AT(n, 96) AT(order, 104) AT(order_again, 144) AT(flags, 184)
    AT(minus_one, 188) AT(finish_keys, 192) AT(segment_bits, 196) AT(stall_tile, 200)
    AT(stall_cycles, 204) AT(segments, 208) AT(sample, 216) AT(padding, 220));

// PassState bits.
constexpr u32 RUN = 1, COPY = 2, LAST = 4, TURNED = 8;
constexpr u32 SOURCE_SHIFT = 8, TARGET_SHIFT = 12;

// Bits of Header::finish: the digits that are left, a bit each; the highest digit, by which keys
// are in order then; that there is work; that keys are in order by Args::segment_bits instead; and
// that they are in the output.
constexpr u32 LOWER = 255, TOP_SHIFT = 8, FINISH = 1u << 16, SEGMENTS = 1u << 17,
              IN_OUTPUT = 1u << 18;

// Header::copy_back.
constexpr u32 COPY_BACK = 1, IF_TOO_LARGE = 2;

struct Header {
    Outcome outcome;
    u32 unsorted;      // 1: some key is less than the one before
    u32 finished;      // blocks of the histogram kernel that ended
    u32 copy_back;     // COPY_BACK: the result is in the temporary buffer
    u32 finish;        // 0, or how onesweep_finish.cuh ends the sort, as above
    u32 next_tile[8];  // for each digit
    u32 state[8];
    u32 too_large;  // 1: some segment has more keys than a block sorts, so all passes run
    u32 padding[3];
};
ASSERT_LAYOUT(Header, 128,
    AT(outcome, 0) AT(unsorted, 32) AT(finished, 36) AT(copy_back, 40) AT(finish, 44)
    AT(next_tile, 48) AT(state, 80) AT(too_large, 112) AT(padding, 116));
static_assert(sizeof(Header) <= adaptive::STATE_AT, "before that of adaptive.cu");

// The two passes before segments have a header of their own, at this distance: those by each digit
// may follow, by the same digits. It is their `Args::header`, so that all passes find tile and
// state alike.
constexpr u32 NEXT_HEADER = 256;
DEVICE Header& two_passes(const Args& args) {
    return *reinterpret_cast<Header*>(reinterpret_cast<char*>(args.header) + NEXT_HEADER);
}

// The highest bits of the window are a key's segment: where they begin in an ordered key.
DEVICE u32 segment_shift(const Args& args) { return args.order.end - args.segment_bits; }

// Returns the segment of an ordered key.
DEVICE u32 segment_of(const Args& args, Key ordered) {
    return u32(ordered >> segment_shift(args)) & ((1u << args.segment_bits) - 1);
}

}  // namespace radsweep::onesweep
