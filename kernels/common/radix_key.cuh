// Digits of keys that stay in their own bits in memory. Included with KEY_BITS defined as 32 or 64.
//
// A key's ordered bits are  key ^ (flip ^ (sign(key) & fold)),  where sign(key) is all ones for a set top bit:
//   unsigned   flip 0         fold 0
//   signed     flip 100..0    fold 0
//   float      flip 100..0    fold 011..1     after -0.0 is read as +0.0
// and a descending order complements `flip`. Both are kernel parameters, so one kernel serves the integers, both orders.
#pragma once

#include "layout.cuh"

#include <stdint.h>

namespace radsweep {

#if KEY_BITS == 32
using Key = uint32_t;
using SignedKey = int32_t;
#elif KEY_BITS == 64
using Key = uint64_t;
using SignedKey = int64_t;
#else
#error "KEY_BITS must be 32 or 64"
#endif

// The map from a key to its ordered bits.
template <bool FLOAT>
struct Ordering {
    Key flip, fold;

    __device__ __forceinline__ Key operator()(Key key) const {
        if (!FLOAT) return key ^ flip;
        if (key == Key(~fold)) key = 0;  // -0.0, only its sign bit set, equals +0.0
        return key ^ (flip ^ (Key(SignedKey(key) >> (KEY_BITS - 1)) & fold));
    }
    // The key of ordered bits.
    __device__ __forceinline__ Key key_of(Key ordered) const {
        const Key key = ordered ^ flip;
        return key ^ (Key(SignedKey(key) >> (KEY_BITS - 1)) & fold);
    }
};

// How a sort orders its keys, as the host passes it (crates/gpusort/src/cuda/order.rs).
struct KeyOrder {
    uint64_t flip, fold;
    uint32_t begin, end;  // the bit window
    uint64_t window;      // the ordered bits that count
    uint64_t padding;     // a key whose ordered bits are all ones
};
ASSERT_LAYOUT(KeyOrder, 40, AT(flip, 0) AT(fold, 8) AT(begin, 16) AT(end, 20) AT(window, 24) AT(padding, 32));

template <bool FLOAT>
__device__ __forceinline__ Ordering<FLOAT> ordering_of(const KeyOrder& order) {
    return {Key(order.flip), Key(order.fold)};
}

// One digit of a key's ordered bits.
template <bool FLOAT>
struct Digit {
    Ordering<FLOAT> ordering;
    uint32_t shift, mask, flip;

    __device__ __forceinline__ Digit(Ordering<FLOAT> ordering, uint32_t shift, uint32_t mask)
        : ordering(ordering), shift(shift), mask(mask), flip(uint32_t(ordering.flip >> shift)) {
        asm("" : "+r"(flip));  // or the compiler turns `key >> shift ^ flip` back into a flip before the shift
    }

    __device__ __forceinline__ uint32_t operator()(Key key) const {
        if (FLOAT) return uint32_t(ordering(key) >> shift) & mask;
        return (uint32_t(key >> shift) ^ flip) & mask;  // shift, then one three-input logic instruction
    }
};

}  // namespace radsweep
