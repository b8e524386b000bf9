// The order of keys of 64 bits.

// Maps a key to bits in the same order. Only integers are compared, because WGSL may flush
// denormals and assume that there are no NaNs.
fn ordered(key: Key) -> Key {
    let bits = select(key, vec2<u32>(0u), all(key == params.zero));
    let sign = vec2<u32>(0u - (bits.y >> 31u));
    return bits ^ params.flip ^ (sign & params.fold);
}
