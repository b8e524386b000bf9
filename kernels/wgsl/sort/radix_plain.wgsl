// The kernels that scan and scatter, without subgroups.

@compute @workgroup_size(WORKGROUP)
fn scan(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    scan_digit(lid, group.x);
}

@compute @workgroup_size(WORKGROUP)
fn scatter(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    scatter_tiles(lid, group.x);
}
