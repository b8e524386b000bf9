// Draws bodies, ground, wireframes and lines.
//
// Light comes from a sky above and a ground below (hemisphere), a sun, and a faint light from the
// other side; bodies have a bright rim, and haze grows towards the horizon. Depth is reversed and
// infinite: 1 near, 0 far.
//
// Bodies cast shadows: they are first drawn from the sun into a map of depths, 0 near, 1 far.

struct Globals {
    view_projection: mat4x4f,
    // From the world to the map of shadows.
    light: mat4x4f,
    eye: vec4f,
    // Half the width and height of the picture at distance 1 along these, w: its size in pixels.
    right: vec4f,
    up: vec4f,
    // w: the depth before which bodies are left out.
    forward: vec4f,
    // w: the distance from a surface at which its shadows are looked up.
    sun: vec4f,
    sun_light: vec4f,
    sky_top: vec4f,
    horizon: vec4f,
    ground: vec4f,
    // Haze per distance, grid spacing, high speed, max pairs.
    scales: vec4f,
    // Colour mode, whether a body is picked, unused, whether bodies glow.
    modes: vec4u,
}
@group(0) @binding(0) var<uniform> g: Globals;
@group(0) @binding(1) var shadow_map: texture_depth_2d;
@group(0) @binding(2) var shadow_sampler: sampler_comparison;

// Whether to encode sRGB here, since the picture does not.
override encoded: bool = false;
// Whether to leave out what costs much and shows little, where the CPU draws.
override quick: bool = false;
// Whether bodies cast shadows.
override shadows: bool = false;

const STATIC: u32 = 0x80000000u;
const PICKED: u32 = 0x40000000u;
const PARTNER: u32 = 0x20000000u;
const RESTING: u32 = 0x10000000u;
const PAIRS: u32 = 0x00ffffffu;

struct Body {
    @location(0) position: vec3f,
    @location(1) body: u32,
    @location(2) rotation: vec4f,
    @location(3) scale: vec3f,
    @location(4) speed: f32,
    @location(5) asleep: u32,
    @location(6) mark: u32,
}

struct Surface {
    @builtin(position) clip: vec4f,
    @location(0) world: vec3f,
    @location(1) normal: vec3f,
    @location(2) base: vec4f,
    // Position on the face of a box, from -1 to 1, to draw its edges; 0 for other shapes.
    @location(3) face: vec2f,
    @location(4) @interpolate(flat) mark: u32,
}

fn rotate(q: vec4f, v: vec3f) -> vec3f {
    let t = 2.0 * cross(q.xyz, v);
    return v + q.w * t + cross(q.xyz, t);
}

fn hash(value: u32) -> u32 {
    var h = value * 0x9e3779b1u;
    h = (h ^ (h >> 15u)) * 0x85ebca77u;
    return h ^ (h >> 13u);
}

// Returns the colour of a value from 0 to 1: blue, teal, yellow, orange, red.
fn ramp(part: f32) -> vec3f {
    var stops = array<vec3f, 5>(
        vec3f(0.035, 0.095, 0.36), vec3f(0.01, 0.36, 0.42), vec3f(0.82, 0.70, 0.16),
        vec3f(0.90, 0.28, 0.04), vec3f(0.62, 0.02, 0.05),
    );
    let at = clamp(part, 0.0, 1.0) * 4.0;
    let low = u32(min(at, 3.0));
    return mix(stops[low], stops[low + 1u], at - f32(low));
}

// No branch depends on a uniform alone (constants of a pipeline are none): llvmpipe would compile
// the shader again for every value of the uniforms, and store all of them.
fn colour_of(body: Body) -> vec4f {
    // Colours of wood and a few paints.
    var palette = array<vec3f, 8>(
        vec3f(0.46, 0.235, 0.09), vec3f(0.60, 0.37, 0.165), vec3f(0.27, 0.115, 0.045), vec3f(0.72, 0.52, 0.29),
        vec3f(0.56, 0.085, 0.05), vec3f(0.06, 0.215, 0.30), vec3f(0.75, 0.66, 0.50), vec3f(0.11, 0.24, 0.14),
    );
    let h = hash(body.body);
    let own = palette[h & 7u] * (0.85 + 0.3 * f32((h >> 8u) & 255u) / 255.0);
    let pairs = log2(1.0 + f32(body.mark & PAIRS)) / log2(1.0 + max(g.scales.w, 1.0));
    let speed = body.speed / max(g.scales.z, 1e-20);
    let much = ramp(select(speed, pairs, g.modes.x == 1u));
    let asleep = select(vec3f(0.85, 0.33, 0.06), vec3f(0.10, 0.20, 0.42), body.asleep != 0u);
    var colour = select(select(much, asleep, g.modes.x == 2u), own, g.modes.x == 0u);
    if (body.mark & STATIC) != 0u {
        colour = g.ground.rgb;
    } else if (body.mark & PICKED) != 0u {
        colour = vec3f(1.0, 0.62, 0.02);
    } else if (body.mark & PARTNER) != 0u {
        colour = vec3f(0.0, 0.55, 0.85);
    } else if (body.mark & RESTING) != 0u {
        colour = vec3f(0.42, 0.13, 0.78);
    } else {
        // Other bodies are grey where one is picked.
        colour = mix(colour, vec3f(0.30), 0.75 * f32(g.modes.y));
    }
    return vec4f(colour, 1.0);
}

// Returns whether a point is not before the plane that cuts the scene.
fn behind_cut(point: vec3f) -> bool {
    return dot(point - g.eye.xyz, g.forward.xyz) >= g.forward.w;
}

// Returns whether the body has a finite size, and is static or not before the cut; others are not
// drawn.
fn visible(body: Body) -> bool {
    return ((body.mark & STATIC) != 0u || behind_cut(body.position)) && max(max(abs(body.scale.x), abs(body.scale.y)), abs(body.scale.z)) < 1e30;
}

struct Corner {
    // On a cube of half width 1.
    point: vec3f,
    normal: vec3f,
    // On its face.
    face: vec2f,
}

// Returns a corner of the three faces of a box towards an observer, six corners each.
fn corner_of(vertex: u32, body: Body, to_observer: vec3f) -> Corner {
    let axis = vertex / 6u;
    let corner = vertex % 6u;
    let x = select(-1.0, 1.0, corner == 1u || corner == 2u || corner == 4u);
    let y = select(-1.0, 1.0, corner == 2u || corner >= 4u);
    let inverse = vec4f(-body.rotation.xyz, body.rotation.w);
    var normal = vec3f(0.0);
    normal[axis] = select(-1.0, 1.0, rotate(inverse, to_observer)[axis] > 0.0);
    var point = normal;
    point[(axis + 1u) % 3u] = x;
    point[(axis + 2u) % 3u] = y;
    return Corner(point, normal, vec2f(x, y));
}

// Returns the position of a point of a body in the world.
fn placed(body: Body, point: vec3f) -> vec3f {
    return body.position + rotate(body.rotation, point * body.scale);
}

@vertex
fn vs_box(@builtin(vertex_index) vertex: u32, body: Body) -> Surface {
    let corner = corner_of(vertex, body, g.eye.xyz - body.position);
    var out: Surface;
    out.world = placed(body, corner.point);
    out.normal = rotate(body.rotation, corner.normal);
    out.clip = select(vec4f(0.0), g.view_projection * vec4f(out.world, 1.0), visible(body));
    out.base = colour_of(body);
    out.face = corner.face;
    out.mark = body.mark;
    return out;
}

@vertex
fn vs_mesh(@location(7) point: vec3f, @location(8) normal: vec3f, body: Body) -> Surface {
    var out: Surface;
    out.world = placed(body, point);
    out.normal = rotate(body.rotation, normal);
    out.clip = select(vec4f(0.0), g.view_projection * vec4f(out.world, 1.0), visible(body));
    out.base = colour_of(body);
    out.mark = body.mark;
    return out;
}

@vertex
fn vs_ground(@location(7) point: vec3f, @location(8) normal: vec3f) -> Surface {
    var out: Surface;
    out.world = point;
    out.normal = normal;
    out.clip = g.view_projection * vec4f(point, 1.0);
    // Grass where it is flat, rock where it is steep.
    out.base = vec4f(mix(vec3f(0.27, 0.24, 0.21), vec3f(0.20, 0.25, 0.125), smoothstep(0.72, 0.95, normal.y)), 1.0);
    out.mark = STATIC;
    return out;
}

fn sky(dir: vec3f) -> vec3f {
    let height = dir.y;
    if quick {
        let above = mix(g.horizon.rgb, g.sky_top.rgb, sqrt(max(height, 0.0)));
        return select(above, g.horizon.rgb * 0.9, height < 0.0);
    }
    let above = mix(g.horizon.rgb, g.sky_top.rgb, pow(clamp(height, 0.0, 1.0), 0.55));
    return mix(above, g.horizon.rgb * 0.82, clamp(-height * 2.5, 0.0, 1.0));
}

// Returns the share of the sun's light that reaches a surface: the mean over some points of the
// map, each between four of its pixels. Outside of the map nothing casts shadows.
fn sunlit(world: vec3f, n: vec3f) -> f32 {
    if !shadows {
        return 1.0;
    }
    if dot(n, g.sun.xyz) <= 0.0 {
        return 0.0;
    }
    let at = g.light * vec4f(world + n * g.sun.w, 1.0);
    let uv = vec2f(0.5 + 0.5 * at.x, 0.5 - 0.5 * at.y);
    let depth = min(at.z, 1.0);
    let pixel = 1.0 / vec2f(textureDimensions(shadow_map));
    var sum = 0.0;
    if quick {
        sum = textureSampleCompareLevel(shadow_map, shadow_sampler, uv, depth);
    } else {
        for (var tap = 0u; tap < 9u; tap++) {
            let off = (vec2f(vec2u(tap % 3u, tap / 3u)) - 1.0) * 1.5;
            sum += textureSampleCompareLevel(shadow_map, shadow_sampler, uv + off * pixel, depth) / 9.0;
        }
    }
    return select(1.0, sum, max(abs(at.x), abs(at.y)) < 1.0);
}

fn lit(base: vec3f, n: vec3f, world: vec3f) -> vec3f {
    let from_eye = world - g.eye.xyz;
    let distance = length(from_eye);
    let view = from_eye / distance;
    let ambient = mix(g.ground.rgb * 0.45, g.sky_top.rgb * 0.75 + 0.10, n.y * 0.5 + 0.5);
    let sun = max(dot(n, g.sun.xyz), 0.0) * sunlit(world, n);
    if quick {
        let far = distance * g.scales.x * distance * g.scales.x;
        return mix(base * (ambient + sun * g.sun_light.rgb), g.horizon.rgb, far / (1.0 + far));
    }
    let other = max(dot(n, -vec3f(g.sun.x, -0.25, g.sun.z)), 0.0) * 0.16;
    let rim = pow(1.0 - max(dot(n, -view), 0.0), 4.0) * 0.10;
    let halfway = normalize(g.sun.xyz - view);
    let gloss = pow(max(dot(n, halfway), 0.0), 40.0) * 0.10 * sun;
    let light = base * (ambient + sun * g.sun_light.rgb + other) + (rim + gloss) * g.horizon.rgb;
    let haze = 1.0 - exp(-pow(distance * g.scales.x, 2.0));
    return mix(light, sky(view), haze);
}

fn finish(colour: vec3f) -> vec4f {
    // Tone mapping: highlights fade to white instead of being clipped.
    let toned = colour * (1.0 + colour * 0.12) / (1.0 + colour * 0.45) * 1.18;
    if !encoded {
        return vec4f(toned, 1.0);
    }
    return vec4f(select(1.055 * pow(toned, vec3f(1.0 / 2.4)) - 0.055, toned * 12.92, toned < vec3f(0.0031308)), 1.0);
}

// Returns the coverage of a pixel by lines at distance 1 with a width in pixels. They fade where
// they would be denser than pixels.
fn lines(at: vec2f, width: f32) -> f32 {
    let pixel = max(fwidth(at), vec2f(1e-12));
    let off = abs(fract(at - 0.5) - 0.5) / pixel;
    let covered = clamp(width * 0.5 + 0.5 - off, vec2f(0.0), vec2f(1.0)) * clamp(1.0 - pixel * 3.0, vec2f(0.0), vec2f(1.0));
    return max(covered.x, covered.y);
}

@fragment
fn fs_surface(in: Surface) -> @location(0) vec4f {
    let n = normalize(in.normal);
    var base = in.base.rgb;
    let edge = (1.0 - abs(in.face)) / max(fwidth(in.face), vec2f(1e-6));
    let grid = max(lines(in.world.xz / g.scales.y, 1.2) * 0.5, lines(in.world.xz / g.scales.y / 10.0, 1.6));
    if (in.mark & STATIC) != 0u {
        base = mix(base, base * 0.62, grid * clamp(n.y * 4.0 - 2.0, 0.0, 1.0));
    } else if any(in.face != vec2f(0.0)) {
        base *= mix(0.72, 1.0, clamp(min(edge.x, edge.y) - 0.2, 0.0, 1.0));
    }
    return finish(lit(base, n, in.world));
}

struct Flat {
    @builtin(position) clip: vec4f,
    @location(0) @interpolate(flat) colour: vec4f,
}

// A box of a body, as its three faces towards the eye, which have one colour each. llvmpipe shades
// 16 pixels at least for every triangle, however small, so that shading corners is much cheaper for
// chairs of some pixels.
@vertex
fn vs_flat(@builtin(vertex_index) vertex: u32, @location(7) center: vec3f, @location(8) half: vec3f, body: Body) -> Flat {
    let corner = corner_of(vertex % 18u, body, g.eye.xyz - placed(body, center));
    let world = placed(body, center + half * corner.point);
    var out: Flat;
    out.clip = select(vec4f(0.0), g.view_projection * vec4f(world, 1.0), visible(body));
    out.colour = finish(lit(colour_of(body).rgb, rotate(body.rotation, corner.normal), world));
    return out;
}

@fragment
fn fs_flat(in: Flat) -> @location(0) vec4f {
    return in.colour;
}

struct Ball {
    @builtin(position) clip: vec4f,
    @location(0) world: vec3f,
    @location(1) @interpolate(flat) center: vec4f,
    @location(2) @interpolate(flat) base: vec4f,
    // From -1 to 1 across the square.
    @location(3) corner: vec2f,
}

// A square through the ball's centre, perpendicular to the line of sight, that covers the ball.
fn square(vertex: u32, body: Body, times: f32) -> Ball {
    let corner = vec2f(select(-1.0, 1.0, (vertex & 1u) != 0u), select(-1.0, 1.0, (vertex & 2u) != 0u));
    let to = body.position - g.eye.xyz;
    let distance = length(to);
    let dir = to / distance;
    let u = normalize(cross(dir, select(vec3f(0.0, 1.0, 0.0), vec3f(1.0, 0.0, 0.0), abs(dir.y) > 0.9)));
    let v = cross(u, dir);
    // Half a pixel at distance 1.
    let pixel = length(g.up.xyz) / g.up.w;
    // A star is never smaller than a pixel.
    let radius = times * max(body.scale.x, select(0.0, distance * pixel, g.modes.w != 0u));
    let slope = radius / sqrt(max(distance * distance - radius * radius, 1e-12));
    // Half a pixel more on each side for antialiasing.
    let reach = distance * (slope + pixel);
    var out: Ball;
    out.world = body.position + (u * corner.x + v * corner.y) * reach;
    out.clip = select(vec4f(0.0), g.view_projection * vec4f(out.world, 1.0), visible(body) && distance > radius);
    out.center = vec4f(body.position, radius);
    out.base = colour_of(body);
    out.corner = corner;
    return out;
}

@vertex
fn vs_ball(@builtin(vertex_index) vertex: u32, body: Body) -> Ball {
    return square(vertex, body, 1.0);
}

// The glow around a body.
@vertex
fn vs_glow(@builtin(vertex_index) vertex: u32, body: Body) -> Ball {
    return square(vertex, body, 7.0);
}

// A ball of a scene that lives on this device: its centre and radius, velocity, and number of
// pairs.
struct Live {
    @builtin(instance_index) body: u32,
    @location(0) at: vec4f,
    @location(1) velocity: vec4f,
    @location(6) pairs: u32,
}

fn body_of(live: Live) -> Body {
    let still = vec4f(0.0, 0.0, 0.0, 1.0);
    return Body(live.at.xyz, live.body, still, live.at.www, length(live.velocity.xyz), 0u, min(live.pairs, PAIRS));
}

@vertex
fn vs_live_ball(@builtin(vertex_index) vertex: u32, live: Live) -> Ball {
    return square(vertex, body_of(live), 1.0);
}

@vertex
fn vs_live_glow(@builtin(vertex_index) vertex: u32, live: Live) -> Ball {
    return square(vertex, body_of(live), 7.0);
}

@fragment
fn fs_glow(in: Ball) -> @location(0) vec4f {
    let off = clamp(1.0 - length(in.corner), 0.0, 1.0);
    return vec4f(in.base.rgb * off * off * off * 0.16, 0.0);
}

struct Covered {
    @location(0) colour: vec4f,
    @builtin(frag_depth) depth: f32,
}

@fragment
fn fs_ball(in: Ball) -> Covered {
    let dir = normalize(in.world - g.eye.xyz);
    let to = in.center.xyz - g.eye.xyz;
    let radius = in.center.w;
    let beside = length(cross(to, dir));
    let cover = clamp((radius - beside) / max(fwidth(beside), 1e-12) + 0.5, 0.0, 1.0);
    let along = dot(to, dir) - sqrt(max(radius * radius - beside * beside, 0.0));
    let world = g.eye.xyz + dir * along;
    let clip = g.view_projection * vec4f(world, 1.0);
    if cover <= 0.0 {
        discard;
    }
    var out: Covered;
    let normal = (world - in.center.xyz) / radius;
    let shining = in.base.rgb * (0.7 + 0.7 * max(dot(normal, -dir), 0.0)) + 0.12;
    let colour = select(lit(in.base.rgb, normal, world), shining, g.modes.w != 0u);
    out.colour = vec4f(finish(colour).rgb, cover);
    out.depth = clip.z / clip.w;
    return out;
}

// The three faces of a box away from the sun.
@vertex
fn vs_box_shadow(@builtin(vertex_index) vertex: u32, body: Body) -> @builtin(position) vec4f {
    return shadow(body, placed(body, corner_of(vertex, body, -g.sun.xyz).point));
}

@vertex
fn vs_mesh_shadow(@location(7) point: vec3f, body: Body) -> @builtin(position) vec4f {
    return shadow(body, placed(body, point));
}

// Returns the position in the map of a point of a body.
fn shadow(body: Body, world: vec3f) -> vec4f {
    return select(vec4f(0.0), g.light * vec4f(world, 1.0), visible(body));
}

struct Disc {
    @builtin(position) clip: vec4f,
    // From -1 to 1 across the square.
    @location(0) corner: vec2f,
}

// A ball is a disc through its centre here: so no ball shades its side towards the sun.
@vertex
fn vs_ball_shadow(@builtin(vertex_index) vertex: u32, body: Body) -> Disc {
    return disc(vertex, body);
}

@vertex
fn vs_live_ball_shadow(@builtin(vertex_index) vertex: u32, live: Live) -> Disc {
    return disc(vertex, body_of(live));
}

fn disc(vertex: u32, body: Body) -> Disc {
    let u = normalize(cross(g.sun.xyz, vec3f(0.0, 0.0, 1.0)));
    var out: Disc;
    out.corner = vec2f(select(-1.0, 1.0, (vertex & 1u) != 0u), select(-1.0, 1.0, (vertex & 2u) != 0u));
    let off = u * out.corner.x + cross(g.sun.xyz, u) * out.corner.y;
    out.clip = shadow(body, body.position + off * body.scale.x);
    return out;
}

@fragment
fn fs_ball_shadow(in: Disc) {
    if length(in.corner) > 1.0 {
        discard;
    }
}

struct Ink {
    @builtin(position) clip: vec4f,
    @location(0) colour: vec4f,
}

// A box as twelve edges of two ends each.
@vertex
fn vs_wire(@builtin(vertex_index) vertex: u32, @location(0) low: vec3f, @location(1) high: vec3f) -> Ink {
    let edge = vertex / 2u;
    let axis = edge / 4u;
    var part = vec3f(0.0);
    part[axis] = f32(vertex & 1u);
    part[(axis + 1u) % 3u] = f32(edge & 1u);
    part[(axis + 2u) % 3u] = f32((edge >> 1u) & 1u);
    let finite = max(max(abs(low.x), abs(low.y)), abs(low.z)) < 1e30 && max(max(abs(high.x), abs(high.y)), abs(high.z)) < 1e30;
    var out: Ink;
    let shown = finite && behind_cut((low + high) * 0.5);
    out.clip = select(vec4f(0.0), g.view_projection * vec4f(select(low, high, part > vec3f(0.5)), 1.0), shown);
    out.colour = vec4f(0.02, 0.05, 0.10, 0.55);
    return out;
}

// A segment as a strip of even width in pixels.
@vertex
fn vs_line(
    @builtin(vertex_index) vertex: u32,
    @location(0) a: vec3f,
    @location(1) width: f32,
    @location(2) b: vec3f,
    @location(3) colour: vec4f,
) -> Ink {
    let size = vec2f(g.right.w, g.up.w);
    var from_clip = g.view_projection * vec4f(a, 1.0);
    var to_clip = g.view_projection * vec4f(b, 1.0);
    // Cut off the part behind the eye, where w is not above 0.
    let near = 1e-3 * max(abs(from_clip.w), abs(to_clip.w)) + 1e-12;
    let cut = clamp((near - from_clip.w) / (to_clip.w - from_clip.w), 0.0, 1.0);
    let start = from_clip;
    from_clip = select(from_clip, mix(start, to_clip, cut), from_clip.w < near);
    to_clip = select(to_clip, mix(start, to_clip, cut), to_clip.w < near);
    let from_pixel = from_clip.xy / from_clip.w * size;
    let to_pixel = to_clip.xy / to_clip.w * size;
    let along = (to_pixel - from_pixel) / max(length(to_pixel - from_pixel), 1e-6);
    let side = vec2f(-along.y, along.x) * select(-1.0, 1.0, (vertex & 1u) != 0u) * width;
    var clip = select(from_clip, to_clip, (vertex & 2u) != 0u);
    clip = vec4f(clip.xy + side / size * clip.w, clip.zw);
    var out: Ink;
    out.clip = select(clip, vec4f(0.0), max(from_clip.w, to_clip.w) < near);
    out.colour = colour;
    return out;
}

@fragment
fn fs_ink(in: Ink) -> @location(0) vec4f {
    return vec4f(finish(in.colour.rgb).rgb, in.colour.a);
}

struct Sky {
    @builtin(position) clip: vec4f,
    @location(0) dir: vec3f,
}

// One triangle over the whole picture, at infinity.
@vertex
fn vs_sky(@builtin(vertex_index) vertex: u32) -> Sky {
    let at = vec2f(f32(vertex & 1u) * 4.0 - 1.0, f32(vertex >> 1u) * 4.0 - 1.0);
    var out: Sky;
    out.clip = vec4f(at, 0.0, 1.0);
    out.dir = g.forward.xyz + g.right.xyz * at.x + g.up.xyz * at.y;
    return out;
}

@fragment
fn fs_sky(in: Sky) -> @location(0) vec4f {
    if quick {
        return finish(sky(normalize(in.dir)));
    }
    // Noise of half a step of eight bits hides colour bands.
    let noise = f32(hash(u32(in.clip.x) * 8191u + u32(in.clip.y)) & 255u) / 255.0 - 0.5;
    return finish(sky(normalize(in.dir)) * (1.0 + 0.012 * noise));
}
