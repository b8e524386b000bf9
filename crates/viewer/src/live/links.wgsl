// Makes a line between the centres of the two balls of each pair: `Line` in Rust, eleven floats.

struct Params {
    colour: vec4<f32>,
    count: u32,
    width: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> at: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> pairs: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read_write> lines: array<f32>;

@compute @workgroup_size(256)
fn make_lines(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i >= params.count {
        return;
    }
    let a = at[pairs[i].x];
    let b = at[pairs[i].y];
    lines[11u * i] = a.x;
    lines[11u * i + 1u] = a.y;
    lines[11u * i + 2u] = a.z;
    lines[11u * i + 3u] = params.width;
    lines[11u * i + 4u] = b.x;
    lines[11u * i + 5u] = b.y;
    lines[11u * i + 6u] = b.z;
    lines[11u * i + 7u] = params.colour.x;
    lines[11u * i + 8u] = params.colour.y;
    lines[11u * i + 9u] = params.colour.z;
    lines[11u * i + 10u] = params.colour.w;
}
