// Where accepted pairs go: as keys `a * 2^bits + b` to a list, in no order, or to bins (bins.cuh);
// or to counts by `a` only, with their total.
//
// Every lane of the warp takes part in each call. Keys gather in shared memory and are written 128
// at a time, with one 64-bit atomic for all. Nothing is written beyond the capacity, but everything
// is counted.
#pragma once
#include "bins.cuh"
#include "types.cuh"

namespace radsweep::sap {

constexpr u32 OUT_FULL = 128;

// The shared memory of a warp for its pairs.
struct WarpOut {
    u64 keys[OUT_FULL + WARP];
};

struct Counts {
    u32* by_a;
};
ASSERT_LAYOUT(Counts, 8, AT(by_a, 0));

template <class Output>
struct Emitter;

template <>
struct Emitter<Keys> {
    const Keys& to;
    u64* count;
    WarpOut& out;
    u32 filled;

    DEVICE Emitter(const Keys& to, u64* count, WarpOut& out)
        : to(to), count(count), out(out), filled(0) {}

    DEVICE void take(bool hit, u32 a, u32 b) {
        const u32 hits = __ballot_sync(ALL_LANES, hit);
        if (hits == 0) return;
        if (hit) out.keys[filled + __popc(hits & lanes_below())] = u64(a) << to.bits | b;
        filled += __popc(hits);
        if (filled >= OUT_FULL) flush();
    }

    DEVICE void write(u64 base) {
        if (to.are_listed()) {
            for (u32 k = lane_index(); k < filled; k += WARP) to.put(base + k, out.keys[k]);
            return;
        }
        // The atomics of three keys are under way together.
        constexpr u32 TOGETHER = 3;
        for (u32 first = lane_index(); first < filled; first += TOGETHER * WARP) {
            u32 at[TOGETHER];
#pragma unroll
            for (u32 k = 0; k < TOGETHER; k++) {
                if (first + k * WARP < filled)
                    at[k] = to.bins.place(out.keys[first + k * WARP], to.bits);
            }
#pragma unroll
            for (u32 k = 0; k < TOGETHER; k++) {
                if (first + k * WARP < filled)
                    to.bins.store(at[k], out.keys[first + k * WARP], to.bits);
            }
        }
    }

    DEVICE void flush() {
        if (filled == 0) return;
        u64 base = 0;
        if (lane_index() == 0) base = atomicAdd(count, u64(filled));
        // Bins do not wait for it.
        if (to.are_listed()) base = __shfl_sync(ALL_LANES, base, 0);
        __syncwarp();
        write(base);
        __syncwarp();
        filled = 0;
    }

    // Writes what is left at the end, after which nothing is taken, and adds `more` to `sum`. There
    // is one atomic a block for each of the two counts.
    DEVICE void flush_block(u64 more, u64* sum) {
        const bool are_listed = to.are_listed();
        __syncwarp();
        if (!are_listed) write(0);
        __shared__ u32 left[WARP];
        __shared__ u64 mores[WARP], first;
        const u32 warp = threadIdx.x / WARP, warps = blockDim.x / WARP, lane = lane_index();
        if (lane == 0) {
            left[warp] = filled;
            mores[warp] = more;
        }
        __syncthreads();
        if (warp == 0) {
            const bool is_warp = lane < warps;
            const u32 own = is_warp ? left[lane] : 0, up_to = warp_inclusive_sum(own);
            if (is_warp) left[lane] = up_to - own;
            if (lane == WARP - 1) first = up_to > 0 ? atomicAdd(count, u64(up_to)) : 0;
            const u64 all = warp_inclusive_sum(is_warp ? mores[lane] : 0);
            if (lane == WARP - 1 && all > 0) atomicAdd(sum, all);
        }
        if (!are_listed) return;
        __syncthreads();
        write(first + left[warp]);
    }
};

template <>
struct Emitter<Counts> {
    const Counts& to;
    u64* count;
    u32 taken;

    DEVICE Emitter(const Counts& to, u64* count, WarpOut&) : to(to), count(count), taken(0) {}

    // One atomic for all lanes with the same `a`.
    DEVICE void take(bool hit, u32 a, u32) {
        const u32 hits = __ballot_sync(ALL_LANES, hit);
        taken += __popc(hits);
        if (!hit) return;
        const u32 peers = __match_any_sync(hits, a);
        if (lane_index() == __ffs(peers) - 1) atomicAdd(&to.by_a[a], u32(__popc(peers)));
    }

    DEVICE void flush() {
        if (lane_index() == 0 && taken > 0) atomicAdd(count, u64(taken));
        taken = 0;
    }
};

}  // namespace radsweep::sap
