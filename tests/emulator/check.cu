// Kernels with and without mistakes, for `check`.

#include <stdint.h>

extern "C" __global__ void divergent_barrier(uint32_t*) {
    if (threadIdx.x < 40) __syncthreads();
    else __syncwarp();
}
extern "C" __global__ void two_kinds_of_collective(uint32_t* out) {
    if (threadIdx.x % 2) out[threadIdx.x] = __ballot_sync(~0u, 1);
    else out[threadIdx.x] = __shfl_sync(~0u, 1, 0);
}
extern "C" __global__ void masks_that_wait_for_each_other(uint32_t*) {
    if (threadIdx.x % 32 < 16) __syncwarp(0x0001ffff);
    else __syncwarp(~0u);
}
extern "C" __global__ void null_write(uint32_t*) {
    if (threadIdx.x == 77) *(volatile uint32_t*)nullptr = 3;
}
extern "C" __global__ void overrun(uint32_t* out) { out[blockDim.x + threadIdx.x] = 3; }
extern "C" __global__ void shared_overrun(uint32_t*) {
    extern __shared__ uint32_t words[];
    words[blockDim.x + threadIdx.x] = 3;
}
extern "C" __global__ void for_ever(uint32_t* out) {
    while (*(volatile uint32_t*)out != 12345) {}
}
extern "C" __global__ void trap(uint32_t*) { __trap(); }
extern "C" __global__ void missing_barrier(uint32_t* out) {
    __shared__ uint32_t words[256];
    words[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = words[255 - threadIdx.x];
}

// Writes 255, 254, ... if all results are right.
extern "C" __global__ void __launch_bounds__(64 * 4, 2)
    fine(uint32_t* out) {
    __shared__ uint32_t words[256];
    words[threadIdx.x] = threadIdx.x;
    __syncthreads();
    const uint32_t reversed = words[255 - threadIdx.x], lane = threadIdx.x % 32;
    bool ok = __double2float_rd(0.1) < 0.1 && __double2float_ru(0.1) > 0.1 && __double2float_rd(1e300) == 3.402823466e38f;
    ok &= __fadd_rd(1.0f, 1e-20f) == 1.0f && __fadd_ru(1.0f, 1e-20f) > 1.0f && __uint2float_rz(~0u) == 4294967040.0f;
    ok &= __popc(0xff) == 8 && __brev(1) == 0x80000000u && __clz(1) == 31 && __ffs(8) == 4;
    ok &= __byte_perm(0x33221100, 0x77665544, 0x7531) == 0x77553311u && __funnelshift_l(0x80000000u, 1, 1) == 3;
    ok &= min(3, 4u) == 3u && max(-1, 2) == 2 && __umulhi(1u << 31, 6) == 3;
    ok &= __shfl_xor_sync(~0u, threadIdx.x, 3) == (threadIdx.x ^ 3) && __shfl_up_sync(~0u, lane, 2) == (lane < 2 ? lane : lane - 2);
    ok &= __shfl_down_sync(~0u, lane, 1, 8) == (lane % 8 == 7 ? lane : lane + 1);
    ok &= __shfl_sync(~0u, 1.0 * threadIdx.x, 3, 8) == (threadIdx.x & ~7u) + 3;
    ok &= __ballot_sync(~0u, lane < 5) == 31 && __any_sync(~0u, lane == 7) && !__all_sync(~0u, lane == 7);
    if (lane < 20) ok &= __match_any_sync(0xfffff, lane % 2) == (lane % 2 ? 0xaaaaau : 0x55555u);
    else ok &= __reduce_add_sync(~0xfffffu, 2u) == 24;
    ok &= __syncthreads_count(threadIdx.x < 100) == 100 && __syncthreads_or(threadIdx.x == 9) && !__syncthreads_and(threadIdx.x == 9);
    if (lane == 31) {  // the other lanes wait for the remaining ones only
        if (ok) out[threadIdx.x] = reversed;
        return;
    }
    ok &= __ballot_sync(~0u, 1) == 0x7fffffff;
    if (ok) out[threadIdx.x] = reversed;
}
