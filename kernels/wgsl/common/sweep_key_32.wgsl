// The sweep of one world: boxes are sorted by their `min`.

alias Key = u32;

fn key_of(index: u32, low: u32) -> Key {
    return low;
}

// Returns the key after all others.
fn last_key() -> Key {
    return 0xffffffffu;
}

fn low_of(key: Key) -> u32 {
    return key;
}

// Tells whether a key after `own` is beyond `high`.
fn is_beyond(key: Key, own: Key, high: u32) -> bool {
    return key > high;
}
