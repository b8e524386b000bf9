// The digits of Onesweep. Included with KEY_BITS defined, after common/radix_key.cuh.
#pragma once

namespace radsweep {

constexpr uint32_t DIGITS = 256;

__device__ __forceinline__ uint32_t pass_count(const KeyOrder& order) { return (order.end - order.begin + 7) / 8; }

template <bool FLOAT>
__device__ __forceinline__ Digit<FLOAT> digit_of(const KeyOrder& order, uint32_t pass) {
    const uint32_t shift = order.begin + 8 * pass, bits = order.end - shift;
    return Digit<FLOAT>(ordering_of<FLOAT>(order), shift, bits < 8 ? (1u << bits) - 1 : 255);
}

template <uint32_t BYTES>
struct ValueOf {
    using Type = uint32_t;
};
template <>
struct ValueOf<8> {
    using Type = uint64_t;
};

}  // namespace radsweep
