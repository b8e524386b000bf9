// The result of the windows of nearly sorted input, for the rest of Onesweep.
#pragma once

#include "common/types.cuh"

namespace radsweep::adaptive {

// In the 256 bytes that begin with Outcome; 0 before the first window.
constexpr u32 STATE_AT = 192;

struct State {
    u32 done;      // 1: sorted, into the output, or for a sort in place into the temporary buffer
    u32 gave_up;   // 1: some window is not nearly sorted
    u32 finished;  // windows that were sorted
};
static_assert(STATE_AT + sizeof(State) <= 256, "more than the host reserves");

DEVICE State* state_of(void* header) {
    return reinterpret_cast<State*>(static_cast<char*>(header) + STATE_AT);
}

}  // namespace radsweep::adaptive
