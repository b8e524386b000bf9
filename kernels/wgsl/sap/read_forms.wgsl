// Makes plain boxes of those that a frame gives in another form; `check_boxes` then checks them.
//
// `merge_ends` encloses the start and the end of each swept box. `round_outward` encloses each
// `f64` box in an `f32` one. An invalid box becomes one of NaNs.
//
// | kernel | bytes an element | bound by |
// |---|---|---|
// | `merge_ends` | 48 read, 24 written a box | memory |
// | `round_outward` | 48 read, 24 written a box | memory |

const NOT_A_NUMBER: u32 = 0x7fc00000u;
const INFINITE_64: u32 = 0x7ff00000u;
// The difference of the biases of the exponents of `f64` and `f32`.
const BIAS_64: u32 = 896u;

fn store_bounds(index: u32, bounds: Bounds, is_valid: bool) {
    for (var axis = 0u; axis < 3u; axis += 1u) {
        stored[6u * index + axis] = select(NOT_A_NUMBER, bounds.min[axis], is_valid);
        stored[6u * index + axis + 3u] = select(NOT_A_NUMBER, bounds.max[axis], is_valid);
    }
}

// `given` has the starts of the boxes, `last` their ends.
@compute @workgroup_size(WORKGROUP)
fn merge_ends(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let index = index_of(lid, group, groups);
    if index >= params.boxes {
        return;
    }
    let start = given_bounds(index);
    let end = last_bounds(index);
    let min = select(end.min, start.min, ordered_3(start.min) <= ordered_3(end.min));
    let max = select(end.max, start.max, ordered_3(start.max) >= ordered_3(end.max));
    store_bounds(index, Bounds(min, max), is_valid_box(start) && is_valid_box(end));
}

// Returns a bound of an `f64` box.
fn bound_64(index: u32, i: u32) -> vec2<u32> {
    let at = 12u * index + 2u * i;
    return vec2<u32>(given[at], given[at + 1u]);
}

fn is_number_64(bits: vec2<u32>) -> bool {
    let high = bits.y & ~SIGN;
    return high < INFINITE_64 || (high == INFINITE_64 && bits.x == 0u);
}

// Rounds an `f64` to `f32`, upward or downward.
fn rounded_64(bits: vec2<u32>, is_upward: bool) -> u32 {
    let sign = bits.y & SIGN;
    let exponent = (bits.y >> 20u) & 0x7ffu;
    let digits = ((bits.y & 0xfffffu) << 3u) | (bits.x >> 29u);
    let is_zero = ((bits.y & ~SIGN) | bits.x) == 0u;
    var is_inexact = (bits.x & 0x1fffffffu) != 0u;
    var nearer = 0u; // of the two `f32` around it, the bits of the one that is nearer to zero
    if exponent == 0x7ffu {
        // What is no number stays so.
        nearer = INFINITE | digits | select(0u, 1u, is_inexact);
        is_inexact = false;
    } else if exponent > BIAS_64 + 254u {
        nearer = INFINITE - 1u;
        is_inexact = true;
    } else if exponent > BIAS_64 {
        nearer = ((exponent - BIAS_64) << 23u) | digits;
    } else if !is_zero {
        // A denormal: what is shifted out is lost, and with 24 digits all is.
        let all = digits | 0x800000u;
        let distance = min(BIAS_64 + 1u - exponent, 31u);
        nearer = all >> distance;
        is_inexact = is_inexact || (all & ((1u << distance) - 1u)) != 0u;
    }
    let is_away = is_inexact && is_upward == (sign == 0u);
    return sign | (nearer + select(0u, 1u, is_away));
}

@compute @workgroup_size(WORKGROUP)
fn round_outward(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let index = index_of(lid, group, groups);
    if index >= params.boxes {
        return;
    }
    var bounds: Bounds;
    var is_valid = true;
    for (var axis = 0u; axis < 3u; axis += 1u) {
        let low = bound_64(index, axis);
        let high = bound_64(index, axis + 3u);
        let is_ordered = !is_below(ordered_f64(high), ordered_f64(low));
        is_valid = is_valid && is_number_64(low) && is_number_64(high) && is_ordered;
        bounds.min[axis] = rounded_64(low, false);
        bounds.max[axis] = rounded_64(high, true);
    }
    // A finite bound never becomes one of an empty box: `min` is rounded down, `max` up.
    store_bounds(index, bounds, is_valid || is_empty_box(bounds));
}
