// Nearly sorted input, such as the coordinates of one frame in the order of the frame before: one
// read and one write of each element, where all but a few are in order and none is far from its
// rank. Any other input is detected, and left to Onesweep.
//
// Compiled with KEY_BITS (32, 64). One launch before the first kernel of a sort by onesweep.cu,
// whose kernels end at once if this one has sorted. As many blocks as run at once take the windows
// (adaptive_window.cuh) in turns: first a sample of neighbours tells whether the input can be
// nearly sorted. A window that is not ends the attempt: no block begins another. All blocks end
// after their first barrier if no attempt is to be made.
//
// A sort in which no attempt is made takes 4 to 5 us longer on an H200 than without the hint.
// Predicted: 2 for a launch and 1.5 for a barrier of the grid. With a memset before, instead of the
// barrier, and a block for each window it took 11.

#include <cooperative_groups.h>

#include "adaptive_window.cuh"

namespace radsweep::adaptive {

template <class ThisWindow>
DEVICE void sort_windows(const Args& args, const Memory& memory) {
    extern __shared__ uint4 shared_memory[];
    auto& on_chip = *reinterpret_cast<typename ThisWindow::Shared*>(shared_memory);
    State& state = *state_of(args.header);
    if (blockIdx.x == 0 && threadIdx.x == 0) state = first_state(memory);
    cooperative_groups::this_grid().sync();
    if (state.tries == 0) return;
    for (u32 number = blockIdx.x, next; number < args.windows; number = next) {
        const ThisWindow window(args, on_chip, number);
        if (!window.begin()) break;
        next = on_chip.next;
        window.sort();
    }
    ThisWindow(args, on_chip, 0).end(gridDim.x, memory);
}

// ---- Entry points. A name carries the shape, so that host and device cannot disagree ----

#define WINDOW(KIND, FLOAT, VALUE_BYTES, THREADS, ITEMS, HALO_RUNS, BLOCKS)                  \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                            \
    adaptive_##KIND##_##VALUE_BYTES##_##THREADS##x##ITEMS##_##HALO_RUNS(                     \
        const Args args, u32* const memory) {                                                \
        sort_windows<Window<FLOAT, VALUE_BYTES, THREADS, ITEMS, HALO_RUNS>>(args, {memory}); \
    }
#define WINDOWS(THREADS, ITEMS, HALO_RUNS, BLOCKS)               \
    WINDOW(integer, false, 0, THREADS, ITEMS, HALO_RUNS, BLOCKS) \
    WINDOW(integer, false, 4, THREADS, ITEMS, HALO_RUNS, BLOCKS) \
    WINDOW(integer, false, 8, THREADS, ITEMS, HALO_RUNS, 2)      \
    WINDOW(float, true, 0, THREADS, ITEMS, HALO_RUNS, BLOCKS)    \
    WINDOW(float, true, 4, THREADS, ITEMS, HALO_RUNS, BLOCKS)    \
    WINDOW(float, true, 8, THREADS, ITEMS, HALO_RUNS, 2)
// The halos are wider than 1000 elements, as neighbours that move as well push an element further.
// Predicted: no other shape was measured. As many windows at once as shared memory holds on an
// H200, but for 8-byte values, whose registers would spill.
#if KEY_BITS == 32
WINDOWS(512, 21, 64, 3)
#else
WINDOWS(512, 17, 64, 2)
#endif

}  // namespace radsweep::adaptive
