// Counts the digits of every workgroup, and scans the counts.

// The count of each digit of each workgroup, all workgroups of a digit together; then the sums
// before it.
@group(0) @binding(6) var<storage, read_write> table: array<u32>;
// The number of keys with each digit.
@group(0) @binding(7) var<storage, read_write> totals: array<u32>;

// Several counters a digit, so that fewer threads add to one at a time, are no faster on an H200.
var<workgroup> digit_counts: array<atomic<u32>, RADIX>;

@compute @workgroup_size(WORKGROUP)
fn count(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    atomicStore(&digit_counts[lid], 0u);
    workgroupBarrier();
    let first = group.x * params.tiles_each;
    let rounds = tiles_to_take(first);
    let from_index = half_read() * params.n;
    for (var round = 0u; round < rounds; round += 1u) {
        let start = (first + round) * TILE + lid;
        for (var i = 0u; i < ITEMS; i += 1u) {
            let index = start + i * WORKGROUP;
            if index < params.n {
                atomicAdd(&digit_counts[digit_of(keys[from_index + index])], 1u);
            }
        }
    }
    workgroupBarrier();
    table[lid * params.workgroups + group.x] = atomicLoad(&digit_counts[lid]);
}

// A workgroup scans the counts of one digit.
fn scan_digit(lid: u32, digit: u32) {
    let workgroups = params.workgroups * runs();
    var before = 0u;
    for (var start = 0u; start < workgroups; start += WORKGROUP) {
        let index = start + lid;
        let at = digit * params.workgroups + min(index, params.workgroups - 1u);
        let counted = select(0u, table[at], index < params.workgroups);
        let sums = scan_exclusive(lid, counted);
        if index < params.workgroups {
            table[at] = before + sums.x;
        }
        before += sums.y;
    }
    if lid == 0u {
        totals[digit] = before;
    }
}
