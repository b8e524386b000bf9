// Counts the digits of every tile, and scans the counts.

// The count of each digit in each tile, all tiles of a digit together; then the sums before it.
@group(0) @binding(6) var<storage, read_write> table: array<u32>;
// The number of keys with each digit.
@group(0) @binding(7) var<storage, read_write> totals: array<u32>;

var<workgroup> digit_counts: array<atomic<u32>, RADIX>;

@compute @workgroup_size(WORKGROUP)
fn count(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let tile = group.y * groups.x + group.x;
    let rounds = select(0u, runs(), tile < params.tiles);
    let from_index = half_read() * params.n;
    for (var round = 0u; round < rounds; round += 1u) {
        atomicStore(&digit_counts[lid], 0u);
        workgroupBarrier();
        for (var i = 0u; i < ITEMS; i += 1u) {
            let index = tile * TILE + i * WORKGROUP + lid;
            if index < params.n {
                atomicAdd(&digit_counts[digit_of(keys[from_index + index])], 1u);
            }
        }
        workgroupBarrier();
        table[lid * params.tiles + tile] = atomicLoad(&digit_counts[lid]);
    }
}

// One workgroup scans the counts of one digit.
@compute @workgroup_size(WORKGROUP)
fn scan(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let digit = group.x;
    let tiles = params.tiles * runs();
    var before = 0u;
    for (var start = 0u; start < tiles; start += WORKGROUP) {
        let tile = start + lid;
        let at = digit * params.tiles + min(tile, params.tiles - 1u);
        let counted = select(0u, table[at], tile < params.tiles);
        let sums = scan_exclusive(lid, counted);
        if tile < params.tiles {
            table[at] = before + sums.x;
        }
        before += sums.y;
    }
    if lid == 0u {
        totals[digit] = before;
    }
}
