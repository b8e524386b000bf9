// What the arguments of every sort have in common. The host's copy: crates/gpusort/src/cuda/abi.rs.
#pragma once

#include "common/types.cuh"

namespace radsweep {

// The index of a buffer in `Args::keys` and `Args::values`.
enum Buffer : u32 { INPUT, OUTPUT, TEMP };

// `Args::flags`. Those of a family's own begin at 4.
constexpr u32 IN_PLACE = 1;   // input and output are one buffer
constexpr u32 DROP_KEYS = 2;  // the sorted keys are not wanted

// Returns the number of keys: `n`, or less where the device has counted them.
template <class Args>
DEVICE u64 key_count(const Args& args) {
    if (args.device_count == nullptr) return args.n;
    const u64 count = *args.device_count;
    return count < args.n ? count : args.n;
}

}  // namespace radsweep
