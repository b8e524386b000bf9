// What the kernels of ha_radix.cu share with the host and with each other, and the order check.
// Included with KEY_BITS defined.
#pragma once

#include "common/layout.cuh"
#include "common/radix_key.cuh"
#include "common/sort_args.cuh"
#include "outcome.cuh"

namespace radsweep::ha_radix {

// ---- Shared with the host: crates/gpusort/src/cuda/ha_radix/layout.rs ----

constexpr u32 MAX_PHASES = 64;  // a pass has two: count (even) and map (odd)
constexpr u32 FINISHED = ~0u;   // Header::phase: the keys are in order, no phase is left to run
constexpr u32 WRITTEN = ~1u;    // and in the output

struct Header {
    Outcome outcome;
    u32 phase;             // phases that all parts have completed
    u32 arrived;           // parts that have completed a phase, over all phases
    u32 lead_in_order;     // of this pass: the leading keys are in order, so look at the others
    u32 unsorted;          // of this pass: some key is less than the one before
    u32 next[MAX_PHASES];  // by the phase that a launch begins with: parts taken
};
ASSERT_LAYOUT(Header, 304, AT(outcome, 0) AT(phase, 32) AT(next, 48));

struct Args {
    Key* keys[3];     // by Buffer
    void* values[3];  // by Buffer; a null input means 0, 1, 2, ...
    Header* header;
    u32* sums;                // the block-sum array, [digit][part]
    const u64* device_count;  // null, or the address of the number of keys, at most n
    u64 n;
    KeyOrder order;
    u32 flags;
    u32 passes;
    u32 parts;      // that the tiles are divided among
    u32 algorithm;  // AlgorithmId
};
ASSERT_LAYOUT(Args, 136,
    AT(keys, 0) AT(values, 24) AT(header, 48) AT(sums, 56) AT(device_count, 64) AT(n, 72)
    AT(order, 80) AT(flags, 120) AT(passes, 124) AT(parts, 128) AT(algorithm, 132));

// The buffers alternate so that the last pass, if it runs, writes the output; in place, the first
// must not write it.
DEVICE Buffer target_of(const Args& args, u32 pass) {
    const u32 output_parity = args.flags & IN_PLACE ? 1 : args.passes - 1;
    return (pass ^ output_parity) & 1 ? TEMP : OUTPUT;
}
DEVICE Buffer source_of(const Args& args, u32 pass) {
    return pass == 0 ? INPUT : target_of(args, pass - 1);
}

// ---- Order check (section 4.2, algorithm 3) ----

template <bool FLOAT>
struct OrderCheck {
    Compared<FLOAT> compared;

    DEVICE explicit OrderCheck(const KeyOrder& order) : compared(order) {}

    DEVICE bool out_of_order(Key key, Key next) const { return compared(next) < compared(key); }

    // Whether the leading sqrt(n) keys are in order, for the block.
    DEVICE bool lead_in_order(const Key* keys, u64 n) const {
        const u32 lead = n < 4 ? u32(n) : u32(sqrtf(float(n)));
        bool unsorted = false;
        constexpr u32 AT_ONCE = 8;
        for (u32 first = threadIdx.x; first + 1 < lead && !unsorted;
             first += AT_ONCE * blockDim.x) {
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++) {
                const u32 at = first + i * blockDim.x;
                if (at + 1 < lead) unsorted |= out_of_order(keys[at], keys[at + 1]);
            }
        }
        return !__syncthreads_or(unsorted);
    }
};

// Before the first pass, by one block.
template <bool FLOAT>
DEVICE void start(const Args& args) {
    Header& header = *args.header;
    const u64 n = key_count(args);
    const bool any = n != 0 && args.passes != 0;
    const bool in_order =
        OrderCheck<FLOAT>(args.order).lead_in_order(args.keys[INPUT], any ? n : 0);
    for (u32 i = threadIdx.x; i < MAX_PHASES; i += blockDim.x) header.next[i] = 0;
    if (threadIdx.x != 0) return;
    header.outcome = Outcome{args.algorithm, args.passes, any ? args.passes : 0, !any, n, 0};
    header.phase = any ? 0 : FINISHED;
    header.arrived = 0;
    header.lead_in_order = in_order;
    header.unsorted = 0;
}

}  // namespace radsweep::ha_radix
