// Runs kernels on the CPU.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "emulator.h"

// The code of an image: a shared object that `nvcc` made.
struct Code {
    std::string path;
    const EmuKernel* kernels = nullptr;
    size_t tls_module = 0, tls_size = 0;  // where its `__shared__` variables are
};

struct Launch {
    const Code* code;
    const EmuKernel* kernel;
    dim3 grid, block;
    unsigned shared;
    bool cooperative;
    std::vector<void*> params;
};

// Runs all blocks. Returns 0, or the driver's code for an error, which is described on stderr.
int run_launch(const Launch& launch);

// Runs `task` on a thread of its own, as soon as possible.
void in_background(void (*task)(void*), void* argument);
