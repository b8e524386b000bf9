// The demo scenes on the device: between the boxes that they write and the pairs that they react
// to, nothing goes to the host.
//
// Compiled with -fmad=false, so that results which the CPU computes too have the same bits.
// Elsewhere multiply-adds are written out. Portable: PTX of compute_75.
#include "particles.cuh"
#include "galaxy.cuh"
#include "gravity.cuh"
