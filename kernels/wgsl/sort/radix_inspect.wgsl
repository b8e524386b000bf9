// Finds out whether the keys are in order and in which bits they differ, and makes the counts of
// the first pass.

@group(0) @binding(1) var<storage, read_write> found: array<atomic<u32>>;

var<workgroup> found_here: array<atomic<u32>, 3>;

@compute @workgroup_size(WORKGROUP)
fn inspect(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    atomicStore(&found_here[min(lid, 2u)], 0u);
    atomicStore(&digit_counts[lid], 0u);
    workgroupBarrier();
    let n = min(atomicLoad(&found[N]), params.capacity);
    var unsorted = 0u;
    var differing = vec2<u32>(0u);
    let first_bits = as_words(compared(keys_in[0]));
    let first = group.x * params.tiles_each;
    let rounds = tiles_from(first, n);
    for (var round = 0u; round < rounds; round += 1u) {
        let start = (first + round) * TILE + lid;
        for (var i = 0u; i < ITEMS; i += 1u) {
            let index = start + i * WORKGROUP;
            if index < n {
                let key = keys_in[index];
                let bits = compared(key);
                let next = compared(keys_in[min(index + 1u, n - 1u)]);
                unsorted |= select(0u, 1u, is_less(next, bits));
                differing |= as_words(bits) ^ first_bits;
                atomicAdd(&digit_counts[digit_of(key)], 1u);
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
    store_counts(lid, group.x);
}
