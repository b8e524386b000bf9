// What the kernels of onesweep_small.cu share with the host, and how they divide keys among bins. Included with KEY_BITS defined.
#pragma once

#include "../common/layout.cuh"
#include "../common/warp.cuh"
#include "../common/radix_key.cuh"
#include "adaptive_window.cuh"
#include "onesweep_digit.cuh"
#include "outcome.cuh"

using namespace radsweep;

namespace {

constexpr uint32_t ARRAYS = 3, MAX_THREADS = 512;
constexpr uint32_t GROUP = DIGITS / WARP;  // warps with a thread for each digit

// ---- What the host passes, and what stays in the scratch memory. The host's copies: crates/gpusort/src/cuda/onesweep/small.rs. ----

constexpr uint32_t DROP_KEYS = 2;      // Args::flags: the sorted keys are not wanted
constexpr uint32_t NEARLY_SORTED = 4;  // Args::flags: the input may be nearly sorted; a block has room for a window

struct Buffers {
    Key* keys_in;
    Key* keys_out;                     // may be the input
    Key* keys_temp;                    // of a grid
    void* values_in;                   // null means 0, 1, 2, ...
    void* values_out;
    void* values_temp;
};
ASSERT_LAYOUT(Buffers, 48,
    AT(keys_in, 0) AT(keys_out, 8) AT(keys_temp, 16) AT(values_in, 24) AT(values_out, 32) AT(values_temp, 40));

struct Args {
    Buffers buffers[ARRAYS];
    char* scratch;                     // [array] Header, then [array][block] Seen, then [array][2][block][digit] counts of 16 bits
    const uint64_t* device_count;      // null, or where the number of keys stands, at most n
    WindowRecord* records;             // with NEARLY_SORTED: [array][window]
    KeyOrder order;
    uint32_t n;
    uint32_t rows;                     // keys of a thread in a tile
    uint32_t capacity;                 // keys that a block has room for
    uint32_t minus_one;                // 0xffffffff, see match_digit
    uint32_t flags;
    uint32_t windows;                  // of an array
};
ASSERT_LAYOUT(Args, 232,
    AT(buffers, 0) AT(scratch, 144) AT(device_count, 152) AT(records, 160) AT(order, 168) AT(n, 208) AT(rows, 212)
    AT(capacity, 216) AT(minus_one, 220) AT(flags, 224) AT(windows, 228));

struct Header {
    Outcome outcome;
    alignas(128) uint32_t arrived;     // blocks of the array, over the barriers after the first; alone in its cache line
};

// What keys have in common, as one block has seen.
struct Seen {
    Key differing;                     // ordered bits in which some key differs from the first
    Key highest;                       // in ordered bits
    Key lowest;                        // its complement
    Key descents;                      // keys that are less than the one before
};

constexpr uint32_t HEADER_BYTES = 256;
static_assert(sizeof(Header) == HEADER_BYTES && sizeof(Seen) == 4 * sizeof(Key), "as the host counts");

#if KEY_BITS == 32
using KeyWord = unsigned int;          // as atomics want it
__device__ __forceinline__ float float_of(Key key) { return __uint_as_float(key); }
#else
using KeyWord = unsigned long long;
__device__ __forceinline__ double float_of(Key key) { return __longlong_as_double((long long)key); }
#endif
__device__ __forceinline__ KeyWord* atomic_word(Key* key) { return reinterpret_cast<KeyWord*>(key); }

// A word of counts: two digits, each 15 bits under the turn of its pass.
constexpr uint32_t TURN = 0x80008000u;
constexpr uint32_t WORDS = DIGITS / 2;
constexpr uint32_t AT_ONCE = 4;        // tiles whose counts a warp reads at once

// Which of 256 bins a key belongs to: those of a digit, or equal parts of the range of all keys.
template <bool FLOAT>
struct Bins {
    Digit<FLOAT> digit;
    bool parts;
    Key window, lowest;                // in ordered bits; of floats the lowest key itself
    float scale, last_part;

    // Grows with the order of the keys, whichever way that goes; rounding keeps it so.
    __device__ __forceinline__ uint32_t part(Key key) const {
        const float distance = FLOAT ? float(float_of(key) - float_of(lowest)) : float(Key((digit.ordering(key) & window) - lowest));
        return uint32_t(fminf(distance * scale, last_part));  // padding is NaN or beyond the highest: in the last
    }
    __device__ __forceinline__ uint32_t operator()(Key key) const { return parts ? part(key) : digit(key); }
    __device__ __forceinline__ uint32_t last() const { return parts ? uint32_t(last_part) : digit.mask; }
};

// The block's array, as `Window` asks.
struct Array {
    const Args& args;
    const Buffers& buffers;
    Header& its_header;

    __device__ __forceinline__ uint64_t n() const { return args.n; }
    __device__ __forceinline__ const KeyOrder& order() const { return args.order; }
    __device__ __forceinline__ bool in_place() const { return buffers.keys_in == buffers.keys_out; }
    __device__ __forceinline__ const Key* keys_in() const { return buffers.keys_in; }
    __device__ __forceinline__ Key* keys_out() const { return in_place() ? buffers.keys_temp : buffers.keys_out; }
    __device__ __forceinline__ const void* values_in() const { return buffers.values_in; }
    __device__ __forceinline__ void* values_out() const { return in_place() ? buffers.values_temp : buffers.values_out; }
    __device__ __forceinline__ bool drop_keys() const { return args.flags & DROP_KEYS; }
    __device__ __forceinline__ uint32_t windows() const { return args.windows; }
    __device__ __forceinline__ WindowRecord* records() const { return args.records + blockIdx.y * args.windows; }
    __device__ __forceinline__ char* header() const { return reinterpret_cast<char*>(&its_header); }
};

}  // namespace
