// The columns of a box: the parts of its bounds among the cuts of the two other axes.

// Returns the part of a bound among the cuts of an axis.
fn part_of(value: u32, axis_cuts: u32) -> u32 {
    var low = 0u;
    var high = params.cut_counts[axis_cuts];
    for (var left = high; left > 0u; left >>= 1u) {
        let middle = low + (high - low) / 2u;
        if middle < high {
            if ordered_f32(tags[params.cuts_at[axis_cuts] + middle]) <= value {
                low = middle + 1u;
            } else {
                high = middle;
            }
        }
    }
    return low;
}

// Returns the first and the last part of a box on one of the two axes.
fn parts_of(index: u32, axis_cuts: u32) -> vec2<u32> {
    let of_axis = params.others[axis_cuts];
    return vec2<u32>(
        part_of(bound(index, of_axis), axis_cuts),
        part_of(bound(index, of_axis + 3u), axis_cuts),
    );
}

// Tells whether a box ends before it begins. Of the boxes that are stored only empty ones do.
fn is_inverted(index: u32) -> bool {
    return bound(index, params.axis) > bound(index, params.axis + 3u);
}
