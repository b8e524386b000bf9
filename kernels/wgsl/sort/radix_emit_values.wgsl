// Copies the sorted values to the caller's buffer, where that is also an input.

@compute @workgroup_size(WORKGROUP)
fn emit_values(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let from_index = sorted_index();
    let first = group.x * params.tiles_each;
    let end = min((first + params.tiles_each) * TILE, key_count());
    for (var index = first * TILE + lid; index < end; index += WORKGROUP) {
        values_out[index] = values[from_index + index];
    }
}
