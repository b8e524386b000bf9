// Copies the sorted keys to the caller's buffer, where that is also the input.

// Returns the index of the first sorted element in scratch memory.
fn sorted_index() -> u32 {
    let run = max(planned().z, 1u);
    return ((run + 1u) & 1u) * params.capacity;
}

@compute @workgroup_size(WORKGROUP)
fn emit_keys(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let from_index = sorted_index();
    let first = group.x * params.tiles_each;
    let end = min((first + params.tiles_each) * TILE, key_count());
    for (var index = first * TILE + lid; index < end; index += WORKGROUP) {
        keys_out[index] = keys[from_index + index];
    }
}
