// Digits of keys that stay in their own bits in memory. Included with KEY_BITS defined as 32 or 64.
//
// A key's ordered bits are  key ^ (flip ^ (sign(key) & fold)),  where sign(key) is all ones for a
// set top bit:
//   unsigned   flip 0         fold 0
//   signed     flip 100..0    fold 0
//   float      flip 100..0    fold 011..1     after -0.0 is read as +0.0
// and a descending order complements `flip`. Both are kernel parameters, so one kernel serves all
// integers in both orders.
#pragma once

#include "common/layout.cuh"
#include "common/types.cuh"

namespace radsweep {

#if KEY_BITS == 32
using Key = u32;
using SignedKey = i32;
#elif KEY_BITS == 64
using Key = u64;
using SignedKey = i64;
#else
#error "KEY_BITS must be 32 or 64"
#endif

// The map from a key to its ordered bits.
template <bool FLOAT>
struct Ordering {
    Key flip, fold;

    DEVICE Key operator()(Key key) const {
        if (!FLOAT) return key ^ flip;
        if (key == Key(~fold)) key = 0;  // -0.0, only its sign bit set, equals +0.0
        return key ^ (flip ^ (Key(SignedKey(key) >> (KEY_BITS - 1)) & fold));
    }
    // Returns the key of ordered bits.
    DEVICE Key key_of(Key ordered) const {
        const Key key = ordered ^ flip;
        return key ^ (Key(SignedKey(key) >> (KEY_BITS - 1)) & fold);
    }
};

// How a sort orders its keys, as the host passes it (crates/gpusort/src/cuda/order.rs).
struct KeyOrder {
    u64 flip, fold;
    u32 begin, end;  // the bit window
    u64 window;      // the ordered bits that count
    u64 padding;     // a key whose ordered bits are all ones
};
ASSERT_LAYOUT(KeyOrder, 40,
    AT(flip, 0) AT(fold, 8) AT(begin, 16) AT(end, 20) AT(window, 24) AT(padding, 32));

template <bool FLOAT>
DEVICE Ordering<FLOAT> ordering_of(const KeyOrder& order) {
    return {Key(order.flip), Key(order.fold)};
}

// Maps a key to what it is compared by: its ordered bits within the window.
template <bool FLOAT>
struct Compared {
    Ordering<FLOAT> ordering;
    Key window;

    DEVICE explicit Compared(const KeyOrder& order)
        : ordering(ordering_of<FLOAT>(order)), window(Key(order.window)) {}
    DEVICE Key operator()(Key key) const { return ordering(key) & window; }
};

// One digit of a key's ordered bits.
template <bool FLOAT>
struct Digit {
    Ordering<FLOAT> ordering;
    u32 shift, mask, flip;

    DEVICE Digit(Ordering<FLOAT> ordering, u32 shift, u32 mask)
        : ordering(ordering), shift(shift), mask(mask), flip(u32(ordering.flip >> shift)) {
        // Otherwise the compiler turns `key >> shift ^ flip` back into a flip before the shift.
        asm("" : "+r"(flip));
    }

    DEVICE u32 operator()(Key key) const {
        if (FLOAT) return u32(ordering(key) >> shift) & mask;
        return (u32(key >> shift) ^ flip) & mask;  // shift, then one three-input logic instruction
    }
};

// Digits of BITS bits, from the lowest of the window up; the last one may have fewer.
template <u32 BITS>
DEVICE u32 pass_count(const KeyOrder& order) {
    return (order.end - order.begin + BITS - 1) / BITS;
}
// Returns the digits that have some of these ordered bits, a bit each.
template <u32 BITS>
DEVICE u32 digits_with(const KeyOrder& order, Key bits) {
    u32 digits = 0;
    for (u32 pass = 0; pass < pass_count<BITS>(order); pass++) {
        if (u32(bits >> (order.begin + BITS * pass)) & ((1u << BITS) - 1)) digits |= 1u << pass;
    }
    return digits;
}
template <u32 BITS, bool FLOAT>
DEVICE Digit<FLOAT> digit_of(const KeyOrder& order, u32 pass) {
    const u32 shift = order.begin + BITS * pass, bits = order.end - shift;
    return Digit<FLOAT>(
        ordering_of<FLOAT>(order), shift, bits < BITS ? (1u << bits) - 1 : (1u << BITS) - 1);
}

}  // namespace radsweep
