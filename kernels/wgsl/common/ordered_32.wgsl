// The order of keys of 32 bits.

// Maps a key to bits in the same order. Only integers are compared, because WGSL may flush
// denormals and assume that there are no NaNs.
fn ordered(key: Key) -> Key {
    let bits = select(key, 0u, key == params.zero.x);
    let sign = 0u - (bits >> 31u);
    return bits ^ params.flip.x ^ (sign & params.fold.x);
}
