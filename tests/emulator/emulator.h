// Declarations that the emulated driver and the kernels compiled for it share. Both include this
// file, so a change rebuilds both.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return uint3{x, y, z}; }
};

// A running block, as its kernel sees it.
struct EmuBlock {
    uint3 index;
    dim3 dim, grid;
    char* shared;        // its dynamic shared memory
    unsigned shared_size;
    uint32_t* arrived;   // blocks at the barriers of the grid; null without a cooperative launch
};

// A thread of a running block.
struct EmuThread {
    uint3 index;
    unsigned spins;      // accesses that may belong to a loop that waits, see emu_spin
    EmuBlock* block;
};

// The collective for which a lane waits. Lanes of a mask must wait for the same collective.
enum EmuCollective {
    EMU_SYNCWARP, EMU_BALLOT, EMU_ANY, EMU_ALL, EMU_SHFL, EMU_SHFL_UP, EMU_SHFL_DOWN, EMU_SHFL_XOR, EMU_MATCH_ANY,
    EMU_MATCH_ALL, EMU_MATCH_DIGIT, EMU_REDUCE_ADD, EMU_REDUCE_MIN, EMU_REDUCE_MAX, EMU_REDUCE_MIN_SIGNED,
    EMU_REDUCE_MAX_SIGNED, EMU_REDUCE_AND, EMU_REDUCE_OR, EMU_REDUCE_XOR, EMU_COLLECTIVES
};
// The barrier for which a thread waits.
enum EmuBarrier { EMU_SYNC, EMU_SYNC_OR, EMU_SYNC_AND, EMU_SYNC_COUNT };

// A kernel of an image. An image returns the first of a list of kernels.
struct EmuKernel {
    const char* name;
    void (*function)();
    void (*call)(void (*function)(), void** params);
    unsigned max_threads;
    unsigned params;
    const uint32_t *offsets, *sizes;
    const EmuKernel* next;
};

extern "C" {
// The running thread. It is in the static thread-local memory, so that an access is one load.
extern __thread EmuThread* emu_self __attribute__((tls_model("initial-exec")));

// Waits until all lanes of `mask` have arrived, and returns this lane's result. `source` is the
// lane that a shuffle reads.
uint64_t emu_collective(int kind, unsigned mask, uint64_t value, unsigned source);
int emu_barrier(int kind, int predicate);
// Lets another thread of the block run. It is no barrier.
void emu_yield();
// Ends the launch with an error.
[[noreturn]] void emu_fail(const char* what);
}
