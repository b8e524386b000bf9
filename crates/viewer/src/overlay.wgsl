// Draws the panels: triangles of egui, whose colours are encoded in sRGB, and premultiplied.

// Width and height of the picture in points.
@group(0) @binding(0) var<uniform> size: vec2f;
@group(1) @binding(0) var image: texture_2d<f32>;
@group(1) @binding(1) var image_sampler: sampler;

// Whether the picture encodes sRGB.
override encodes: bool = false;
// Whether noise hides colour bands.
override dithers: bool = false;

struct Corner {
    @builtin(position) clip: vec4f,
    @location(0) at: vec2f,
    @location(1) colour: vec4f,
}

@vertex
fn vs_panel(@location(0) position: vec2f, @location(1) at: vec2f, @location(2) colour: vec4f) -> Corner {
    var out: Corner;
    out.clip = vec4f(2.0 * position.x / size.x - 1.0, 1.0 - 2.0 * position.y / size.y, 0.0, 1.0);
    out.at = at;
    out.colour = colour;
    return out;
}

fn decoded(colour: vec3f) -> vec3f {
    return select(pow((colour + 0.055) / 1.055, vec3f(2.4)), colour / 12.92, colour < vec3f(0.04045));
}

@fragment
fn fs_panel(in: Corner) -> @location(0) vec4f {
    var colour = in.colour * textureSample(image, image_sampler, in.at);
    if dithers {
        // Interleaved gradient noise; a little less than a step of eight bits leaves plain colours
        // as they are.
        let noise = fract(52.9829189 * fract(0.06711056 * in.clip.x + 0.00583715 * in.clip.y));
        colour = vec4f(colour.rgb + (noise - 0.5) * 0.95 / 255.0, colour.a);
    }
    if encodes {
        colour = vec4f(decoded(colour.rgb), colour.a);
    }
    return colour;
}
