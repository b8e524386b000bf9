// What the kernels of scenes of balls share: the balls of a frame, as they are drawn.

// Centres and radii at the start of the frame, and velocities.
@group(0) @binding(1) var<storage, read> starts: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> velocities: array<vec4<f32>>;
// Centres, radii and velocities of the next frame, or of the next step.
@group(0) @binding(3) var<storage, read_write> next_at: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> next_velocities: array<vec4<f32>>;
// Six floats a box, `min` before `max`.
@group(0) @binding(5) var<storage, read_write> boxes: array<f32>;
// The number of neighbours of each ball.
@group(0) @binding(6) var<storage, read_write> counts: array<u32>;

fn store_box(index: u32, center: vec3<f32>, reach: f32) {
    let low = center - reach;
    let high = center + reach;
    boxes[6u * index] = low.x;
    boxes[6u * index + 1u] = low.y;
    boxes[6u * index + 2u] = low.z;
    boxes[6u * index + 3u] = high.x;
    boxes[6u * index + 4u] = high.y;
    boxes[6u * index + 5u] = high.z;
}

// The order of the sum is that of the CPU.
fn product(a: vec3<f32>, b: vec3<f32>) -> f32 {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}
