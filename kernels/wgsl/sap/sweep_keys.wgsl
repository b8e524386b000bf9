// Makes the key of each box. Empty boxes have the last key.

// The keys, sorted after the sort.
@group(0) @binding(2) var<storage, read_write> keys: array<Key>;

@compute @workgroup_size(WORKGROUP)
fn make_keys(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let index = index_of(lid, group, groups);
    if index < params.entries {
        let low = bound(index, params.axis);
        let is_empty = low > bound(index, params.axis + 3u);
        if is_empty {
            keys[index] = last_key();
        } else {
            keys[index] = key_of(index, low);
        }
    }
}
