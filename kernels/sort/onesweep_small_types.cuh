// What the kernels of onesweep_small.cu share with the host, and how they divide keys among bins.
// Included with KEY_BITS defined.
#pragma once

#include "block/exchange.cuh"
#include "block/scan.cuh"
#include "common/layout.cuh"
#include "common/radix_key.cuh"
#include "common/sort_args.cuh"
#include "outcome.cuh"

namespace radsweep::onesweep_small {

constexpr u32 BITS = 8, DIGITS = 1 << BITS, MAX_THREADS = 512;
constexpr u32 GROUP = DIGITS / WARP;  // warps with a thread for each digit

// ---- Shared with the host: crates/gpusort/src/cuda/onesweep/small.rs ----

struct Buffers {
    Key* keys_in;
    Key* keys_out;    // may be the input
    Key* keys_temp;   // of a grid
    void* values_in;  // null means 0, 1, 2, ...
    void* values_out;
    void* values_temp;
};
ASSERT_LAYOUT(Buffers, 48,
    AT(keys_in, 0) AT(keys_out, 8) AT(keys_temp, 16) AT(values_in, 24) AT(values_out, 32)
    AT(values_temp, 40));

struct Args {
    Buffers buffers;
    char* scratch;            // Header, then [block] Seen, then [2][block][digit] counts of 16 bits
    const u64* device_count;  // null, or the address of the number of keys, at most n
    KeyOrder order;
    u32 n;
    u32 rows;       // keys of a thread in a tile
    u32 capacity;   // capacity of a block in keys
    u32 minus_one;  // 0xffffffff, see match_digit
    u32 flags;
    u32 unused;
};
ASSERT_LAYOUT(Args, 128,
    AT(buffers, 0) AT(scratch, 48) AT(device_count, 56) AT(order, 64) AT(n, 104) AT(rows, 108)
    AT(capacity, 112) AT(minus_one, 116) AT(flags, 120) AT(unused, 124));

struct Header {
    Outcome outcome;
    // Blocks, over the barriers after the first; alone in its line.
    alignas(128) u32 arrived;
};

// What one block has seen of the keys.
struct Seen {
    Key differing;  // ordered bits in which some key differs from the first
    Key highest;    // in ordered bits
    Key lowest;     // its complement
    Key descents;   // keys that are less than the one before
};

constexpr u32 HEADER_BYTES = 256;
static_assert(
    sizeof(Header) == HEADER_BYTES && sizeof(Seen) == 4 * sizeof(Key), "as the host counts");

#if KEY_BITS == 32
DEVICE float float_of(Key key) { return __uint_as_float(key); }
#else
DEVICE double float_of(Key key) { return __longlong_as_double(i64(key)); }
#endif

// A word of counts: two digits, each 15 bits under the turn of its pass.
constexpr u32 TURN = 0x80008000u;
constexpr u32 WORDS = DIGITS / 2;
constexpr u32 AT_ONCE = 4;  // tiles whose counts a warp reads at once

// Maps a key to one of 256 bins: those of a digit, or equal parts of the range of all keys.
template <bool FLOAT>
struct Bins {
    Digit<FLOAT> digit;
    bool parts;
    Key window, lowest;  // in ordered bits; of floats the lowest key itself
    float scale, last_part;

    // Divides the range from the lowest to the highest key, both as compared, into as many parts as
    // are a multiple of the blocks. Returns false where floating point cannot tell them apart.
    DEVICE bool divide(Key low, Key high) {
        float range;
        if (FLOAT) {
            if (Key(~window) != 0) return false;  // parts of a float have no order
            lowest = digit.ordering.key_of(low);
            range = float(float_of(digit.ordering.key_of(high)) - float_of(lowest));
        } else {
            lowest = low;
            range = float(Key(high - low));
        }
        last_part = float(DIGITS / gridDim.x * gridDim.x - 1);
        scale = (last_part + 1) / range;
        return fabsf(range) < 1e38f && fabsf(scale) < 1e38f;
    }

    // Monotone in the order of the keys, rounding included.
    DEVICE u32 part(Key key) const {
        const float distance = FLOAT ? float(float_of(key) - float_of(lowest))
                                     : float(Key((digit.ordering(key) & window) - lowest));
        return u32(fminf(
            distance * scale, last_part));  // padding is NaN or beyond the highest: in the last
    }
    DEVICE u32 operator()(Key key) const { return parts ? part(key) : digit(key); }
    DEVICE u32 last() const { return parts ? u32(last_part) : digit.mask; }
};

}  // namespace radsweep::onesweep_small
