// A tree of boxes, for scenes that sweep and cells would test far more than they find. Its work is
// near n log n + pairs wherever some axis, size, class or world tells boxes apart, at every scale
// on its own: nested plates, straws along all axes, dust among giants, heaps of boxes of which no
// two may pair.
//
// The order. Positions are cut into segments whose size is a power of two. Each pass sorts every
// segment by a property of its own, which cuts it into 8, until 32 boxes are left. The property (a
// center, a side, the world or the class) is the one by which 32 boxes of the segment would be
// tested least if they were the segment; that is counted. No minimum, maximum or mean of the scene
// is part of it: a box far away is a rank among others.
//
// Classes. Boxes begin in the order of their classes: static and asleep first, then the set, then a
// hash of layers, mask and group. A segment with boxes of more than one kind keeps that order. So
// at most one segment a level and border is mixed, and nodes of one class are left out as a whole
// if the class does not pair with itself.
//
// The nodes. 32 boxes next to each other are a node, 32 nodes one of the next level, up to 32 at
// the top. A node has the union of its boxes, their min and max index and world, all layers and
// masks, and the flags and the group that all its boxes share.
//
// 10^6 boxes of `nested_rooms` in 5 passes, in us: choose 14 to 30 a pass, keys 17, permute 8.0,
// place 28, union 16 and 3 for each higher level (predicted by bytes: 8 to 9 for keys, 3, 14 and
// 8; boxes are read from anywhere). The sweep bounds them all, 55 registers, 100 instructions a
// lane for 32 children, issued in 70 % of all cycles.
//
// Steps, by launch, bytes a box:
//   choose   a warp a segment; 1,300 shuffles
//   keys     4 + 24 read, 8 written
//   sort     ../sort, index sort of 64-bit keys, of which 32 and the segment's bits
//   permute  8 read, 4 written; these four in each pass, one for each 3 bits of n / 32, and one
//            more with classes
//   place    28 read (16 with filters, 4 with worlds), 32 written (16, 8)
//   union    32 read (16, 8) for each child
//   sweep    a warp a box: it pops a node and tests its 32 children at once, a lane each, if they
//            have later positions than the box; hits are boxes for `accept`, or nodes for the
//            stack; after 128 nodes it leaves those that wait to warps that are done
#pragma once
#include "accept.cuh"
#include "block/bitonic.cuh"
#include "emit.cuh"
#include "grid_sweep.cuh"
#include "types.cuh"

namespace radsweep::sap {

constexpr u32 TREE_LEVELS = 7;
constexpr u32 TREE_THREADS = 256;
// A node on the stack: its level and its index there. Each level leaves 31 at most, the top 32.
constexpr u32 TREE_STACK = WARP * TREE_LEVELS;
// Properties that the boxes of a segment are sorted by: centers and sides on three axes from here
// on, world, class, none.
constexpr u32 BY_CENTER = 0, BY_SIDE = 3, BY_WORLD = 6, BY_CLASS = 7, AS_THEY_ARE = 8;
// The nodes that a warp visits for a box before it leaves the rest to others, and the capacity for
// those.
constexpr u32 VISITS = 128, LEFT = 1 << 14;
constexpr u64 TAKEN = ~0ull;
// Up to this many classes are told apart; of more, only flags and sets.
constexpr u64 FEW_CLASSES = 64;

// The nodes that warps left to others. A box may overlap any number of nodes, and one warp would
// take far longer than all others. An item is a position and, below, a node as on the stack. The
// warp that leaves an item and the one that takes it both come to its slot: the second one has the
// item. So no warp waits for another.
struct Left {
    u64 count, taken;
    u64 items[LEFT];  // 0 = no warp has come
};
ASSERT_LAYOUT(Left, 131088, AT(count, 0) AT(taken, 8) AT(items, 16));

// Names and order are those of `Input` in crates/sap/src/cuda/find/tree.rs.
struct TreeInput {
    const Box* boxes;
    const u32* ids;    // their indices in the frame; null = the same
    const u32* order;  // the box at each position
    // By level, boxes by position first; min and max index instead of index and level.
    Record* nodes;
    uint4* classes;  // by node; null without filters
    uint2* worlds;   // min and max; null without worlds
    u64* kinds;      // how often the class changes in the order that boxes begin in
    Left* left;      // zeros before a sweep
    u64 first[TREE_LEVELS];
    u32 n, levels;
    const u32* world_of;  // by index in the frame
    State* state;
    Accept accept;

    DEVICE u64 count(u32 level) const { return (u64(n) + (1ull << 5 * level) - 1) >> 5 * level; }
};
ASSERT_LAYOUT(TreeInput, 208,
    AT(boxes, 0) AT(ids, 8) AT(order, 16) AT(nodes, 24) AT(classes, 32) AT(worlds, 40)
    AT(kinds, 48) AT(left, 56) AT(first, 64) AT(n, 120) AT(levels, 124) AT(world_of, 128)
    AT(state, 136) AT(accept, 144));

// A box, or the union of some.
struct Node {
    float4 low, high;
    uint4 filter;
    uint2 world;
    DEVICE u32 least() const { return __float_as_uint(high.z); }
    DEVICE u32 greatest() const { return __float_as_uint(high.w); }
};

DEVICE Node node_of_box(const TreeInput& in, u32 box) {
    const Box b = load_box(in.boxes + box);
    const u32 id = in.ids ? in.ids[box] : box;
    Node node;
    node.low = make_float4(b.min[0], b.min[1], b.min[2], b.max[0]);
    node.high = make_float4(b.max[1], b.max[2], __uint_as_float(id), __uint_as_float(id));
    node.filter = in.accept.filters ? in.accept.filters[id] : make_uint4(1, 1, 0, 0);
    const u32 world = in.world_of ? in.world_of[id] : 0;
    node.world = make_uint2(world, world);
    return node;
}

// Returns the node of no box, for lanes beyond the last.
DEVICE Node no_node() {
    Node node;
    node.low = make_float4(INFINITE, INFINITE, INFINITE, -INFINITE);
    node.high = make_float4(-INFINITE, -INFINITE, __uint_as_float(0xffffffffu), 0.0f);
    node.filter = make_uint4(0, 0, 0, 0xffffffffu);
    node.world = make_uint2(0xffffffffu, 0);
    return node;
}

DEVICE Node load_node(const TreeInput& in, u64 at) {
    Node node;
    node.low = in.nodes[at].low;
    node.high = in.nodes[at].high;
    node.filter = in.classes ? in.classes[at] : make_uint4(1, 1, 0, 0);
    node.world = in.worlds ? in.worlds[at] : make_uint2(0, 0);
    return node;
}

DEVICE void store_node(const TreeInput& in, u64 at, const Node& node) {
    in.nodes[at] = Record{node.low, node.high};
    if (in.classes) in.classes[at] = node.filter;
    if (in.worlds) in.worlds[at] = node.world;
}

DEVICE bool no_box(const Node& node) { return !(node.low.x <= node.low.w); }

DEVICE Node unite(const Node& a, const Node& b) {
    // Boxes that overlap nothing do not count, whatever their filters.
    if (no_box(a)) return b;
    if (no_box(b)) return a;
    Node all;
    all.low = make_float4(
        fminf(a.low.x, b.low.x), fminf(a.low.y, b.low.y), fminf(a.low.z, b.low.z),
        fmaxf(a.low.w, b.low.w));
    all.high = make_float4(
        fmaxf(a.high.x, b.high.x), fmaxf(a.high.y, b.high.y),
        __uint_as_float(min(a.least(), b.least())),
        __uint_as_float(max(a.greatest(), b.greatest())));
    const u32 group = a.filter.z == b.filter.z ? a.filter.z : 0;
    all.filter = make_uint4(
        a.filter.x | b.filter.x, a.filter.y | b.filter.y, group, a.filter.w & b.filter.w);
    all.world = make_uint2(min(a.world.x, b.world.x), max(a.world.y, b.world.y));
    return all;
}

// Returns the word of lane `from`, or of the lane whose index differs by the bits of `from`.
template <bool XOR>
DEVICE u32 word_of(u32 word, u32 from) {
    return XOR ? __shfl_xor_sync(ALL_LANES, word, from) : __shfl_sync(ALL_LANES, word, from);
}

template <bool XOR>
DEVICE float4 words_of(const float4& of, u32 from) {
    return make_float4(
        __uint_as_float(word_of<XOR>(__float_as_uint(of.x), from)),
        __uint_as_float(word_of<XOR>(__float_as_uint(of.y), from)),
        __uint_as_float(word_of<XOR>(__float_as_uint(of.z), from)),
        __uint_as_float(word_of<XOR>(__float_as_uint(of.w), from)));
}

// Returns the node of that lane.
template <bool XOR>
DEVICE Node node_of_lane(const Node& node, u32 from) {
    Node other;
    other.low = words_of<XOR>(node.low, from);
    other.high = words_of<XOR>(node.high, from);
    other.filter = make_uint4(
        word_of<XOR>(node.filter.x, from), word_of<XOR>(node.filter.y, from),
        word_of<XOR>(node.filter.z, from), word_of<XOR>(node.filter.w, from));
    other.world = make_uint2(word_of<XOR>(node.world.x, from), word_of<XOR>(node.world.y, from));
    return other;
}

// Whether a box may pair with some box of a node. It is exact in f32 where the node is one box, but
// for the open rule.
DEVICE bool may_pair(const Node& box, const Node& node, u64 split) {
    if (!overlap(box.low, box.high, node.low, node.high)) return false;
    const uint4 i = box.filter, j = node.filter;
    const bool worlds = node.world.x <= box.world.x && box.world.x <= node.world.y;
    const bool other_set =
        split == 0 || (box.least() < split ? node.greatest() >= split : node.least() < split);
    return worlds && other_set && filters_allow(i, j);
}

// Returns the class of a box. Classes sort by what excludes whole sets first.
DEVICE u32 class_of(const TreeInput& in, u32 box) {
    const u32 id = in.ids ? in.ids[box] : box;
    const uint4 f = in.accept.filters ? in.accept.filters[id] : make_uint4(0, 0, 0, 0);
    const u32 set = id < in.accept.split;
    return (f.w & STATIC_OR_ASLEEP) << 30 | set << 29 | hash(f.x, int(f.y), int(f.z), 0) >> 3;
}

DEVICE bool same_kind(u32 a, u32 b, bool few) { return few ? a == b : a >> 29 == b >> 29; }

// Returns the value that boxes are sorted by.
DEVICE u32 property(const TreeInput& in, u32 which, u32 box) {
    if (which == BY_CLASS) return class_of(in, box);
    if (which == BY_WORLD) return in.world_of[in.ids ? in.ids[box] : box];
    const Box b = load_box(in.boxes + box);
    const u32 axis = which % 3;
    const float low = pick(b.min, axis), high = pick(b.max, axis);
    const float value = which < BY_SIDE ? 0.5f * low + 0.5f * high : high - low;
    // Infinity less infinity: any number will do.
    return ordered(value == value ? value + 0.0f : 0.0f);
}

// Sorts lanes by value, then by index. Returns the lane that comes at this lane's rank.
DEVICE u32 sort_lanes(u32 value) {
    u64 key[1] = {u64(value) << 32 | lane_index()};
    warp_bitonic_sort<false>(key);
    return u32(key[0]);
}

// Segments of `size` boxes. `pass` counts the passes.
extern "C" __global__ void __launch_bounds__(TREE_THREADS) sap_tree_choose(
    const __grid_constant__ TreeInput in, u32 size, u32 pass, u32* choices) {
    wait_for_stream();
    const u32 segment = (blockIdx.x * blockDim.x + threadIdx.x) / WARP, lane = lane_index();
    const u64 start = u64(segment) * size;
    if (start >= in.n) return;
    const u32 len = min(in.n - u32(start), size);
    if (in.accept.filters || in.accept.split) {
        const u32 first = class_of(in, in.order[start]),
                  last = class_of(in, in.order[start + len - 1]);
        if (!same_kind(first, last, *in.kinds < FEW_CLASSES)) {
            if (lane == 0) choices[segment] = AS_THEY_ARE;
            return;
        }
    }
    const u32 jitter = hash(segment, int(lane), int(pass), 0) % len;
    const u32 box = in.order[start + (u64(lane) * len + jitter) / WARP];
    const Node own = node_of_box(in, box);
    u32 best = 0, least = 0xffffffffu;
    for (u32 k = 0; k < AS_THEY_ARE; k++) {
        // Axes that are equally good take turns.
        const u32 which = k < BY_SIDE ? (k + pass) % 3 : k;
        if ((which == BY_WORLD && !in.world_of) || (which == BY_CLASS && !in.accept.filters))
            continue;
        const u32 from = sort_lanes(property(in, which, box));
        Node node = node_of_lane<false>(own, from);
        // Otherwise boxes that share neither flag nor layer at first would stay together.
        node = unite(node, node_of_lane<true>(node, 1));
        node = unite(node, node_of_lane<true>(node, 2));
        u32 tests = 0;
        for (u32 child = 0; child < WARP; child += 4) {
            const Node of_child = node_of_lane<false>(node, child);
            tests += may_pair(own, of_child, in.accept.split);
        }
        tests = warp_sum(tests);
        if (tests < least) {
            least = tests;
            best = which;
        }
    }
    if (lane == 0) choices[segment] = best;
}

// Segments of 2^bits boxes.
extern "C" __global__ void __launch_bounds__(TREE_THREADS) sap_tree_keys(
    const __grid_constant__ TreeInput in, u32 bits, const u32* choices, u64* keys) {
    wait_for_stream();
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= in.n) return;
    const u32 segment = u32(u64(k) >> bits), which = choices[segment];
    keys[k] = u64(segment) << 32 | (which == AS_THEY_ARE ? k : property(in, which, in.order[k]));
}

// `index` has the positions in the new order. Counts where the class changes, if `count_kinds`.
extern "C" __global__ void __launch_bounds__(TREE_THREADS) sap_tree_permute(
    const __grid_constant__ TreeInput in, const u32* index, u32* order, u32 count_kinds) {
    wait_for_stream();
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= in.n) return;
    const u32 box = in.order[index[k]];
    order[k] = box;
    if (count_kinds && k > 0 && class_of(in, box) != class_of(in, in.order[index[k - 1]]))
        atomicAdd(in.kinds, 1ull);
}

extern "C" __global__ void __launch_bounds__(TREE_THREADS) sap_tree_begin(u32* order, u32 n) {
    wait_for_stream();
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < n) order[k] = k;
}

extern "C" __global__ void __launch_bounds__(TREE_THREADS) sap_tree_place(
    const __grid_constant__ TreeInput in) {
    wait_for_stream();
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < in.n) store_node(in, k, node_of_box(in, in.order[k]));
}

// One warp a node of `level`, which unites those below it.
extern "C" __global__ void __launch_bounds__(TREE_THREADS) sap_tree_union(
    const __grid_constant__ TreeInput in, u32 level) {
    wait_for_stream();
    const u64 number = (u64(blockIdx.x) * blockDim.x + threadIdx.x) / WARP,
              child = number * WARP + lane_index();
    if (number >= in.count(level)) return;
    Node node =
        child < in.count(level - 1) ? load_node(in, in.first[level - 1] + child) : no_node();
    for (u32 step = 1; step < WARP; step *= 2) node = unite(node, node_of_lane<true>(node, step));
    if (lane_index() == 0) store_node(in, in.first[level] + number, node);
}

// One warp's part of the sweep.
template <class Output>
struct TreeWarp {
    const TreeInput& in;
    Emitter<Output> emitter;
    u32* const stack;  // nodes of `own` that wait, as level and index
    u32 waiting = 0;
    u64 tests = 0;

    DEVICE TreeWarp(const TreeInput& in, const Output& output, WarpOut& out, u32* stack)
        : in(in), emitter(output, &in.state->pairs, out), stack(stack) {}

    // Tests the children of a node, and all nodes that this leads to, against the box at
    // `position`.
    DEVICE void walk(u32 position, u32 node) {
        const u32 lane = lane_index();
        const Node own = load_node(in, position);
        if (no_box(own)) return;
        for (u32 visits = 1;; visits++) {
            const u32 below = (node >> 29) - 1;
            const u64 child = u64(node & 0x1fffffff) * WARP + lane, end = in.count(below);
            // Only nodes that hold a later position.
            const bool there =
                child < end &&
                (below == 0 ? child > position : (child + 1) << 5 * below > position + 1ull);
            tests += __popc(__ballot_sync(ALL_LANES, there));
            const bool meets =
                there && may_pair(own, load_node(in, in.first[below] + child), in.accept.split);
            if (below == 0) {
                u32 a = 0, b = 0;
                bool hit = meets;
                if (hit) {
                    const Record record = in.nodes[child];
                    if (in.accept.open)
                        hit = overlap_openly(own.low, own.high, record.low, record.high);
                    hit =
                        hit && accept(in.accept, own.least(), __float_as_uint(record.high.z), a, b);
                }
                emitter.take(hit, a, b);
            } else {
                const u32 hits = __ballot_sync(ALL_LANES, meets);
                if (meets) stack[waiting + __popc(hits & lanes_below())] = below << 29 | u32(child);
                waiting += __popc(hits);
                __syncwarp();
            }
            if (visits % VISITS == 0) leave(position);
            if (waiting == 0) break;
            node = stack[--waiting];
            __syncwarp();
        }
    }

    // Leaves the waiting nodes to other warps, except those beyond the capacity and those whose
    // taker came first.
    DEVICE void leave(u32 position) {
        u64 slot = 0;
        if (lane_index() == 0) slot = atomicAdd(&in.left->count, u64(waiting));
        slot = __shfl_sync(ALL_LANES, slot, 0) + lane_index();
        u32 kept = 0;
        for (u32 k = lane_index(); k - lane_index() < waiting; k += WARP, slot += WARP) {
            const u32 node = k < waiting ? stack[k] : 0;
            const bool keeps =
                node != 0 && (slot >= LEFT ||
                              atomicExch(&in.left->items[slot], u64(position) << 32 | node) != 0);
            const u32 keepers = __ballot_sync(ALL_LANES, keeps);
            // A vote orders no memory: all have read before any writes.
            __syncwarp();
            if (keeps) stack[kept + __popc(keepers & lanes_below())] = node;
            kept += __popc(keepers);
            __syncwarp();
        }
        waiting = kept;
    }

    // Takes a node that some warp has left. Returns 0 if there is none.
    DEVICE u64 take() {
        u64 item = 0;
        if (lane_index() == 0) {
            volatile const u64 *count = &in.left->count, *taken = &in.left->taken;
            while (item == 0 && *taken < min(*count, u64(LEFT))) {
                const u64 slot = atomicAdd(&in.left->taken, 1ull);
                if (slot < LEFT) item = atomicExch(&in.left->items[slot], TAKEN);
            }
        }
        return __shfl_sync(ALL_LANES, item, 0);
    }
};

template <class Output>
DEVICE void tree_sweep(const TreeInput& in, const Output& output) {
    constexpr u32 WARPS = TREE_THREADS / WARP;
    __shared__ WarpOut outs[WARPS];
    __shared__ u32 stacks[WARPS][TREE_STACK];
    const u32 warp = threadIdx.x / WARP;
    const u64 position = (u64(blockIdx.x) * blockDim.x + threadIdx.x) / WARP;
    if (position >= in.n) return;
    TreeWarp<Output> own(in, output, outs[warp], stacks[warp]);
    // The top level's nodes are tested as the children of one that is never stored.
    for (u64 item = position << 32 | in.levels << 29; item != 0; item = own.take())
        own.walk(u32(item >> 32), u32(item));
    own.emitter.flush();
    if (lane_index() == 0 && own.tests > 0) atomicAdd(&in.state->tests, own.tests);
}

extern "C" __global__ void __launch_bounds__(TREE_THREADS) sap_tree_sweep(
    const __grid_constant__ TreeInput in, const __grid_constant__ Keys keys) {
    wait_for_stream();
    tree_sweep(in, keys);
}

// Only counts the pairs of each `a`, to cut them into chunks.
extern "C" __global__ void __launch_bounds__(TREE_THREADS) sap_tree_count(
    const __grid_constant__ TreeInput in, const __grid_constant__ Counts counts) {
    wait_for_stream();
    tree_sweep(in, counts);
}

}  // namespace radsweep::sap
