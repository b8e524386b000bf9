// Copies the sorted keys to the caller's buffer.

@group(0) @binding(8) var<storage, read_write> keys_out: array<Key>;

@compute @workgroup_size(WORKGROUP)
fn emit_keys(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let start = (group.y * groups.x + group.x) * TILE;
    let from_index = state[SORTED_HALF] * params.n;
    for (var i = 0u; i < ITEMS; i += 1u) {
        let index = start + i * WORKGROUP + lid;
        if index < params.n {
            keys_out[index] = keys[from_index + index];
        }
    }
}
