// The neighbour list: the candidates of boxes that were loosened by a margin, in the order of
// (a, b). While every box lies within its loosened one, and no filter, world or excluded pair has
// changed, the pairs of a frame are those candidates whose boxes overlap. They are in order
// already, so that a frame neither sorts nor searches. A bit of each candidate says whether it was
// a pair in the last frame, so that no lists are compared for events.
//
//   motion    how far sampled boxes have moved, from which the host chooses margins
//   loosen    the loosened boxes of a new list. Bytes a box: 48 read, 24 written. The list is what
//             the grid finds for them (grid_sweep.cuh), put in order (rows.cuh)
//   keep      a frame by the list, in one launch: a block checks and stores 256 boxes as `prepare`
//             does, sees whether one has left its loosened box, and tests 1,024 candidates
//
// keep: 256 threads, 4 candidates a thread. These read the caller's boxes, which need not be stored
// first: an invalid or empty one is in no pair. Blocks learn by look-back (block/look_back.cuh) how
// many pairs those before them started and ended. With the pairs before them in the last frame that
// says where their own go. The words of the next launch are cleared on the way.
//
// Bytes a box: 24 + 24 read, 24 written. Bytes a candidate: 8 read, 24 for the box b (mostly 2
// sectors of L2, 48), those of a shared with the candidates beside it, and 8 written for each pair.
// Instructions of a thread: about 60 for its box, 45 a candidate, 150 for sums and look-back.
//
// 10^6 boxes with 3.2 M candidates move 109 MB: 45 us predicted, 96 measured alone (H100,
// 2026-11-25). L2 is what is busiest, at 61 %, memory at 37 %: a box b is 1.5 sectors of it, and
// without these gathers the kernel takes 77 us. Warps wait a third of the time at barriers, and as
// long for loads; a fourth block on a multiprocessor, with 64 registers a thread, reduced the time
// from 103 us to 96. Compared in the same run, and no faster: b in two loads instead of three,
// blocks of 128 and of 512 threads, 2 and 8 candidates a thread, and blocks that only test beside
// others that only check boxes.
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
constexpr u32 KEEP_BLOCKS = 4;  // on a multiprocessor
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

struct Candidates {
    const Box* loose;
    const uint2* list;
    u32 n;  // less than 2^31
    u32 open;
    Hits last, hits;
    u64* words;       // one more than there are blocks of candidates, all zero: numbers the blocks
    u64* next_words;  // those of the next launch, which are made zero
    uint2* pairs;
    uint2* out[2];  // started, ended
    u64 pairs_capacity;
    u64 capacity[2];
};
ASSERT_LAYOUT(Candidates, 120,
    AT(loose, 0) AT(list, 8) AT(n, 16) AT(open, 20) AT(last, 24) AT(hits, 40) AT(words, 56)
    AT(next_words, 64) AT(pairs, 72) AT(out, 80) AT(pairs_capacity, 96) AT(capacity, 104));

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

// The part of `keep` that runs within `prepare`.
struct Listed {
    static constexpr bool LABELS = true;
    const Candidates& p;
    u32& tile;  // shared by the block
    Box loose;
    uint2 pair[KEEP_ROUNDS];
    bool left;

    DEVICE Listed(const Candidates& p, u32& tile)
        : p(p), tile(tile), loose(empty_box()), left(false) {}

    DEVICE u64 first() const {
        return u64(tile) * KEEP_ITEMS + threadIdx.x / WARP * (KEEP_ROUNDS * WARP) + lane_index();
    }

    // Every block takes a number, so that all before it run.
    DEVICE void before(u32 i, bool present) {
        if (threadIdx.x == 0) tile = u32(atomicAdd(p.words, 1ull));
        if (present) loose = load_box(p.loose + i);
    }

    DEVICE void after() {
        const u64 own = first();
#pragma unroll
        for (u32 round = 0; round < KEEP_ROUNDS; round++) {
            const u64 k = own + round * WARP;
            pair[round] = k < p.n ? p.list[k] : make_uint2(0, 0);
        }
    }

    // An empty box overlaps nothing, wherever its loosened one is.
    DEVICE void look(const Box& box, bool same_labels) {
        left = !same_labels || !(is_empty(box) || holds(loose, box));
    }
};

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

template <class Source>
DEVICE void keep(const Source& source, const Prepare& of, const Candidates& p) {
    __shared__ u64 sums[KEEP_WARPS], started_before, ended_before;
    __shared__ u32 tile;
    const u32 warp = threadIdx.x / WARP, lane = lane_index();
    Listed listed(p, tile);
    prepare(source, of, listed);
    if (__any_sync(ALL_LANES, listed.left) && lane == 0 && of.state->left == 0) of.state->left = 1;
    const u32 tiles = (p.n + KEEP_ITEMS - 1) / KEEP_ITEMS;
    if (tile > tiles) return;
    if (threadIdx.x == 0) p.next_words[tile] = 0;
    if (tile == tiles) return;

    Box a[KEEP_ROUNDS], b[KEEP_ROUNDS];
#pragma unroll
    for (u32 round = 0; round < KEEP_ROUNDS; round++) {
        a[round] = load_box(source.boxes + listed.pair[round].x);
        b[round] = load_box(source.boxes + listed.pair[round].y);
    }
    // The words of bits are padded to whole blocks.
    const u32 word = tile * (KEEP_ITEMS / WARP) + warp * KEEP_ROUNDS;
    u32 hits[KEEP_ROUNDS], last[KEEP_ROUNDS];
    u64 own = 0;
#pragma unroll
    for (u32 round = 0; round < KEEP_ROUNDS; round++) {
        const bool present = listed.first() + round * WARP < p.n;
        hits[round] = __ballot_sync(ALL_LANES, present && overlap(a[round], b[round], p.open != 0));
        last[round] = p.last.bits[word + round];
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
            const u32 before = p.last.before[tile] + started - ended;
            p.hits.before[tile] = before;
            if (tile == tiles - 1) {
                of.state->pairs = before + third(all, 0);
                of.state->started = started + third(all, 1);
                of.state->ended = ended + third(all, 2);
            }
        }
    }
    __syncthreads();
    const u64 within = add_warps_below<KEEP_WARPS>(u64(0), sums, warp);
    u64 started = started_before + third(within, 1), ended = ended_before + third(within, 2);
    u64 at = p.last.before[tile] + started_before - ended_before + third(within, 0);
#pragma unroll
    for (u32 round = 0; round < KEEP_ROUNDS; round++) {
        const uint2 pair = listed.pair[round];
        at = put(hits[round], pair, at, p.pairs, p.pairs_capacity);
        started = put(hits[round] & ~last[round], pair, started, p.out[0], p.capacity[0]);
        ended = put(last[round] & ~hits[round], pair, ended, p.out[1], p.capacity[1]);
    }
}

extern "C" __global__ void __launch_bounds__(KEEP_THREADS, KEEP_BLOCKS) sap_keep(
    const Box* boxes, const __grid_constant__ Prepare of, const __grid_constant__ Candidates p) {
    keep(Plain{boxes}, of, p);
}

}  // namespace radsweep::sap
