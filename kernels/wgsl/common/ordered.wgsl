// Floats as integers of the same order. Only integers are compared, because WGSL may flush
// denormals. -0.0 counts as +0.0.

fn ordered_f32(bits: u32) -> u32 {
    let number = select(bits, 0u, bits == 0x80000000u);
    return number ^ ((0u - (number >> 31u)) | 0x80000000u);
}

// The low word comes first.
fn ordered_f64(bits: vec2<u32>) -> vec2<u32> {
    let is_zero = bits.x == 0u && bits.y == 0x80000000u;
    let number = select(bits, vec2<u32>(0u), is_zero);
    let sign = 0u - (number.y >> 31u);
    return number ^ vec2<u32>(sign, sign | 0x80000000u);
}
