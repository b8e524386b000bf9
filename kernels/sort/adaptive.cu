// Nearly sorted input, such as the coordinates of one frame in the order of the frame before: one read and one write of each
// element, where all but a few are in order and none is far from its place. Any other input is found out, and left to Onesweep.
//
// Compiled with KEY_BITS (32, 64). One launch between the memset and the first kernel of a sort by onesweep.cu, whose kernels end
// at once where this one has sorted; onesweep_small.cu sorts windows itself. A block for each window (adaptive_window.cuh): first a
// sample of neighbours tells whether the input can be nearly sorted. A window that is not ends the attempt: blocks that start later
// see the flag and end.

#include "../common/layout.cuh"
#include "adaptive_window.cuh"

using namespace radsweep;

namespace {

constexpr uint32_t ARRAYS = 3;         // sorted side by side, at most
constexpr uint32_t FIRST_WAVE = 128;   // blocks that find no flag when they start, as none has ended

// ---- What the host passes. Its copies: crates/gpusort/src/cuda/adaptive.rs. ----

struct Buffers {
    const Key* keys_in;
    Key* keys_out;                     // never the input
    const void* values_in;             // null means 0, 1, 2, ...
    void* values_out;
};
ASSERT_LAYOUT(Buffers, 32, AT(keys_in, 0) AT(keys_out, 8) AT(values_in, 16) AT(values_out, 24));

constexpr uint32_t DROP_KEYS = 2;      // Args::flags: the sorted keys are not wanted

struct Args {
    Buffers arrays[ARRAYS];
    char* header;                      // begins with Outcome; its AdaptiveState is 0
    uint64_t stride;                   // bytes from one array's header to the next one's
    WindowRecord* records;             // [array][window]
    uint64_t n;
    KeyOrder order;
    uint32_t flags;
    uint32_t unused;
};
ASSERT_LAYOUT(Args, 176,
    AT(arrays, 0) AT(header, 96) AT(stride, 104) AT(records, 112) AT(n, 120) AT(order, 128) AT(flags, 168) AT(unused, 172));

// The block's array, as `Window` asks.
struct Array {
    const Args& args;

    __device__ __forceinline__ const Buffers& buffers() const { return args.arrays[blockIdx.y]; }
    __device__ __forceinline__ uint64_t n() const { return args.n; }
    __device__ __forceinline__ const KeyOrder& order() const { return args.order; }
    __device__ __forceinline__ const Key* keys_in() const { return buffers().keys_in; }
    __device__ __forceinline__ Key* keys_out() const { return buffers().keys_out; }
    __device__ __forceinline__ const void* values_in() const { return buffers().values_in; }
    __device__ __forceinline__ void* values_out() const { return buffers().values_out; }
    __device__ __forceinline__ bool drop_keys() const { return args.flags & DROP_KEYS; }
    __device__ __forceinline__ uint32_t windows() const { return gridDim.x; }
    __device__ __forceinline__ WindowRecord* records() const { return args.records + uint64_t(blockIdx.y) * gridDim.x; }
    __device__ __forceinline__ char* header() const { return args.header + blockIdx.y * args.stride; }
};

template <bool FLOAT, uint32_t VALUE_BYTES, uint32_t THREADS, uint32_t ITEMS, uint32_t HALO_RUNS>
__device__ __forceinline__ void sort_window(const Args& args) {
    extern __shared__ uint4 shared_memory[];
    using ThisWindow = Window<Array, FLOAT, VALUE_BYTES, THREADS, ITEMS, HALO_RUNS>;
    const ThisWindow window({args}, *reinterpret_cast<typename ThisWindow::Shared*>(shared_memory), blockIdx.x);
    if (blockIdx.x >= FIRST_WAVE && __syncthreads_or(threadIdx.x == 0 && load_relaxed(&window.state().gave_up) != 0)) return;
    if (window.looks_sorted()) window.sort();
}

}  // namespace

// ---- Entry points. A kernel carries its shape in its name, so that host and device cannot disagree about it. ----

#define WINDOW(KIND, FLOAT, VALUE_BYTES, THREADS, ITEMS, HALO_RUNS, BLOCKS)                                       \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                                 \
        adaptive_##KIND##_##VALUE_BYTES##_##THREADS##x##ITEMS##_##HALO_RUNS(const Args args) {                    \
        sort_window<FLOAT, VALUE_BYTES, THREADS, ITEMS, HALO_RUNS>(args);                                         \
    }
#define WINDOWS(THREADS, ITEMS, HALO_RUNS, BLOCKS)                \
    WINDOW(integer, false, 0, THREADS, ITEMS, HALO_RUNS, BLOCKS) \
    WINDOW(integer, false, 4, THREADS, ITEMS, HALO_RUNS, BLOCKS) \
    WINDOW(integer, false, 8, THREADS, ITEMS, HALO_RUNS, 2)      \
    WINDOW(float, true, 0, THREADS, ITEMS, HALO_RUNS, BLOCKS)    \
    WINDOW(float, true, 4, THREADS, ITEMS, HALO_RUNS, BLOCKS)    \
    WINDOW(float, true, 8, THREADS, ITEMS, HALO_RUNS, 2)
// As many windows at once as shared memory holds on an H200, but for 8-byte values, whose registers would spill.
#if KEY_BITS == 32
WINDOWS(512, 21, 64, 3)
#else
WINDOWS(512, 17, 64, 2)
#endif
