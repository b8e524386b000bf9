// Types and vectors that the demo kernels share.
#pragma once

#include "common/layout.cuh"
#include "common/types.cuh"

namespace radsweep::demo {

struct Vector {
    float x, y, z;
};

DEVICE Vector operator+(Vector a, Vector b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
DEVICE Vector operator-(Vector a, Vector b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
DEVICE Vector operator*(Vector a, float b) { return {a.x * b, a.y * b, a.z * b}; }
DEVICE float dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
DEVICE Vector xyz(float4 a) { return {a.x, a.y, a.z}; }
DEVICE float4 with(Vector a, float w) { return make_float4(a.x, a.y, a.z, w); }

// Stores a box of 24 bytes about a center.
DEVICE void store_box(float2* boxes, u32 index, Vector middle, float reach) {
    float2* to = boxes + 3ull * index;
    to[0] = make_float2(middle.x - reach, middle.y - reach);
    to[1] = make_float2(middle.z - reach, middle.x + reach);
    to[2] = make_float2(middle.y + reach, middle.z + reach);
}

DEVICE u32 thread_index() { return blockIdx.x * blockDim.x + threadIdx.x; }

}  // namespace radsweep::demo
