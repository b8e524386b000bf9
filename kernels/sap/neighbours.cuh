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
//   keep      tests 1,024 candidates a block, a tile, and counts its pairs and events
//   put       writes the pairs and events of two tiles a block
//
// Most candidates are decided by bytes. The slack of a box is how far its sides are from those of
// its loosened box, least and most. Two loosened boxes overlap by a depth. Where the least slacks
// sum to more, the boxes are apart on the axis of the depth; where the most slacks sum to less,
// they overlap on all axes. Slacks are rounded to the safe side, in a 32nd of the least margin.
// While no box has left, no slack is below 0. Few are above WIDE_SLACK, and `check` tells if any
// is. So the slack of `a` alone decides 40 % of the candidates where boxes walk by 1 % of their
// size. Boxes are read only where slacks do not decide: 15 % there. Such boxes are about as far
// apart, or as deep in each other, as they have moved.
//
// keep, put: 256 threads, 4 and 8 candidates a thread. `keep` reads the caller's boxes; an invalid
// or empty one is in no pair. The pairs and events of a tile are packed in one word, which is added
// to the word of its group of 256 tiles. `put` adds up the groups before its own, and in its own
// the tiles before its two, so that no block waits for another. Both read candidates while the
// kernel ahead still runs (`wait_for_stream`), from L2, since no wait has made the first-level
// cache forget what was there before. So they are the launches directly behind `check`.
//
// Bytes a box in `check`: 24 + 24 read, 24 + 2 written. Bytes a candidate in `keep`: 9 read, a
// sector of 32 for the slack of b, and 3 sectors for the boxes of one that is not decided. In
// `put`: 8 read, and 8 written for each pair. Instructions of a thread of `keep`: about 40 a
// candidate.
//
// All in the stage `bounds`, H200, 2026-11-28: 10^6 boxes with 2.8 M candidates 73 us, of which
// `check` takes 24, `keep` 30 (estimated) and `put` 13; 10^7 with 29 M 586 us. The check and `put`
// of 10^7 are as fast as memory: 178 us for 750 MB, 84 for 350. What bounds `keep` is requests to
// L2: with one for the slack of each b it had 4.6 M of 10^6 boxes in 35 us, 80 % of what L2 takes;
// it has 3.5 M.
//
// One kernel that tested and wrote took 92 and 713 us (the same day): its blocks learned by
// look-back where their pairs go, and waited for that 30 % of their time. Compared with today's
// form, and no faster: the list in half the bytes, with `a` as a difference from the first of 128
// (10^7: the same); lanes next to each other that read the words of one box (`keep`: 40 us); one
// tile a block of `put` (10^7: 96 us), or four (the same). With the kernel of look-back were
// compared: a byte for each candidate, how far boxes may move until its bit can change (10^7: 0.02
// ms more, as the check must read the last boxes too); the least and the most slack of all boxes in
// place of those of b (`check` takes 3 us more).
//
// Not built: a list that goes on while a few boxes have left, which are searched apart and whose
// pairs are merged into the others. Boxes that walk leave at about the same time: after the frame
// in which the first of 10^6 leaves, which ends a list now, one in a thousand has left in 2.3 times
// as many frames and one in a hundred in 3.7 times. Of the mean frame, 121 us then, building took
// 34. The search, its pairs and the merge would take some 30 in most frames, so little would be
// won.
#pragma once
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

constexpr u32 KEEP_THREADS = 256, KEEP_WARPS = KEEP_THREADS / WARP;
constexpr u32 KEEP_BLOCKS = 8;                                    // on a multiprocessor
constexpr u32 KEEP_ITEMS = 1024, KEEP_WORDS = KEEP_ITEMS / WARP;  // a tile, and its words of bits
constexpr u32 KEEP_ROUNDS = KEEP_ITEMS / KEEP_THREADS;
constexpr u32 KEEP_GROUP = 256;  // tiles
constexpr u32 PUT_TILES = 2;     // of a block
constexpr u32 PUT_BLOCKS = 6;    // on a multiprocessor
constexpr u32 PUT_WORDS = PUT_TILES * KEEP_WORDS, PUT_ROUNDS = PUT_WORDS / KEEP_WARPS;
static_assert(KEEP_GROUP == KEEP_THREADS, "a thread of `put` reads the sum of a tile of its group");
static_assert(KEEP_GROUP % PUT_TILES == 0, "the tiles of a block are of one group");
static_assert(PUT_WORDS <= KEEP_THREADS, "a thread of `put` reads a word of bits");

// Slacks and depths are whole units. Slacks above 255 are 255, depths above 254 are 254.
constexpr u32 MAX_SLACK = 255, MAX_DEPTH = 254;
// The depth of boxes of which nothing is known from their slacks.
constexpr u32 NO_DEPTH = 255;
// The most slack of nearly all boxes: three of the least margins.
constexpr u32 WIDE_SLACK = 96;
// What `check` has seen of any box: that it left its loosened one, or has a wider slack than that.
constexpr u32 HAS_LEFT = 1, IS_WIDE = 2;

struct Candidates {
    const Box* loose;
    uchar2* slacks;  // least and most, of each box
    const u8* depths;
    const uint2* list;
    u32 n;  // less than 2^31
    u32 tiles;
    float units;  // in a length of 1
    u32 open;
    // Whether each candidate was a pair in the last frame, and is one: a bit each, of whole tiles.
    const u32* last;
    u32* hits;
    // What `three` returns for each tile, and the sums of that over groups.
    u64* tile_sums;
    u64* group_sums;
    uint2* pairs;
    uint2* out[2];  // started, ended
    u64 pairs_capacity;
    u64 capacity[2];
};
ASSERT_LAYOUT(Candidates, 128,
    AT(loose, 0) AT(slacks, 8) AT(depths, 16) AT(list, 24) AT(n, 32) AT(tiles, 36) AT(units, 40)
    AT(open, 44) AT(last, 48) AT(hits, 56) AT(tile_sums, 64) AT(group_sums, 72) AT(pairs, 80)
    AT(out, 88) AT(pairs_capacity, 104) AT(capacity, 112));

// Returns the least and the most slack of a box within its loosened one. Sides that are infinite in
// both do not move, and their difference, NaN, counts neither way. An empty box has the most slack,
// which may tell that it is apart, and never that it overlaps.
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
    bool left, wide;

    DEVICE explicit Listed(const Candidates& p)
        : p(p), i(0), loose(empty_box()), left(false), wide(false) {}

    DEVICE void before(u32 at, bool present) {
        i = at;
        if (present) loose = load_box(p.loose + i);
    }

    // An empty box overlaps nothing, wherever its loosened one is.
    DEVICE void look(const Box& box, bool same_labels) {
        left = !same_labels || !(is_empty(box) || holds(loose, box));
        const uchar2 slack = slack_of(loose, box, p.units);
        p.slacks[i] = slack;
        wide = slack.y > WIDE_SLACK && !is_empty(loose);
    }
};

// Sets a bit of `state->left` if any lane says so. The bits are set one by one: ptxas 12.9 and 13.0
// turn `seen != 0`, where `seen` has a bit of each of two votes, into `seen != 3`; 13.5 does not.
DEVICE void tell(State* state, u32 bit, bool own) {
    if (__any_sync(ALL_LANES, own) && lane_index() == 0 && (state->left & bit) == 0)
        atomicOr(&state->left, u64(bit));
}

extern "C" __global__ void __launch_bounds__(256) sap_check(
    const Box* boxes, const __grid_constant__ Prepare of, const __grid_constant__ Candidates p) {
    wait_for_stream();
    Listed listed(p);
    prepare(Plain{boxes}, of, listed);
    // There are no more groups than boxes: there are less than n^2 / 2 candidates, and less than
    // 2^31.
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (u64(i) * KEEP_GROUP < p.tiles) p.group_sums[i] = 0;
    tell(of.state, HAS_LEFT, listed.left);
    tell(of.state, IS_WIDE, listed.wide);
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

// Pairs, those started and those ended, of a word or of some tiles of a group, in one word.
DEVICE u64 three(u32 hits, u32 last) {
    return u64(__popc(hits)) | u64(__popc(hits & ~last)) << 20 | u64(__popc(last & ~hits)) << 40;
}
DEVICE u32 third(u64 three, u32 which) { return u32(three >> 20 * which) & 0xfffff; }
static_assert(KEEP_GROUP * KEEP_ITEMS < 1 << 20, "sums of a group have 20 bits");

// Whether the slacks of two boxes tell that they are apart, or that they overlap.
DEVICE bool apart(uchar2 a, uchar2 b, u32 depth) {
    return u32(a.x) + b.x > depth && depth < MAX_DEPTH;
}
DEVICE bool deep(uchar2 a, uchar2 b, u32 depth) {
    return u32(a.y) + b.y <= depth && depth != NO_DEPTH;
}

// Tests a tile.
extern "C" __global__ void __launch_bounds__(KEEP_THREADS, KEEP_BLOCKS) sap_keep(
    const Box* boxes, const State* state, const __grid_constant__ Candidates p) {
    __shared__ u64 sums[KEEP_WARPS];
    __shared__ u32 found[KEEP_WARPS][KEEP_ROUNDS];
    __shared__ uint2 waiting[KEEP_WARPS][KEEP_ROUNDS * WARP];
    __shared__ u8 slots[KEEP_WARPS][KEEP_ROUNDS * WARP];
    const u32 tile = blockIdx.x, warp = threadIdx.x / WARP, lane = lane_index();
    const u32 first = tile * KEEP_ITEMS + warp * (KEEP_ROUNDS * WARP) + lane;
    // What the check does not write is read at once.
    uint2 pair[KEEP_ROUNDS];
    u32 depth[KEEP_ROUNDS];
#pragma unroll
    for (u32 round = 0; round < KEEP_ROUNDS; round++) {
        const u32 k = first + round * WARP;
        pair[round] = k < p.n ? __ldcg(p.list + k) : make_uint2(0, 0);
        depth[round] = k < p.n ? __ldcg(p.depths + k) : 0;
    }
    wait_for_stream();
    uchar2 slack_a[KEEP_ROUNDS];
#pragma unroll
    for (u32 round = 0; round < KEEP_ROUNDS; round++) slack_a[round] = p.slacks[pair[round].x];
    // Past the first-level cache, which blocks of `check` may have read it into before it was set.
    const u64 seen = load_relaxed(&state->left);
    // Where a box has left there is no list any more.
    if (seen & HAS_LEFT) return;
    // Bytes decide most, those of `a` alone some. The other candidates gather, so that few rounds
    // read boxes.
    const uchar2 any = make_uchar2(0, seen & IS_WIDE ? MAX_SLACK : WIDE_SLACK);
    uchar2 slack_b[KEEP_ROUNDS];
#pragma unroll
    for (u32 round = 0; round < KEEP_ROUNDS; round++) {
        const uchar2 a = slack_a[round];
        const bool decides = apart(a, any, depth[round]) || deep(a, any, depth[round]);
        slack_b[round] = decides ? any : p.slacks[pair[round].y];
    }
    u32 open = 0;
#pragma unroll
    for (u32 round = 0; round < KEEP_ROUNDS; round++) {
        const uchar2 a = slack_a[round], b = slack_b[round];
        const bool present = first + round * WARP < p.n;
        const bool is_apart = apart(a, b, depth[round]), is_deep = deep(a, b, depth[round]);
        const bool unknown = present && !is_apart && !is_deep;
        const u32 decided = __ballot_sync(ALL_LANES, present && is_deep && !is_apart),
                  others = __ballot_sync(ALL_LANES, unknown);
        if (lane == 0) found[warp][round] = decided;
        if (unknown) {
            const u32 at = open + __popc(others & lanes_below());
            waiting[warp][at] = pair[round];
            slots[warp][at] = u8(round * WARP + lane);
        }
        open += __popc(others);
    }
    const u32 word = tile * KEEP_WORDS + warp * KEEP_ROUNDS + lane;
    const u32 last = lane < KEEP_ROUNDS ? p.last[word] : 0;
    __syncwarp();
    for (u32 k = lane; k < open; k += WARP) {
        const uint2 ids = waiting[warp][k];
        const u32 slot = slots[warp][k];
        if (overlap(load_box(boxes + ids.x), load_box(boxes + ids.y), p.open != 0))
            atomicOr(&found[warp][slot / WARP], 1u << slot % WARP);
    }
    __syncwarp();
    u64 own = 0;
    if (lane < KEEP_ROUNDS) {
        const u32 hits = found[warp][lane];
        p.hits[word] = hits;
        own = three(hits, last);
    }
    own = warp_sum(own);
    if (lane == 0) sums[warp] = own;
    __syncthreads();
    if (warp != 0) return;
    const u64 all = warp_sum(lane < KEEP_WARPS ? sums[lane] : 0);
    if (lane == 0) {
        p.tile_sums[tile] = all;
        atomicAdd(p.group_sums + tile / KEEP_GROUP, all);
    }
}

// Writes the pairs whose bits are set.
DEVICE void write_pairs(u32 bits, uint2 pair, u32 first, uint2* out, u64 capacity) {
    const u32 slot = first + __popc(bits & lanes_below());
    if ((bits >> lane_index() & 1) && slot < capacity) out[slot] = pair;
}

// Writes the pairs and the events of some tiles.
extern "C" __global__ void __launch_bounds__(KEEP_THREADS, PUT_BLOCKS) sap_put(
    State* state, const __grid_constant__ Candidates p) {
    __shared__ u32 sums[KEEP_WARPS][3];
    __shared__ u64 sums_of_words[KEEP_WARPS];
    __shared__ struct {
        u32 hits, last;
        u64 before;
    } words[PUT_WORDS];
    const u32 warp = threadIdx.x / WARP, lane = lane_index();
    const u32 tile = blockIdx.x * PUT_TILES, group = tile / KEEP_GROUP;
    const u32 first = tile * KEEP_ITEMS + warp * (PUT_ROUNDS * WARP) + lane;
    // What `keep` does not write is read at once.
    uint2 pair[PUT_ROUNDS];
#pragma unroll
    for (u32 round = 0; round < PUT_ROUNDS; round++) {
        const u32 k = first + round * WARP;
        pair[round] = k < p.n ? __ldcg(p.list + k) : make_uint2(0, 0);
    }
    const u32 word = tile * KEEP_WORDS + threadIdx.x;
    const bool is_word = threadIdx.x < PUT_WORDS && word < p.tiles * KEEP_WORDS;
    const u32 last = is_word ? __ldcg(p.last + word) : 0;
    wait_for_stream();
    const u64 seen = state->left;
    const u32 hits = is_word ? p.hits[word] : 0;
    // The groups before this one, and the tiles of this one before the block's.
    const u32 other = group * KEEP_GROUP + threadIdx.x;
    u64 sum = other < tile ? p.tile_sums[other] : 0;
    u32 before[3] = {third(sum, 0), third(sum, 1), third(sum, 2)};
    for (u32 k = threadIdx.x; k < group; k += KEEP_THREADS) {
        sum = p.group_sums[k];
#pragma unroll
        for (u32 i = 0; i < 3; i++) before[i] += third(sum, i);
    }
    if (seen & HAS_LEFT) return;
#pragma unroll
    for (u32 i = 0; i < 3; i++) {
        before[i] = warp_sum(before[i]);
        if (lane == 0) sums[warp][i] = before[i];
    }
    u64 own;
    const u64 within = block_exclusive_sum<KEEP_WARPS>(three(hits, last), sums_of_words, own);
    if (threadIdx.x < PUT_WORDS) words[threadIdx.x] = {hits, last, within};
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < 3; i++) {
        before[i] = 0;
#pragma unroll
        for (u32 w = 0; w < KEEP_WARPS; w++) before[i] += sums[w][i];
    }
    if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1) {
        state->pairs = before[0] + third(own, 0);
        state->started = before[1] + third(own, 1);
        state->ended = before[2] + third(own, 2);
    }
#pragma unroll
    for (u32 round = 0; round < PUT_ROUNDS; round++) {
        const auto of = words[warp * PUT_ROUNDS + round];
        const u32 started = of.hits & ~of.last, ended = of.last & ~of.hits;
        u32 at[3];
        for (u32 i = 0; i < 3; i++) at[i] = before[i] + third(of.before, i);
        write_pairs(of.hits, pair[round], at[0], p.pairs, p.pairs_capacity);
        if (started | ended) {
            write_pairs(started, pair[round], at[1], p.out[0], p.capacity[0]);
            write_pairs(ended, pair[round], at[2], p.out[1], p.capacity[1]);
        }
    }
}

}  // namespace radsweep::sap
