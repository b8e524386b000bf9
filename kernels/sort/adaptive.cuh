// The result of the windows of nearly sorted input, for the rest of Onesweep; and what is
// remembered of it for the next sorts.
#pragma once

#include "common/ptx.cuh"

namespace radsweep::adaptive {

// In the 256 bytes that begin with Outcome.
constexpr u32 STATE_AT = 192;

struct State {
    u32 done;      // 1: sorted, into the output, or for a sort in place into the temporary buffer
    u32 gave_up;   // 1: some window is not nearly sorted
    u32 finished;  // blocks that have no more windows to sort
    u32 taken;     // windows, after the first of each block
    u32 tries;     // 1: this sort makes an attempt
};
static_assert(STATE_AT + sizeof(State) <= 256, "more than the host reserves");

DEVICE State* state_of(void* header) {
    return reinterpret_cast<State*>(static_cast<char*>(header) + STATE_AT);
}

// An attempt in vain takes up to 50 % of a sort, so one in 64 sorts less than 1 % of them all.
constexpr u32 MOST_LEFT_OUT = 63;

// What sorts tell the next ones, which share the word: after an attempt in vain 1, 3, 7, ...
// MOST_LEFT_OUT sorts make none. Null: each sort makes one.
struct Memory {
    // How many sorts are still to make none; from LENGTH_SHIFT on, how many there were to be.
    u32* word;
    static constexpr u32 LENGTH_SHIFT = 16;

    // Whether a sort makes an attempt. By one thread, for all blocks: a sort in another stream may
    // change the word at any time.
    DEVICE bool tries() const { return word == nullptr || left(load_relaxed(word)) == 0; }
    // By one thread, after an attempt. If it was in vain, `count` of the same sort takes one off.
    DEVICE void tried(bool sorted) const {
        if (word == nullptr) return;
        const u32 length = min(2 * (load_relaxed(word) >> LENGTH_SHIFT) + 1, MOST_LEFT_OUT);
        store_relaxed(word, sorted ? 0 : length << LENGTH_SHIFT | (length + 1));
    }
    // By one thread of the kernel after that of adaptive.cu, if windows did not sort.
    DEVICE void count() const {
        const u32 all = word == nullptr ? 0 : load_relaxed(word);
        if (left(all) != 0) store_relaxed(word, all - 1);
    }

private:
    static DEVICE u32 left(u32 all) { return all & ((1u << LENGTH_SHIFT) - 1); }
};

// Returns the State before the first window.
DEVICE State first_state(const Memory& memory) {
    State state{};
    state.tries = memory.tries();
    return state;
}

}  // namespace radsweep::adaptive
