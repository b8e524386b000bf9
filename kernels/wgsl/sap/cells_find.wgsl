// Makes all tests of the entries in cells, and puts the pairs in order.

// The entries without a test that a thread passes one by one.
const STRIDES: u32 = 3u;

// The pairs: the smaller index, the larger, and which of the row it is.
@group(0) @binding(11) var<storage, read_write> found: array<u32>;
// Where the pairs of each row begin in its block.
@group(0) @binding(2) var<storage, read> row_starts: array<u32>;
// The pairs in the order of their rows.
@group(0) @binding(13) var<storage, read_write> placed: array<vec2<u32>>;
@group(0) @binding(13) var<storage, read> in_rows: array<vec2<u32>>;
@group(0) @binding(15) var<storage, read_write> stored: array<vec2<u32>>;

// Returns the first test of an entry, and of the one behind the last the end of all tests.
fn start_of(entry: u32, count: u32, tests: u32) -> u32 {
    if entry >= count {
        return tests;
    }
    return block_starts[entry >> params.entry_bits] + starts[entry];
}

// Returns the entry of a test: the last that begins at it or before.
fn entry_of(test: u32, count: u32) -> u32 {
    var block = 0u;
    for (var half = MAX_BLOCKS / 2u; half > 0u; half /= 2u) {
        if block + half < params.blocks && block_starts[block + half] <= test {
            block += half;
        }
    }
    var entry = block << params.entry_bits;
    for (var half = 1u << (params.entry_bits - 1u); half > 0u; half /= 2u) {
        if entry + half < count && starts[entry + half] <= test - block_starts[block] {
            entry += half;
        }
    }
    return entry;
}

var<private> entry: u32;
var<private> first_test: u32;
var<private> end_test: u32;

// Goes on to the entry of a test, from one at or before it.
fn go_to(test: u32, count: u32, tests: u32) {
    for (var i = 0u; i < STRIDES && test >= end_test; i += 1u) {
        entry += 1u;
        first_test = end_test;
        end_test = start_of(entry + 1u, count, tests);
    }
    if test >= end_test || entry >= count {
        enter(test, count, tests);
    }
}

fn enter(test: u32, count: u32, tests: u32) {
    entry = min(entry_of(test, count), count - 1u);
    first_test = start_of(entry, count, tests);
    end_test = start_of(entry + 1u, count, tests);
}

// Tells whether two entries are a pair.
fn is_pair(own: vec4<u32>, name: vec4<u32>, other: u32) -> bool {
    let b = entries[other];
    if own.x > b.y || b.x > own.y || own.z > b.w || b.z > own.w {
        return false;
    }
    let mate = names[other];
    if name.y > mate.z || mate.y > name.z || ((name.x | mate.x) & FIRST_COLUMNS) != FIRST_COLUMNS {
        return false;
    }
    return accepts(name.x & ~FIRST_COLUMNS, mate.x & ~FIRST_COLUMNS);
}

// The larger index of each pair of this thread, and the smaller one.
var<private> own_pairs: array<vec2<u32>, ITEMS>;

// Makes the tests of this thread, which are neighbours, and returns the number of pairs.
fn find_own(test: u32, end: u32, count: u32, tests: u32) -> u32 {
    var pairs = 0u;
    if test >= end {
        return pairs;
    }
    enter(test, count, tests);
    var own = entries[entry];
    var name = names[entry];
    for (var at = test; at < end; at += 1u) {
        if at >= end_test {
            go_to(at, count, tests);
            own = entries[entry];
            name = names[entry];
        }
        // The host discards the pairs where a sum was too large, which this is for.
        let other = min(entry + 1u + (at - first_test), count - 1u);
        if is_pair(own, name, other) {
            own_pairs[pairs] = pair_of(name.x & ~FIRST_COLUMNS, names[other].x & ~FIRST_COLUMNS);
            pairs += 1u;
        }
    }
    return pairs;
}

var<workgroup> share_slot: u32;

@compute @workgroup_size(WORKGROUP)
fn find_in_cells(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let tests = enter_blocks(lid);
    let share = group_index(group, groups);
    if share == 0u {
        if lid == 0u {
            atomicStore(&tallies[TALLY_TESTS], tests);
        }
        note_over();
    }
    let made = min(tests, params.tests);
    let test = min((share * WORKGROUP + lid) * params.thread_tests, made);
    let own = find_own(test, min(test + params.thread_tests, made), entry_count(), tests);
    let sums = scan_exclusive(lid, own);
    if lid == 0u && sums.y > 0u {
        share_slot = reserve_slots(sums.y);
    }
    workgroupBarrier();
    let slot = share_slot + sums.x;
    for (var i = 0u; i < own && slot + i < params.capacity; i += 1u) {
        let pair = own_pairs[i].yx;
        let at = 3u * (slot + i);
        found[at] = pair.x;
        found[at + 1u] = pair.y;
        found[at + 2u] = atomicAdd(&rows[pair.x], 1u);
    }
}

// Returns the number of pairs that were stored.
fn pair_count() -> u32 {
    let is_short = atomicLoad(&tallies[PAIRS + 1u]) == 0u;
    return select(params.capacity, min(atomicLoad(&tallies[PAIRS]), params.capacity), is_short);
}

fn row_start(row: u32, count: u32) -> u32 {
    if row >= params.entries {
        return count;
    }
    return min(block_starts[row >> params.row_bits] + row_starts[row], count);
}

@compute @workgroup_size(WORKGROUP)
fn place_pairs(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    enter_blocks(lid);
    let index = index_of(lid, group, groups);
    let count = pair_count();
    if index < count {
        let row = found[3u * index];
        let at = row_start(row, count) + found[3u * index + 2u];
        placed[min(at, count - 1u)] = vec2<u32>(row, found[3u * index + 1u]);
    }
}

@compute @workgroup_size(WORKGROUP)
fn store_rows(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    enter_blocks(lid);
    let index = index_of(lid, group, groups);
    let count = pair_count();
    var is_common = 0u;
    if index < count {
        let pair = in_rows[index];
        let first = row_start(pair.x, count);
        let end = row_start(pair.x + 1u, count);
        if end - first > MAX_ROW {
            atomicStore(&tallies[TALLY_OVER], 1u);
        }
        var at = first;
        for (var other = first; other < min(end, first + MAX_ROW); other += 1u) {
            at += select(0u, 1u, in_rows[other].y < pair.y);
        }
        stored[min(at, count - 1u)] = pair;
        is_common = select(0u, 1u, last_has(pair));
    }
    let in_both = scan_exclusive(lid, is_common).y;
    if lid == 0u && in_both > 0u {
        atomicAdd(&tallies[TALLY_COMMON], in_both);
    }
}
