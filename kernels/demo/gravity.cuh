// Gravity of many bodies in O(n log n) (J. Barnes, P. Hut, "A hierarchical O(N log N)
// force-calculation algorithm", Nature 1986): distant bodies act as one.
//
// The tree is that of crates/scenes/src/barnes_hut.rs. Bodies are in Morton order, by a sort of the
// host between `demo_codes` and `demo_nodes`. Eight bodies form a node of level 1, eight nodes of a
// level one of the next. A warp goes through the tree with 32 bodies at once (J. Bedorf, E.
// Gaburov, S. Portegies Zwart, "A sparse octree gravitational N-body code that runs entirely on the
// GPU processor", 2012, 3.3): each lane tests a node, far nodes and bodies gather in a list, and
// all lanes add up the list. Departures: nodes have no cells of an octree, and in most warps a node
// is far only if it is far from the box of all 32 bodies, so sums are closer to the exact ones than
// the CPU's, where eight bodies go together. All sums are in a fixed order.
//
// Bytes a body: bounds 16 r; codes 16 r, 4 w; sort by 30 bits 4 x 16; level 1 to 3 20 r, 16 w and
// 7 w of nodes; the rest in L2. An interaction is 12 arithmetic instructions, a reciprocal root and
// a load of 16 bytes that all lanes share, for 32 bodies; a test some 50 instructions for 32 nodes.
// Predicted, from interactions that a port of this counted at the start of the scene: 65,536 bodies
// have 1,560 each, 0.1 ms of arithmetic if half of all slots issue, and seven launches and the sort
// take 0.05; 262,144 have 2,270, 0.7 and 0.07. Measured (H200, 2026-11-30): 0.25 ms in all, and
// 0.72 to 0.86 from frame to frame; in the first frames of the latter demo_gravity takes 0.72, and
// nodes, drift, codes and bounds 12, 7, 4 and 12 us. The sum over all bodies, which this replaces,
// took 2.6 and 41 ms.
//
// A warp whose bodies lie on both sides of a jump of the curve has a box that is nearly empty, and
// opened nearly all nodes: one such warp made the launch take 2.0 and 9.3 ms. What is not far from
// the box of such a warp is tested with each of its bodies, 260 instructions for 32 nodes. In a
// model of two galaxies the longest list of 65,536 bodies was then 2.7 times the mean, and 7.6
// before. So many bodies fill the device once, which then waits for the warp with that list.
#pragma once
#include "sap/types.cuh"
#include "types.cuh"

namespace radsweep::demo {

constexpr u32 GRAVITY_THREADS = 128;
constexpr u32 NODES_THREADS = 512;
constexpr u32 CHILDREN = 8;
// Levels that a launch of `demo_nodes` builds: a block has 512 children, 64, 8 and 1 node.
constexpr u32 LEVELS_A_LAUNCH = 3;
// Levels of a tree of 2^28 bodies, these included.
constexpr u32 MAX_LEVELS = 11;
// A node is far if its extent is less than this share of its distance, as on the CPU.
constexpr float OPENING = 0.6f;
// A warp whose box is so many times as long as that of the eight of its bodies that lie closest
// together, of four times eight, is on both sides of a jump of the curve. A quarter of the warps of
// that model are; at 3 it is 41 %, for lists that are 2 % shorter.
constexpr float LONG = 4.0f;
// Nodes that a warp has yet to test. Near the limit it takes one at a time, which adds at most
// seven a level.
constexpr u32 STACK = 512;
constexpr u32 RESERVE = (CHILDREN - 1) * MAX_LEVELS;
// A level and an index of it.
constexpr u32 INDEX_BITS = 28;

// The nodes of all levels but the bodies, one level after another.
struct Nodes {
    float4* masses;  // the centre of mass and the mass
    float4* lows;    // the least corner, and the square of the distance from which it is far
    float4* highs;   // the greatest corner
};
ASSERT_LAYOUT(Nodes, 24, AT(masses, 0) AT(lows, 8) AT(highs, 16));

DEVICE u32 parents(u32 count) { return count / CHILDREN + (count % CHILDREN != 0); }

DEVICE Vector least(Vector a, Vector b) {
    return {fminf(a.x, b.x), fminf(a.y, b.y), fminf(a.z, b.z)};
}
DEVICE Vector greatest(Vector a, Vector b) {
    return {fmaxf(a.x, b.x), fmaxf(a.y, b.y), fmaxf(a.z, b.z)};
}
DEVICE float longest(Vector a) { return fmaxf(fmaxf(a.x, a.y), a.z); }

// Combines vectors of the lanes in groups of LANES. Every lane gets the result.
template <u32 LANES, class Combine>
DEVICE Vector reduced(Vector value, Combine combine) {
#pragma unroll
    for (u32 step = LANES / 2; step > 0; step /= 2) {
        value = combine(
            value, Vector{
                       __shfl_xor_sync(ALL_LANES, value.x, step),
                       __shfl_xor_sync(ALL_LANES, value.y, step),
                       __shfl_xor_sync(ALL_LANES, value.z, step)});
    }
    return value;
}
DEVICE Vector plus(Vector a, Vector b) { return a + b; }

using sap::ordered;
// Returns the float of ordered bits.
DEVICE float of_ordered(u32 x) { return __uint_as_float(x ^ (x >> 31 ? 1u << 31 : ~0u)); }

// Finds the bounds of all bodies: in `ends`, all ones before, the least coordinates in order, then
// the complements of the greatest.
extern "C" __global__ void __launch_bounds__(256) demo_bounds(const float4* at, u32* ends, u32 n) {
    // A lane without a body takes the last one.
    Vector low = xyz(at[min(thread_index(), n - 1)]), high = low;
    for (u64 i = thread_index(); i < n; i += u64(gridDim.x) * blockDim.x) {
        low = least(low, xyz(at[i]));
        high = greatest(high, xyz(at[i]));
    }
    low = reduced<WARP>(low, least);
    high = reduced<WARP>(high, greatest);
    if (lane_index() > 0) return;
    atomicMin(ends, ordered(low.x));
    atomicMin(ends + 1, ordered(low.y));
    atomicMin(ends + 2, ordered(low.z));
    atomicMin(ends + 3, ~ordered(high.x));
    atomicMin(ends + 4, ~ordered(high.y));
    atomicMin(ends + 5, ~ordered(high.z));
}

// Spreads the ten low bits, with two zero bits between them.
DEVICE u32 spread(u32 bits) {
    bits = (bits | bits << 16) & 0x030000ff;
    bits = (bits | bits << 8) & 0x0300f00f;
    bits = (bits | bits << 4) & 0x030c30c3;
    return (bits | bits << 2) & 0x09249249;
}

// Writes the Morton code of each body, of 30 bits.
extern "C" __global__ void __launch_bounds__(256) demo_codes(
    const float4* at, const u32* ends, u32* codes, u32 n) {
    const u32 i = thread_index();
    if (i >= n) return;
    const Vector low = {of_ordered(ends[0]), of_ordered(ends[1]), of_ordered(ends[2])};
    const Vector high = {of_ordered(~ends[3]), of_ordered(~ends[4]), of_ordered(~ends[5])};
    const float scale = 1023.0f / fmaxf(longest(high - low), 1.17549435e-38f);
    const Vector cell = (xyz(at[i]) - low) * scale;
    codes[i] = spread(u32(cell.x)) | spread(u32(cell.y)) << 1 | spread(u32(cell.z)) << 2;
}

// What a node knows of its bodies.
struct Content {
    Vector moment;  // the sum of positions times masses
    float mass;
    Vector low, high;
};

// Returns the content of each eight lanes, to all of them.
DEVICE Content gathered(Content part) {
    const Vector mass = reduced<CHILDREN>({part.mass, 0.0f, 0.0f}, plus);
    return {
        reduced<CHILDREN>(part.moment, plus), mass.x, reduced<CHILDREN>(part.low, least),
        reduced<CHILDREN>(part.high, greatest)};
}

DEVICE Content nothing() {
    constexpr float most = sap::INFINITE;
    return {{0.0f, 0.0f, 0.0f}, 0.0f, {most, most, most}, {-most, -most, -most}};
}

// Builds up to three levels above `level`, whose first node is `first` and which has `count`. Level
// 0 are the bodies, which it writes in `order` to `sorted`.
extern "C" __global__ void __launch_bounds__(NODES_THREADS) demo_nodes(
    const float4* at, const u32* order, float4* sorted, Nodes nodes, u32 level, u32 first,
    u32 count) {
    __shared__ Content contents[NODES_THREADS / CHILDREN];
    const u32 i = thread_index();
    Content own = nothing();
    if (i < count && level == 0) {
        const float4 body = at[order[i]];
        sorted[i] = body;
        own = {xyz(body) * body.w, body.w, xyz(body), xyz(body)};
    } else if (i < count) {
        const float4 mass = nodes.masses[first + i];
        own = {xyz(mass) * mass.w, mass.w, xyz(nodes.lows[first + i]), xyz(nodes.highs[first + i])};
    }
    u32 next = level == 0 ? 0 : first + count, block = blockIdx.x * NODES_THREADS;
    u32 threads = NODES_THREADS;
#pragma unroll
    for (u32 step = 0; step < LEVELS_A_LAUNCH; step++) {
        count = parents(count);
        threads /= CHILDREN;
        block /= CHILDREN;
        // Whole warps: the lanes behind the threads of a level have nothing.
        if (threadIdx.x < max(threads * CHILDREN, WARP)) {
            const Content node = gathered(own);
            const u32 index = threadIdx.x / CHILDREN;
            if (threadIdx.x % CHILDREN == 0 && index < threads) {
                contents[index] = node;
                if (block + index < count) {
                    const u32 to = next + block + index;
                    const float reach = longest(node.high - node.low) / OPENING;
                    nodes.masses[to] = with(node.moment * (1.0f / node.mass), node.mass);
                    nodes.lows[to] = with(node.low, reach * reach);
                    nodes.highs[to] = with(node.high, 0.0f);
                }
            }
        }
        if (count == 1) return;
        next += count;
        __syncthreads();
        own = threadIdx.x < threads ? contents[threadIdx.x] : nothing();
        __syncthreads();
    }
}

// The bodies of a lane's warp, and what pulls them.
struct Group {
    Vector own, low, high, sum;

    DEVICE bool is_far(float4 mass, float reach) const {
        const Vector middle = xyz(mass);
        const Vector apart = middle - greatest(low, least(high, middle));
        return reach < dot(apart, apart);
    }

    // Whether most of the box of all bodies is likely to be empty. `is_full` tells of each lane
    // whether its eight all have a body.
    DEVICE bool is_long(bool is_full) const {
        const Vector sides = reduced<CHILDREN>(own, greatest) - reduced<CHILDREN>(own, least);
        const float side = is_full ? longest(sides) : sap::INFINITE;
        return longest(high - low) > LONG * warp_min(side);
    }

    DEVICE void pull(float4 other, float soft) {
        const Vector apart = xyz(other) - own;
        const float x = apart.x, y = apart.y, z = apart.z;
        const float inverse = rsqrtf(fmaf(x, x, fmaf(y, y, fmaf(z, z, soft))));
        const float pull = other.w * inverse * (inverse * inverse);
        sum = {fmaf(x, pull, sum.x), fmaf(y, pull, sum.y), fmaf(z, pull, sum.z)};
    }
};

// Whether a node is far from each body of a warp.
DEVICE bool is_far_from_each(const float4* bodies, float4 mass, float reach) {
    bool far = true;
#pragma unroll 8
    for (u32 k = 0; k < WARP; k++) {
        const Vector apart = xyz(mass) - xyz(bodies[k]);
        far = far & (reach < dot(apart, apart));
    }
    return far;
}

// Finds the acceleration of each body, a lane for each in Morton order, and the sum of the forces
// on the bodies of each warp.
extern "C" __global__ void __launch_bounds__(GRAVITY_THREADS) demo_gravity(
    const float4* sorted, const u32* order, Nodes nodes, float4* pulls, float4* forces, u32 n,
    float soft) {
    constexpr u32 WARPS = GRAVITY_THREADS / WARP;
    __shared__ u32 firsts[MAX_LEVELS], counts[MAX_LEVELS], top;
    __shared__ u32 stacks[WARPS][STACK];
    __shared__ float4 lists[WARPS][2 * WARP], bodies[WARPS][WARP];
    if (threadIdx.x == 0) {
        u32 level = 0, first = 0;
        counts[0] = n;
        do {
            firsts[level + 1] = first;
            counts[level + 1] = parents(counts[level]);
            level++;
            first += counts[level];
        } while (counts[level] > 1);
        top = level;
    }
    __syncthreads();
    const u32 lane = lane_index(), i = thread_index();
    if (i - lane >= n) return;
    u32* stack = stacks[threadIdx.x / WARP];
    float4* list = lists[threadIdx.x / WARP];
    float4* own = bodies[threadIdx.x / WARP];
    const float4 body = own[lane] = sorted[min(i, n - 1)];
    Group group = {xyz(body)};
    group.low = reduced<WARP>(group.own, least);
    group.high = reduced<WARP>(group.own, greatest);
    const bool is_long = group.is_long((i | (CHILDREN - 1)) < n);
    if (lane == 0) stack[0] = top << INDEX_BITS;
    u32 waiting = 1, listed = 0;
    __syncwarp();
    while (waiting > 0) {
        // Each taken node may put seven more there than it was.
        const i32 room = (i32(STACK - RESERVE) - i32(waiting)) / i32(CHILDREN - 1);
        const u32 taken = min(waiting, u32(max(1, min(room, i32(WARP)))));
        waiting -= taken;
        const bool has = lane < taken;
        const u32 entry = has ? stack[waiting + lane] : 0;
        __syncwarp();  // before others are written there
        const u32 level = entry >> INDEX_BITS, index = entry & ((1u << INDEX_BITS) - 1);
        bool far = has;
        float4 mass;
        if (has && level == 0) {
            mass = sorted[index];
        } else if (has) {
            const u32 node = firsts[level] + index;
            mass = nodes.masses[node];
            const float reach = nodes.lows[node].w;
            far = group.is_far(mass, reach) || (is_long && is_far_from_each(own, mass, reach));
        }
        const u32 lanes = __ballot_sync(ALL_LANES, far);
        if (far) list[listed + __popc(lanes & lanes_below())] = mass;
        listed += __popc(lanes);
        const u32 opened = has && !far ? min(CHILDREN, counts[level - 1] - CHILDREN * index) : 0;
        const u32 up_to = warp_inclusive_sum(opened, lane);
        for (u32 k = 0; k < opened; k++) {
            stack[waiting + up_to - opened + k] =
                (level - 1) << INDEX_BITS | (CHILDREN * index + k);
        }
        waiting += __shfl_sync(ALL_LANES, up_to, WARP - 1);
        __syncwarp();
        if (listed >= WARP) {
            listed -= WARP;
#pragma unroll 8
            for (u32 k = 0; k < WARP; k++) group.pull(list[listed + k], soft);
        }
        __syncwarp();
    }
    for (u32 k = 0; k < listed; k++) group.pull(list[k], soft);
    if (i < n) pulls[order[i]] = with(group.sum, 0.0f);
    const Vector force = reduced<WARP>(group.sum * (i < n ? body.w : 0.0f), plus);
    if (lane == 0) forces[i / WARP] = with(force, 0.0f);
}

// Finds what the approximation adds to the acceleration of all bodies together: the sum of the
// forces, divided by the mass of `root`. One block.
extern "C" __global__ void __launch_bounds__(256) demo_drift(
    const float4* forces, u32 warps, const float4* root, float4* drift) {
    __shared__ double sums[3][256];
    double x = 0.0, y = 0.0, z = 0.0;
    for (u32 i = threadIdx.x; i < warps; i += 256) {
        const float4 force = forces[i];
        x += force.x;
        y += force.y;
        z += force.z;
    }
    sums[0][threadIdx.x] = x;
    sums[1][threadIdx.x] = y;
    sums[2][threadIdx.x] = z;
    for (u32 half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x >= half) continue;
        for (u32 axis = 0; axis < 3; axis++) {
            sums[axis][threadIdx.x] += sums[axis][threadIdx.x + half];
        }
    }
    if (threadIdx.x > 0) return;
    const double mass = root->w;
    *drift = make_float4(
        float(sums[0][0] / mass), float(sums[1][0] / mass), float(sums[2][0] / mass), 0.0f);
}

}  // namespace radsweep::demo
