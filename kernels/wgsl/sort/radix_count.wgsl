// Counts the digits of every workgroup, and scans the counts.

// The count of each digit of each workgroup, all workgroups of a digit together; then the sums
// before it. Behind them the number of keys with each digit.
@group(0) @binding(6) var<storage, read_write> table: array<u32>;

// Several counters a digit, so that fewer threads add to one at a time, are no faster on an H200.
var<workgroup> digit_counts: array<atomic<u32>, RADIX>;

fn store_counts(lid: u32, group: u32) {
    table[lid * params.workgroups + group] = atomicLoad(&digit_counts[lid]);
}

@compute @workgroup_size(WORKGROUP)
fn count(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    atomicStore(&digit_counts[lid], 0u);
    workgroupBarrier();
    let n = key_count();
    let plan = planned();
    let first = group.x * params.tiles_each;
    let rounds = plan.y * tiles_from(first, n);
    let from_index = half_read(plan) * params.capacity;
    for (var round = 0u; round < rounds; round += 1u) {
        let start = (first + round) * TILE + lid;
        for (var i = 0u; i < ITEMS; i += 1u) {
            let index = start + i * WORKGROUP;
            if index < n {
                atomicAdd(&digit_counts[digit_of(key_at(plan, from_index, index))], 1u);
            }
        }
    }
    workgroupBarrier();
    store_counts(lid, group.x);
}

// Returns the half of scratch memory that a pass reads, unless it is the first that runs.
fn half_read(plan: vec3<u32>) -> u32 {
    return (plan.x + 1u) & 1u;
}

fn key_at(plan: vec3<u32>, from_index: u32, index: u32) -> Key {
    if plan.x == 0u {
        return keys_in[index];
    }
    return keys[from_index + index];
}

// A workgroup scans the counts of one digit.
fn scan_digit(lid: u32, digit: u32) {
    let workgroups = params.workgroups * planned().y;
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
        table[RADIX * params.workgroups + digit] = before;
    }
}
