// Particles that flow down a landscape: the steps of crates/scenes/src/particles.rs, operation by
// operation. WGSL lets a device round divisions and roots in more than one way, and contract a
// product and a sum to one operation. So the bits are not those of the CPU, but the same in every
// run on a device.
//
// | kernel | bytes a particle |
// |---|---|
// | `fall` | 32 read, 40 written |
// | `push`, each of 4 rounds | 48 read, 16 written; 36 for each of ten neighbours, from cache |
// | `settle` | 48 read, 36 written |

// Names and order are those of `Rules` in Rust.
struct Rules {
    frame: f32,
    gravity: f32,
    max_speed: f32,
    margin: f32,
    share: f32,
    friction: f32,
    ground_friction: f32,
    side: f32,
    // The distance between points of the landscape, and their number along x.
    spacing: f32,
    width: u32,
    bodies: u32,
}

@group(0) @binding(0) var<uniform> rules: Rules;
// Centres and radii before a round.
@group(0) @binding(7) var<storage, read> before: array<vec4<f32>>;
@group(0) @binding(17) var<storage, read> heights: array<f32>;

// Keeps a position inside the walls at the borders of the landscape.
fn inside(at: vec3<f32>, radius: f32) -> vec4<f32> {
    let far = rules.side - radius;
    var x = select(at.x, radius, at.x < radius);
    x = select(x, far, x > far);
    var z = select(at.z, radius, at.z < radius);
    z = select(z, far, z > far);
    return vec4<f32>(x, at.y, z, radius);
}

// Returns the height of the ground, and how much it rises along x and along z.
fn ground_at(x: f32, z: f32) -> vec3<f32> {
    let along = x / rules.spacing;
    let across = z / rules.spacing;
    let column = min(u32(along), rules.width - 2u);
    let row = min(u32(across), rules.width - 2u);
    let u = along - f32(column);
    let v = across - f32(row);
    let first = row * rules.width + column;
    let a = heights[first];
    let b = heights[first + 1u];
    let c = heights[first + rules.width];
    let d = heights[first + rules.width + 1u];
    let close = a + (b - a) * u;
    let far = c + (d - c) * u;
    let along_x = ((b - a) + ((d - c) - (b - a)) * v) / rules.spacing;
    return vec3<f32>(along_x, close + (far - close) * v, (far - close) / rules.spacing);
}

// Returns the length of the normal (-x, 1, -z) of a slope.
fn steepness(slope: vec3<f32>) -> f32 {
    return sqrt(slope.x * slope.x + 1.0 + slope.z * slope.z);
}

// Returns what friction takes back of a motion along a surface: all of it, or up to `limit`.
fn taken_by_friction(moved: vec3<f32>, normal: vec3<f32>, limit: f32) -> vec3<f32> {
    let along = moved - normal * product(moved, normal);
    let square = product(along, along);
    if square > limit * limit {
        return along * (limit / sqrt(square));
    }
    return along;
}

// Applies gravity, and predicts the position of each particle at the end of the frame. The motion
// of the frame replaces the velocity in `settle`.
@compute @workgroup_size(WORKGROUP)
fn fall(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let i = index_of(lid, group, groups);
    if i >= rules.bodies {
        return;
    }
    let start = starts[i];
    var velocity = velocities[i].xyz;
    velocity.y -= rules.gravity * rules.frame;
    let speed = sqrt(product(velocity, velocity));
    if speed > rules.max_speed {
        velocity *= rules.max_speed / speed;
    }
    let at = inside(start.xyz + velocity * rules.frame, start.w);
    next_at[i] = at;
    store_box(i, at.xyz, at.w + rules.margin);
}

// Returns the push of the ground on a ball, and 1 if there is one.
fn push_of_ground(own: vec4<f32>, start: vec3<f32>) -> vec4<f32> {
    let slope = ground_at(own.x, own.z);
    let length = steepness(slope);
    let normal = vec3<f32>(-slope.x / length, 1.0 / length, -slope.z / length);
    let depth = own.w - (own.y - slope.y) * normal.y;
    if depth <= 0.0 {
        return vec4<f32>();
    }
    let taken = taken_by_friction(own.xyz - start, normal, rules.ground_friction * depth);
    return vec4<f32>(normal * depth - taken, 1.0);
}

// Returns the push of a ball on ball `i`, and 1 if they overlap: half of the way apart.
fn push_of_other(i: u32, own: vec4<f32>, moved: vec3<f32>, j: u32) -> vec4<f32> {
    let other = before[j];
    let apart = own.xyz - other.xyz;
    let square = product(apart, apart);
    let reach = own.w + other.w;
    if square >= reach * reach {
        return vec4<f32>();
    }
    let distance = sqrt(square);
    // At the same centre one moves up, the other down.
    var normal = vec3<f32>(0.0, select(1.0, -1.0, i < j), 0.0);
    if distance > 1e-6 {
        normal = apart / distance;
    }
    let depth = reach - distance;
    let relative = moved - (other.xyz - starts[j].xyz);
    let taken = taken_by_friction(relative, normal, rules.friction * depth);
    return vec4<f32>((normal * depth - taken) * 0.5, 1.0);
}

@compute @workgroup_size(WORKGROUP)
fn push(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let i = index_of(lid, group, groups);
    if i >= rules.bodies {
        return;
    }
    let own = before[i];
    let start = starts[i].xyz;
    let moved = own.xyz - start;
    var sum = push_of_ground(own, start);
    let row = rows[i];
    for (var k = row.x; k < row.y; k++) {
        sum += push_of_other(i, own, moved, below[k]);
    }
    for (var k = row.z; k < row.w; k++) {
        sum += push_of_other(i, own, moved, above[k]);
    }
    if sum.w == 0.0 {
        next_at[i] = own;
        return;
    }
    let share = select(1.0, rules.share / sum.w, sum.w > rules.share);
    next_at[i] = inside(own.xyz + sum.xyz * share, own.w);
}

// Lifts particles out of the ground, and computes the velocities from the motion.
@compute @workgroup_size(WORKGROUP)
fn settle(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let i = index_of(lid, group, groups);
    if i >= rules.bodies {
        return;
    }
    var own = before[i];
    let slope = ground_at(own.x, own.z);
    let lowest = slope.y + own.w * steepness(slope);
    own.y = select(own.y, lowest, own.y < lowest);
    next_velocities[i] = vec4<f32>((own.xyz - starts[i].xyz) / rules.frame, 0.0);
    next_at[i] = own;
    counts[i] = count_of(rows[i]);
}
