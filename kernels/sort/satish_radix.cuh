// What the kernels of satish_radix.cu share: what the host passes, and the sort of a tile by one
// digit. Included by it alone.
#pragma once

#include "block/load.cuh"
#include "block/scan.cuh"
#include "common/layout.cuh"
#include "common/radix_key.cuh"
#include "common/sort_args.cuh"
#include "outcome.cuh"

namespace radsweep::satish_radix {

constexpr u32 BITS = 4, DIGITS = 1 << BITS;

// ---- Shared with the host: crates/gpusort/src/cuda/satish_radix/ ----

constexpr u32 SCANNED = 4;  // Args::flags: the scan kernel runs between tile and scatter

struct Header {
    Outcome outcome;
    u64 varying;  // bits of the window in which keys differ; known from the end of pass 0 on
};
ASSERT_LAYOUT(Header, 40, AT(outcome, 0) AT(varying, 32));

struct Args {
    Key* keys[3];     // by Buffer; TEMP's capacity is full tiles
    void* values[3];  // by Buffer; a null input means 0, 1, 2, ...
    Header* header;
    // [digit][tile]: counts, or sums over the tiles before; then of all.
    u32* table;
    Key* varying;             // [tile]: bits in which its keys differ from the first key of all
    const u64* device_count;  // null, or the address of the number of keys, at most n
    u64 n;
    KeyOrder order;
    u32 stride;  // words of a row of the table: a multiple of SCAN_ITEMS above the tiles
    u32 flags;
};
ASSERT_LAYOUT(Args, 136,
    AT(keys, 0) AT(values, 24) AT(header, 48) AT(table, 56) AT(varying, 64) AT(device_count, 72)
    AT(n, 80) AT(order, 88) AT(stride, 128) AT(flags, 132));

DEVICE u32 shift_of(const KeyOrder& order, u32 pass) { return order.begin + BITS * pass; }

// What the varying bits determine of a pass.
struct Plan {
    u64 varying;
    u32 shift;

    DEVICE bool runs() const { return varying >> shift & (DIGITS - 1); }
    DEVICE bool moved_before() const { return varying & ((u64(1) << shift) - 1); }
    DEVICE bool last() const { return varying >> shift >> BITS == 0; }
};

// Sum over the digits below this lane's, lane % 16.
DEVICE u32 sum_of_digits_below(u32 count, u32 lane) {
    return warp_inclusive_sum<DIGITS>(count, lane % DIGITS) - count;
}

// ---- Step 1: the sort of a tile by one digit ----

// A warp's keys are rows of 32, one behind the other. Offsets and counts are in bytes of keys, as
// shared memory is addressed.
template <bool FLOAT, u32 THREADS, u32 ITEMS>
struct Split {
    static constexpr u32 WARPS = THREADS / WARP, PER_VECTOR = 8;
    static constexpr u32 VECTORS =
        WARPS / PER_VECTOR | 1;  // an odd stride: no two digits in one bank
    static_assert(WARPS % PER_VECTOR == 0 && THREADS * ITEMS * sizeof(Key) < 65536, "tile shape");

    union Shared {
        u16 counts[DIGITS][VECTORS * PER_VECTOR];  // of a warp
        uint4 vectors[DIGITS][VECTORS];
    };

    // Finds where each key of the first `rows` rows goes in the sorted tile. Returns the tile's
    // keys with the digit lane % 16.
    static DEVICE u32 offsets(
        const Key (&keys)[ITEMS], u32 rows, const Digit<FLOAT>& digit, Shared& shared,
        u32 (&offset)[ITEMS]) {
        const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, below_me = (1u << lane) - 1;
        // The four bits, as values unknown to the compiler: one instruction tests a bit.
        const u32 test0 = digit.mask & 1, test1 = digit.mask & 2, test2 = digit.mask & 4,
                  test3 = digit.mask & 8;
        // Of the lane's own digit: all ones where the bit is 0.
        const u32 not0 = (lane & 1) - 1, not1 = (lane >> 1 & 1) - 1, not2 = (lane >> 2 & 1) - 1,
                  not3 = (lane >> 3 & 1) - 1;

        // `offset` is at first that among the warp's keys of its digit; the digit is above it, in
        // the upper half of the word.
        u32 next = lane % DIGITS << 16;
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            if (i >= rows) break;
            const u32 d = digit(keys[i]);
            // The flags of the four splits, and of them the lanes that have this lane's digit.
            const u32 bit0 = __ballot_sync(ALL_LANES, d & test0),
                      bit1 = __ballot_sync(ALL_LANES, d & test1);
            const u32 bit2 = __ballot_sync(ALL_LANES, d & test2),
                      bit3 = __ballot_sync(ALL_LANES, d & test3);
            const u32 mine = (bit0 ^ not0) & (bit1 ^ not1) & (bit2 ^ not2) & (bit3 ^ not3);
            // The scans: keys of the digit in the rows before, and in the lanes below.
            const u32 peers = __shfl_sync(ALL_LANES, mine, d);
            offset[i] =
                __shfl_sync(ALL_LANES, next, d) + __popc(peers & below_me) * u32(sizeof(Key));
            next += __popc(mine) * u32(sizeof(Key));
        }
        if (lane < DIGITS) shared.counts[lane][warp] = u16(next);
        __syncthreads();

        // Over the warps, two counts in a word.
        u32 all = 0, before = 0;
#pragma unroll
        for (u32 v = 0; v < WARPS / PER_VECTOR; v++) {
            const uint4 vector = shared.vectors[lane % DIGITS][v];
            const u32 words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
            for (u32 w = 0; w < 4; w++) {
                const u32 low = v * PER_VECTOR + 2 * w;  // the warp in the lower half
                all += words[w];
                before += words[w] & (low + 1 < warp ? ~0u : low < warp ? 0xffffu : 0u);
            }
        }
        const u32 total = (all & 0xffff) + (all >> 16);
        const u32 start = sum_of_digits_below(total, lane) + (before & 0xffff) + (before >> 16) -
                          (lane % DIGITS << 16);
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            if (i < rows) offset[i] += __shfl_sync(ALL_LANES, start, offset[i] >> 16);
        }
        return total / u32(sizeof(Key));
    }
};

// Returns the element of `to` at the offset of its key.
template <class T>
DEVICE T& at_offset(void* to, u32 offset) {
    return *reinterpret_cast<T*>(
        static_cast<char*>(to) + offset / u32(sizeof(Key)) * u32(sizeof(T)));
}

}  // namespace radsweep::satish_radix
