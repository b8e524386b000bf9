// Keys of 64 bits as two words, the low one first: their digits, and how a tile exchanges them.

alias Key = vec2<u32>;

// Returns the bits that the sort compares.
fn compared(key: Key) -> Key {
    return ordered(key) & params.window;
}

fn is_less(a: Key, b: Key) -> bool {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}

// Returns the bits `[begin, end)`, at most 8 of them, which may lie in both words.
fn digit_of_bits(bits: Key, begin: u32, end: u32) -> u32 {
    let shift = begin & 31u;
    let is_high = begin >= 32u;
    let low = select(bits.x, bits.y, is_high);
    let high = select(bits.y, 0u, is_high);
    // Two shifts, because a shift by 32 is not one by all bits.
    let joined = (low >> shift) | ((high << 1u) << (31u - shift));
    return joined & ((1u << (end - begin)) - 1u);
}

// Returns the bits as two words.
fn as_words(bits: Key) -> vec2<u32> {
    return bits;
}

fn from_words(words: vec2<u32>) -> Key {
    return words;
}

// Puts the keys of a tile in the order of their ranks, a word at a time.
fn exchange_keys(lid: u32) {
    for (var i = 0u; i < ITEMS; i += 1u) {
        words[i] = tile_keys[i].x;
    }
    exchange(lid);
    var high: array<u32, ITEMS>;
    for (var i = 0u; i < ITEMS; i += 1u) {
        high[i] = tile_keys[i].y;
        tile_keys[i].x = words[i];
    }
    words = high;
    exchange(lid);
    for (var i = 0u; i < ITEMS; i += 1u) {
        tile_keys[i].y = words[i];
    }
}
