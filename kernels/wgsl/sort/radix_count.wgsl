// Counts the digits of every workgroup, and scans the counts.

// The count of each digit of each workgroup, all workgroups of a digit together; then the sums
// before it. Behind them the number of keys with each digit. Where there are few workgroups, each
// pass has two tables without sums, all digits of a workgroup together: that of `inspect`, for the
// first that runs, and that of the pass before.
@group(0) @binding(6) var<storage, read_write> table: array<u32>;

// The counts of this workgroup; of all passes where there are few workgroups. Several counters a
// digit, so that fewer threads add to one at a time, are no faster on an H200.
var<workgroup> pass_counts: array<atomic<u32>, 8u * RADIX>;

var<private> loaded: array<Key, ITEMS>;

fn clear_counts(lid: u32) {
    for (var at = 0u; at < 8u; at += 1u) {
        atomicStore(&pass_counts[at * RADIX + lid], 0u);
    }
}

fn count_digit(at: u32, digit: u32) {
    atomicAdd(&pass_counts[at * RADIX + digit], 1u);
}

fn counted_here(digit: u32, at: u32) -> u32 {
    return atomicLoad(&pass_counts[at * RADIX + digit]);
}

@compute @workgroup_size(WORKGROUP)
fn count(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    atomicStore(&pass_counts[lid], 0u);
    workgroupBarrier();
    let n = key_count();
    let plan = planned();
    let first = group.x * params.tiles_each;
    let rounds = plan.y * tiles_from(first, n);
    let from_index = half_read(plan) * params.capacity;
    for (var round = 0u; round < rounds; round += 1u) {
        let start = (first + round) * TILE + lid;
        // All loads come first, so that their waits overlap.
        if plan.x == 0u {
            for (var i = 0u; i < ITEMS; i += 1u) {
                loaded[i] = keys_in[min(start + i * WORKGROUP, n - 1u)];
            }
        } else {
            for (var i = 0u; i < ITEMS; i += 1u) {
                loaded[i] = keys[from_index + min(start + i * WORKGROUP, n - 1u)];
            }
        }
        for (var i = 0u; i < ITEMS; i += 1u) {
            if start + i * WORKGROUP < n {
                count_digit(0u, digit_of(loaded[i]));
            }
        }
    }
    workgroupBarrier();
    table[count_index(lid, group.x)] = counted_here(lid, 0u);
}

// Returns the half of scratch memory that a pass reads, unless it is the first that runs.
fn half_read(plan: vec3<u32>) -> u32 {
    return (plan.x + 1u) & 1u;
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
