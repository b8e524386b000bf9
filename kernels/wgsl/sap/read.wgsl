// Reads a frame whose lists are in buffers of the caller.
//
// `check_boxes` copies the boxes, invalid ones as empty ones, and counts these. `loosen` adds the
// margin. `copy_words` copies the filters and the worlds, and `compare_words` finds out whether a
// list is that of the last frame. `draw_sample` copies some boxes for the plan.
//
// | kernel | bytes an element | bound by |
// |---|---|---|
// | `check_boxes` | 24 read, 24 written a box; 24 more read to compare | memory |
// | `loosen` | 48 read, 24 written a box | memory |
// | `copy_words` | 4 read, 4 written a word | memory |
// | `compare_words` | 8 read a word | memory |
// | `draw_sample` | 28 read, 28 written a box drawn | latency |

struct ReadParams {
    // The number of boxes, and of those of the last frame.
    boxes: u32,
    last_boxes: u32,
    // The words that are copied or compared, and where they begin in each list.
    words: u32,
    from_word: u32,
    to_word: u32,
    // The margin, a float of at least 0.
    margin: u32,
    // The number of boxes that are drawn.
    drawn: u32,
    // Where the second list has the worlds; `ABSENT` without.
    worlds_at: u32,
}

const ABSENT: u32 = 0xffffffffu;

// Where the counters have the number of invalid boxes, the complement of the index of the first,
// and whether a word has changed.
const INVALID: u32 = 0u;
const FIRST_INVALID: u32 = 1u;
const CHANGED: u32 = 2u;

@group(0) @binding(0) var<uniform> params: ReadParams;
// What is read, and what it is compared with.
@group(0) @binding(1) var<storage, read> given: array<u32>;
@group(0) @binding(2) var<storage, read> last: array<u32>;
@group(0) @binding(3) var<storage, read_write> stored: array<u32>;
@group(0) @binding(4) var<storage, read_write> counters: array<atomic<u32>>;

// The words of a box.
struct Bounds {
    min: vec3<u32>,
    max: vec3<u32>,
}

fn given_bounds(index: u32) -> Bounds {
    let at = 6u * index;
    return Bounds(
        vec3<u32>(given[at], given[at + 1u], given[at + 2u]),
        vec3<u32>(given[at + 3u], given[at + 4u], given[at + 5u]),
    );
}

fn last_bounds(index: u32) -> Bounds {
    let at = 6u * index;
    return Bounds(
        vec3<u32>(last[at], last[at + 1u], last[at + 2u]),
        vec3<u32>(last[at + 3u], last[at + 4u], last[at + 5u]),
    );
}

fn ordered_3(bits: vec3<u32>) -> vec3<u32> {
    return vec3<u32>(ordered_f32(bits.x), ordered_f32(bits.y), ordered_f32(bits.z));
}

fn are_numbers(bits: vec3<u32>) -> bool {
    return all((bits & vec3<u32>(~SIGN)) <= vec3<u32>(INFINITE));
}

fn is_empty_box(bounds: Bounds) -> bool {
    return all(bounds.min == vec3<u32>(INFINITE)) && all(bounds.max == vec3<u32>(INFINITE | SIGN));
}

fn is_valid_box(bounds: Bounds) -> bool {
    let is_ordered = all(ordered_3(bounds.min) <= ordered_3(bounds.max));
    let is_valid = are_numbers(bounds.min) && are_numbers(bounds.max) && is_ordered;
    return is_valid || is_empty_box(bounds);
}

// Copies the boxes, invalid ones as empty ones, and counts these.
@compute @workgroup_size(WORKGROUP)
fn check_boxes(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let index = index_of(lid, group, groups);
    if index < params.boxes {
        let is_valid = check_box(index);
        for (var i = 0u; i < 6u; i += 1u) {
            stored[6u * index + i] = checked_bound(index, i, is_valid);
        }
    }
}

// Copies and counts as `check_boxes` does, and notes whether a box differs from that of the last
// frame.
@compute @workgroup_size(WORKGROUP)
fn check_and_compare(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let index = index_of(lid, group, groups);
    if index >= params.boxes {
        return;
    }
    let is_valid = check_box(index);
    var has_changed = false;
    for (var i = 0u; i < 6u; i += 1u) {
        let bits = checked_bound(index, i, is_valid);
        has_changed = has_changed || bits != last[6u * index + i];
        stored[6u * index + i] = bits;
    }
    if has_changed {
        atomicStore(&counters[CHANGED], 1u);
    }
}

// Tells whether a box is valid, and counts it if not.
fn check_box(index: u32) -> bool {
    let is_valid = is_valid_box(given_bounds(index));
    if !is_valid {
        atomicAdd(&counters[INVALID], 1u);
        atomicMax(&counters[FIRST_INVALID], ~index);
    }
    return is_valid;
}

// Returns a bound of a box, of an empty one if it is not valid.
fn checked_bound(index: u32, i: u32, is_valid: bool) -> u32 {
    let of_empty = INFINITE | select(0u, SIGN, i >= 3u);
    return select(of_empty, given[6u * index + i], is_valid);
}

// Tells whether a box lies within the one that was stored in the last frame.
fn stays_within(index: u32) -> bool {
    if index >= params.last_boxes {
        return false;
    }
    let tight = given_bounds(index);
    let loose = last_bounds(index);
    return all(ordered_3(loose.min) <= ordered_3(tight.min))
        && all(ordered_3(tight.max) <= ordered_3(loose.max))
        && !is_empty_box(tight);
}

@compute @workgroup_size(WORKGROUP)
fn loosen(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let index = index_of(lid, group, groups);
    if index >= params.boxes {
        return;
    }
    let stays = stays_within(index);
    for (var i = 0u; i < 6u; i += 1u) {
        let at = 6u * index + i;
        if stays {
            stored[at] = last[at];
        } else {
            stored[at] = sum_f32(given[at], params.margin | select(SIGN, 0u, i >= 3u));
        }
    }
}

@compute @workgroup_size(WORKGROUP)
fn copy_words(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let word = index_of(lid, group, groups);
    if word < params.words {
        stored[params.to_word + word] = given[params.from_word + word];
    }
}

@compute @workgroup_size(WORKGROUP)
fn compare_words(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let word = index_of(lid, group, groups);
    if word < params.words && given[word] != last[word] {
        // Many threads store the same.
        atomicStore(&counters[CHANGED], 1u);
    }
}

// Returns the first box of a stretch. There are as many as boxes drawn.
fn stretch_start(stretch: u32) -> u32 {
    let rest = params.boxes % params.drawn;
    return stretch * (params.boxes / params.drawn) + stretch * rest / params.drawn;
}

@compute @workgroup_size(WORKGROUP)
fn draw_sample(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let drawn = index_of(lid, group, groups);
    if drawn >= params.drawn {
        return;
    }
    let start = stretch_start(drawn);
    let length = stretch_start(drawn + 1u) - start;
    // Not at even steps, because scenes often repeat with some period.
    let index = start + ((drawn * 0x9e3779b9u) >> 7u) % max(length, 1u);
    for (var i = 0u; i < 6u; i += 1u) {
        stored[7u * drawn + i] = given[6u * index + i];
    }
    var world = 0u;
    if params.worlds_at != ABSENT {
        world = last[params.worlds_at + index];
    }
    stored[7u * drawn + 6u] = world;
}
