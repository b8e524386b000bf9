// The sweep of many worlds or columns: boxes are sorted by these, then by their `min`. The low word
// of a key is the `min`, the high one the world or column.

alias Key = vec2<u32>;

fn key_of(index: u32, low: u32) -> Key {
    return vec2<u32>(low, tags[params.worlds_at + index]);
}

// Returns the key after all others.
fn last_key() -> Key {
    return vec2<u32>(0xffffffffu);
}

fn low_of(key: Key) -> u32 {
    return key.x;
}

// Tells whether a key after `own` is of another world or column, or beyond `high`.
fn is_beyond(key: Key, own: Key, high: u32) -> bool {
    return key.y != own.y || key.x > high;
}
