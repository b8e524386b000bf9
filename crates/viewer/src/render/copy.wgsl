// Copies the scene's own texture into its area of the window.

@group(0) @binding(0) var scene: texture_2d<f32>;
@group(0) @binding(1) var smooth_sampler: sampler;

struct Corner {
    @builtin(position) clip: vec4f,
    @location(0) at: vec2f,
}

// One triangle over the whole area.
@vertex
fn vs_copy(@builtin(vertex_index) vertex: u32) -> Corner {
    let at = vec2f(f32(vertex & 1u) * 2.0, f32(vertex >> 1u) * 2.0);
    var out: Corner;
    out.clip = vec4f(at.x * 2.0 - 1.0, 1.0 - at.y * 2.0, 0.0, 1.0);
    out.at = at;
    return out;
}

@fragment
fn fs_copy(in: Corner) -> @location(0) vec4f {
    return textureSample(scene, smooth_sampler, in.at);
}
