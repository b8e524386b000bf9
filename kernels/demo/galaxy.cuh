// Bodies under each other's gravity, which bounce where they touch: the steps of
// crates/scenes/src/galaxy.rs. gravity.cuh has the gravity.
//
// Predicted from the bytes for 262,144 bodies on an H200: move 6 us, kick 4, partner 3, bounce 2.5.
// Measured by the profiler (2026-11-30): 8.8, 6.0, 8.4 and 5.2. Bodies are in L2, in one wave of
// blocks: a launch and two or three loads after each other take most of it, in partner two more for
// each neighbour.
#pragma once
#include "neighbours.cuh"

namespace radsweep::demo {

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

// Makes the other half of the kick, by what pulls each body without the drift of all.
extern "C" __global__ void __launch_bounds__(256) demo_kick(
    float4* pulls, const float4* drift, float4* moves, u32 n, float frame) {
    const u32 i = thread_index();
    if (i >= n) return;
    const Vector pull = xyz(pulls[i]) - xyz(*drift);
    pulls[i] = with(pull, 0.0f);
    const float4 move = moves[i];
    moves[i] = with(xyz(move) + pull * (frame / 2.0f), move.w);
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
