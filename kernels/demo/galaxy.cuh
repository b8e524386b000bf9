// Bodies under each other's gravity, which bounce where they touch: the steps of
// crates/scenes/src/galaxy.rs, with the sum over all bodies instead of the tree.
//
// Gravity (L. Nyland, M. Harris, J. Prins, "Fast N-Body Simulation with CUDA", GPU Gems 3, 2007): a
// block has 256 bodies, two a thread, and goes through a part of all bodies by tiles of 128 in
// shared memory. The parts are then added in order, so that the sum is the same every time. An
// interaction is 12 arithmetic instructions and one reciprocal root (a quarter of the rate); all
// lanes read the same body of the tile at once, 16 bytes for two interactions a lane. 65,536 bodies
// on 132 multiprocessors at 1.8 GHz: 4.3 G interactions, 1.7 ms if the arithmetic units never wait.
// Bytes: 4 MB in L2.
#pragma once
#include "neighbours.cuh"

namespace radsweep::demo {

constexpr u32 GRAVITY_THREADS = 128;
constexpr u32 BODIES_A_THREAD = 2;

// Makes half a kick, and the step. Bytes a body: 48 r, 56 w.
extern "C" __global__ void __launch_bounds__(256) demo_move(
    float4* at, float4* moves, const float4* pulls, float2* boxes, u32 n, float frame) {
    const u32 i = thread_index();
    if (i >= n) return;
    const float4 move = moves[i], here = at[i];
    const Vector velocity = xyz(move) + xyz(pulls[i]) * (frame / 2.0f);
    const Vector there = xyz(here) + velocity * frame;
    moves[i] = with(velocity, move.w);
    at[i] = with(there, here.w);
    store_box(boxes, i, there, move.w);
}

// Adds up the pull of the bodies [part * share, (part + 1) * share) on each body; part =
// blockIdx.y. A body does not pull itself: the distance is 0.
extern "C" __global__ void __launch_bounds__(GRAVITY_THREADS) demo_gravity(
    const float4* at, float4* parts, u32 n, u32 share, float soft) {
    __shared__ float4 tile[GRAVITY_THREADS];
    const float4 nothing = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    Vector own[BODIES_A_THREAD], sum[BODIES_A_THREAD];
    const u32 first = blockIdx.x * GRAVITY_THREADS * BODIES_A_THREAD + threadIdx.x;
#pragma unroll
    for (u32 k = 0; k < BODIES_A_THREAD; k++) {
        const u32 i = first + k * GRAVITY_THREADS;
        own[k] = xyz(i < n ? at[i] : nothing);
        sum[k] = {0.0f, 0.0f, 0.0f};
    }
    const u32 begin = blockIdx.y * share, end = min(begin + share, n);
    for (u32 start = begin; start < end; start += GRAVITY_THREADS) {
        const u32 j = start + threadIdx.x;
        __syncthreads();
        tile[threadIdx.x] = j < end ? at[j] : nothing;  // no mass, no pull
        __syncthreads();
#pragma unroll 16
        for (u32 t = 0; t < GRAVITY_THREADS; t++) {
            const float4 other = tile[t];
#pragma unroll
            for (u32 k = 0; k < BODIES_A_THREAD; k++) {
                const float x = other.x - own[k].x, y = other.y - own[k].y, z = other.z - own[k].z;
                const float inverse = rsqrtf(fmaf(x, x, fmaf(y, y, fmaf(z, z, soft))));
                const float pull = other.w * inverse * (inverse * inverse);
                sum[k] = {
                    fmaf(x, pull, sum[k].x), fmaf(y, pull, sum[k].y), fmaf(z, pull, sum[k].z)};
            }
        }
    }
#pragma unroll
    for (u32 k = 0; k < BODIES_A_THREAD; k++) {
        const u32 i = first + k * GRAVITY_THREADS;
        if (i < n) parts[u64(blockIdx.y) * n + i] = with(sum[k], 0.0f);
    }
}

// Adds up the parts, and makes the other half of the kick.
extern "C" __global__ void __launch_bounds__(256) demo_kick(
    const float4* parts, u32 count, float4* pulls, float4* moves, u32 n, float frame) {
    const u32 i = thread_index();
    if (i >= n) return;
    Vector sum = {0.0f, 0.0f, 0.0f};
    for (u32 part = 0; part < count; part++) sum = sum + xyz(parts[u64(part) * n + i]);
    pulls[i] = with(sum, 0.0f);
    const float4 move = moves[i];
    moves[i] = with(xyz(move) + sum * (frame / 2.0f), move.w);
}

// Finds, of the neighbours that touch a body and approach it, the one that overlaps it most; the
// body itself if there is none.
extern "C" __global__ void __launch_bounds__(256) demo_partner(
    const float4* at, const float4* moves, Neighbours neighbours, u32* partners, u32 n) {
    const u32 i = thread_index();
    if (i >= n) return;
    const float4 here = at[i], move = moves[i];
    u32 found = i;
    float least = 1.0f;
    neighbours.for_each(i, [&](u32 j) {
        const Vector apart = xyz(here) - xyz(at[j]);
        const float4 other = moves[j];
        const float closing = dot(xyz(move) - xyz(other), apart), reach = move.w + other.w;
        const float part = dot(apart, apart) / (reach * reach);
        if (closing < 0.0f && part < least) {
            found = j;
            least = part;
        }
    });
    partners[i] = found;
}

// Two bodies that are each other's partners bounce. The momentum that one gains the other loses.
extern "C" __global__ void __launch_bounds__(256) demo_bounce(
    const float4* at, const float4* before, const u32* partners, float4* moves, u32 n) {
    const u32 i = thread_index();
    if (i >= n) return;
    const u32 j = partners[i];
    float4 move = before[i];
    if (j != i && partners[j] == i) {
        const Vector apart = xyz(at[i]) - xyz(at[j]);
        const float closing = dot(xyz(move) - xyz(before[j]), apart);
        const float share = at[j].w / (at[i].w + at[j].w);
        move = with(xyz(move) + apart * (-2.0f * share * closing / dot(apart, apart)), move.w);
    }
    moves[i] = move;
}

}  // namespace radsweep::demo
