// Keys of 32 bits: their digits, and how a tile exchanges them.

alias Key = u32;

// Returns the bits that the sort compares.
fn compared(key: Key) -> Key {
    return ordered(key) & params.window.x;
}

fn is_less(a: Key, b: Key) -> bool {
    return a < b;
}

// Returns the digit of these bits that `params` names.
fn digit_of_bits(bits: Key, begin: u32, end: u32) -> u32 {
    return (bits >> min(begin, 31u)) & ((1u << (end - begin)) - 1u);
}

// Returns the bits as two words.
fn as_words(bits: Key) -> vec2<u32> {
    return vec2<u32>(bits, 0u);
}

fn from_words(words: vec2<u32>) -> Key {
    return words.x;
}

// Puts the keys of a tile in the order of their ranks.
fn exchange_keys(lid: u32) {
    for (var i = 0u; i < ITEMS; i += 1u) {
        words[i] = tile_keys[i];
    }
    exchange(lid);
    for (var i = 0u; i < ITEMS; i += 1u) {
        tile_keys[i] = words[i];
    }
}
