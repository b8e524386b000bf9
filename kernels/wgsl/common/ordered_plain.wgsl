// The order of unsigned keys, which ascend.

fn ordered(key: Key) -> Key {
    return key;
}
