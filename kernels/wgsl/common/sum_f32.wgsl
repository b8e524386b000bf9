// The sum of two floats, by integers: rounded to the nearest, ties to even, denormals kept. WGSL
// promises neither for its own sum.

const INFINITE: u32 = 0x7f800000u;
const SIGN: u32 = 0x80000000u;

// Returns the digits of a float with three more bits: what was shifted out is in the last one.
fn digits_of(bits: u32) -> u32 {
    let hidden = select(0u, 0x800000u, (bits & INFINITE) != 0u);
    return ((bits & 0x7fffffu) | hidden) << 3u;
}

// Returns the exponent of the last digit. Denormals have that of the least other floats.
fn exponent_of(bits: u32) -> u32 {
    return max((bits >> 23u) & 255u, 1u);
}

// Adds two floats, neither of which is a NaN, and at most one infinite.
fn sum_f32(a: u32, b: u32) -> u32 {
    let is_swapped = (b & ~SIGN) > (a & ~SIGN);
    let large = select(a, b, is_swapped);
    let small = select(b, a, is_swapped);
    if (large & INFINITE) == INFINITE {
        return large;
    }
    var exponent = exponent_of(large);
    let distance = min(exponent - exponent_of(small), 31u);
    let all = digits_of(small);
    let lost = select(0u, 1u, (all & ((1u << distance) - 1u)) != 0u);
    let added = (all >> distance) | lost;
    var digits = select(digits_of(large) + added, digits_of(large) - added, ((a ^ b) & SIGN) != 0u);
    if digits == 0u {
        return a & b & SIGN;
    }
    if digits >= 1u << 27u {
        digits = (digits >> 1u) | (digits & 1u);
        exponent += 1u;
    } else {
        let shift = min(countLeadingZeros(digits) - 5u, exponent - 1u);
        digits <<= shift;
        exponent -= shift;
    }
    let odd = (digits >> 3u) & 1u;
    let rounded = (digits + 3u + odd) >> 3u;
    // The hidden bit adds one to the exponent, and so does a carry. The greatest become infinite.
    return (large & SIGN) | min(((exponent - 1u) << 23u) + rounded, INFINITE);
}
