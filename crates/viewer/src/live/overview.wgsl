// What the camera, the sunlight and the colours need of balls that stay on the device: where most
// of them are, and how far they reach in some directions. Each of a number of workgroups adds up
// the balls of a stride, and one workgroup adds up their results, so that the sums are the same
// every time.
//
// Every ball is read twice, 36 bytes and then 16. The host reads 96 bytes.

struct Params {
    // The axes of the camera, with the slopes to the edges of the picture in `w` of the first two.
    right: vec4<f32>,
    up: vec4<f32>,
    forward: vec4<f32>,
    // The axes of the map of shadows.
    sun: array<vec4<f32>, 3>,
    balls: u32,
    groups: u32,
    // The multiple of the radius beyond which a ball is left out.
    far: f32,
}

// The extent and the reach; the host reads it.
struct Overview {
    center: vec3<f32>,
    radius: f32,
    low: vec3<f32>,
    speed: f32,
    high: vec3<f32>,
    overlaps: f32,
    // The max offsets of the four planes.
    offsets: vec4<f32>,
    // Max along the axes of the sun, and depth. Then the max of their negatives.
    ahead: vec4<f32>,
    behind: vec4<f32>,
}

// Sums over balls.
struct Sums {
    // Of the positions, and of their squares.
    position: vec4<f32>,
    // Of the radii and speeds; the max number of pairs.
    size: vec4<f32>,
    low: vec4<f32>,
    high: vec4<f32>,
}

struct Reach {
    offsets: vec4<f32>,
    ahead: vec4<f32>,
    behind: vec4<f32>,
}

const THREADS: u32 = 128u;
const LOWEST: f32 = -3.0e38;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> at: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> velocities: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> pairs: array<u32>;
@group(0) @binding(4) var<storage, read_write> sums: array<Sums>;
@group(0) @binding(5) var<storage, read_write> reaches: array<Reach>;
@group(0) @binding(6) var<storage, read_write> overview: Overview;

var<workgroup> shared_sums: array<Sums, THREADS>;
var<workgroup> shared_reaches: array<Reach, THREADS>;

fn no_sums() -> Sums {
    return Sums(vec4<f32>(), vec4<f32>(), vec4<f32>(-LOWEST), vec4<f32>(LOWEST));
}

fn both_sums(a: Sums, b: Sums) -> Sums {
    let size = vec4<f32>(a.size.xy + b.size.xy, max(a.size.z, b.size.z), 0.0);
    return Sums(a.position + b.position, size, min(a.low, b.low), max(a.high, b.high));
}

fn all_sums(lid: u32, own: Sums) -> Sums {
    shared_sums[lid] = own;
    for (var half = THREADS / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if lid < half {
            shared_sums[lid] = both_sums(shared_sums[lid], shared_sums[lid + half]);
        }
    }
    return shared_sums[0];
}

@compute @workgroup_size(THREADS)
fn sum_parts(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    var own = no_sums();
    for (var i = group.x * THREADS + lid; i < params.balls; i += params.groups * THREADS) {
        let ball = at[i];
        let speed = length(velocities[i].xyz);
        let one = Sums(
            vec4<f32>(ball.xyz, dot(ball.xyz, ball.xyz)),
            vec4<f32>(ball.w, speed, f32(pairs[i]), 0.0),
            ball,
            ball,
        );
        own = both_sums(own, one);
    }
    let all = all_sums(lid, own);
    if lid == 0u {
        sums[group.x] = all;
    }
}

// Adds up all sums, and estimates the extent as the host does.
@compute @workgroup_size(THREADS)
fn sum_all(@builtin(local_invocation_index) lid: u32) {
    var own = no_sums();
    for (var i = lid; i < params.groups; i += THREADS) {
        own = both_sums(own, sums[i]);
    }
    let all = all_sums(lid, own);
    if lid == 0u {
        let count = f32(params.balls);
        let center = all.position.xyz / count;
        let spread = sqrt(max(all.position.w / count - dot(center, center), 0.0));
        let half = length(all.high.xyz - all.low.xyz) / 2.0;
        overview.center = center;
        overview.radius = min(1.62 * spread, half) + all.size.x / count;
        overview.low = all.low.xyz;
        overview.speed = 2.5 * all.size.y / count;
        overview.high = all.high.xyz;
        overview.overlaps = all.size.z;
    }
}

fn no_reach() -> Reach {
    return Reach(vec4<f32>(LOWEST), vec4<f32>(LOWEST), vec4<f32>(LOWEST));
}

fn both_reaches(a: Reach, b: Reach) -> Reach {
    return Reach(max(a.offsets, b.offsets), max(a.ahead, b.ahead), max(a.behind, b.behind));
}

fn all_reaches(lid: u32, own: Reach) -> Reach {
    shared_reaches[lid] = own;
    for (var half = THREADS / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if lid < half {
            shared_reaches[lid] = both_reaches(shared_reaches[lid], shared_reaches[lid + half]);
        }
    }
    return shared_reaches[0];
}

@compute @workgroup_size(THREADS)
fn reach_parts(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    var own = no_reach();
    let slopes = vec2<f32>(params.right.w, params.up.w);
    let steep = sqrt(1.0 + slopes * slopes);
    let far = params.far * overview.radius;
    for (var i = group.x * THREADS + lid; i < params.balls; i += params.groups * THREADS) {
        let center = at[i].xyz;
        let radius = at[i].w;
        if distance(center, overview.center) < far {
            let x = dot(center, params.right.xyz);
            let y = dot(center, params.up.xyz);
            let z = dot(center, params.forward.xyz);
            let along = vec4<f32>(
                dot(center, params.sun[0].xyz),
                dot(center, params.sun[1].xyz),
                dot(center, params.sun[2].xyz),
                z,
            );
            let reach = vec4<f32>(radius, radius, radius, 0.0);
            let offsets = vec4<f32>(
                x - slopes.x * z + steep.x * radius,
                -x - slopes.x * z + steep.x * radius,
                y - slopes.y * z + steep.y * radius,
                -y - slopes.y * z + steep.y * radius,
            );
            own = both_reaches(own, Reach(offsets, along + reach, reach - along));
        }
    }
    let all = all_reaches(lid, own);
    if lid == 0u {
        reaches[group.x] = all;
    }
}

@compute @workgroup_size(THREADS)
fn reach_all(@builtin(local_invocation_index) lid: u32) {
    var own = no_reach();
    for (var i = lid; i < params.groups; i += THREADS) {
        own = both_reaches(own, reaches[i]);
    }
    let all = all_reaches(lid, own);
    if lid == 0u {
        overview.offsets = all.offsets;
        overview.ahead = all.ahead;
        overview.behind = all.behind;
    }
}
