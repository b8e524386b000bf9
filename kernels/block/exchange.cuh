// Steps by which digits move a tile's keys: counters of each warp and digit in shared memory.
#pragma once

#include "common/ptx.cuh"
#include "common/warp.cuh"

namespace radsweep {

// Clears a warp's counters of all digits.
template <u32 DIGITS>
DEVICE void clear_counters(u32 (&counters)[DIGITS]) {
    uint4* const words = reinterpret_cast<uint4*>(counters);
#pragma unroll
    for (u32 i = 0; i < DIGITS / 4; i += WARP) words[i + lane_index()] = make_uint4(0, 0, 0, 0);
}

// Ranks a row of a warp's keys among those of the same digit. The counter of a digit says where its
// next key goes, and moves on by `step` for each. Returns what it is after this lane's key. `peers`
// are the lanes with the same digit, `up_to_me` this lane and those below it. All lanes read before
// any writes, and write before any reads again.
DEVICE u32 rank_row(u32* counter, u32 peers, u32 up_to_me, u32 step) {
    const u32 after = *counter + __popc(peers & up_to_me) * step;
    __syncwarp();
    if ((peers & ~up_to_me) == 0) *counter = after;
    __syncwarp();
    return after;
}

}  // namespace radsweep
