// Finds out whether the keys are in order and in which bits they differ, and makes the counts of
// the first pass.

@group(0) @binding(1) var<storage, read_write> found: array<atomic<u32>>;

var<workgroup> found_here: array<atomic<u32>, 3>;

@compute @workgroup_size(WORKGROUP)
fn inspect(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    inspect_keys(lid, group.x, params.capacity);
}

// Where the number of keys is on the device.
@group(0) @binding(7) var<storage, read> key_counts: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn inspect_counted(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
) {
    let n = min(key_counts[params.count_at], params.capacity);
    if group.x == 0u && lid == 0u {
        atomicStore(&found[N], n);
    }
    inspect_keys(lid, group.x, n);
}

fn inspect_keys(lid: u32, group: u32, n: u32) {
    atomicStore(&found_here[min(lid, 2u)], 0u);
    clear_counts(lid);
    workgroupBarrier();
    var unsorted = 0u;
    var differing = vec2<u32>(0u);
    let first_bits = as_words(compared(keys_in[0]));
    let first = group * params.tiles_each;
    let rounds = tiles_from(first, n);
    let counted = select(1u, params.passes, is_few());
    for (var round = 0u; round < rounds; round += 1u) {
        let start = (first + round) * TILE + lid;
        for (var i = 0u; i < ITEMS; i += 1u) {
            loaded[i] = keys_in[min(start + i * WORKGROUP, n - 1u)];
        }
        for (var i = 0u; i < ITEMS; i += 1u) {
            let bits = compared(loaded[i]);
            // Of the neighbour's own item, which is in the cache; beyond the last there is none.
            let next = compared(keys_in[min(start + i * WORKGROUP + 1u, n - 1u)]);
            unsorted |= select(0u, 1u, is_less(next, bits));
            differing |= as_words(bits) ^ first_bits;
        }
        for (var i = 0u; i < ITEMS; i += 1u) {
            if start + i * WORKGROUP < n {
                for (var at = 0u; at < counted; at += 1u) {
                    count_digit(at, digit_in_pass(ordered(loaded[i]), at));
                }
            }
        }
    }
    atomicOr(&found_here[0], unsorted);
    atomicOr(&found_here[1], differing.x);
    atomicOr(&found_here[2], differing.y);
    workgroupBarrier();
    if lid < 3u {
        atomicOr(&found[UNSORTED + lid], atomicLoad(&found_here[lid]));
    }
    for (var at = 0u; at < counted; at += 1u) {
        table[table_of(at) + count_index(lid, group)] = counted_here(lid, at);
        if is_few() {
            // Where the pass before counts.
            table[table_of(at + params.passes) + count_index(lid, group)] = 0u;
        }
    }
}
