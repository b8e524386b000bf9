// Lists of pairs that stay on the device.
//
// `store_pairs` unpacks pairs in order, the smaller index first: 16 bytes a pair, bound by memory.
// `count_common` counts the pairs of one list that another one has: 8 bytes a pair and a search of
// log2 n steps, bound by the latency of these.

struct ListParams {
    // The numbers of pairs of the list, at most, and of the one that is searched.
    pairs: u32,
    last_pairs: u32,
    // The bits of an index in a packed pair.
    index_bits: u32,
    unused: u32,
}

@group(0) @binding(0) var<uniform> params: ListParams;
@group(0) @binding(1) var<storage, read> listed: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read_write> stored: array<vec2<u32>>;
// The number of common pairs, in two words.
@group(0) @binding(4) var<storage, read_write> counters: array<atomic<u32>>;
// The number of pairs that a search has found, in two words.
@group(0) @binding(5) var<storage, read> found: array<u32>;

// Returns the number of pairs of the list: no more than were found.
fn pair_count() -> u32 {
    return select(params.pairs, min(found[0], params.pairs), found[1] == 0u);
}

@compute @workgroup_size(WORKGROUP)
fn store_pairs(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let index = index_of(lid, group, groups);
    if index < pair_count() {
        let key = listed[index];
        let bits = params.index_bits;
        let row = (key.x >> bits) | (key.y << (32u - bits));
        stored[index] = vec2<u32>(row, key.x & ((1u << bits) - 1u));
    }
}

@compute @workgroup_size(WORKGROUP)
fn count_common(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let index = index_of(lid, group, groups);
    var is_common = 0u;
    if index < pair_count() && last_has(listed[index]) {
        is_common = 1u;
    }
    let in_both = scan_exclusive(lid, is_common).y;
    if lid == 0u && in_both > 0u {
        let before = atomicAdd(&counters[0], in_both);
        if before + in_both < before {
            atomicAdd(&counters[1], 1u);
        }
    }
}
