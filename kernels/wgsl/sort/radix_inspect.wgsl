// Copies keys and values to scratch memory, and finds out whether the keys are in order and in
// which bits they differ.

@group(0) @binding(1) var<storage, read_write> found: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> keys_in: array<Key>;

var<workgroup> found_here: array<atomic<u32>, 3>;

@compute @workgroup_size(WORKGROUP)
fn inspect(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let start = (group.y * groups.x + group.x) * TILE;
    atomicStore(&found_here[min(lid, 2u)], 0u);
    workgroupBarrier();
    var unsorted = 0u;
    var differing = vec2<u32>(0u);
    let first = as_words(compared(keys_in[0]));
    for (var i = 0u; i < ITEMS; i += 1u) {
        let index = start + i * WORKGROUP + lid;
        if index < params.n {
            let key = keys_in[index];
            keys[index] = key;
            copy_value(index);
            let bits = compared(key);
            let next = compared(keys_in[min(index + 1u, params.n - 1u)]);
            unsorted |= select(0u, 1u, is_less(next, bits));
            differing |= as_words(bits) ^ first;
        }
    }
    atomicOr(&found_here[0], unsorted);
    atomicOr(&found_here[1], differing.x);
    atomicOr(&found_here[2], differing.y);
    workgroupBarrier();
    if lid < 3u {
        atomicOr(&found[UNSORTED + lid], atomicLoad(&found_here[lid]));
    }
}

// Decides which passes run, and which half of scratch memory each reads.
@compute @workgroup_size(1)
fn plan() {
    let unsorted = atomicLoad(&found[UNSORTED]);
    let words = vec2<u32>(atomicLoad(&found[VARYING]), atomicLoad(&found[VARYING + 1u]));
    let differing = from_words(words);
    var run = 0u;
    for (var at = 0u; at < params.passes; at += 1u) {
        let begin = params.begin + 8u * at;
        let differs = digit_of_bits(differing, begin, min(begin + 8u, params.end)) != 0u;
        let runs = select(0u, unsorted, differs);
        atomicStore(&found[FIRST_PASS + 2u * at], runs);
        atomicStore(&found[FIRST_PASS + 2u * at + 1u], run & 1u);
        run += runs;
    }
    atomicStore(&found[N], params.n);
    atomicStore(&found[PASSES], params.passes);
    atomicStore(&found[PASSES_RUN], run);
    atomicStore(&found[SORTED_HALF], run & 1u);
}
