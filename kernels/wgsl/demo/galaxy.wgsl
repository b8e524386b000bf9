// Bodies under each other's gravity, which bounce where they touch: the steps of
// crates/scenes/src/galaxy.rs, with the sum over all bodies instead of the tree, as
// kernels/demo/galaxy.cuh takes them. The mass of a body is with its velocity, its radius with its
// centre.
//
// Gravity (L. Nyland, M. Harris, J. Prins, "Fast N-Body Simulation with CUDA", GPU Gems 3, 2007): a
// workgroup has a body for each thread, and goes through a part of all bodies by tiles in its
// memory. The parts are then added in order, so that the sum is the same every time. An
// interaction is 14 arithmetic instructions and one reciprocal root; all lanes read the same body
// of the tile at once.

struct Rules {
    frame: f32,
    // The square of the softening length, below which gravity grows no further.
    soft: f32,
    bodies: u32,
    // The number of parts of all bodies, and the bodies of a part.
    parts: u32,
    share: u32,
}

@group(0) @binding(0) var<uniform> rules: Rules;
// The pull of each part on each body, and the sum of all parts.
@group(0) @binding(7) var<storage, read_write> partial: array<vec4<f32>>;
@group(0) @binding(17) var<storage, read_write> pulls: array<vec4<f32>>;
// The body that each one bounces off, or its own index for none.
@group(0) @binding(18) var<storage, read_write> partners: array<u32>;

// Centres and masses.
var<workgroup> tile: array<vec4<f32>, WORKGROUP>;

// Makes half a kick, and the step.
@compute @workgroup_size(WORKGROUP)
fn advance(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let i = index_of(lid, group, groups);
    if i >= rules.bodies {
        return;
    }
    let start = starts[i];
    let velocity = velocities[i].xyz + pulls[i].xyz * (rules.frame / 2.0);
    let at = start.xyz + velocity * rules.frame;
    next_velocities[i] = vec4<f32>(velocity, velocities[i].w);
    next_at[i] = vec4<f32>(at, start.w);
    store_box(i, at, start.w);
}

// Adds up the pull of a part of all bodies on each body. A body does not pull itself: the distance
// is 0.
@compute @workgroup_size(WORKGROUP)
fn gravity(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let blocks = (rules.bodies + WORKGROUP - 1u) / WORKGROUP;
    let block = group_index(group, groups);
    let part = block / blocks;
    // Whole workgroups leave: every thread of the others reaches each barrier.
    if part >= rules.parts {
        return;
    }
    let i = (block % blocks) * WORKGROUP + lid;
    let own = starts[min(i, rules.bodies - 1u)].xyz;
    var sum = vec3<f32>();
    let begin = part * rules.share;
    let end = min(begin + rules.share, rules.bodies);
    for (var start = begin; start < end; start += WORKGROUP) {
        let j = start + lid;
        workgroupBarrier();
        // Without mass there is no pull.
        tile[lid] = vec4<f32>();
        if j < end {
            tile[lid] = vec4<f32>(starts[j].xyz, velocities[j].w);
        }
        workgroupBarrier();
        for (var k = 0u; k < WORKGROUP; k++) {
            let other = tile[k];
            let apart = other.xyz - own;
            let inverse = inverseSqrt(product(apart, apart) + rules.soft);
            sum += apart * (other.w * inverse * (inverse * inverse));
        }
    }
    if i < rules.bodies {
        partial[part * rules.bodies + i] = vec4<f32>(sum, 0.0);
    }
}

// Adds up the parts, and makes the other half of the kick.
@compute @workgroup_size(WORKGROUP)
fn kick(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let i = index_of(lid, group, groups);
    if i >= rules.bodies {
        return;
    }
    var sum = vec4<f32>();
    for (var part = 0u; part < rules.parts; part++) {
        sum += partial[part * rules.bodies + i];
    }
    pulls[i] = sum;
    // Its `w` is 0: the mass stays.
    next_velocities[i] += sum * (rules.frame / 2.0);
}

// Tells whether a neighbour that touches a body and approaches it overlaps it more than the last
// one found, and how much: the square of their distance over that at which they touch.
fn meets(i: u32, j: u32, least: f32) -> vec2<f32> {
    let apart = starts[i].xyz - starts[j].xyz;
    let closing = product(velocities[i].xyz - velocities[j].xyz, apart);
    let reach = starts[i].w + starts[j].w;
    let part = product(apart, apart) / (reach * reach);
    return vec2<f32>(select(0.0, 1.0, closing < 0.0 && part < least), part);
}

@compute @workgroup_size(WORKGROUP)
fn find_partner(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let i = index_of(lid, group, groups);
    if i >= rules.bodies {
        return;
    }
    let row = rows[i];
    var found = i;
    var least = 1.0;
    for (var k = row.x; k < row.y; k++) {
        let met = meets(i, below[k], least);
        found = select(found, below[k], met.x > 0.0);
        least = select(least, met.y, met.x > 0.0);
    }
    for (var k = row.z; k < row.w; k++) {
        let met = meets(i, above[k], least);
        found = select(found, above[k], met.x > 0.0);
        least = select(least, met.y, met.x > 0.0);
    }
    partners[i] = found;
    counts[i] = count_of(row);
}

// Two bodies that are each other's partners bounce. The momentum that one gains the other loses.
@compute @workgroup_size(WORKGROUP)
fn bounce(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let i = index_of(lid, group, groups);
    if i >= rules.bodies {
        return;
    }
    let j = partners[i];
    var velocity = velocities[i];
    if j != i && partners[j] == i {
        let apart = starts[i].xyz - starts[j].xyz;
        let closing = product(velocity.xyz - velocities[j].xyz, apart);
        let share = velocities[j].w / (velocity.w + velocities[j].w);
        let change = apart * (-2.0 * share * closing / product(apart, apart));
        velocity = vec4<f32>(velocity.xyz + change, velocity.w);
    }
    next_velocities[i] = velocity;
}
