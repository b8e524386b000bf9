// Nearly sorted input, such as the coordinates of one frame in the order of the frame before: one
// read and one write of each element, where all but a few are in order and none is far from its
// rank. Any other input is detected, and left to Onesweep.
//
// Compiled with KEY_BITS (32, 64). One launch between the memset and the first kernel of a sort by
// onesweep.cu, whose kernels end at once if this one has sorted; onesweep_small.cu sorts windows
// itself. A block for each window (adaptive_window.cuh): first a sample of neighbours tells whether
// the input can be nearly sorted. A window that is not nearly sorted ends the attempt: blocks that
// start later see the flag and end.

#include "adaptive_window.cuh"
#include "common/layout.cuh"
#include "common/sort_args.cuh"

namespace radsweep::adaptive {

// Blocks that need not read the flag: none has ended when they start.
constexpr u32 FIRST_WAVE = 128;

// ---- Shared with the host: crates/gpusort/src/cuda/adaptive.rs ----

struct Buffers {
    const Key* keys_in;
    Key* keys_out;          // never the input
    const void* values_in;  // null means 0, 1, 2, ...
    void* values_out;
};
ASSERT_LAYOUT(Buffers, 32, AT(keys_in, 0) AT(keys_out, 8) AT(values_in, 16) AT(values_out, 24));

struct Args {
    Buffers buffers;
    char* header;           // begins with Outcome; its State is 0
    WindowRecord* records;  // [window]
    u64 n;
    KeyOrder order;
    u32 flags;
    u32 unused;
};
ASSERT_LAYOUT(Args, 104,
    AT(buffers, 0) AT(header, 32) AT(records, 40) AT(n, 48) AT(order, 56) AT(flags, 96)
    AT(unused, 100));

// The arrays, as `Window` takes them.
struct Array {
    const Args& args;

    DEVICE u64 n() const { return args.n; }
    DEVICE const KeyOrder& order() const { return args.order; }
    DEVICE const Key* keys_in() const { return args.buffers.keys_in; }
    DEVICE Key* keys_out() const { return args.buffers.keys_out; }
    DEVICE const void* values_in() const { return args.buffers.values_in; }
    DEVICE void* values_out() const { return args.buffers.values_out; }
    DEVICE bool drop_keys() const { return args.flags & DROP_KEYS; }
    DEVICE u32 windows() const { return gridDim.x; }
    DEVICE WindowRecord* records() const { return args.records; }
    DEVICE char* header() const { return args.header; }
};

template <bool FLOAT, u32 VALUE_BYTES, u32 THREADS, u32 ITEMS, u32 HALO_RUNS>
DEVICE void sort_window(const Args& args) {
    extern __shared__ uint4 shared_memory[];
    using ThisWindow = Window<Array, FLOAT, VALUE_BYTES, THREADS, ITEMS, HALO_RUNS>;
    const ThisWindow window(
        {args}, *reinterpret_cast<typename ThisWindow::Shared*>(shared_memory), blockIdx.x);
    if (blockIdx.x >= FIRST_WAVE &&
        __syncthreads_or(threadIdx.x == 0 && load_relaxed(&window.state().gave_up) != 0))
        return;
    if (window.looks_sorted()) window.sort();
}

// ---- Entry points. A name carries the shape, so that host and device cannot disagree ----

#define WINDOW(KIND, FLOAT, VALUE_BYTES, THREADS, ITEMS, HALO_RUNS, BLOCKS)                \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                          \
    adaptive_##KIND##_##VALUE_BYTES##_##THREADS##x##ITEMS##_##HALO_RUNS(const Args args) { \
        sort_window<FLOAT, VALUE_BYTES, THREADS, ITEMS, HALO_RUNS>(args);                  \
    }
#define WINDOWS(THREADS, ITEMS, HALO_RUNS, BLOCKS)               \
    WINDOW(integer, false, 0, THREADS, ITEMS, HALO_RUNS, BLOCKS) \
    WINDOW(integer, false, 4, THREADS, ITEMS, HALO_RUNS, BLOCKS) \
    WINDOW(integer, false, 8, THREADS, ITEMS, HALO_RUNS, 2)      \
    WINDOW(float, true, 0, THREADS, ITEMS, HALO_RUNS, BLOCKS)    \
    WINDOW(float, true, 4, THREADS, ITEMS, HALO_RUNS, BLOCKS)    \
    WINDOW(float, true, 8, THREADS, ITEMS, HALO_RUNS, 2)
// As many windows at once as shared memory holds on an H200, but for 8-byte values, whose registers
// would spill.
#if KEY_BITS == 32
WINDOWS(512, 21, 64, 3)
#else
WINDOWS(512, 17, 64, 2)
#endif

}  // namespace radsweep::adaptive
