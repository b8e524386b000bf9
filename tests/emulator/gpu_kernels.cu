// The kernels of crates/gpu/tests/ptx/kernels.ptx in CUDA C++. The emulated driver cannot run PTX
// and runs these in place of that text.

#include <stdint.h>
#include <time.h>

extern "C" __global__ void fill_index(uint32_t* out, uint32_t n, uint32_t add) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = i + add;
}

extern "C" __global__ void add_all(uint32_t* data, uint32_t n, uint32_t add) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] += add;
}

struct Three {
    uint32_t words[3];
};
extern "C" __global__ void store_arguments(uint64_t* out, uint32_t a, int32_t b, uint64_t c, int64_t d, float e, double f, Three g, uint64_t h) {
    out[0] = a;
    out[1] = uint32_t(b);
    out[2] = c;
    out[3] = uint64_t(d);
    out[4] = __float_as_uint(e);
    out[5] = uint64_t(__double_as_longlong(f));
    for (int i = 0; i < 3; i++) out[6 + i] = g.words[i];
    out[9] = h;
}

extern "C" __global__ void reverse(uint32_t* data, uint32_t n) {
    extern __shared__ uint32_t words[];
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) words[i] = data[i];
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) data[i] = words[n - i - 1];
}

extern "C" __global__ void meet(uint32_t* counter, uint32_t* seen) {
    atomicAdd(counter, 1u);
    uint32_t now;
    do {
        now = __ldcv(counter);
    } while (now < gridDim.x);
    seen[blockIdx.x] = now;
}

static uint64_t nanoseconds_now() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return uint64_t(now.tv_sec) * 1000000000 + uint64_t(now.tv_nsec);
}
extern "C" __global__ void spin(uint64_t nanoseconds) {
    const uint64_t start = nanoseconds_now();
    while (nanoseconds_now() - start < nanoseconds) __nanosleep(1000);
}
