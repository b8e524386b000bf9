// Stores the boxes in sweep order, counts the tests of each, and numbers all tests.

// The indices of the boxes in sweep order.
@group(0) @binding(3) var<storage, read> order: array<u32>;
// The index of the box with the bits of its first column, and its `max` on the sweep axis.
@group(0) @binding(5) var<storage, read_write> names: array<vec2<u32>>;
// The first test of each entry.
@group(0) @binding(8) var<storage, read_write> starts: array<vec2<u32>>;
// The number of tests of each entry.
@group(0) @binding(6) var<storage, read_write> runs: array<u32>;
// The number of tests of each workgroup of entries; then of all before it.
@group(0) @binding(7) var<storage, read_write> sums: array<vec2<u32>>;
// The number of all tests.
@group(0) @binding(10) var<storage, read_write> total: array<u32>;

// Returns the end of the run of an entry: the first entry after it that is beyond `high`. Most runs
// are short, so steps of twice the length come before the search by halves.
fn run_end(entry: u32, own: Key, high: u32) -> u32 {
    var low_end = entry + 1u;
    var high_end = params.entries;
    for (var reach = 4u; entry + reach < high_end; reach *= 2u) {
        if is_beyond(keys[entry + reach], own, high) {
            high_end = entry + reach;
        } else {
            low_end = entry + reach + 1u;
        }
    }
    for (var left = high_end - low_end; left > 0u; left >>= 1u) {
        let middle = low_end + (high_end - low_end) / 2u;
        if middle < high_end {
            if is_beyond(keys[middle], own, high) {
                high_end = middle;
            } else {
                low_end = middle + 1u;
            }
        }
    }
    return low_end;
}

// Returns the sum of the runs of all threads before this one, and the sum of all. With many entries
// halves of words are summed, so that no sum overflows. A run has fewer tests than there are
// entries, and a box at most 2^16 copies.
fn scan_runs(lid: u32, run: u32) -> vec4<u32> {
    if params.entries <= (1u << 24u) {
        let sums = scan_exclusive(lid, run);
        return vec4<u32>(sums.x, 0u, sums.y, 0u);
    }
    let low = scan_exclusive(lid, run & 0xffffu);
    let high = scan_exclusive(lid, run >> 16u);
    let before = plus(vec2<u32>(low.x, 0u), vec2<u32>(high.x << 16u, high.x >> 16u));
    let all = plus(vec2<u32>(low.y, 0u), vec2<u32>(high.y << 16u, high.y >> 16u));
    return vec4<u32>(before, all);
}

@compute @workgroup_size(WORKGROUP)
fn arrange(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let block = group_index(group, groups);
    let entry = block * WORKGROUP + lid;
    var run = 0u;
    if entry < params.entries {
        let name = order[entry] | params.first_columns;
        let index = name & ~FIRST_COLUMNS;
        entries[entry] = entry_of_box(index);
        let own = keys[entry];
        let high = bound(index, params.axis + 3u);
        names[entry] = vec2<u32>(name, high);
        if low_of(own) <= high {
            run = run_end(entry, own, high - params.rule) - (entry + 1u);
        }
        runs[entry] = run;
    }
    let all = scan_runs(lid, run).zw;
    if lid == 0u && block * WORKGROUP < params.entries {
        sums[block] = all;
    }
}

var<workgroup> part_sums: array<vec2<u32>, WORKGROUP>;

// One workgroup scans the sums, each thread a part of them.
@compute @workgroup_size(WORKGROUP)
fn scan_sums(@builtin(local_invocation_index) lid: u32) {
    let blocks = (params.entries + WORKGROUP - 1u) / WORKGROUP;
    let each = (blocks + WORKGROUP - 1u) / WORKGROUP;
    let first = min(lid * each, blocks);
    let end = min(first + each, blocks);
    var sum = vec2<u32>(0u);
    for (var block = first; block < end; block += 1u) {
        sum = plus(sum, sums[block]);
    }
    part_sums[lid] = sum;
    workgroupBarrier();
    var before = vec2<u32>(0u);
    for (var part = 0u; part < lid; part += 1u) {
        before = plus(before, part_sums[part]);
    }
    for (var block = first; block < end; block += 1u) {
        let counted = sums[block];
        sums[block] = before;
        before = plus(before, counted);
    }
    if lid == WORKGROUP - 1u {
        total[TESTS] = before.x;
        total[TESTS + 1u] = before.y;
    }
}

@compute @workgroup_size(WORKGROUP)
fn place_starts(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let block = group_index(group, groups);
    let entry = block * WORKGROUP + lid;
    var run = 0u;
    if entry < params.entries {
        run = runs[entry];
    }
    let before = scan_runs(lid, run).xy;
    if entry < params.entries {
        starts[entry] = plus(sums[block], before);
    }
}
