// The search of a pair in the last list.

@group(0) @binding(14) var<storage, read> last: array<vec2<u32>>;

// Tells whether the last list has a pair.
fn last_has(pair: vec2<u32>) -> bool {
    var first = 0u;
    var end = params.last_pairs;
    for (var left = params.last_pairs; left > 0u; left >>= 1u) {
        let middle = first + (end - first) / 2u;
        if middle < end {
            if is_below(last[middle].yx, pair.yx) {
                first = middle + 1u;
            } else {
                end = middle;
            }
        }
    }
    return first < params.last_pairs && all(last[first] == pair);
}
