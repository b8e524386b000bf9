// What the windows of nearly sorted input tell the rest of Onesweep.
#pragma once

#include <stdint.h>

namespace radsweep {

constexpr uint32_t ADAPTIVE_AT = 192;  // in the 256 bytes that begin with Outcome; 0 before the first window

struct AdaptiveState {
    uint32_t done;                     // 1: sorted, into the output, or for a sort in place into the temporary buffer
    uint32_t gave_up;                  // 1: some window is not nearly sorted
    uint32_t finished;                 // windows that were sorted
};

__device__ __forceinline__ AdaptiveState* adaptive_state(void* header) {
    return reinterpret_cast<AdaptiveState*>(static_cast<char*>(header) + ADAPTIVE_AT);
}

}  // namespace radsweep
