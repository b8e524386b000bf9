// Tests whether two boxes that overlap in `f32` are a pair.

// Tells whether two filters allow a pair.
fn filters_allow(i: u32, j: u32) -> bool {
    let a = params.filters_at + 4u * i;
    let b = params.filters_at + 4u * j;
    let group = tags[a + 2u];
    return (tags[a] & tags[b + 1u]) != 0u
        && (tags[b] & tags[a + 1u]) != 0u
        && (group != tags[b + 2u] || group == 0u)
        && (tags[a + 3u] & tags[b + 3u] & EXCLUSIVE_FLAGS) == 0u;
}

// Returns an `f64` bound of a box.
fn exact_bound(index: u32, of_axis: u32) -> vec2<u32> {
    let at = params.exact_at + 12u * index + 2u * of_axis;
    return ordered_f64(vec2<u32>(tags[at], tags[at + 1u]));
}

fn exact_overlap(i: u32, j: u32) -> bool {
    var overlap = true;
    for (var of_axis = 0u; of_axis < 3u; of_axis += 1u) {
        let a_low = exact_bound(i, of_axis);
        let a_high = exact_bound(i, of_axis + 3u);
        let b_low = exact_bound(j, of_axis);
        let b_high = exact_bound(j, of_axis + 3u);
        let closed = !is_below(b_high, a_low) && !is_below(a_high, b_low);
        let open = is_below(a_low, b_high) && is_below(b_low, a_high);
        overlap = overlap && select(closed, open, params.rule == 1u);
    }
    return overlap;
}

// Searches the sorted list of excluded pairs.
fn is_excluded(a: u32, b: u32) -> bool {
    let wanted = vec2<u32>(b, a);
    var first = 0u;
    var end = params.excluded;
    for (var left = params.excluded; left > 0u; left >>= 1u) {
        let middle = first + (end - first) / 2u;
        if middle < end {
            let at = params.excluded_at + 2u * middle;
            if is_below(vec2<u32>(tags[at + 1u], tags[at]), wanted) {
                first = middle + 1u;
            } else {
                end = middle;
            }
        }
    }
    let at = params.excluded_at + 2u * min(first, params.excluded - 1u);
    return tags[at] == a && tags[at + 1u] == b;
}

// Returns the pair of two boxes, the larger index first.
fn pair_of(i: u32, j: u32) -> vec2<u32> {
    return vec2<u32>(max(i, j) - params.first_set, min(i, j));
}

// Tells whether two boxes that overlap in `f32` are a pair.
fn accepts(i: u32, j: u32) -> bool {
    let a = min(i, j);
    let b = max(i, j);
    if a < params.rows.x || a >= params.rows.y {
        return false;
    }
    if params.first_set != 0u && (a >= params.first_set || b < params.first_set) {
        return false;
    }
    if params.filters_at != ABSENT && !filters_allow(a, b) {
        return false;
    }
    if params.exact_at != ABSENT && !exact_overlap(a, b) {
        return false;
    }
    return params.excluded == 0u || !is_excluded(a, b - params.first_set);
}
