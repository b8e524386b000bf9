// The types that all kernels share.
#pragma once

// A function of the device that becomes a part of its callers.
#define DEVICE __device__ __forceinline__

namespace radsweep {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
using i64 = long long;

// The type of a value of that many bytes. Keys alone have 0; their values are never read or
// written.
template <u32 BYTES>
struct ValueOf {
    using Type = u32;
};
template <>
struct ValueOf<8> {
    using Type = u64;
};

}  // namespace radsweep
