// Particles that flow down a landscape: the steps of crates/scenes/src/particles.rs, operation by
// operation. Compiled without contraction to multiply-adds and without fast division, so that the
// bits are those of the CPU.
//
// One thread a particle. Bytes a particle: fall 32 r, 56 w; push, each of 4 rounds, 48 r, 16 w, and
// 36 for each of some ten neighbours, from L2; settle 32 r, 32 w. For a million particles some 0.15
// GB and 1.6 GB from L2, 0.4 ms at 4 TB/s of each. Measured in the first frames, with a neighbour
// for every fifth particle: fall 23 us, push 25 a round, settle 17 (21, 15 and 15 by their bytes).
#pragma once
#include "neighbours.cuh"

namespace radsweep::demo {

// Names and order of both are those of the host: crates/scenes/src/particles.rs and
// device/particles.rs.
struct Rules {
    float frame, gravity, max_speed, margin, share, friction, ground_friction, side;
};
ASSERT_LAYOUT(Rules, 32,
    AT(frame, 0) AT(gravity, 4) AT(max_speed, 8) AT(margin, 12) AT(share, 16) AT(friction, 20)
    AT(ground_friction, 24) AT(side, 28));

struct Ground {
    const float* heights;
    u32 width;
    float spacing;
};
ASSERT_LAYOUT(Ground, 16, AT(heights, 0) AT(width, 8) AT(spacing, 12));

DEVICE float4 inside(const Rules& rules, Vector at, float radius) {
    const float most = rules.side - radius;
    at.x = at.x < radius ? radius : at.x;
    at.x = at.x > most ? most : at.x;
    at.z = at.z < radius ? radius : at.z;
    at.z = at.z > most ? most : at.z;
    return with(at, radius);
}

// Returns the height of the ground, and how much it rises along x and along z.
DEVICE Vector ground_at(const Ground& ground, float x, float z) {
    const float along = x / ground.spacing, across = z / ground.spacing;
    const u32 column = min(__float2uint_rz(along), ground.width - 2),
              row = min(__float2uint_rz(across), ground.width - 2);
    const float u = along - float(column), v = across - float(row);
    const float* at = ground.heights + row * ground.width + column;
    const float a = at[0], b = at[1], c = at[ground.width], d = at[ground.width + 1];
    const float near = a + (b - a) * u, far = c + (d - c) * u;
    const float along_x = ((b - a) + ((d - c) - (b - a)) * v) / ground.spacing;
    return {along_x, near + (far - near) * v, (far - near) / ground.spacing};
}

// Returns what friction takes back of a movement along a surface: all of it, or as much as `limit`.
DEVICE Vector held_back(Vector moved, Vector normal, float limit) {
    const Vector along = moved - normal * dot(moved, normal);
    const float square = dot(along, along);
    return square > limit * limit ? along * (limit / sqrtf(square)) : along;
}

extern "C" __global__ void __launch_bounds__(256) demo_fall(
    const float4* from, float4* next, float4* velocities, float2* boxes, u32 n, Rules rules) {
    const u32 i = thread_index();
    if (i >= n) return;
    const float4 start = from[i];
    Vector velocity = xyz(velocities[i]);
    velocity.y -= rules.gravity * rules.frame;
    const float speed = sqrtf(dot(velocity, velocity));
    if (speed > rules.max_speed) velocity = velocity * (rules.max_speed / speed);
    velocities[i] = with(velocity, 0.0f);
    const float4 at = inside(rules, xyz(start) + velocity * rules.frame, start.w);
    next[i] = at;
    store_box(boxes, i, xyz(at), at.w + rules.margin);
}

extern "C" __global__ void __launch_bounds__(256) demo_push(
    const float4* before, const float4* from, float4* next, Neighbours neighbours, Ground ground,
    u32 n, Rules rules) {
    const u32 i = thread_index();
    if (i >= n) return;
    const float4 own = before[i];
    const Vector here = xyz(own), start = xyz(from[i]);
    Vector push = {0.0f, 0.0f, 0.0f};
    float pushes = 0.0f;

    const Vector below = ground_at(ground, own.x, own.z);
    const float length = sqrtf(below.x * below.x + 1.0f + below.z * below.z);
    const Vector up = {-below.x / length, 1.0f / length, -below.z / length};
    const float sunk = own.w - (own.y - below.y) * up.y;
    if (sunk > 0.0f) {
        push = up * sunk - held_back(here - start, up, rules.ground_friction * sunk);
        pushes = 1.0f;
    }
    neighbours.for_each(i, [&](u32 j) {
        const float4 other = before[j];
        const Vector apart = here - xyz(other);
        const float square = dot(apart, apart), reach = own.w + other.w;
        if (square >= reach * reach) return;
        const float distance = sqrtf(square);
        // At the same point one goes up, the other down.
        Vector normal = {0.0f, i < j ? -1.0f : 1.0f, 0.0f};
        if (distance > 1e-6f) normal = {apart.x / distance, apart.y / distance, apart.z / distance};
        const float depth = reach - distance;
        const Vector moved = (here - start) - (xyz(other) - xyz(from[j]));
        const Vector held = held_back(moved, normal, rules.friction * depth);
        push = push + (normal * depth - held) * 0.5f;
        pushes += 1.0f;
    });
    if (pushes == 0.0f) {
        next[i] = own;
        return;
    }
    const float share = pushes > rules.share ? rules.share / pushes : 1.0f;
    next[i] = inside(rules, here + push * share, own.w);
}

extern "C" __global__ void __launch_bounds__(256) demo_settle(
    const float4* next, float4* from, float4* velocities, Ground ground, u32 n, Rules rules) {
    const u32 i = thread_index();
    if (i >= n) return;
    float4 own = next[i];
    const float4 start = from[i];
    const Vector below = ground_at(ground, own.x, own.z);
    const float length = sqrtf(below.x * below.x + 1.0f + below.z * below.z);
    const float least = below.y + own.w * length;
    own.y = own.y < least ? least : own.y;
    const Vector way = xyz(own) - xyz(start);
    velocities[i] =
        make_float4(way.x / rules.frame, way.y / rules.frame, way.z / rules.frame, 0.0f);
    from[i] = own;
}

}  // namespace radsweep::demo
