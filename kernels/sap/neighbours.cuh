// The neighbour list: the candidates of boxes that were loosened by a margin, in the order of
// (a, b). While every box lies within its loosened one, and no filter, world or excluded pair has
// changed, the pairs of a frame are those candidates whose boxes overlap. They are in order
// already, so that a frame neither sorts nor searches. A bit of each candidate says whether it was
// a pair in the last frame, so that no lists are compared for events.
//
//   motion    how far sampled boxes have moved, from which the host chooses margins
//   loosen    the loosened boxes of a new list. Bytes a box: 48 read, 24 written. The list is what
//             the grid finds for them (grid_sweep.cuh), put in order (bins.cuh)
//   depths    how deep the loosened boxes of each candidate overlap: a byte
//   check     checks and stores the boxes as `prepare` does, sees whether one has left its loosened
//             one, and stores its slack: two bytes
//   keep      tests 1,024 candidates a block
//
// Most candidates are decided by bytes. The slack of a box is how far its sides are from those of
// its loosened box, least and most. Two loosened boxes overlap by a depth. Where the least slacks
// sum to more, the boxes are apart on the axis of the depth; where the most slacks sum to less,
// they overlap on all axes. Slacks are rounded to the safe side, in a 32nd of the least margin.
// Only boxes of the other candidates are read, which are about as far apart, or as deep in each
// other, as they have moved: 15 % are expected where boxes walk at random.
//
// keep: 256 threads, 4 candidates a thread. It reads the caller's boxes; an invalid or empty one is
// in no pair. Blocks learn by look-back (block/look_back.cuh) how many pairs those before them
// started and ended. With the pairs before them in the last frame that says where their own go. The
// words of the next launch are cleared on the way. Candidates are read while the check still runs
// (`wait_for_stream`), from L2, since no wait has made the first-level cache forget what was there
// before. So the check is the launch directly ahead of this one.
//
// Bytes a box in `check`: 24 + 24 read, 24 + 2 written. Bytes a candidate in `keep`: 9 read, a
// sector of 32 for the slack of b, 3 sectors for the boxes of one that is not decided, and 8
// written for each pair. Instructions of a thread of `keep`: about 40 a candidate, 150 for sums and
// look-back.
//
// 10^7 boxes with 24 M candidates, H100: 0.77 ms, and 1.26 when one kernel read the boxes of all
// candidates; H200: 0.62 and 1.0 (2026-11-26). Predicted for the H200 were 0.5: 2.2 GB. 10^6 boxes
// with 2.3 M candidates, H200: `check` 21 us, of 17 predicted, and `keep` 42 to 48, of 20.
//
// What bounds `keep` is how long a block takes, and not what it reads. 660 blocks run at once and
// each takes some 12 us, so that one ends every 17 to 20 ns, with 2.8 M candidates as with 29 M. 30
// % of that its warps wait for look-back, the rest for one load after another. Compared, and no
// faster: a byte for each candidate, how far boxes may move until its bit can change, so that only
// a third of them read slacks and a tenth boxes (10^6 boxes the same, 10^7 0.02 ms more, as the
// check must read the last boxes too); look-back over 128 blocks at a time instead of 32 (10^7:
// 0.07 ms more); deciding first by the least and the most slack of all boxes, without those of b,
// which takes 5 us less and 3 more in `check`; 2,048 candidates a block; six blocks on a
// multiprocessor instead of five.
#pragma once
#include "block/look_back.cuh"
#include "block/scan.cuh"
#include "prepare.cuh"
#include "types.cuh"

namespace radsweep::sap {

// Returns how far a side of the box has moved at most. Sides that stay infinite do not move, nor
// does a box that is or was empty.
DEVICE float step_of(const Box& box, const Box& last) {
    float step = 0.0f;
    if (is_empty(box) || is_empty(last)) return step;
    for (int axis = 0; axis < 3; axis++) {
        // The max of a number and NaN is the number.
        step = fmaxf(step, fabsf(box.min[axis] - last.min[axis]));
        step = fmaxf(step, fabsf(box.max[axis] - last.max[axis]));
    }
    return step;
}

// Returns the longest side of a box, 0 for an empty one.
DEVICE float size_of(const Box& box) {
    float size = 0.0f;
    for (int axis = 0; axis < 3; axis++) size = fmaxf(size, box.max[axis] - box.min[axis]);
    return size;
}

// Step and size of sampled boxes.
extern "C" __global__ void __launch_bounds__(256) sap_motion(
    const Box* boxes, const Box* last, u32 n, u32 count, float2* motions) {
    wait_for_stream();
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= count) return;
    const u32 i = sampled_box(k, n, count);
    const Box box = load_box(boxes + i);
    motions[k] = make_float2(step_of(box, load_box(last + i)), size_of(box));
}

// What a new list is made of.
struct Loosen {
    const Box* boxes;
    const Box* last;
    const u32* worlds;  // null for one world
    Box* loose;
    u32* loose_worlds;
    u32 n;
    float least;  // the margin of boxes that move little
    float steps;  // the margin of others, in their last steps
    float most;   // the max of that, in sizes of the box
};
ASSERT_LAYOUT(Loosen, 56,
    AT(boxes, 0) AT(last, 8) AT(worlds, 16) AT(loose, 24) AT(loose_worlds, 32) AT(n, 40)
    AT(least, 44) AT(steps, 48) AT(most, 52));

extern "C" __global__ void __launch_bounds__(256) sap_loosen(const __grid_constant__ Loosen p) {
    wait_for_stream();
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= p.n) return;
    Box box = load_box(p.boxes + i);
    if (!is_empty(box)) {
        const float most = fmaxf(p.least, p.most * size_of(box));
        const float wished = fmaxf(p.least, p.steps * step_of(box, load_box(p.last + i)));
        // Finite, so that no side becomes NaN.
        const float margin = fminf(fminf(wished, most), 3.402823466e38f);
        for (int axis = 0; axis < 3; axis++) {
            box.min[axis] = box.min[axis] - margin + 0.0f;
            box.max[axis] = box.max[axis] + margin + 0.0f;
        }
    }
    store_box(p.loose + i, box);
    if (p.worlds) p.loose_worlds[i] = p.worlds[i];
}

constexpr u32 KEEP_THREADS = 256;
constexpr u32 KEEP_BLOCKS = 5;  // on a multiprocessor
constexpr u32 KEEP_WARPS = KEEP_THREADS / WARP;
constexpr u32 KEEP_ITEMS = 1024;
constexpr u32 KEEP_ROUNDS = KEEP_ITEMS / KEEP_THREADS;

// What the list knows of a frame: of each candidate a bit, whether it is a pair, and of each block
// the pairs before it.
struct Hits {
    u32* bits;
    u32* before;
};
ASSERT_LAYOUT(Hits, 16, AT(bits, 0) AT(before, 8));

// Slacks and depths are whole units. Slacks above 255 are 255, depths above 254 are 254.
constexpr u32 MAX_SLACK = 255, MAX_DEPTH = 254;
// The depth of boxes of which nothing is known from their slacks.
constexpr u32 NO_DEPTH = 255;

struct Candidates {
    const Box* loose;
    uchar2* slacks;  // least and most, of each box
    const u8* depths;
    const uint2* list;
    u32 n;  // less than 2^31
    u32 tiles;
    float units;  // in a length of 1
    u32 open;
    Hits last, hits;
    u64* words;       // one more than there are tiles, all zero: numbers the blocks
    u64* next_words;  // those of the next launch, which are made zero
    uint2* pairs;
    uint2* out[2];  // started, ended
    u64 pairs_capacity;
    u64 capacity[2];
};
ASSERT_LAYOUT(Candidates, 144,
    AT(loose, 0) AT(slacks, 8) AT(depths, 16) AT(list, 24) AT(n, 32) AT(tiles, 36) AT(units, 40)
    AT(open, 44) AT(last, 48) AT(hits, 64) AT(words, 80) AT(next_words, 88) AT(pairs, 96)
    AT(out, 104) AT(pairs_capacity, 120) AT(capacity, 128));

// Returns the least and the most slack of a box within its loosened one. Sides that are infinite in
// both do not move, and their difference, NaN, counts neither way. An empty box has a slack that
// decides nothing.
DEVICE uchar2 slack_of(const Box& loose, const Box& box, float units) {
    float least = INFINITE, most = 0.0f;
    for (int axis = 0; axis < 3; axis++) {
        const float below = box.min[axis] - loose.min[axis];
        const float above = loose.max[axis] - box.max[axis];
        least = fminf(least, fminf(below, above));
        most = fmaxf(most, fmaxf(below, above));
    }
    if (is_empty(box)) return make_uchar2(MAX_SLACK, MAX_SLACK);
    // More than the differences and products are rounded by.
    constexpr float ROUNDING = 1.0f / (1 << 18);
    const float floor = fminf(least * units * (1.0f - ROUNDING), float(MAX_SLACK));
    const float ceiling = fminf(most * units * (1.0f + ROUNDING), float(MAX_SLACK - 1));
    return make_uchar2(u8(floor), u8(u32(ceiling) + 1));
}

// Returns how deep two loosened boxes overlap, in whole units.
DEVICE u32 depth_of(const Box& i, const Box& j, float units) {
    float depth = INFINITE;
    bool known = true;
    for (int axis = 0; axis < 3; axis++) {
        const float one = i.max[axis] - j.min[axis], other = j.max[axis] - i.min[axis];
        known = known && one >= 0.0f && other >= 0.0f;
        depth = fminf(depth, fminf(one, other));
    }
    return known ? u32(fminf(depth * units, float(MAX_DEPTH))) : NO_DEPTH;
}

extern "C" __global__ void __launch_bounds__(256) sap_depths(
    const Box* loose, const uint2* list, u32 n, float units, u8* depths) {
    wait_for_stream();
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n) return;
    const uint2 pair = list[k];
    depths[k] = u8(depth_of(load_box(loose + pair.x), load_box(loose + pair.y), units));
}

// What `check` does within `prepare`.
struct Listed {
    static constexpr bool LABELS = true;
    const Candidates& p;
    u32 i;
    Box loose;
    bool left;

    DEVICE explicit Listed(const Candidates& p) : p(p), i(0), loose(empty_box()), left(false) {}

    DEVICE void before(u32 at, bool present) {
        i = at;
        if (present) loose = load_box(p.loose + i);
    }

    // An empty box overlaps nothing, wherever its loosened one is.
    DEVICE void look(const Box& box, bool same_labels) {
        left = !same_labels || !(is_empty(box) || holds(loose, box));
        p.slacks[i] = slack_of(loose, box, p.units);
    }
};

extern "C" __global__ void __launch_bounds__(256) sap_check(
    const Box* boxes, const __grid_constant__ Prepare of, const __grid_constant__ Candidates p) {
    wait_for_stream();
    Listed listed(p);
    prepare(Plain{boxes}, of, listed);
    if (__any_sync(ALL_LANES, listed.left) && lane_index() == 0 && of.state->left == 0)
        of.state->left = 1;
}

// Whether two boxes as they came overlap. Invalid and empty ones do not.
DEVICE bool overlap(const Box& i, const Box& j, bool open) {
    bool all = in_order(i.min, i.max) && in_order(j.min, j.max);
    for (int axis = 0; axis < 3; axis++) {
        const float min_i = i.min[axis], max_i = i.max[axis];
        const float min_j = j.min[axis], max_j = j.max[axis];
        all = all && (open ? min_i < max_j && min_j < max_i : min_i <= max_j && min_j <= max_i);
    }
    return all;
}

// Pairs, those started and those ended, of a warp or a block, in one word.
DEVICE u64 three(u32 hits, u32 last) {
    return u64(__popc(hits)) | u64(__popc(hits & ~last)) << 20 | u64(__popc(last & ~hits)) << 40;
}
DEVICE u32 third(u64 three, u32 which) { return u32(three >> 20 * which) & 0xfffff; }

// Writes the pairs whose bits are set. Returns the slot behind them.
DEVICE u64 put(u32 bits, uint2 pair, u64 at, uint2* out, u64 capacity) {
    const u64 slot = at + __popc(bits & lanes_below());
    if ((bits >> lane_index() & 1) && slot < capacity) out[slot] = pair;
    return at + __popc(bits);
}

extern "C" __global__ void __launch_bounds__(KEEP_THREADS, KEEP_BLOCKS) sap_keep(
    const Box* boxes, State* state, const __grid_constant__ Candidates p) {
    __shared__ u64 sums[KEEP_WARPS], started_before, ended_before;
    __shared__ u32 tile, found[KEEP_WARPS][KEEP_ROUNDS];
    __shared__ uint2 waiting[KEEP_WARPS][KEEP_ROUNDS * WARP];
    __shared__ u8 slots[KEEP_WARPS][KEEP_ROUNDS * WARP];
    const u32 warp = threadIdx.x / WARP, lane = lane_index();
    // Every block takes a number, so that all before it run.
    if (threadIdx.x == 0) tile = u32(atomicAdd(p.words, 1ull));
    __syncthreads();
    const u64 first = u64(tile) * KEEP_ITEMS + warp * (KEEP_ROUNDS * WARP) + lane;
    uint2 pair[KEEP_ROUNDS];
    u32 depth[KEEP_ROUNDS], last[KEEP_ROUNDS];
    // The words of bits are padded to whole blocks. What the check does not write is read
    // at once.
    const bool is_tile = tile < p.tiles;
    const u32 word = tile * (KEEP_ITEMS / WARP) + warp * KEEP_ROUNDS,
              pairs_before = is_tile ? __ldcg(p.last.before + tile) : 0;
#pragma unroll
    for (u32 round = 0; round < KEEP_ROUNDS; round++) {
        last[round] = is_tile ? __ldcg(p.last.bits + word + round) : 0;
        const u64 k = first + round * WARP;
        const bool present = k < p.n;
        pair[round] = present ? __ldcg(p.list + k) : make_uint2(0, 0);
        depth[round] = present ? __ldcg(p.depths + k) : 0;
    }
    wait_for_stream();
    // Where a box has left there is no list any more, and nothing to clear.
    if (__syncthreads_or(threadIdx.x == WARP && state->left != 0)) return;
    if (threadIdx.x == 0) p.next_words[tile] = 0;
    if (!is_tile) return;
    // Bytes decide most. The other candidates gather, so that few rounds read boxes.
    u32 open = 0;
#pragma unroll
    for (u32 round = 0; round < KEEP_ROUNDS; round++) {
        const uchar2 a = p.slacks[pair[round].x], b = p.slacks[pair[round].y];
        const bool present = first + round * WARP < p.n;
        const bool apart = u32(a.x) + b.x > depth[round] && depth[round] < MAX_DEPTH;
        const bool deep = u32(a.y) + b.y <= depth[round] && depth[round] != NO_DEPTH;
        const bool unknown = present && !apart && !deep;
        const u32 decided = __ballot_sync(ALL_LANES, present && deep && !apart),
                  others = __ballot_sync(ALL_LANES, unknown);
        if (lane == 0) found[warp][round] = decided;
        if (unknown) {
            const u32 at = open + __popc(others & lanes_below());
            waiting[warp][at] = pair[round];
            slots[warp][at] = u8(round * WARP + lane);
        }
        open += __popc(others);
    }
    __syncwarp();
    for (u32 k = lane; k < open; k += WARP) {
        const uint2 ids = waiting[warp][k];
        const u32 slot = slots[warp][k];
        if (overlap(load_box(boxes + ids.x), load_box(boxes + ids.y), p.open != 0))
            atomicOr(&found[warp][slot / WARP], 1u << slot % WARP);
    }
    __syncwarp();
    u32 hits[KEEP_ROUNDS];
    u64 own = 0;
#pragma unroll
    for (u32 round = 0; round < KEEP_ROUNDS; round++) {
        hits[round] = found[warp][round];
        if (lane == 0) p.hits.bits[word + round] = hits[round];
        own += three(hits[round], last[round]);
    }
    if (lane == 0) sums[warp] = own;
    __syncthreads();
    if (warp == 0) {
        const u64 all = warp_sum(lane < KEEP_WARPS ? sums[lane] : 0);
        const u64 both = u64(third(all, 1)) | u64(third(all, 2)) << 31;
        const u64 sum = LookBack<u64>::exchange(p.words + 1, tile, both);
        if (lane == 0) {
            const u32 started = u32(sum) & 0x7fffffff, ended = u32(sum >> 31);
            started_before = started;
            ended_before = ended;
            const u32 before = pairs_before + started - ended;
            p.hits.before[tile] = before;
            if (tile == p.tiles - 1) {
                state->pairs = before + third(all, 0);
                state->started = started + third(all, 1);
                state->ended = ended + third(all, 2);
            }
        }
    }
    __syncthreads();
    const u64 within = add_warps_below<KEEP_WARPS>(u64(0), sums, warp);
    u64 started = started_before + third(within, 1), ended = ended_before + third(within, 2);
    u64 at = pairs_before + started_before - ended_before + third(within, 0);
#pragma unroll
    for (u32 round = 0; round < KEEP_ROUNDS; round++) {
        const uint2 both = pair[round];
        at = put(hits[round], both, at, p.pairs, p.pairs_capacity);
        started = put(hits[round] & ~last[round], both, started, p.out[0], p.capacity[0]);
        ended = put(last[round] & ~hits[round], both, ended, p.out[1], p.capacity[1]);
    }
}

}  // namespace radsweep::sap
